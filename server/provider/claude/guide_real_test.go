//go:build providers

package claude_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// message reads one message of the root.
func (s *stack) message(id agent.MessageID) agent.Message {
	s.t.Helper()
	m, err := s.Store.Message(s.Ctx, s.Ws, s.Root, id)
	s.Must(err)
	return m
}

// queued waits until Claude has a message, though no turn may have begun with it.
func (s *stack) queued(sub agent.Submitted) {
	s.t.Helper()
	s.Until("the message is queued", func(agent.SessionDetail) bool {
		op, err := s.Store.Operation(s.Ctx, s.Ws, sub.Operation.ID)
		s.Must(err)
		return op.Status == agent.OperationSucceeded
	})
}

// delivered waits until a person's message is said to be with the agent.
func (s *stack) delivered(sub agent.Submitted) {
	s.t.Helper()
	s.Until("the message is delivered", func(agent.SessionDetail) bool {
		return s.message(sub.Message.ID).Status == agent.MessageCompleted
	})
}

// told counts how often the agent's requests so far end with that text.
func (s *stack) told(name, text string) int {
	n := 0
	for _, r := range s.Model.Requests(name) {
		if slices.ContainsFunc(Said(r), func(said string) bool { return strings.Contains(said, text) }) {
			n++
		}
	}
	return n
}

// A tool of the root runs: the message goes along at the next boundary, into the same
// provider turn.
func TestRealStackMessageWhileTheRootRuns(t *testing.T) {
	s := startStack(t, Script{"root": {{Bash("toolu_w", "touch begun; "+untilFile("go"))}, {Say("With the second.")}}}, options{})
	s.Say("Wait for the file")
	s.untilThere("begun")
	sub := s.Say("And mention the second")
	if sub.Delivery != agent.DeliveryGuided {
		t.Errorf("the message was %s", sub.Delivery)
	}
	s.queued(sub)
	s.touch("go")
	s.delivered(sub)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "With the second.")
	if n := s.told("root", "And mention the second"); n != 1 {
		t.Errorf("the agent was told %d times", n)
	}
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// The last text streams: the message has a turn of its own right after.
func TestRealStackMessageDuringTheLastText(t *testing.T) {
	s := startStack(t, Script{"root": {{SayAround("text", "First ", "answer.")}, {Say("Second answer.")}}}, options{})
	s.Say("One")
	s.Held("text")
	sub := s.Say("Two")
	s.queued(sub)
	s.Model.Open("text")
	s.delivered(sub)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "First answer.")
	s.Said(s.Root, "Second answer.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// Only a child runs: the root begins at once, and both hold the turn.
func TestRealStackMessageWhileOnlyAChildRuns(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Gate("second"), Say("Second answer.")}, {Say("It is done.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one, do not wait")
	s.Held("a")
	s.Waits(agent.HeldByChildren)
	sub := s.Say("Meanwhile, something else")
	if sub.Delivery != agent.DeliveryGuided {
		t.Errorf("the message was %s", sub.Delivery)
	}
	s.Held("second")
	s.delivered(sub)
	if d := s.Detail(); d.Session.ActiveTurn.Phase != agent.PhaseRunning {
		t.Errorf("the root is %s", d.Session.ActiveTurn.Phase)
	}
	s.Model.Open("second")
	s.Said(s.Root, "Second answer.")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("a")
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "It is done.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// A foreground child runs: the message waits for it.
func TestRealStackMessageDuringAForegroundChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("With the second.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one")
	s.Held("a")
	sub := s.Say("And mention the second")
	s.queued(sub)
	s.Model.Open("a")
	s.delivered(sub)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "With the second.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// A stop withdraws the messages that were queued, and overtakes those that are on their
// way: they are shown as not delivered, and the agent never hears of them.
func TestRealStackStopWithdrawsQueuedMessages(t *testing.T) {
	for name, wait := range map[string]bool{"queued": true, "on their way": false} {
		t.Run(name, func(t *testing.T) {
			s := startStack(t, Script{"root": {{Bash("toolu_w", "touch begun; sleep 300")}, {Say("Here I am.")}}}, options{})
			s.Say("Wait for ever")
			s.untilThere("begun")
			subs := []agent.Submitted{s.Say("Pelican one"), s.Say("Pelican two")}
			if wait {
				s.queued(subs[0])
				s.queued(subs[1])
			}
			s.StopRoot()
			s.Settles(agent.OutcomeCanceled)
			for _, sub := range subs {
				s.Until("it is said not to be delivered", func(agent.SessionDetail) bool {
					return s.message(sub.Message.ID).Status == agent.MessageUndelivered
				})
			}
			s.Say("Are you there?")
			s.Said(s.Root, "Here I am.")
			s.Settles(agent.OutcomeCompleted)
			if n := s.told("root", "Pelican"); n != 0 {
				t.Errorf("the agent was told of %d", n)
			}
			s.Reconcile() // a message that was never written is not on the recording
			s.wantTurns(2, agent.TriggerUser)
		})
	}
}

// In the gap, and during the continuation: it is the same turn, and the continuation goes
// first.
func TestRealStackMessageDuringTheContinuation(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Gate("more"), Say("It is done.")}, {Say("Second answer.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one, do not wait")
	s.Held("a")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("a")
	s.Held("more")
	sub := s.Say("Something else")
	s.queued(sub)
	s.Model.Open("more")
	s.delivered(sub)
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "It is done.")
	s.Said(s.Root, "Second answer.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}
