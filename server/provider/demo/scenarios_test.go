package demo_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// stage is one scenario being played.
type stage struct {
	*providertest.Sink
	t     *testing.T
	rt    provider.Runtime
	in    provider.Input
	began time.Time
}

// play runs f in virtual time with the scenario under way.
func play(t *testing.T, scenario string, f func(t *testing.T, s *stage)) {
	t.Helper()
	playText(t, agent.Session{Provider: demo.Name, Scenario: scenario}, "Go.", f)
}

func playText(t *testing.T, root agent.Session, text string, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Sink: providertest.NewSink(t, root), t: t, began: time.Now()}
		var err error
		if s.rt, err = demo.New(demo.Options{Speed: 1}).Open(t.Context(), s.OpenParams(), s.Sink); err != nil {
			t.Fatal(err)
		}
		s.in = s.Submit(s.Root, text)
		if err := s.rt.Start(t.Context(), s.in); err != nil {
			t.Fatal(err)
		}
		f(t, s)
		if err := s.rt.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Closed()
	})
}

// settles waits for the root turn to settle.
func (s *stage) settles() providertest.View {
	s.t.Helper()
	return s.AwaitFor(s.t, 10*time.Minute, "the root turn settles", func(v providertest.View) bool {
		return v.RootTurn().Phase == agent.PhaseSettled
	})
}

// answers answers the first pending question with an option.
func (s *stage) answers(option string) {
	s.t.Helper()
	v := s.AwaitFor(s.t, time.Minute, "a question", func(v providertest.View) bool { return len(v.Pending()) > 0 })
	a, err := s.PrepareAnswer(v.Pending()[0], agent.Response{OptionID: option})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.rt.Answer(s.t.Context(), a); err != nil {
		s.t.Fatal(err)
	}
	s.CompleteAnswer(a, nil)
}

func (s *stage) outcome(v providertest.View, want agent.Outcome) {
	s.t.Helper()
	if got := v.RootTurn().Outcome; got != want {
		s.t.Errorf("root outcome is %q, want %q\n%s", got, want, v)
	}
}

func TestPlain(t *testing.T) {
	play(t, "", func(t *testing.T, s *stage) {
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if v.Holder("ignores its context").ID != s.Root || v.RootTurn().Usage.InputTokens != 2140 {
			t.Errorf("answer or usage is missing\n%s", v)
		}
	})
}

func TestThreeReviewers(t *testing.T) {
	play(t, "three-reviewers", func(t *testing.T, s *stage) {
		v := s.AwaitFor(t, time.Minute, "the root waits for two agents", func(v providertest.View) bool {
			return v.Held[s.in.Turn] == agent.HeldByChildren && v.LiveChildren() == 2
		})
		if v.Retained[s.in.Turn] != agent.OutcomeCompleted {
			t.Errorf("the root's own outcome is not retained\n%s", v)
		}
		v = s.AwaitFor(t, time.Minute, "a child's question", func(v providertest.View) bool { return len(v.Pending()) == 1 })
		if v.Session(v.Pending()[0].SessionID).Title != "Security reviewer" {
			t.Errorf("the question is not the security reviewer's\n%s", v)
		}
		s.answers("allow")
		v = s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if took := time.Since(s.began); took < 18*time.Second || took > 32*time.Second {
			t.Errorf("it took %v, want 20 to 30 s", took)
		}
		if v.Holder("no crash").Title != "Security reviewer" || len(v.Children()) != 3 {
			t.Errorf("the answer's consequence is missing\n%s", v)
		}
	})
}

func TestNested(t *testing.T) {
	play(t, "nested", func(t *testing.T, s *stage) {
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		depth := 0
		for c := v.Holder("No migration names"); c.ParentSessionID != ""; c = v.Session(c.ParentSessionID) {
			depth++
		}
		if depth != 3 {
			t.Errorf("the deepest agent is at depth %d, want 3\n%s", depth, v)
		}
	})
}

func TestFailingChildLeavesTheRootAlone(t *testing.T) {
	play(t, "failing-child", func(t *testing.T, s *stage) {
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		failed := v.Children()[1].LatestTurn
		if failed.Outcome != agent.OutcomeFailed || failed.Error == nil || !strings.Contains(failed.Error.Message, "overloaded") {
			t.Errorf("the failed child reads %+v", failed)
		}
	})
}

func TestRootFirst(t *testing.T) {
	play(t, "root-first", func(t *testing.T, s *stage) {
		s.Await(t, "the root waits for its child", func(v providertest.View) bool { return v.Held[s.in.Turn] == agent.HeldByChildren })
		s.outcome(s.settles(), agent.OutcomeCompleted)
		records := s.Records()
		if last := records[len(records)-1]; !last.Applied.RootSettled {
			t.Errorf("the root did not settle with its last child, but with %+v", last)
		}
	})
}

