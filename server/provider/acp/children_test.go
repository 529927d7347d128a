package acp

import (
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// States are levels: said twice they are one turn, and an echo of what is over begins
// nothing.
func TestRepeatedStatesAreOneTurn(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			for range 3 {
				p.run("one")
			}
			p.state("one", acp.StateUpdate{State: acp.StateRequires})
			p.state("one", acp.StateUpdate{State: acp.StateRunning})
			p.says("one", "hi")
			p.end("one", acp.StopEndTurn)
			p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopCancelled})
		})
		s.ended("one", agent.OutcomeCompleted)
		if n := len(s.View().Turns); n != 2 {
			s.t.Errorf("%d turns, want 2\n%s", n, s.View())
		}
	})
}

// In version 2 a state is told on two streams, in either order and with either behind.
func TestTheTwoStreamsOfAStateAreOne(t *testing.T) {
	play(t, two, func(s *stage) {
		s.start()
		own := func(p *puppet, st acp.StateUpdate) { p.update("one", acp.UpdateState, &st) }
		mirror := func(p *puppet, st acp.StateUpdate) {
			p.update(rootSession, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: "one", State: acp.Some(st)})
		}
		running := acp.StateUpdate{State: acp.StateRunning}
		idle := acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn}
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			own(p, running)
			own(p, idle)
			mirror(p, running) // late
			mirror(p, idle)
			mirror(p, running) // now this one is ahead
			own(p, running)
			mirror(p, idle)
			own(p, idle)
		})
		s.pass(time.Second)
		s.ended("one", agent.OutcomeCompleted)
		if n := len(s.View().Turns); n != 3 {
			s.t.Errorf("%d turns, want the root's and two of the child\n%s", n, s.View())
		}
	})
}

// The pair of messages that some agents send names the tool call, the task and its result.
func TestMessagesBetweenSessionsNameTheCall(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.parent["one"], p.live["one"] = rootSession, true
			p.update(rootSession, acp.UpdateSubagent, &acp.SubagentUpdate{
				SessionID: "one", Title: acp.Some("alpha job"), Description: acp.Some("general-purpose"),
				Capabilities: acp.Granted(), State: acp.Some(acp.StateUpdate{State: acp.StateRunning}),
			})
			task := &acp.SessionMessage{MessageID: "toolu_1", SenderSessionID: rootSession, RecipientSessionID: "one", Content: acp.Some([]acp.ContentBlock{acp.Text("do it")})}
			p.update(rootSession, acp.UpdateMessage, task)
			p.update("one", acp.UpdateMessage, task)
			p.says("one", "works")
		})
		c := s.child("one")
		if c.ParentToolCallID != "toolu_1" || c.Prompt != "do it" || c.Title != "alpha job" || c.AgentType != "general-purpose" || c.Handles.ParentToolUseID != "toolu_1" {
			s.t.Errorf("the child is %+v", c)
		}
		if got := s.texts(c.ID); got != "user:do it|assistant:works" {
			s.t.Errorf("its transcript is %s", got)
		}
		s.does(func(p *puppet) {
			p.end("one", acp.StopEndTurn)
			p.update(rootSession, acp.UpdateMessage, &acp.SessionMessage{
				MessageID: "toolu_1:reply", SenderSessionID: "one", RecipientSessionID: rootSession, Content: acp.Some([]acp.ContentBlock{acp.Text("done it")}),
			})
		})
		calls := s.calls(s.Root)
		if len(calls) != 1 || calls[0].CallID != "toolu_1" || calls[0].ChildSessionID != c.ID || calls[0].Input != "do it" || calls[0].Output != "done it" || calls[0].Status != agent.MessageCompleted {
			s.t.Errorf("the call is %+v", calls)
		}
	})
}

// A child that nothing more is said of is shown all the same, after a moment.
func TestASilentChildIsShown(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			p.state("one", acp.StateUpdate{State: acp.StateRunning})
		})
		s.pass(time.Second)
		s.ended("one", "")
	})
}

