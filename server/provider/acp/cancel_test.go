package acp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// order is where a line stands among what was written, -1 if it was not.
func order(lines []string, want string) int {
	for n, l := range lines {
		if l == want {
			return n
		}
	}
	return -1
}

// leavesChildren makes a stop of the root spare its children, as some agents do.
func (p *puppet) leavesChildren() {
	p.onHeard = func(m line) bool {
		if m.Method != acp.MethodCancel || !strings.Contains(string(m.Params), `"`+rootSession+`"`) {
			return false
		}
		p.end(rootSession, acp.StopCancelled)
		return true
	}
}

// A stop of the root reaches the children that the agent would leave running: each granted
// one is asked by itself, after the root (claude-agent-acp#994, #976; claude-code#95138).
func TestRootCancelFansOutToGrantedChildren(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", "one")
			p.leavesChildren()
		})
		got := s.cancel(s.in.Turn).completes()
		for id, state := range got {
			if state != agent.TargetCanceled {
				s.t.Errorf("%s reads %s", id, state)
			}
		}
		lines := s.p.methods()
		root, one, two := order(lines, "cancel R"), order(lines, "cancel one"), order(lines, "cancel two")
		if root < 0 || root > one || one < 0 || two < 0 {
			s.t.Errorf("written: %q", lines)
		}
		s.rooted(agent.OutcomeCanceled)
		s.ended("one", agent.OutcomeCanceled)
		s.ended("two", agent.OutcomeCanceled)
	})
}

// A child without a grant is a target all the same: it is interrupted when its agent says
// nothing, and no line names it (decisions.md 14).
func TestUngrantedChildIsInterruptedAtTheDeadline(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.grant("one", acp.Revoked())
			p.leavesChildren()
		})
		child := s.child("one").ID
		got := s.cancel(s.in.Turn).completes()
		if got[child] != agent.TargetInterrupted || got[s.Root] != agent.TargetCanceled {
			s.t.Errorf("targets read %v", got)
		}
		s.p.wrote(s.t, "cancel one", 0)
		s.ended("one", agent.OutcomeInterrupted)
		s.rooted(agent.OutcomeCanceled)
	})
}

// A grant that comes while the stop waits is used.
func TestGrantThatComesDuringAStop(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.grant("one", acp.Revoked())
			p.leavesChildren()
		})
		c := s.cancel(s.in.Turn)
		s.pass(time.Second)
		s.does(func(p *puppet) { p.grant("one", acp.Granted()) })
		if got := c.completes()[s.child("one").ID]; got != agent.TargetCanceled {
			s.t.Errorf("the child reads %s", got)
		}
		s.p.wrote(s.t, "cancel one", 1)
	})
}

// A stop of one child is that child's and what is below it: neither the root nor a sibling
// is touched, and its own end alone confirms it.
func TestChildCancelAlone(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", rootSession)
			p.delegate("nested", "one")
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel } // it takes its time
		})
		c := s.cancel(s.child("one").LatestTurn.ID)
		s.pass(time.Second)
		s.ended("one", "")
		if len(s.Evidence()) != 0 {
			s.t.Errorf("a stop that was only asked for is evidence: %+v", s.Evidence())
		}
		s.does(func(p *puppet) {
			p.end("nested", acp.StopCancelled)
			p.end("one", acp.StopCancelled)
		})
		got := c.completes()
		if len(got) != 2 || got[s.child("one").ID] != agent.TargetCanceled || got[s.child("nested").ID] != agent.TargetCanceled {
			s.t.Errorf("targets read %v", got)
		}
		s.ended("two", "")
		s.rooted("")
		s.p.wrote(s.t, "cancel R", 0)
		s.p.wrote(s.t, "cancel two", 0)
	})
}

// What the agent says ended the work stands, whatever was asked (github/copilot-cli#4561:
// a stop that is answered end_turn).
func TestAnEndThatWinsTheRaceStands(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.onHeard = func(m line) bool {
				if m.Method == acp.MethodCancel && !strings.Contains(string(m.Params), "one") {
					p.end("one", acp.StopEndTurn)
					p.end(rootSession, acp.StopEndTurn)
				}
				return m.Method == acp.MethodCancel
			}
		})
		got := s.cancel(s.in.Turn).completes()
		if got[s.child("one").ID] != agent.TargetAlreadyTerminal {
			s.t.Errorf("targets read %v", got)
		}
		s.ended("one", agent.OutcomeCompleted)
		s.rooted(agent.OutcomeCanceled) // the person's word outranks the root's own
	})
}

// A root whose prompt is over is stopped with its children.
func TestCancelOfAnIdleRoot(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end(rootSession, acp.StopEndTurn)
		})
		s.rooted("")
		got := s.cancel(s.in.Turn).completes()
		if got[s.Root] != agent.TargetCanceled || got[s.child("one").ID] != agent.TargetCanceled {
			s.t.Errorf("targets read %v", got)
		}
		s.rooted(agent.OutcomeCanceled)
	})
}

