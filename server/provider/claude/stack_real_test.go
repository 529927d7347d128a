//go:build providers

package claude_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// The whole of it with the real Claude Code: commands, their worker, storage, runtimes.
// Everything on the wire is recorded, and the recording replayed in virtual time must
// come to the same end.

type stack struct {
	*realtest.Stack
	t    *testing.T
	tape *realtest.Tape
}

func startStack(t *testing.T, script Script, o options) *stack {
	t.Helper()
	o.tape = realtest.NewTape("note")
	return &stack{realtest.OpenStack(t, setup(t, script, o), o.tape), t, o.tape}
}

// rootTurns are the root's turns, the newest last.
func (s *stack) rootTurns() []agent.Turn {
	s.t.Helper()
	page, err := s.Store.Turns(s.Ctx, s.Ws, s.Root, "", 100)
	s.Must(err)
	return page.Items
}

// wantTurns wants the root to have so many turns, the last of them begun by that.
func (s *stack) wantTurns(n int, trigger agent.Trigger) {
	s.t.Helper()
	turns := s.rootTurns()
	last := turns[0]
	for _, u := range turns {
		if u.CreatedAt.After(last.CreatedAt) {
			last = u
		}
	}
	if len(turns) != n || last.Trigger != trigger {
		s.t.Errorf("%d root turns, the last by %s: %+v", len(turns), last.Trigger, turns)
	}
}

// untilFile is a shell command that ends when the test calls touch.
func untilFile(name string) string { return "while [ ! -e " + name + " ]; do sleep 0.02; done" }

func (s *stack) touch(name string) {
	s.t.Helper()
	s.Must(os.WriteFile(filepath.Join(s.Place.Work, name), nil, 0o644))
}

func TestRealStackForegroundChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("Root done.")}},
		"a":    {{Bash("toolu_ls", "echo from the child")}, {Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one sub-agent")
	s.Held("a")
	a := s.Agent("a")
	if d := s.Detail(); d.Session.ActiveTurn.Phase != agent.PhaseRunning || d.Session.ActiveChildCount != 1 {
		t.Errorf("the root is %+v", d.Session)
	}
	s.Model.Open("a")
	s.Settles(agent.OutcomeCompleted)
	s.Said(a.ID, "Child done.")
	s.Said(s.Root, "Root done.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// The root answers first and waits; the child's end starts the continuation, which is the
// same turn.
func TestRealStackBackgroundChildAndContinuation(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Gate("more"), Say("It is done.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one sub-agent, do not wait")
	s.Held("a")
	s.Said(s.Root, "Started it.")
	if gate := s.Waits(agent.HeldByChildren); gate.RetainedOutcome != agent.OutcomeCompleted || len(gate.OpenChildren) != 1 {
		t.Errorf("gate %+v", gate)
	}
	s.Model.Open("a")
	s.Ends("a", agent.OutcomeCompleted)
	s.Held("more") // from the child's end to the continuation's first word it is reserved
	if d := s.Detail(); d.Session.ActiveTurn == nil {
		t.Error("the root has settled before its continuation")
	}
	s.Model.Open("more")
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "It is done.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// The root's answer is complete with no child alive, and yet a continuation follows.
func TestRealStackChildEndsDuringTheRootsLastText(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {SayAround("text", "Started ", "it.")}, {Say("It is done.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, options{})
	s.Say("Use one sub-agent, do not wait")
	s.Held("a", "text")
	s.Model.Open("a")
	s.Ends("a", agent.OutcomeCompleted)
	s.Model.Open("text")
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "Started it.")
	s.Said(s.Root, "It is done.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

// Claude answers both notices with one continuation, or with one each.
func TestRealStackTwoBackgroundChildrenEndTogether(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a"), Background("toolu_b", "b", "task b")}, {Say("Started both.")}, {Say("One more.")}, {Say("One more.")}},
		"a":    {{Gate("go"), Say("Child a done.")}},
		"b":    {{Gate("go"), Say("Child b done.")}},
	}, options{})
	s.Say("Use two sub-agents, do not wait")
	s.Agent("a")
	s.Agent("b")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("go")
	s.Settles(agent.OutcomeCompleted)
	s.Ends("a", agent.OutcomeCompleted)
	s.Ends("b", agent.OutcomeCompleted)
	s.Said(s.Root, "One more.")
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

func TestRealStackNested(t *testing.T) {
	s := startStack(t, Script{
		"root":  {{Foreground("toolu_a", "outer", "task")}, {Say("Root done.")}},
		"outer": {{Foreground("toolu_b", "inner", "task")}, {Say("Outer done.")}},
		"inner": {{Gate("inner"), Say("Inner done.")}},
	}, options{})
	s.Say("Use a sub-agent that uses one")
	s.Held("inner")
	outer, inner := s.Agent("outer"), s.Agent("inner")
	if inner.ParentSessionID != outer.ID || inner.ParentTurnID != outer.LatestTurn.ID || inner.ParentToolCallID != "toolu_b" || outer.ParentSessionID != s.Root {
		t.Errorf("outer %+v\ninner %+v", outer, inner)
	}
	s.Model.Open("inner")
	s.Settles(agent.OutcomeCompleted)
	s.Ends("inner", agent.OutcomeCompleted)
	s.Ends("outer", agent.OutcomeCompleted)
	s.Said(inner.ID, "Inner done.")
	s.End()
}

// The grandchild outlives its parent; its notice goes to the root.
func TestRealStackNestedInTheBackground(t *testing.T) {
	s := startStack(t, Script{
		"root":  {{Background("toolu_a", "outer", "task")}, {Say("Started it.")}, {Say("Outer is done.")}, {Say("Inner is done.")}},
		"outer": {{Background("toolu_b", "inner", "task")}, {Say("Outer done.")}},
		"inner": {{Gate("inner"), Say("Inner done.")}},
	}, options{})
	s.Say("Use a sub-agent that uses one")
	s.Held("inner")
	s.Ends("outer", agent.OutcomeCompleted)
	s.Said(s.Root, "Outer is done.")
	if gate := s.Waits(agent.HeldByChildren); len(gate.OpenChildren) != 1 {
		t.Errorf("gate %+v", gate)
	}
	s.Model.Open("inner")
	s.Settles(agent.OutcomeCompleted)
	s.Said(s.Root, "Inner is done.")
	s.Ends("inner", agent.OutcomeCompleted)
	s.End()
	s.wantTurns(1, agent.TriggerUser)
}

func TestRealStackApprovals(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("It is done.")}},
		"a":    {{Bash("toolu_one", "touch one.txt")}, {Bash("toolu_two", "touch two.txt")}, {Say("Child done.")}},
	}, options{mode: modeAsk})
	s.Say("Use one sub-agent that runs commands")
	for _, option := range []string{"allow", "deny"} {
		q := s.Question()
		if q.SessionID != s.Agent("a").ID {
			t.Errorf("question %+v", q)
		}
		s.Answer(q, agent.Response{OptionID: option})
		s.Until("it is answered", func(agent.SessionDetail) bool {
			now, err := s.Store.Interaction(s.Ctx, s.Ws, q.SessionID, q.TurnID, q.RequestID)
			s.Must(err)
			return now.Status == agent.InteractionAnswered
		})
	}
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

func TestRealStackChildFails(t *testing.T) {
	for name, launch := range map[string]func(call, child, task string) ToolCall{"foreground": Foreground, "background": Background} {
		t.Run(name, func(t *testing.T) {
			s := startStack(t, Script{"root": {{launch("toolu_a", "a", "task a")}, {Say("First.")}}, "a": {{Gate("a"), Status(500, "")}}}, options{})
			if name == "background" {
				s.Model.Append("root", Reply{Say("It failed.")})
			}
			s.Say("Use one sub-agent")
			s.Held("a")
			if name == "background" {
				s.Waits(agent.HeldByChildren)
			}
			s.Model.Open("a")
			s.Ends("a", agent.OutcomeFailed)
			if e := s.Agent("a").LatestTurn.Error; e == nil || e.Message == "" {
				t.Errorf("the child's error is %+v", e)
			}
			s.Settles(agent.OutcomeCompleted)
			s.End()
		})
	}
}

func TestRealStackRootFails(t *testing.T) {
	s := startStack(t, Script{"root": {{Status(429, "")}, {Say("Here again.")}}}, options{})
	s.Say("Try")
	s.Settles(agent.OutcomeFailed)
	if e := s.Detail().Session.LatestTurn.Error; e == nil || e.Code == "" {
		t.Errorf("error %+v", e)
	}
	s.Say("Try again")
	s.Said(s.Root, "Here again.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
}
