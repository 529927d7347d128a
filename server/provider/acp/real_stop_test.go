//go:build providers

package acp_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// One child is stopped by its grant; the other goes on, and so does the root.
func TestRealChildStoppedByItsGrant(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": p.rootOf(p.foreground, []string{"a", "b"}, Reply{Say("Root done.")}),
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, p.full)
		s.Say("Use two sub-agents")
		s.Held("b")
		s.granted("b", true)
		s.stop("a")
		if b := s.granted("b", true); b.LatestTurn.Phase != agent.PhaseRunning {
			t.Errorf("b is %+v", b)
		}
		s.Model.Open("b")
		s.Ends("b", agent.OutcomeCompleted)
		s.Settles(agent.OutcomeCompleted)
		s.Said(s.Root, "Root done.")
		s.finish()
	})
}

// The root is stopped with all below it: with Claude also what runs in the background,
// which the program itself would leave alone.
func TestRealRootStopped(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": {{p.launch("call_a", "a"), p.foreground("call_b", "b")}, {Gate("never"), Say("x")}, {Say("x")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("never"), Say("x")}},
		}, p.full)
		s.Say("Use two sub-agents")
		s.granted("a", true)
		s.granted("b", true)
		if !p.isClaude() {
			s.Must(s.Model.WaitRequests(s.Ctx, "root", 2))
		}
		s.StopRoot()
		s.Settles(agent.OutcomeCanceled)
		s.Ends("a", agent.OutcomeCanceled)
		s.Ends("b", agent.OutcomeCanceled)
		s.finish()
	})
}

// Only the child is left at work when the whole is stopped.
func TestRealRootStoppedAfterItsAnswer(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": {{p.launch("call_a", "a")}, {Say("Started it.")}, {Say("x")}}, // what nobody asked for
			"a":    {{Gate("never"), Say("x")}},
		}, p.full)
		s.Say("Use one sub-agent, do not wait")
		s.granted("a", true)
		s.Until("the root speaks", func(agent.SessionDetail) bool { return s.speaks(s.Root) })
		s.StopRoot()
		s.Settles(agent.OutcomeCanceled)
		s.Ends("a", agent.OutcomeCanceled)
		s.finish()
	})
}

// Codex has no plain no: that one stops the child's turn, which is no stop of a person's.
func TestRealPermissionInAChild(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": p.rootOf(p.foreground, []string{"a"}, Reply{Say("Root done.")}),
			"a":    {{p.ask("call_one", "touch one.txt")}, {p.ask("call_two", "touch two.txt")}, {Say("Child done.")}},
		}, p.asking)
		s.Say("Use one sub-agent that runs commands")
		for _, role := range []string{agent.RoleAllow, agent.RoleDeny} {
			q := s.Question()
			if q.SessionID != s.Agent("a").ID || q.Owner != agent.OwnerExact {
				t.Errorf("question %+v", q)
			}
			s.Answer(q, optionOf(t, q, role))
			s.answered(q)
		}
		outcome := agent.OutcomeInterrupted
		if p.isClaude() {
			outcome = agent.OutcomeCompleted
		}
		s.Ends("a", outcome)
		s.Settles(agent.OutcomeCompleted)
		if !s.made("one.txt") || s.made("two.txt") {
			t.Errorf("made: one %v, two %v", s.made("one.txt"), s.made("two.txt"))
		}
		s.finish()
	})
}

// The child is stopped with its question open: that is withdrawn, a late answer is refused
// and has no effect, and the root goes on.
func TestRealPermissionWithdrawn(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{
			"root": p.rootOf(p.foreground, []string{"a"}, Reply{Gate("root"), Say("Root done.")}),
			"a":    {{p.ask("call_one", "touch one.txt")}, {Say("x")}},
		}, p.asking)
		s.Say("Use one sub-agent that runs a command")
		q := s.Question()
		s.stop("a")
		if now := s.question(q); now.Status != agent.InteractionSuperseded {
			t.Errorf("the question is %+v", now)
		}
		_, _, err := s.Service.Answer(s.Ctx, s.Ws, agent.NewAnswer{
			Session: q.SessionID, Turn: q.TurnID, Request: q.RequestID, Response: optionOf(t, q, agent.RoleAllow), Client: "late",
		})
		if err == nil {
			t.Error("a late answer was taken")
		}
		s.Held("root")
		s.Model.Open("root")
		s.Settles(agent.OutcomeCompleted)
		if s.made("one.txt") {
			t.Error("the withdrawn command ran")
		}
		s.finish()
	})
}
