package claude

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// elicits has an MCP server ask; the wire names no agent.
func (s *scene) elicits(id string) {
	s.emit("control_request", fields{"request_id": id, "request": fields{
		"subtype": reqElicit, "mcp_server_name": "tickets", "message": "Which?", "mode": "form",
	}})
}

// A form that a server shows while only a child runs, or before the root's turn ended, can
// be answered all the same: the child would wait for ever.
func TestFormIsAnsweredAfterTheRootsOwnTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.quiet = true
		s.start(func() {
			s.delegate("one", nil, true)
			s.elicits("e1")
			s.done("[root] launched")
		})
		s.does(func() { s.elicits("e2") })
		asked := s.View().Pending()
		if len(asked) != 2 {
			t.Fatalf("%d questions\n%s", len(asked), s.View())
		}
		for _, i := range asked {
			s.check(i.SessionID == s.Root && i.Owner == agent.OwnerUnknown, "question %+v", i)
			err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: "accept"}})
			s.check(err == nil, "Answer: %v", err)
		}
		s.check(s.wrote(`"action":"accept"`) == 2, "the answers were not written")
		rt := s.rt.(*runtime)
		rt.Do(func() { s.check(len(rt.asked) == 0, "%d questions are kept", len(rt.asked)) })
	})
}

// A form of a tree that was stopped is not answered.
func TestFormOfAStoppedTree(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.elicits("e1") })
		i := s.View().Pending()[0]
		s.cancel(s.in.Turn)
		err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: "accept"}})
		s.check(err != nil && s.wrote(`"action":"accept"`) == 0, "Answer: %v", err)
	})
}

// A child whose stop was never confirmed counts for nothing from then on: a later result
// is held as if it were not there.
func TestUnconfirmedChildHoldsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.deafTo = reqStopTask })
		states := s.cancel(s.child("one").LatestTurn.ID)
		s.check(states[0] == agent.TargetInterrupted, "states %v", states)
		s.start(func() {
			s.delegate("two", nil, true)
			s.finish(s.kids["two"], taskCompleted)
			s.done("[root] launched") // a continuation follows: fact 12
		})
		turn := s.rootTurn()
		s.check(turn.Live(), "the root ended with its result")
		s.does(func() {
			s.begin()
			s.says(nil, "[root] it has ended")
			s.done("")
		})
		s.does(func() { s.state(stateIdle) })
		v := s.View()
		s.check(v.RootTurn().ID == s.in.Turn && v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
	})
}

// Two tasks under one call are two agents.
func TestSecondTaskOfOneCall(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() {
			s.emit("system/task_started", fields{
				"task_id": "aother", "run_id": "run-o", "tool_use_id": "toolu_one", "task_type": taskAgent, "is_backgrounded": true, "description": "Other",
			})
			s.emit("system/task_notification", fields{"task_id": "aother", "run_id": "run-o", "tool_use_id": "toolu_one", "status": taskFailed})
		})
		v := s.View()
		one := v.Turn(s.childOfTask("aone").LatestTurn.ID)
		s.check(len(v.Children()) == 2 && one.Live(), "the child is %+v", one)
		s.check(s.childOfTask("aother").LatestTurn.Outcome == agent.OutcomeFailed, "the other is %+v", s.childOfTask("aother"))
	})
}

func (s *scene) childOfTask(task string) agent.Session {
	for _, c := range s.View().Children() {
		if c.Handles.TaskID == task {
			return c
		}
	}
	return agent.Session{LatestTurn: &agent.Turn{}}
}

// A request that is taken back before its agent is known is not asked any more.
func TestWithdrawnBeforeItsOwnerIsKnown(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("control_request", fields{"request_id": "q1", "request": fields{
				"subtype": reqCanUseTool, "tool_name": "Bash", "input": fields{}, "agent_id": "aone", "tool_use_id": "t",
			}})
			s.emit("control_cancel_request", fields{"request_id": "q1"})
			s.delegate("one", nil, true)
		})
		s.check(len(s.View().Interactions) == 0, "questions %+v", s.View().Interactions)
	})
}

// An idle that crosses a message on the wire is older than it: the message is read next.
func TestIdleThatCrossesAMessage(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.says(nil, "[root] last words") })
		s.mu.Lock()
		s.deafTo = typeUser
		s.mu.Unlock()
		in := s.Guidance(s.Root, "And this.")
		result := make(chan error, 1)
		go func() { result <- s.rt.Guide(s.t.Context(), in) }()
		synctest.Wait()
		s.does(func() {
			s.done("")
			s.deafTo = ""
			s.fate(wireID(in.Message), lifeQueued)
			s.state(stateIdle)
		})
		s.check(<-result == nil, "Guide")
		turn := s.rootTurn()
		s.check(turn.Live() && !s.status(in.Message).Ended(), "the message is %s, the root %+v", s.status(in.Message), turn)
		s.does(func() {
			s.state(stateRunning)
			s.fate(wireID(in.Message), lifeStarted)
			s.begin(wireID(in.Message))
			s.says(nil, "[root] noted")
			s.done("")
		})
		v := s.View()
		s.check(s.status(in.Message) == agent.MessageCompleted && v.RootTurn().ID == s.in.Turn, "the message is %s", s.status(in.Message))
		s.check(v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
	})
}

