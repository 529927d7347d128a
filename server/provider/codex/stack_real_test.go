//go:build providers

package codex_test

import (
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// The whole of it with the real app-server: commands, their worker, storage, runtimes.
// Everything on the wire is recorded, and the recording replayed in virtual time must
// come to the same end.

func startStack(t *testing.T, script Script, o Options) (*realtest.Stack, *realtest.Tape) {
	t.Helper()
	tape := realtest.NewTape("meta")
	s := realtest.OpenStack(t, setup(t, script, o, codex.Options{Record: tape.Record}), tape)
	tape.Note(`{"event":"process_started"}`)
	return s, tape
}

func TestRealStackRootEndsBeforeItsChildren(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s, _ := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Say("Started both.")}},
			"a":    {{Gate("a"), Say("Child a done.")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		s.Say("Use two sub-agents")
		s.Held("a", "b")
		s.Until("the root waits for both", func(d agent.SessionDetail) bool {
			return d.Session.ActiveTurn != nil && d.Session.ActiveTurn.Phase == agent.PhaseWaiting && d.Session.ActiveChildCount == 2
		})
		s.Model.Open("a")
		d := s.Until("one is left", func(d agent.SessionDetail) bool { return d.Session.ActiveChildCount == 1 })
		gate, err := s.Store.Gate(s.Ctx, s.Ws, s.Root, d.Session.ActiveTurn.ID)
		s.Must(err)
		if gate.HeldBy != agent.HeldByChildren || gate.RetainedOutcome != agent.OutcomeCompleted || len(gate.OpenChildren) != 1 {
			t.Errorf("gate %+v", gate)
		}
		s.Model.Open("b")
		s.Settles(agent.OutcomeCompleted)
		s.End()
	})
}

func TestRealStackApprovals(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s, _ := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {v.Wait("call_w", "call_a")}, {Say("Root done.")}},
			"a":    {{AskShell("call_one", "touch one.txt", "May I?")}, {AskShell("call_two", "touch two.txt", "May I?")}, {Say("Child done.")}},
		}, Options{V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
		s.Say("Use one sub-agent that runs commands")
		for _, option := range []string{"accept", "decline"} {
			var open []agent.Interaction
			s.Until("a question", func(agent.SessionDetail) bool {
				var err error
				open, err = s.Store.Interactions(s.Ctx, s.Ws, s.Root, agent.InteractionPending)
				s.Must(err)
				return len(open) > 0
			})
			_, _, err := s.Service.Answer(s.Ctx, s.Ws, agent.NewAnswer{
				Session: open[0].SessionID, Turn: open[0].TurnID, Request: open[0].RequestID,
				Response: agent.Response{OptionID: option}, Client: "test",
			})
			s.Must(err)
		}
		s.Settles(agent.OutcomeCompleted)
		s.End()
	})
}

func TestRealStackCancelAll(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s, _ := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("never"), Say("x")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		s.Say("Use two sub-agents")
		s.Agent("a")
		s.Agent("b")
		s.Must(s.Model.WaitRequests(s.Ctx, "root", 2))
		s.Cancel(s.Root, s.Detail().Session.ActiveTurn.ID)
		s.Settles(agent.OutcomeCanceled)
		for _, c := range s.Detail().ChildSessions {
			if c.LatestTurn.Outcome != agent.OutcomeCanceled {
				t.Errorf("child %s is %s", c.Title, c.LatestTurn.Outcome)
			}
		}
		s.End()
	})
}

func TestRealStackCancelOneThenGuide(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s, _ := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Say("Started both.")}, {Say("Noted.")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		s.Say("Use two sub-agents")
		s.Held("b")
		a := s.Agent("a")
		s.Until("the root waits", func(d agent.SessionDetail) bool { return d.Session.ActiveTurn.Phase == agent.PhaseWaiting })
		s.Cancel(a.ID, a.LatestTurn.ID)
		if d := s.Say("And one more thing").Delivery; d != agent.DeliveryGuided {
			t.Errorf("the message was %s", d)
		}
		s.Until("the root has said that it noted", func(agent.SessionDetail) bool {
			page, err := s.Store.Messages(s.Ctx, s.Ws, s.Root, agent.MessageRange{Limit: 500})
			s.Must(err)
			return slices.ContainsFunc(page.Items, func(m agent.Message) bool { return m.Content == "Noted." && m.Status.Ended() })
		})
		s.Until("it waits again", func(d agent.SessionDetail) bool { return d.Session.ActiveTurn.Phase == agent.PhaseWaiting })
		s.Model.Open("b")
		s.Settles(agent.OutcomeCompleted)
		s.End()
	})
}

func TestRealStackKillAndResume(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s, tape := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Gate("never"), Say("x")}, {Say("After the resume.")}},
			"a":    {{Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		s.Say("Use one sub-agent")
		s.Agent("a")
		s.Must(s.Model.WaitRequests(s.Ctx, "root", 2))
		killServer(t, s.Place.Home)
		s.Settles(agent.OutcomeInterrupted)
		tape.Note(`{"event":"process_exited","status":"signal: killed"}`)
		tape.Note(`{"event":"process_started"}`)
		s.Say("Go on")
		s.Until("it runs", func(d agent.SessionDetail) bool {
			return d.Session.ActiveTurn != nil || d.Session.LatestTurn.Outcome == agent.OutcomeCompleted
		})
		s.Settles(agent.OutcomeCompleted)
		s.End()
	})
}
