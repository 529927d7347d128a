//go:build providers

package acp_test

import (
	"context"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

func TestRealChildRunsAndEnds(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": p.rootOf(p.foreground, []string{"a"}, Reply{Say("Root done.")}),
			"a":    {{p.shell("call_sh", "echo from the child")}, {Gate("a"), Say("Child done.")}},
		}, p.full)
		s.Say("Use one sub-agent")
		s.Held("a")
		a := s.granted("a", true)
		if a.ParentSessionID != s.Root || a.Title == "" || p.isClaude() != (a.ParentToolCallID == "call_a") {
			t.Errorf("child %+v", a)
		}
		if d := s.Detail(); d.Session.ActiveTurn.Phase != agent.PhaseRunning || d.Session.ActiveChildCount != 1 {
			t.Errorf("the root is %+v", d.Session)
		}
		s.Model.Open("a")
		s.Ends("a", agent.OutcomeCompleted)
		s.granted("a", false)
		s.Settles(agent.OutcomeCompleted)
		s.Said(a.ID, "Child done.")
		s.Said(s.Root, "Root done.")
		s.finish()
	})
}

func TestRealTwoChildrenAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		script := Script{
			"root": p.rootOf(p.foreground, []string{"a", "b"}, Reply{Say("Root done.")}),
			"a":    {{Gate("a"), Say("Child a done.")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}
		if !p.isClaude() { // its tool waits for whichever comes first
			script["root"] = slices.Insert(script["root"], 2, Reply{p.await("call_w2")})
		}
		s := p.start(t, script, p.full)
		s.Say("Use two sub-agents")
		s.Held("a", "b")
		a, b := s.granted("a", true), s.granted("b", true)
		s.Model.Open("b")
		s.Ends("b", agent.OutcomeCompleted)
		if now := s.granted("a", true); now.LatestTurn.Phase != agent.PhaseRunning {
			t.Errorf("a is %+v", now)
		}
		s.Model.Open("a")
		s.Settles(agent.OutcomeCompleted)
		s.Ends("a", agent.OutcomeCompleted)
		s.Said(a.ID, "Child a done.")
		s.Said(b.ID, "Child b done.")
		s.finish()
	})
}

// The root answers first, and its turn waits for the child. Claude goes on by itself then.
func TestRealRootEndsBeforeItsChild(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		script := Script{
			"root": {{p.launch("call_a", "a")}, {Say("Started it.")}},
			"a":    {{Gate("a"), Say("Child done.")}},
		}
		if p.isClaude() {
			script["root"] = append(script["root"], Reply{Gate("more"), Say("It is done.")})
		}
		s := p.start(t, script, p.full)
		s.Say("Use one sub-agent, do not wait")
		s.Held("a")
		a := s.granted("a", true)
		if p.isClaude() && p.version == 1 { // it keeps its answer back
			s.Until("the root speaks", func(agent.SessionDetail) bool { return s.speaks(s.Root) })
		} else {
			s.Said(s.Root, "Started it.")
			if gate := s.Waits(agent.HeldByChildren); gate.RetainedOutcome != agent.OutcomeCompleted || len(gate.OpenChildren) != 1 {
				t.Errorf("gate %+v", gate)
			}
		}
		s.granted("a", true)
		s.Model.Open("a")
		s.Ends("a", agent.OutcomeCompleted)
		if p.isClaude() {
			s.Held("more")
			// In version 1 it may answer the prompt as the child ends, and go on all the same.
			if s.Detail().Session.ActiveTurn == nil && p.version == 2 {
				t.Error("the root has settled before its continuation")
			}
			s.Model.Open("more")
			s.Said(s.Root, "It is done.")
		}
		s.Settles(agent.OutcomeCompleted)
		s.Said(a.ID, "Child done.")
		s.finish()
		if page, err := s.Store.Turns(s.Ctx, s.Ws, s.Root, "", 10); err != nil || len(page.Items) != 1 {
			t.Errorf("root turns %+v, %v", page.Items, err)
		}
	})
}

// speaks reports whether a session shows any words of its agent, ended or not.
func (s *stack) speaks(session agent.SessionID) bool {
	s.t.Helper()
	page, err := s.Store.Messages(s.Ctx, s.Ws, session, agent.MessageRange{Limit: 100})
	s.Must(err)
	return slices.ContainsFunc(page.Items, func(m agent.Message) bool { return m.Role == agent.RoleAssistant && m.Kind == agent.MessageText })
}

func TestRealChildFails(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": p.rootOf(p.foreground, []string{"a"}, Reply{Say("It failed.")}),
			"a":    {{Gate("a"), Status(500, "")}},
		}, p.full)
		s.Say("Use one sub-agent")
		s.Held("a")
		s.granted("a", true)
		s.Model.Open("a")
		s.Ends("a", agent.OutcomeFailed)
		s.Settles(agent.OutcomeCompleted)
		s.Said(s.Root, "It failed.")
		s.finish()
	})
}

// The session is loaded again in the same process: the grant dies with the request, and
// what follows the answer gives another one, by which the child is stopped.
func TestRealReloadWithALiveChild(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		script := Script{
			"root": {{p.launch("call_a", "a")}, {Say("Started it.")}},
			"a":    {{Gate("never"), Say("x")}},
		}
		if p.isClaude() { // it goes on by itself also after a stop
			script["root"] = append(script["root"], Reply{Say("It was stopped.")})
		}
		s := p.start(t, script, p.full)
		s.Say("Use one sub-agent, do not wait")
		a := s.granted("a", true)
		s.Until("the root speaks", func(agent.SessionDetail) bool { return s.speaks(s.Root) })
		r := <-s.runtime.opened
		s.Must(r.(interface {
			Reload(ctx context.Context) error
		}).Reload(s.Ctx))
		if now := s.granted("a", true); now.LatestTurn.ID != a.LatestTurn.ID {
			t.Errorf("the child is %+v", now)
		}
		s.stop("a")
		if p.isClaude() {
			s.Said(s.Root, "It was stopped.")
		}
		s.Settles(agent.OutcomeCompleted)
		s.finish()
	})
}

// The agent is killed with a child at work: both are interrupted. The next message takes
// the session up in another process, whose history opens nothing.
func TestRealAgentKilled(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": {{p.launch("call_a", "a")}, {Gate("root"), Say("x")}, {Say("After it.")}, {Say("After it.")}},
			"a":    {{Gate("never"), Say("x")}},
		}, p.full)
		s.Say("Use one sub-agent")
		s.granted("a", true)
		s.Held("root")
		Kill(t, s.Place.Home, "dist/index.js")
		s.Settles(agent.OutcomeInterrupted)
		s.Ends("a", agent.OutcomeInterrupted)
		s.granted("a", false)
		s.tape.Note(`{"text":"agent exited","code":null,"signal":"SIGKILL"}`)
		s.tape.Note(`{"event":"spawn"}`)
		s.Say("Go on")
		s.Said(s.Root, "After it.")
		s.Settles(agent.OutcomeCompleted)
		if d := s.Detail(); len(d.ChildSessions) != 1 || d.ChildSessions[0].Capabilities.ChildCancel {
			t.Errorf("children %+v", d.ChildSessions)
		}
		s.finish()
	})
}