func TestContinuationHoldsTheRootWithoutAGap(t *testing.T) {
	play(t, "continuation", func(t *testing.T, s *stage) {
		s.AwaitFor(t, time.Minute, "the continuation is announced", func(v providertest.View) bool {
			return v.Held[s.in.Turn] == agent.HeldByContinuation && v.LiveChildren() == 0
		})
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if v.Holder("SELECT count").ID != s.Root || len(v.ProviderTurns) != 2 {
			t.Errorf("the continuation did not speak\n%s", v)
		}
	})
}

func TestSilentContinuationKeepsTheOutcome(t *testing.T) {
	play(t, "silent-continuation", func(t *testing.T, s *stage) {
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if v.Holder("Too late").ID != "" {
			t.Errorf("the continuation spoke after its end\n%s", v)
		}
	})
}

func TestNeverCancels(t *testing.T) {
	play(t, "never-cancels", func(t *testing.T, s *stage) {
		s.Await(t, "two agents", func(v providertest.View) bool { return v.LiveChildren() == 2 })
		if s.View().Root().Capabilities.ConfirmsCancel {
			t.Error("it claims to confirm a stop")
		}
		c := s.PrepareCancel(s.in.Turn)
		ctx, done := contextFor(t, 15*time.Second)
		defer done()
		if err := s.rt.Cancel(ctx, c, s.Heard); err == nil || len(s.Evidence()) != 0 {
			t.Errorf("Cancel = %v with %v", err, s.Evidence())
		}
		s.CompleteCancel(c, s.Evidence())
		v := s.settles()
		s.outcome(v, agent.OutcomeCanceled)
		for _, c := range v.Children() {
			if c.LatestTurn.Outcome != agent.OutcomeInterrupted {
				t.Errorf("child %s ended as %s, want interrupted", c.Title, c.LatestTurn.Outcome)
			}
		}
	})
}

func TestLateEventsChangeNothing(t *testing.T) {
	play(t, "late", func(t *testing.T, s *stage) {
		v := s.settles()
		time.Sleep(time.Minute)
		after := s.View()
		s.outcome(after, agent.OutcomeCompleted)
		if after.Children()[0].LatestTurn.Outcome != agent.OutcomeCompleted || len(after.Turns) != len(v.Turns) {
			t.Errorf("late events changed a turn\n%s", after)
		}
		if after.Holder("Talker, late").Title != "Talker" {
			t.Errorf("late words are lost\n%s", after)
		}
	})
}

func TestDuplicatesCountOnce(t *testing.T) {
	play(t, "duplicates", func(t *testing.T, s *stage) {
		s.answers("allow")
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if len(v.Children()) != 1 || len(v.Interactions) != 1 || len(v.ProviderTurns) != 1 {
			t.Errorf("something is there twice\n%s", v)
		}
	})
}

func TestDeath(t *testing.T) {
	for scenario, want := range map[string]agent.Outcome{"death": agent.OutcomeInterrupted, "death-after-root": agent.OutcomeCompleted} {
		play(t, scenario, func(t *testing.T, s *stage) {
			v := s.settles()
			s.outcome(v, want)
			<-s.rt.Done()
			if s.Lost() != 1 || v.Children()[0].LatestTurn.Outcome != agent.OutcomeInterrupted {
				t.Errorf("the death is not told right\n%s", v)
			}
			if err := s.rt.Guide(t.Context(), s.in); err == nil {
				t.Error("a dead runtime took a message")
			}
		})
	}
}

func TestEarlyAndOrphanEvents(t *testing.T) {
	play(t, "early", func(t *testing.T, s *stage) {
		v := s.settles()
		if v.Holder("before my edge").Title != "Early" || v.Holder("Nobody knows").ID != "" || len(v.Children()) != 1 {
			t.Errorf("events went to the wrong owner\n%s", v)
		}
		if s.Diagnosed(provider.Held) == 0 || s.Diagnosed(provider.Unrouted) == 0 {
			t.Errorf("held or unrouted events are not counted: %v", s.Diagnostics())
		}
	})
}

func TestFifty(t *testing.T) {
	play(t, "fifty", func(t *testing.T, s *stage) {
		v := s.settles()
		s.outcome(v, agent.OutcomeCompleted)
		if len(v.Children()) != 50 || v.Children()[49].Title != "Worker 50" {
			t.Errorf("%d agents, want 50", len(v.Children()))
		}
	})
}

func TestWithdrawnQuestionCannotBeAnswered(t *testing.T) {
	play(t, "withdrawn", func(t *testing.T, s *stage) {
		v := s.settles()
		i := v.Interactions[0]
		if i.Status != agent.InteractionSuperseded {
			t.Errorf("the question is %s", i.Status)
		}
		if err := s.rt.Answer(t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: "sqlite"}}); err == nil {
			t.Error("an answer to a withdrawn question was taken")
		}
	})
}

func TestUnaskedTurnIsItsOwn(t *testing.T) {
	play(t, "unasked", func(t *testing.T, s *stage) {
		v := s.AwaitFor(t, time.Minute, "a second root turn", func(v providertest.View) bool {
			return len(v.Turns) == 2 && v.RootTurn().Phase == agent.PhaseSettled
		})
		if v.RootTurn().Trigger != agent.TriggerProvider {
			t.Errorf("its trigger is %s", v.RootTurn().Trigger)
		}
	})
}

