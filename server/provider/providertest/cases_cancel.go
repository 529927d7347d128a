package providertest

import (
	"context"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// cancelBound is how long a cancel of the suite may take.
const cancelBound = 10 * time.Second

const busyScript = `Root: delegates to one and two at the same time and waits for both. One: says "[one] hi", holds at one, completes.
Two: says "[two] hi", holds at two, completes. `

var cancelCases = []Case{
	{
		"cancel-root", busyScript + `Then everything is stopped; the provider confirms what it can.`,
		func(s *stage) {
			s.busy()
			caps := s.View().Root().Capabilities
			c := s.PrepareCancel(s.in.Turn)
			states := s.cancel(c)
			v := s.settles(agent.OutcomeCanceled)
			s.check(v.RootTurn().Error == nil, "a canceled turn has an error")
			s.check(!caps.ConfirmsCancel || states[0] == agent.TargetCanceled, "the root's stop was not confirmed: %v", states)
			for i, t := range c.Targets[1:] {
				s.check(!caps.ConfirmsChildCancel || states[i+1] == agent.TargetCanceled, "child %s was not confirmed: %v", t.Session, states)
			}
			s.await("the provider's own terminal is reported", func(v View) bool {
				return v.ProviderTurns[0].Phase == agent.ProviderEnded
			})
			s.again() // the session goes on
			s.check(alive(s.View().Turn(s.in.Turn)), "the next turn did not start")
			s.stopAll()
		},
	},
	{
		"cancel-child", busyScript + `Root then says "[root] done" and completes. One alone is stopped; two goes on.`,
		func(s *stage) {
			one, two := s.busy()
			caps := s.View().Root().Capabilities
			c := s.PrepareCancel(one.LatestTurn.ID)
			s.check(len(c.Targets) == 1 && !c.Root, "targets are %+v", c)
			states := s.cancel(c)
			s.check(!caps.ConfirmsChildCancel || states[0] == agent.TargetCanceled, "the child's stop was not confirmed: %v", states)
			v := s.View()
			s.check(v.Session(two.ID).ActiveTurn != nil && alive(v.Turn(s.in.Turn)), "stopping one touched the other, or the root")
			s.release("two")
			s.ends(two.ID, agent.OutcomeCompleted)
			s.settles(agent.OutcomeCompleted)
		},
	},
	{
		"cancel-asking", askScript + `the question stays open until everything is stopped.`,
		func(s *stage) {
			s.start("Go.")
			i := s.asked()
			s.cancel(s.PrepareCancel(s.in.Turn))
			v := s.settles(agent.OutcomeCanceled)
			s.check(v.Interactions[0].Status == agent.InteractionSuperseded, "the question is %s", v.Interactions[0].Status)
			err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: i.Options[0].ID}})
			s.check(err != nil, "an answer after the stop was taken")
		},
	},
	{
		"cancel-settled-child", `Root: delegates to one in the background, says "[root] hello", holds at root. One: says "[one] hi", completes.
Then a stop names one's turn, which has ended.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.ends(one.ID, agent.OutcomeCompleted)
			c := provider.Cancel{Turn: s.in.Turn, Targets: []provider.CancelTarget{{Session: one.ID, Turn: one.LatestTurn.ID}}}
			s.cancel(c)
			s.check(s.EvidenceOf(one.LatestTurn.ID) != agent.TargetCanceled, "the stop of a turn that had ended was confirmed as a stop")
			s.check(s.View().Session(one.ID).LatestTurn.Outcome == agent.OutcomeCompleted, "its outcome changed")
			s.release("root")
			s.settles(agent.OutcomeCompleted)
		},
	},
	{
		"spawn-after-cancel", busyScript + `Root ignores its stop long enough to delegate to stray (at the point spawn, or two seconds later); stray says "[stray] hi".`,
		func(s *stage) {
			s.busy()
			c := s.PrepareCancel(s.in.Turn)
			s.release("spawn")
			s.cancel(c)
			s.settles(agent.OutcomeCanceled)
			s.roots++
			s.quiet()
			s.check(len(s.View().Children()) == 2, "a child was born under a canceled root")
		},
	},
	{
		"unasked", `Root: says "[root] done", completes. Later (at the point unasked, or 3 s) the provider starts a turn by itself that says "[root] by the way" and completes.`,
		func(s *stage) {
			s.start("Go.")
			s.settles(agent.OutcomeCompleted)
			s.release("unasked")
			s.says("[root] by the way")
			v := s.await("its end", func(v View) bool { return v.RootTurn().Phase == agent.PhaseSettled && v.RootTurn().ID != s.in.Turn })
			s.check(v.RootTurn().Trigger == agent.TriggerProvider, "its trigger is %s", v.RootTurn().Trigger)
			s.roots++
		},
	},
	{
		"unasked-after-cancel", `Root: says "[root] hello", holds at root; it is stopped. Later (at the point unasked, or 3 s after the turn would have gone on)
the provider starts a turn by itself that says "[root] by the way".`,
		func(s *stage) {
			s.start("Go.")
			s.says("[root] hello")
			s.cancel(s.PrepareCancel(s.in.Turn))
			s.settles(agent.OutcomeCanceled)
			s.release("unasked")
			s.roots++
			s.quiet()
			s.check(s.View().Holder("[root] by the way").ID == "", "work that nobody asked for was shown after a stop")
		},
	},
}

// busy starts a turn with two running children.
func (s *stage) busy() (one, two agent.Session) {
	s.t.Helper()
	s.start("Go.")
	return s.says("[one] hi"), s.says("[two] hi")
}

// cancel asks for a stop, checks the evidence and completes it; it returns what each
// target's row reads.
func (s *stage) cancel(c provider.Cancel) []agent.TargetState {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), cancelBound)
	defer done()
	err := s.rt.Cancel(ctx, c, s.Heard)
	s.check(err == nil || ctx.Err() != nil, "Cancel: %v", err)
	for _, e := range s.Evidence() {
		exact := slices.Contains(c.Targets, provider.CancelTarget{Session: e.SessionID, Turn: e.TurnID})
		s.check(exact, "evidence of %s %s, which is no target", e.SessionID, e.TurnID)
		known := e.State == agent.TargetAcknowledged || e.State == agent.TargetCanceled || e.State == agent.TargetAlreadyTerminal
		s.check(known || (e.State == "" && e.Err != nil), "evidence says %q", e.State)
	}
	return s.CompleteCancel(c, s.Evidence())
}

// stopAll stops the latest root turn, so that a case ends quickly.
func (s *stage) stopAll() {
	s.t.Helper()
	s.evidenceReset()
	s.cancel(s.PrepareCancel(s.in.Turn))
	s.settles(agent.OutcomeCanceled)
}

func (s *stage) evidenceReset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evidence = nil
}

// quiet waits until whatever was under way has come: the provider takes another
// message and its turn runs or ends.
func (s *stage) quiet() {
	s.t.Helper()
	if s.play.Release == nil {
		time.Sleep(30 * time.Second) // virtual time: a script that goes by time has no other sign
	}
	before := len(s.View().ProviderTurns)
	s.in = s.Submit(s.Root, "Again.")
	if err := s.rt.Start(s.t.Context(), s.in); err != nil {
		s.t.Fatalf("Start: %v", err)
	}
	s.await("the next turn is under way", func(v View) bool { return len(v.ProviderTurns) > before })
	s.stopAll()
}