// A stop whose write fails is a failed operation, never a success.
func TestFailedCancelWrite(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.onHeard = func(m line) bool {
				if m.Method == acp.MethodCancel {
					p.End("signal: killed")
				}
				return false
			}
		})
		c := s.cancel(s.in.Turn)
		s.pass(time.Second)
		for _, e := range s.Evidence() {
			if e.State == agent.TargetCanceled {
				s.t.Errorf("a dead agent confirmed: %+v", e)
			}
		}
		if !c.done() || c.err == nil {
			s.t.Errorf("done %v, err %v", c.done(), c.err)
		}
		s.ended("one", agent.OutcomeInterrupted)
	})
}

// Two stops of the same turn at once are one ending, and a turn can be stopped again.
func TestCancelTwice(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel }
		})
		turn := s.child("one").LatestTurn.ID
		first := s.cancel(turn)
		second := s.cancel(turn)
		s.does(func(p *puppet) { p.end("one", acp.StopCancelled) })
		for _, c := range []*cancelling{first, second} {
			if got := c.completes()[s.child("one").ID]; got != agent.TargetCanceled {
				s.t.Errorf("it reads %s", got)
			}
		}
		s.rooted("")
	})
}

// An agent that ignores a stop holds the next message back for a while, then the person
// gets a clear word (aaif-goose/goose#11651: the session is stuck after a stop).
func TestNextPromptWaitsForAStoppedTurn(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.says(rootSession, "hello")
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel }
		})
		s.cancel(s.in.Turn).completes()
		s.rooted(agent.OutcomeCanceled)
		s.in = s.Submit(s.Root, "Go on.")
		var err error
		started := make(chan struct{})
		go func() { err = s.rt.Start(s.t.Context(), s.in); close(started) }()
		s.pass(time.Second)
		s.p.wrote(s.t, acp.MethodPrompt, 1)
		s.pass(time.Minute)
		<-started
		if !errors.Is(err, &agent.Error{Code: agent.CodeTimeout}) {
			s.t.Errorf("Start: %v", err)
		}
		s.rooted(agent.OutcomeFailed)
		if e := s.View().Turn(s.in.Turn).Error; e == nil || !strings.Contains(e.Message, "has not ended the turn that was stopped") {
			s.t.Errorf("the reason is %v", e)
		}

		s.in = s.Submit(s.Root, "And now?")
		go func() { _ = s.rt.Start(s.t.Context(), s.in) }()
		s.pass(time.Second)
		s.does(func(p *puppet) { p.end(rootSession, acp.StopCancelled) }) // at last
		s.p.wrote(s.t, acp.MethodPrompt, 2)
		s.does(func(p *puppet) { p.done("here") })
		s.rooted(agent.OutcomeCompleted)
	})
}

// What comes of a stopped turn afterwards is not shown in the next one.
func TestLateEventsOfAStoppedTurn(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) { p.delegate("one", rootSession) })
		s.cancel(s.in.Turn).completes()
		s.does(func(p *puppet) {
			p.says(rootSession, "late root")
			p.says("one", "late child")
			p.ask("one", func(o acp.PermissionOutcome) {})
		})
		if n := len(s.View().Pending()); n != 0 {
			s.t.Errorf("%d questions of a stopped turn are open", n)
		}
		s.start()
		s.does(func(p *puppet) { p.done("next") })
		s.rooted(agent.OutcomeCompleted)
		for _, m := range s.View().Messages {
			if m.TurnID == s.in.Turn && strings.Contains(m.Content, "late") {
				s.t.Errorf("late text is in the next turn\n%s", s.View())
			}
		}
	})
}

// A loss of the agent is no stop by the user (openclaw#113021): what ran is interrupted,
// with the reason.
func TestALossIsNoStop(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.End("signal: killed")
		})
		s.ended("one", agent.OutcomeInterrupted)
		s.rooted(agent.OutcomeInterrupted)
		s.grantTold("one", false)
		if e := s.child("one").LatestTurn.Error; e == nil || e.Code != agent.CodeProviderGone {
			s.t.Errorf("the reason is %v", e)
		}
		if s.Lost() != 1 {
			s.t.Errorf("lost %d times", s.Lost())
		}
	})
}

// A child that is announced while its root is being stopped may not be: it is stopped, too.
func TestChildBornDuringAStop(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel && strings.Contains(string(m.Params), `"R"`) }
		})
		c := s.cancel(s.in.Turn)
		s.does(func(p *puppet) {
			p.parent["late"], p.live["late"] = rootSession, true
			p.update(rootSession, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: "late", Capabilities: acp.Granted(), State: acp.Some(acp.StateUpdate{State: acp.StateRunning})})
			p.says("late", "hi")
		})
		s.p.wrote(s.t, "cancel late", 1)
		s.does(func(p *puppet) { p.end(rootSession, acp.StopCancelled) })
		c.completes()
		if len(s.View().Children()) != 0 || s.Diagnosed(provider.Refused) == 0 {
			s.t.Errorf("a child was born under a stopped root\n%s", s.View())
		}
	})
}
