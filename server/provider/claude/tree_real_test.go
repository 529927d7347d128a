//go:build providers

package claude_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// turnsOf are the turns of a session.
func (s *stack) turnsOf(session agent.SessionID) []agent.Turn {
	s.t.Helper()
	page, err := s.Store.Turns(s.Ctx, s.Ws, session, "", 100)
	s.Must(err)
	return page.Items
}

// A finished agent that gets a message runs again: another turn of the same child, though
// its launch is told under the message's call.
func TestRealStackMessageToAFinishedAgent(t *testing.T) {
	s := startStack(t, Script{
		"root": {
			{Background("toolu_a", "a", "task a")},
			{Say("Started it.")},
			{Call("SendMessage", map[string]any{"to": ThreadOf("a"), "summary": "more", "message": "Please also check Y"}).As("toolu_m")},
			{Say("Asked again.")},
			{Say("Both are done.")},
		},
		"a": {{Gate("one"), Say("First report.")}, {Gate("two"), Say("Second report.")}},
	}, options{})
	s.Say("Use one, and ask it again")
	s.Held("one")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("one")
	s.Held("two")
	s.Said(s.Root, "Asked again.")
	a := s.Agent("a")
	if turns := s.turnsOf(a.ID); len(turns) != 2 || turns[0].ID == turns[1].ID {
		t.Errorf("turns of the child: %+v", turns)
	}
	if gate := s.Waits(agent.HeldByChildren); len(gate.OpenChildren) != 1 {
		t.Errorf("gate %+v", gate)
	}
	s.Model.Open("two")
	s.Settles(agent.OutcomeCompleted)
	s.Said(a.ID, "Second report.")
	s.Said(s.Root, "Both are done.")
	if d := s.Detail(); len(d.ChildSessions) != 1 {
		t.Errorf("%d children", len(d.ChildSessions))
	}
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// A child's own detached shell wakes it after everything was over: both its run and the
// root's are a turn that nobody asked for.
func TestRealStackShellWakesItsChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("It is done.")}, {Say("It was woken.")}},
		"a":    {{Detached("toolu_s", untilFile("go"))}, {Say("Report; the shell runs on.")}, {Say("The shell has ended.")}},
	}, options{})
	s.Say("Use one that starts a shell")
	s.Said(s.Root, "It is done.")
	s.Settles(agent.OutcomeCompleted)
	a := s.Agent("a")
	s.touch("go")
	s.Said(a.ID, "The shell has ended.")
	s.Said(s.Root, "It was woken.")
	s.Settles(agent.OutcomeCompleted)
	if turns := s.turnsOf(a.ID); len(turns) != 2 {
		t.Errorf("turns of the child: %+v", turns)
	}
	s.End()
	s.wantTurns(2, agent.TriggerProvider)
}

// A child is deleted while it runs: it is stopped, nothing of it comes back, and the root
// goes on.
func TestRealStackChildIsDeleted(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a"), Background("toolu_b", "b", "task b")}, {Say("Started both.")}, {Say("One is done.")}, {Say("One is done.")}},
		"a":    {{Gate("never"), Say("x")}},
		"b":    {{Gate("b"), Say("Child b done.")}},
	}, options{})
	s.Say("Use two, do not wait")
	s.Held("never", "b")
	a := s.Agent("a")
	s.Waits(agent.HeldByChildren)
	s.Must(s.Service.DeleteSession(s.Ctx, s.Ws, a.ID))
	s.Must(s.Model.WaitLeft(s.Ctx, "never"))
	s.Model.Open("b")
	s.Ends("b", agent.OutcomeCompleted)
	s.Settles(agent.OutcomeCompleted)
	if d := s.Detail(); len(d.ChildSessions) != 1 || d.ChildSessions[0].ID == a.ID {
		t.Errorf("children %+v", d.ChildSessions)
	}
	s.Reconcile()
}

// The whole session is deleted while it works: nothing of the program is left.
func TestRealStackSessionIsDeleted(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Detached("toolu_d", "touch root; sleep 321"), Gate("never")}},
		"a":    {{Bash("toolu_s", "touch child; sleep 322")}},
	}, options{})
	s.Say("Use one")
	s.untilThere("child")
	s.Held("never")
	s.Must(s.Service.DeleteSession(s.Ctx, s.Ws, s.Root))
	s.Must(UntilGone(s.Ctx, s.Place.Home, ""))
}

// The daemon closes an idle session and a message opens it again: the conversation goes on,
// and what was left of its child is not told as news.
func TestRealStackCloseAndResume(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("After the resume.")}},
		"a":    {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use one, do not wait")
	s.Held("never")
	s.Waits(agent.HeldByChildren)
	s.Must(s.Live.CloseSession(s.Ctx, s.Root))
	s.Settles(agent.OutcomeCompleted)
	s.Ends("a", agent.OutcomeInterrupted)
	s.Say("Go on")
	s.Said(s.Root, "After the resume.")
	s.Settles(agent.OutcomeCompleted)
	if turns := s.turnsOf(s.Agent("a").ID); len(turns) != 1 {
		t.Errorf("turns of the child: %+v", turns)
	}
	s.Reconcile()
	s.wantTurns(2, agent.TriggerUser)
}
