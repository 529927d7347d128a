package acp

import (
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// A child can be stopped alone while it is granted and live; the API follows at once.
func TestGrantsFollowTheAgent(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			p.live["one"] = true
			p.state("one", acp.StateUpdate{State: acp.StateRunning})
			p.says("one", "hi")
		})
		s.grantTold("one", false)
		s.does(func(p *puppet) { p.grant("one", acp.Granted()) })
		s.grantTold("one", true)
		s.does(func(p *puppet) { p.grant("one", acp.Revoked()) })
		s.grantTold("one", false)
		s.does(func(p *puppet) { p.grant("one", acp.Granted()) })
		s.does(func(p *puppet) { p.grant("one", acp.Null[acp.SubagentCapabilities]()) })
		s.grantTold("one", false)
		s.does(func(p *puppet) { p.grant("one", acp.Granted()) })
		s.grantTold("one", true)
		// Some agents never withdraw it: the end of the work does.
		s.does(func(p *puppet) { p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn}) })
		s.grantTold("one", false)
	})
}

// Between a load and its answer everything is history: no turn, no question, no grant. What
// the agent says after the answer is true again (claude-agent-acp: replayed running;
// zed-industries/codex-acp#186: a cancel after a load has an effect).
func TestReloadWithALiveChild(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", rootSession)
			p.end("one", acp.StopEndTurn)
			p.end(rootSession, acp.StopEndTurn)
		})
		var ids []string
		s.does(func(p *puppet) { p.holdLoads(&ids) })
		loaded := make(chan error, 1)
		go func() { loaded <- s.rt.Reload(s.t.Context()) }()
		s.pass(0)
		s.grantTold("two", false)
		turns, messages := len(s.View().Turns), len(s.View().Messages)
		s.does(func(p *puppet) { // history
			p.says("one", "[one] hi")
			p.announce("one", rootSession)
			p.run("one")
			p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopError})
			p.run("old")
			p.announce("old", rootSession)
			p.run("old")
			p.says("two", "[two] hi")
			p.run("two")
		})
		if v := s.View(); len(v.Turns) != turns || len(v.Messages) != messages {
			s.t.Errorf("history opened something\n%s", v)
		}
		s.grantTold("two", false)
		s.does(func(p *puppet) { p.reply(wire.RawID(ids[0]), struct{}{}) })
		if err := <-loaded; err != nil {
			s.t.Fatal(err)
		}
		s.grantTold("two", false)
		s.does(func(p *puppet) { // the current states
			p.state("one", acp.StateUpdate{State: acp.StateIdle})
			p.announce("two", rootSession)
			p.run("two")
		})
		s.grantTold("two", true)
		if n := len(s.View().Turns); n != turns {
			s.t.Errorf("a turn was opened for a child that runs\n%s", s.View())
		}
		c := s.cancel(s.child("two").LatestTurn.ID)
		if got := c.completes()[s.child("two").ID]; got != agent.TargetCanceled {
			s.t.Errorf("the stop after a load reads %s", got)
		}
		s.rooted(agent.OutcomeCompleted)
	})
}

// A load that fails suspends every grant without a word; that is said, and undone.
func TestFailedReloadIsSaidAndRestored(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end(rootSession, acp.StopEndTurn)
		})
		fails := 1
		s.does(func(p *puppet) {
			p.onHeard = func(m line) bool {
				if m.Method != acp.MethodLoadSession && m.Method != acp.MethodResumeSession {
					return false
				}
				if fails--; fails >= 0 {
					p.refuse(m.ID, -32602, "cwd must be absolute")
					p.grant("one", acp.Granted()) // of a failed attempt: void
					return true
				}
				p.reply(m.ID, struct{}{})
				p.run("one")
				return true
			}
		})
		if err := s.rt.Reload(s.t.Context()); err == nil {
			s.t.Error("a failed load was a success")
		}
		s.pass(0)
		s.grantTold("one", false)
		if got := s.texts(s.Root); !strings.Contains(got, "cannot be stopped one by one") {
			s.t.Errorf("nobody was told: %s", got)
		}
		s.ended("one", "") // it goes on
		s.pass(2 * time.Second)
		s.grantTold("one", true)
		s.does(func(p *puppet) { p.end("one", acp.StopEndTurn) })
		s.rooted(agent.OutcomeCompleted)
	})
}