// An announcement alone is no work.
func TestAnAnnouncementOpensNothing(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			p.state("one", acp.StateUpdate{State: acp.StateIdle})
			p.state("one", acp.StateUpdate{State: acp.StateUnknown})
			p.end(rootSession, acp.StopEndTurn)
		})
		s.pass(time.Second)
		if len(s.View().Children()) != 0 {
			s.t.Errorf("a child was made of an announcement\n%s", s.View())
		}
		s.rooted(agent.OutcomeCompleted)
	})
}

// The same child works again: a new turn of the same session, under the same root turn.
func TestLaterAssignment(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end("one", acp.StopEndTurn)
		})
		s.grantTold("one", false)
		s.does(func(p *puppet) {
			p.run("one")
			p.says("one", "again")
		})
		s.ended("one", "")
		s.grantTold("one", true)
		if len(s.View().Children()) != 1 || s.child("one").LatestTurn.Trigger != agent.TriggerGuidance {
			s.t.Errorf("the second turn is %+v", s.child("one").LatestTurn)
		}
		s.does(func(p *puppet) { p.end(rootSession, acp.StopEndTurn) })
		s.rooted("") // its child runs
		s.does(func(p *puppet) { p.end("one", acp.StopEndTurn) })
		s.rooted(agent.OutcomeCompleted)
		if calls := s.calls(s.Root); len(calls) != 2 || calls[1].Status != agent.MessageCompleted || calls[0].CallID == calls[1].CallID {
			s.t.Errorf("the parent's entries are %+v", calls)
		}
	})
}

// unknown is no end, no cancel and no revocation; a state nobody knows is none either.
func TestUnknownIsNoEnd(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.state("one", acp.StateUpdate{State: acp.StateUnknown})
			p.state("one", acp.StateUpdate{State: "dreaming"})
			p.end(rootSession, acp.StopEndTurn)
		})
		s.ended("one", "")
		s.rooted("")
		s.grantTold("one", false) // it may not be live
		s.does(func(p *puppet) { p.state("one", acp.StateUpdate{State: acp.StateRunning}) })
		s.grantTold("one", true)
		s.does(func(p *puppet) { p.end("one", acp.StopMaxTokens) })
		s.ended("one", agent.OutcomeFailed)
		s.rooted(agent.OutcomeCompleted)
	})
}

// How work ends is what the agent says: a reason nobody knows, or none, is no success.
func TestOutcomes(t *testing.T) {
	for stop, want := range map[acp.StopReason]agent.Outcome{
		acp.StopEndTurn: agent.OutcomeCompleted, acp.StopCancelled: agent.OutcomeInterrupted, acp.StopRefusal: agent.OutcomeFailed,
		acp.StopMaxRequests: agent.OutcomeFailed, acp.StopError: agent.OutcomeFailed, "": agent.OutcomeInterrupted, "tired": agent.OutcomeInterrupted,
	} {
		t.Run("stop "+string(stop), func(t *testing.T) {
			play(t, both, func(s *stage) {
				s.start()
				s.does(func(p *puppet) {
					p.delegate("one", rootSession)
					p.end("one", stop)
					p.end(rootSession, stop)
				})
				s.ended("one", want)
				s.rooted(want)
				if e := s.child("one").LatestTurn.Error; (e == nil) != (want == agent.OutcomeCompleted) {
					s.t.Errorf("the error is %v", e)
				}
			})
		})
	}
}

// One parent for ever: no other parent, no cycle.
func TestNoOtherParentAndNoCycle(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", "one")
			say := func(parent, child string) {
				p.update(parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: child, State: acp.Some(acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn})})
			}
			say(rootSession, "two")
			say("two", "one")
			say("one", "one")
			say("two", rootSession)
		})
		s.ended("one", "")
		s.ended("two", "")
		if s.child("two").ParentSessionID != s.child("one").ID {
			s.t.Error("a child was moved")
		}
		if s.Diagnosed(provider.Refused) == 0 || s.Diagnosed(provider.Malformed) == 0 {
			s.t.Errorf("nothing was counted: %+v", s.Diagnostics())
		}
		s.does(func(p *puppet) {
			p.end("two", acp.StopEndTurn)
			p.end("one", acp.StopEndTurn)
			p.end(rootSession, acp.StopEndTurn)
		})
		s.rooted(agent.OutcomeCompleted)
	})
}