// A message that the program has queued and never reads is withdrawn, and lost.
func TestMessageThatIsNeverRead(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.says(nil, "[root] last words") })
		in := s.guide()
		s.does(func() {
			s.queue = nil
			s.done("")
		})
		turn := s.rootTurn()
		s.check(turn.Live(), "the root ended")
		s.passes(time.Hour)
		s.check(s.status(in.Message) == agent.MessageUndelivered && s.wrote(reqWithdraw) == 1, "the message is %s", s.status(in.Message))
		turn = s.rootTurn()
		s.check(!turn.Live(), "root turn %+v", turn)
	})
}

// Deleting a child ends what it has left running, too.
func TestShellOfADeletedChildIsStopped(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.shell(s.kids["one"], "b1") })
		s.rt.Forget(s.t.Context(), s.Delete(s.child("one").ID))
		synctest.Wait()
		s.check(s.wrote(`"task_id":"b1"`) == 1 && s.wrote(`"task_id":"aone"`) == 1, "what a deleted agent has started runs on")
	})
}

// An idle that crosses a message in the wait for a continuation does not end the root
// before the message is read.
func TestIdleInTheWaitThatCrossesAMessage(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.does(func() { s.deafTo = typeUser })
		in := s.Guidance(s.Root, "And this.")
		result := make(chan error, 1)
		go func() { result <- s.rt.Guide(s.t.Context(), in) }()
		synctest.Wait()
		s.does(func() { s.state(stateIdle) })
		turn := s.rootTurn()
		s.check(turn.Live(), "the root ended with a message on its way")
		s.does(func() {
			s.fate(wireID(in.Message), lifeQueued)
			s.begin(wireID(in.Message))
			s.says(nil, "[root] noted")
			s.done("")
		})
		s.check(<-result == nil && s.status(in.Message) == agent.MessageCompleted, "the message is %s", s.status(in.Message))
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.said("[root] noted"), "root turn %+v", s.rootTurn())
	})
}

// Calls that were cut off do not use up the room of those to come.
func TestCallsThatWereCutOffAreForgotten(t *testing.T) {
	play(t, func(s *scene) {
		for range maxTools + 1 {
			s.start(func() {
				s.use(nil, fmt.Sprint("toolu_cut", s.serial), "Bash", fields{"command": "x"})
				s.done("[root] done")
			})
		}
		s.start(func() { s.shell(nil, "b1") })
		p := s.View().Processes
		s.check(len(p) == 1 && p[0].Command == "serve", "processes %+v", p)
	})
}

// Of children that are long at rest nothing is kept that grows with their work.
func TestChildrenAtRestKeepLittle(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.delegate("one", nil, true)
			s.finish(s.kids["one"], taskCompleted)
			s.done("[root] done")
		})
		s.does(func() { s.state(stateIdle) }) // said again
		rt := s.rt.(*runtime)
		kept := func() (n int) {
			rt.Do(func() { n = len(rt.children[0].first().items) })
			return n
		}
		s.check(kept() > 0, "what may still come late finds nothing")
		s.start(func() { s.done("[root] next") })
		s.check(kept() == 0, "%d items are kept", kept())
	})
}

// A stop that is never answered runs out; the next message has a turn of its own, and what
// the stopped one still says, and its agent's late end, are none of it.
func TestMessageAfterAStopThatRanOut(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.delegate("one", nil, false) })
		s.does(func() { s.deafTo = reqInterrupt })
		first := s.in.Turn
		states := s.cancel(first)
		s.check(slices.Equal(states, []agent.TargetState{agent.TargetInterrupted, agent.TargetInterrupted}), "states %v", states)
		s.start(func() {
			s.delegate("two", nil, true)
			s.finish(s.kids["two"], taskCompleted)
			s.done("[root] launched")
		})
		s.does(func() {
			s.quiet = false
			s.says(s.kids["one"], "[one] late")
			s.finish(s.kids["one"], taskCompleted)
			s.says(nil, "[root] late")
			s.onNote = func() { s.says(nil, "[root] it has ended") }
			s.done("")
		})
		v := s.View()
		s.check(v.Turn(first).Outcome == agent.OutcomeCanceled && v.RootTurn().ID == s.in.Turn, "root turn %+v", v.RootTurn())
		s.check(v.RootTurn().Outcome == agent.OutcomeCompleted && s.said("[root] it has ended"), "root turn %+v", v.RootTurn())
		for _, m := range v.Messages {
			s.check(m.Status.Ended(), "message %q is %s", m.Content, m.Status)
			s.check(m.Content != "[root] late" || m.TurnID == first, "what was stopped speaks in the next turn")
		}
	})
}

// A permission mode that a plan's end or an answer has brought is the session's from then on:
// its next process begins with it. What the process began with, and a word that the program
// would not take at its start, are not.
func TestPermissionModeOfTheNextProcess(t *testing.T) {
	play(t, func(s *scene) {
		mode := func() string { return s.View().Root().PermissionMode }
		s.start(func() { s.says(nil, "A plan.") })
		s.check(s.rt.(*runtime).mode == modeDefault && mode() == "", "the mode of the start is kept: %q", mode())
		for _, c := range []struct{ told, kept string }{{modeAcceptEdits, modeAcceptEdits}, {"", modeAcceptEdits}, {"yolo", modeAcceptEdits}, {modePlan, modePlan}} {
			s.does(func() { s.emit("system/status", fields{"status": nil, "permissionMode": c.told}) })
			s.check(mode() == c.kept, "after %q the mode is %q, not %q", c.told, mode(), c.kept)
		}
		s.does(func() { s.done("Done.") })
	})
}
