package providertest

import (
	"context"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

var lifeCases = []Case{
	{
		"steer", `Root: says "[root] hello", holds at root. A message comes; root says "[root] noted", completes.`,
		func(s *stage) {
			s.start("Go.")
			s.says("[root] hello")
			in := s.guide()
			s.check(in.Turn == s.in.Turn, "it joined another turn")
			s.release("root")
			s.says("[root] noted")
			v := s.settles(agent.OutcomeCompleted)
			s.check(status(v, in.Message) == agent.MessageCompleted, "the message is %s", status(v, in.Message))
		},
	},
	{
		"guide-children", `Root: delegates to one in the background, completes. One: says "[one] hi", holds at one, completes.
A message comes while only one runs; root says "[root] noted", completes.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.await("the root waits for its child", func(v View) bool { return v.Held[s.in.Turn] == agent.HeldByChildren })
			in := s.guide()
			s.says("[root] noted")
			s.check(s.View().Session(one.ID).ActiveTurn != nil, "the child ended over it")
			s.release("one")
			s.ends(one.ID, agent.OutcomeCompleted)
			v := s.settles(agent.OutcomeCompleted)
			turns := 2
			if s.reserves { // the wait after the child
				turns = 3
			}
			s.check(len(v.ProviderTurns) == turns, "%d provider turns, want %d", len(v.ProviderTurns), turns)
			s.check(status(v, in.Message) == agent.MessageCompleted, "the message is %s", status(v, in.Message))
		},
	},
	{
		"close", busyScript + `The runtime is closed while all run.`,
		func(s *stage) {
			s.busy()
			s.closeRuntime()
			s.check(s.rt.Start(s.t.Context(), s.in) != nil, "a closed runtime took a message")
			s.check(s.Lost() == 0, "Close was reported as a loss")
			s.lose() // as storage would be told
		},
	},
	{
		"forget", busyScript + `One is deleted while all run; root then says "[root] done" and completes.`,
		func(s *stage) {
			one, two := s.busy()
			s.rt.Forget(s.t.Context(), s.Delete(one.ID))
			s.release("one")
			s.release("two")
			s.ends(two.ID, agent.OutcomeCompleted)
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 1, "the deleted child is back")
		},
	},
	{
		"resume", `First message: as plain. After the runtime was closed and opened again, second message: root says "[root] again", completes.`,
		func(s *stage) {
			s.start("Go.")
			v := s.settles(agent.OutcomeCompleted)
			native := v.Root().ProviderSessionID
			s.closeRuntime()
			s.Reopened()
			s.rt = nil
			s.again()
			v = s.settles(agent.OutcomeCompleted)
			s.check(v.Root().ProviderSessionID == native, "it went on as another session: %q, was %q", v.Root().ProviderSessionID, native)
			s.check(len(v.ProviderTurns) == 2, "%d provider turns, want 2: keys must not repeat", len(v.ProviderTurns))
		},
	},
	{
		"canceled-open", `Nothing: it is not opened.`,
		func(s *stage) {
			ctx, cancel := context.WithCancel(s.t.Context())
			cancel()
			began := time.Now()
			rt, err := s.play.Adapter.Open(ctx, s.OpenParams(), s.Sink)
			s.check(err != nil && rt == nil, "Open under a canceled context gave a runtime")
			s.check(time.Since(began) < s.lim, "it took %v", time.Since(began))
			s.roots = 0
		},
	},
	{
		"death-root", `Root: says "[root] hello", then its process dies (from outside, or after a second).`,
		func(s *stage) {
			s.start("Go.")
			s.says("[root] hello")
			s.kill()
			v := s.settles(agent.OutcomeInterrupted)
			s.check(v.RootTurn().Error != nil, "no reason is given")
			s.dead()
		},
	},
	{
		"death-children", `Root: delegates to one in the background, completes. One: says "[one] hi"; the process dies (from outside, or after three seconds).`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.await("the root waits for its child", func(v View) bool { return v.Held[s.in.Turn] == agent.HeldByChildren })
			s.kill()
			s.ends(one.ID, agent.OutcomeInterrupted)
			s.settles(agent.OutcomeCompleted) // the outcome that was retained
			s.dead()
		},
	},
	{
		"death-asking", askScript + `the process dies over the question (from outside, or three seconds later).`,
		func(s *stage) {
			s.start("Go.")
			i := s.asked()
			s.kill()
			v := s.settles(agent.OutcomeInterrupted)
			s.check(v.Interactions[0].Status == agent.InteractionSuperseded, "the question is %s", v.Interactions[0].Status)
			err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: i.Options[0].ID}})
			s.check(err != nil, "a dead process took an answer")
			s.dead()
		},
	},
	{
		"death-idle", `As plain; later (from outside, or three seconds after its end) the process dies.`,
		func(s *stage) {
			s.start("Go.")
			before := s.settles(agent.OutcomeCompleted)
			s.kill()
			s.dead()
			s.check(s.View().RootTurn().Outcome == before.RootTurn().Outcome, "a settled turn changed")
		},
	},
}

// guide sends a message into the open root turn.
func (s *stage) guide() provider.Input {
	s.t.Helper()
	in := s.Guidance(s.Root, "And one more thing.")
	if err := s.rt.Guide(s.t.Context(), in); err != nil {
		s.t.Fatalf("Guide: %v", err)
	}
	return in
}

// dead waits for the runtime's end after a death and checks that it was told.
func (s *stage) dead() {
	s.t.Helper()
	s.done()
	s.check(s.Lost() >= 1, "the death was not reported")
	s.check(s.View().LiveChildren() == 0, "a child is still live")
	ctx, cancel := context.WithTimeout(s.t.Context(), cancelBound)
	defer cancel()
	err := s.rt.Start(ctx, provider.Input{Turn: s.in.Turn, Message: s.in.Message, Text: "Hello?"})
	s.check(err != nil, "a dead runtime took a message")
}

// lose does what is done for a runtime that was closed: its turns end.
func (s *stage) lose() {
	_, _ = s.Model.Apply(context.Background(), agent.SessionLost{Session: s.Root, Err: agent.Errorf(agent.CodeProviderGone, "closed")}) // the model has no Fail here
}

func status(v View, id agent.MessageID) agent.MessageStatus {
	for _, m := range v.Messages {
		if m.ID == id {
			return m.Status
		}
	}
	return ""
}
