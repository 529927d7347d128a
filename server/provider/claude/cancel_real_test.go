//go:build providers

package claude_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

func TestRealStackCancelAll(t *testing.T) {
	s := startStack(t, Script{
		"root":  {{Background("toolu_g", "g", "go on"), Background("toolu_n", "outer", "nest"), Foreground("toolu_f", "f", "be waited for")}},
		"g":     {{Gate("never"), Say("x")}},
		"f":     {{Gate("never"), Say("x")}},
		"outer": {{Foreground("toolu_i", "inner", "deeper")}},
		"inner": {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use many")
	for _, name := range []string{"g", "f", "outer", "inner"} {
		s.Agent(name)
	}
	s.StopRoot()
	s.Settles(agent.OutcomeCanceled)
	for _, c := range s.Detail().ChildSessions {
		if c.LatestTurn.Outcome != agent.OutcomeCanceled {
			t.Errorf("child %s is %s", c.Title, c.LatestTurn.Outcome)
		}
	}
	s.Must(s.Model.WaitLeft(s.Ctx, "never"))
	s.Model.Append("root", Reply{Say("Here I am.")})
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
	s.wantTurns(2, agent.TriggerUser)
}

// The root has answered and only its child runs: the program has no turn to abort.
func TestRealStackCancelWhileOnlyAChildRuns(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("Here I am.")}},
		"a":    {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use one, do not wait")
	s.Held("never")
	s.Waits(agent.HeldByChildren)
	s.StopRoot()
	s.Settles(agent.OutcomeCanceled)
	s.Ends("a", agent.OutcomeCanceled)
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

// The child has ended and the continuation has not begun, or has and hangs: it must never
// be seen, and the next message is answered.
func TestRealStackCancelInTheGap(t *testing.T) {
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			script := Script{
				"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}},
				"a":    {{Gate("a"), Say("Child done.")}},
			}
			s := startStack(t, script, options{})
			s.Say("Use one, do not wait")
			s.Held("a")
			s.Waits(agent.HeldByChildren)
			s.Model.Next("root", Reply{Silent("never"), Say("too late")}) // if it is asked at all
			s.Model.Open("a")
			s.Ends("a", agent.OutcomeCompleted)
			if round == 2 {
				s.Held("never") // the continuation has asked its model
			}
			s.StopRoot()
			s.Settles(agent.OutcomeCanceled)
			s.Model.Next("root", Reply{Say("Here I am.")})
			s.Say("Are you there?")
			s.Said(s.Root, "Here I am.")
			s.Settles(agent.OutcomeCompleted)
			s.End()
			s.wantTurns(2, agent.TriggerUser)
		})
	}
}

func TestRealStackStopOneOfTwo(t *testing.T) {
	s := startStack(t, Script{
		"root": {
			{Background("toolu_a", "a", "task a"), Background("toolu_b", "b", "task b")},
			{Say("Started both.")},
			{Say("One was stopped.")},
			{Say("The other is done.")},
		},
		"a": {{Gate("never"), Say("x")}},
		"b": {{Gate("b"), Say("Child b done.")}},
	}, options{})
	s.Say("Use two, do not wait")
	s.Held("b", "never")
	s.Waits(agent.HeldByChildren)
	a := s.Agent("a")
	s.Cancel(a.ID, a.LatestTurn.ID)
	s.Ends("a", agent.OutcomeCanceled)
	s.Said(s.Root, "One was stopped.") // a stopped agent has a continuation, of the same turn
	if gate := s.Waits(agent.HeldByChildren); len(gate.OpenChildren) != 1 {
		t.Errorf("gate %+v", gate)
	}
	s.Model.Open("b")
	s.Ends("b", agent.OutcomeCompleted)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "The other is done.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// The root waits for it in a tool, and goes on.
func TestRealStackStopAForegroundChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("It was stopped.")}},
		"a":    {{Bash("toolu_s", "touch begun; sleep 300")}},
	}, options{})
	s.Say("Use one")
	s.untilThere("begun")
	a := s.Agent("a")
	s.Cancel(a.ID, a.LatestTurn.ID)
	s.Ends("a", agent.OutcomeCanceled)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "It was stopped.")
	s.End()
}

// The child of a stopped agent is not stopped with it by the program: each is a target.
func TestRealStackStopANestedOne(t *testing.T) {
	s := startStack(t, Script{
		"root":  {{Background("toolu_a", "outer", "task")}, {Say("Started it.")}, {Say("Stopped.")}, {Say("Stopped.")}},
		"outer": {{Background("toolu_b", "inner", "task")}, {Gate("never"), Say("x")}},
		"inner": {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use one that uses one")
	s.Agent("inner")
	outer := s.Agent("outer")
	s.Waits(agent.HeldByChildren)
	s.Cancel(outer.ID, outer.LatestTurn.ID)
	s.Ends("outer", agent.OutcomeCanceled)
	s.Ends("inner", agent.OutcomeCanceled)
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

func TestRealStackCancelWithAQuestionOpen(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("Here I am.")}},
		"a":    {{Bash("toolu_one", "touch one.txt")}},
	}, options{mode: modeAsk})
	s.Say("Use one that asks")
	q := s.Question()
	s.Waits(agent.HeldByChildren)
	s.StopRoot()
	s.Settles(agent.OutcomeCanceled)
	now, err := s.Store.Interaction(s.Ctx, s.Ws, q.SessionID, q.TurnID, q.RequestID)
	s.Must(err)
	if now.Status != agent.InteractionSuperseded {
		t.Errorf("the question is %s", now.Status)
	}
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

// The window passes and the root takes the outcome it has; what the program says then is
// nobody's, and the next message is answered.
func TestRealStackContinuationThatNeverComes(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Silent("never"), Say("too late")}, {Say("Here I am.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{window: time.Second})
	s.Say("Use one, do not wait")
	s.Held("a")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("a")
	if gate := s.Waits(agent.HeldByContinuation); gate.Continuation == nil || time.Until(gate.Continuation.Deadline) > time.Second {
		t.Errorf("gate %+v", gate)
	}
	s.Held("never")
	s.Settles(agent.OutcomeCompleted)
	s.Must(s.Model.WaitLeft(s.Ctx, "never")) // it was given up at the program too
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.Reconcile() // the recording has the interrupt of our own, and reads it as a person's
	s.wantTurns(2, agent.TriggerUser)
}