// Of two loads under way only the latest one's answer ends the history.
func TestOnlyTheLatestLoadRestores(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end(rootSession, acp.StopEndTurn)
		})
		var ids []string
		s.does(func(p *puppet) { p.holdLoads(&ids) })
		for range 2 {
			go func() { _ = s.rt.Reload(s.t.Context()) }()
			s.pass(0)
		}
		s.does(func(p *puppet) {
			p.reply(wire.RawID(ids[0]), struct{}{})
			p.run("one")
		})
		s.grantTold("one", false)
		s.does(func(p *puppet) {
			p.reply(wire.RawID(ids[1]), struct{}{})
			p.run("one")
		})
		s.grantTold("one", true)
		s.does(func(p *puppet) { p.end("one", acp.StopEndTurn) })
	})
}

// A session that is loaded by a fresh process: its children are known again, its history
// opens nothing, and what was running when the last process ended is not running.
func TestLoadByAFreshProcess(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		s.p.onHeard = func(m line) bool {
			switch m.Method {
			case acp.MethodResumeSession:
				if s.p.version == acp.V1 {
					s.p.refuse(m.ID, -32601, "not today")
					return true
				}
			case acp.MethodLoadSession:
			default:
				return false
			}
			s.p.says(rootSession, "[root] hello")
			s.p.announce("one", rootSession)
			s.p.run("one")
			s.p.announce("other", rootSession)
			s.p.run("other")
			s.p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn})
			s.p.reply(m.ID, struct{}{})
			s.p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn})
			return true
		}
		before := len(s.View().Turns)
		s.reopen()
		s.pass(time.Second)
		if v := s.View(); len(v.Turns) != before || len(v.Children()) != 1 {
			s.t.Errorf("history became live\n%s", v)
		}
		s.grantTold("one", false)
		s.start()
		s.does(func(p *puppet) {
			p.run("one") // the child of before works again
			p.says("one", "again")
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		if v := s.View(); len(v.Children()) != 1 || s.child("one").LatestTurn.RootTurnID != s.in.Turn {
			s.t.Errorf("the child was not known again\n%s", v)
		}
	})
}

// An agent that no longer has the session begins anew, and the person is told; one whose
// session is held by another process is not lost.
func TestSessionThatCannotBeTakenUp(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) { p.done("done") })
		s.p.onHeard = func(m line) bool {
			if m.Method != acp.MethodResumeSession && m.Method != acp.MethodLoadSession {
				return false
			}
			s.p.Play([]byte(`{"id":` + string(m.ID) + `,"error":{"code":-32600,"message":"Invalid request","data":{"reason":"thread_active_writer"}}}`))
			return true
		}
		s.close()
		s.Reopened()
		s.rt = nil
		if err := s.tryOpen(); err == nil || !strings.Contains(err.Error(), "active_writer") {
			s.t.Fatalf("Open: %v", err)
		}
		s.p.onHeard = func(m line) bool {
			switch m.Method {
			case acp.MethodResumeSession, acp.MethodLoadSession:
				s.p.refuse(m.ID, -32002, "Resource not found")
				return true
			case acp.MethodNewSession:
				s.p.reply(m.ID, map[string]any{"sessionId": "R2"})
				return true
			}
			return false
		}
		s.open()
		if s.View().Root().ProviderSessionID != "R2" || !strings.Contains(s.texts(s.Root), "no longer has this conversation") {
			s.t.Errorf("%s\n%s", s.View().Root().ProviderSessionID, s.View())
		}
	})
}