func TestMessageNamesTheScenario(t *testing.T) {
	playText(t, agent.Session{Provider: demo.Name}, "Show me root-first, please.", func(t *testing.T, s *stage) {
		if v := s.settles(); len(v.Children()) != 1 {
			t.Errorf("the scenario was not played\n%s", v)
		}
	})
}

func TestSecondMessagePlaysAgain(t *testing.T) {
	play(t, "root-first", func(t *testing.T, s *stage) {
		s.settles()
		if err := s.rt.Start(t.Context(), s.Submit(s.Root, "Again.")); err != nil {
			t.Fatal(err)
		}
		if v := s.settles(); len(v.Children()) != 2 || len(v.ProviderTurns) != 2 {
			t.Errorf("it was not played again\n%s", v)
		}
	})
}

func TestUnknownScenarioIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := providertest.NewSink(t, agent.Session{Scenario: "nope"})
		if _, err := demo.New(demo.Options{}).Open(t.Context(), s.OpenParams(), s); err == nil {
			t.Error("an unknown scenario was opened")
		}
	})
}

// A stop does not wait for an agent that is deleted meanwhile, whether or not it would
// have heeded the stop, and hears nothing of it afterwards.
func TestDeletedAgentDoesNotHoldAStop(t *testing.T) {
	for _, scenario := range []string{"three-reviewers", "never-cancels"} {
		t.Run(scenario, func(t *testing.T) {
			play(t, scenario, func(t *testing.T, s *stage) {
				v := s.AwaitFor(t, time.Minute, "two agents", func(v providertest.View) bool { return v.LiveChildren() == 2 })
				one := v.Children()[0]
				c := s.PrepareCancel(one.LatestTurn.ID)
				stopped := make(chan error, 1)
				began := time.Now()
				go func() {
					ctx, done := contextFor(t, 15*time.Second)
					defer done()
					stopped <- s.rt.Cancel(ctx, c, s.Heard)
				}()
				time.Sleep(50 * time.Millisecond)
				s.rt.Forget(t.Context(), s.Delete(one.ID))
				if err := <-stopped; err != nil || time.Since(began) != 50*time.Millisecond {
					t.Errorf("after %v the stop ended with %v", time.Since(began), err)
				}
				heard := len(s.Evidence())
				time.Sleep(time.Second)
				if len(s.Evidence()) != heard {
					t.Errorf("heard afterwards: %v", s.Evidence()[heard:])
				}
			})
		})
	}
}

// An agent that ignores a stop and ends by itself has not been stopped.
func TestAgentThatIgnoresAStopMayEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := parse(t, "stubborn", "root\n  spawn one\n  join\nagent one\n  ignores cancel\n  say [one] hi\n  wait 5s\n")
		s := &stage{Sink: providertest.NewSink(t, agent.Session{Provider: demo.Name, Scenario: "stubborn"}), t: t}
		var err error
		if s.rt, err = demo.New(demo.Options{Speed: 1, Scripts: []*demo.Script{script}}).Open(t.Context(), s.OpenParams(), s.Sink); err != nil {
			t.Fatal(err)
		}
		s.in = s.Submit(s.Root, "Go.")
		if err := s.rt.Start(t.Context(), s.in); err != nil {
			t.Fatal(err)
		}
		v := s.AwaitFor(t, time.Minute, "its agent", func(v providertest.View) bool { return v.LiveChildren() == 1 })
		one := v.Children()[0].LatestTurn.ID
		c := s.PrepareCancel(one)
		ctx, done := contextFor(t, 15*time.Second)
		defer done()
		if err := s.rt.Cancel(ctx, c, s.Heard); err != nil || s.EvidenceOf(one) != agent.TargetAlreadyTerminal {
			t.Errorf("the stop ended with %v, evidence %q", err, s.EvidenceOf(one))
		}
		s.CompleteCancel(c, s.Evidence())
		s.outcome(s.settles(), agent.OutcomeCompleted)
		if err := s.rt.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A command that stays is a process: the root settles over it, and it is ended alone.
func TestShellStaysUntilItIsStopped(t *testing.T) {
	play(t, "shell", func(t *testing.T, s *stage) {
		v := s.settles()
		if len(v.Processes) != 1 || v.Processes[0].Status != agent.ProcessRunning || v.Processes[0].Command != "npm run dev" {
			t.Fatalf("processes %+v", v.Processes)
		}
		p := v.Processes[0]
		if p.SessionID == s.Root || p.TurnID == s.in.Turn {
			t.Errorf("it is the root's: %+v", p)
		}
		stopper := s.rt.(provider.ProcessStopper)
		for range 2 {
			if err := stopper.StopProcess(t.Context(), p.SessionID, p.ID); err != nil {
				t.Error(err)
			}
		}
		if got := s.View().Processes[0].Status; got != agent.ProcessEnded {
			t.Errorf("it is %s", got)
		}
	})
}