// A child of a child that never worked has no turn to hang below: it is left out, and holds
// nothing open.
func TestAChildBelowNobodysWork(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			p.delegate("two", "one")
		})
		s.pass(time.Second)
		s.p.wrote(s.t, "cancel two", 1)
		s.does(func(p *puppet) { p.done("done") })
		s.rooted(agent.OutcomeCompleted)
		if n := len(s.View().Turns); n != 1 {
			s.t.Errorf("%d turns, want 1\n%s", n, s.View())
		}
	})
}

// Agents that announce no children have none: a tool called Task is a tool
// (t3code#4220 and its kind show what guessing does).
func TestAToolCalledTaskIsATool(t *testing.T) {
	play(t, one, func(s *stage) {
		s.start()
		s.line(`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Task: alpha","kind":"think","status":"in_progress","rawInput":{"subagent_type":"general","prompt":"x"},"_meta":{"claudeCode":{"toolName":"Task","parentToolUseId":"t0"}}}}}`)
		s.line(`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":{"metadata":{"sessionId":"ses_2"}}}}}`)
		s.does(func(p *puppet) { p.done("done") })
		s.rooted(agent.OutcomeCompleted)
		if len(s.View().Children()) != 0 || len(s.calls(s.Root)) != 1 {
			s.t.Errorf("a child was made of a tool call\n%s", s.View())
		}
	})
}

// Events of a child that come after the root's prompt has ended belong to the child's open
// turn (mirafold#122: dropped once the root's turn ends).
func TestChildEventsAfterTheRootsPrompt(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end(rootSession, acp.StopEndTurn)
			p.says("one", "still here")
			p.end("one", acp.StopEndTurn)
			p.says("one", "too late")
		})
		s.pass(2 * time.Second)
		if got := s.texts(s.child("one").ID); got != "assistant:[one] hi|assistant:still here|assistant:too late" && got != "assistant:[one] hi|assistant:still here" {
			s.t.Errorf("its transcript is %s", got)
		}
		s.rooted(agent.OutcomeCompleted)
	})
}

// Root text after the prompt's result goes into no settled turn (anomalyco/opencode#18672,
// #17505); it is history of its turn at most.
func TestLateRootText(t *testing.T) {
	play(t, one, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.done("first")
			p.says(rootSession, "and ")
			p.says(rootSession, "more")
		})
		s.pass(2 * time.Second)
		if n := len(s.View().Turns); n != 1 {
			s.t.Errorf("late text opened a turn\n%s", s.View())
		}
		if s.Diagnosed(provider.Late) == 0 {
			s.t.Error("it was not counted")
		}
		s.start()
		s.does(func(p *puppet) { p.done("second") })
		for _, m := range s.View().MessagesOf(s.Root) {
			if m.TurnID == s.in.Turn && (m.Content == "and more" || m.Content == "and ") {
				s.t.Errorf("late text is in the next turn\n%s", s.View())
			}
		}
	})
}

// What comes before the answer that names the session belongs to it (openclaw#109961).
func TestUpdatesBeforeTheSessionIsNamed(t *testing.T) {
	play(t, both, func(s *stage) {
		s.close()
		s.Reopened()
		s.p.onHeard = func(m line) bool {
			if m.Method != acp.MethodResumeSession {
				return false
			}
			s.p.refuse(m.ID, -32002, "Resource not found")
			return true
		}
		s.p.onHeard = func(m line) bool {
			switch m.Method {
			case acp.MethodResumeSession, acp.MethodLoadSession:
				s.p.refuse(m.ID, -32002, "Resource not found")
				return true
			case acp.MethodNewSession:
				option := acp.ConfigOption{ID: "model", ConfigID: "model", Name: "Model", Category: "model", Type: "select", CurrentValue: []byte(`"m1"`)}
				s.p.update("R2", acp.UpdateConfig, &acp.ConfigUpdate{ConfigOptions: []acp.ConfigOption{option}})
				s.p.reply(m.ID, map[string]any{"sessionId": "R2"})
				return true
			}
			return false
		}
		s.open()
		if root := s.View().Root(); root.Model != "m1" || root.ProviderSessionID != "R2" {
			s.t.Errorf("the root is %+v", root)
		}
	})
}
