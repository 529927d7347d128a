package claude

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Faults that users of other integrations met, see docs/faults.md.

// B009: notices of background agents between turns were dropped, and the view went stale
// until somebody wrote.
func TestNoticeBetweenTurnsEndsItsChildAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one", "two")
		s.ends("two")
		s.check(s.child("two").LatestTurn.Outcome == agent.OutcomeCompleted, "the child runs on")
		one, root := s.child("one"), s.rootTurn()
		s.check(one.LatestTurn.Live() && root.Live(), "the notice of one ended another")
	})
}

// B016: a program that says idle while an agent runs ended the work.
func TestIdleWhileATaskIsOpenEndsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.state(stateIdle) })
		one, root := s.child("one"), s.rootTurn()
		s.check(one.LatestTurn.Live() && root.Live(), "idle ended an agent that lives")
		s.ends("one")
		s.check(s.View().Held[s.in.Turn] == agent.HeldByContinuation, "held by %q", s.View().Held[s.in.Turn])
		s.does(func() { s.state(stateIdle) })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

// B022: rows stayed alive after the work was done.
func TestWhateverIsLeftAtIdleIsInterrupted(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.delegate("one", nil, false) // its end is never told
			s.kids["one"].live = false
			s.done("[root] done")
		})
		one := s.child("one").LatestTurn
		s.check(one.Outcome == agent.OutcomeInterrupted && one.Error != nil, "the child is %+v", one)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.Diagnosed(provider.Unrouted) == 1, "root turn %+v", s.rootTurn())
	})
}

// B029: launches that are acknowledged hours later.
func TestLaunchAcknowledgedHoursLater(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.edge("one", nil, true) })
		s.passes(3 * time.Hour)
		one, root := s.child("one"), s.rootTurn()
		s.check(one.LatestTurn.Phase == agent.PhaseSubmitted && root.Phase == agent.PhaseRunning, "the child is %+v", one.LatestTurn)
		s.does(func() { s.started(s.kids["one"]) })
		s.check(s.child("one").LatestTurn.Phase == agent.PhaseRunning, "the child is %+v", s.child("one").LatestTurn)
	})
}

// B076: nobody could tell who asks.
func TestApprovalNamesTheAgentThatAsks(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.delegate("one", nil, true)
			s.delegate("two", nil, true)
			s.ask(s.kids["two"], func(string) {})
			s.ask(s.kids["one"], func(string) {})
		})
		asked := s.View().Pending()
		if len(asked) != 2 {
			t.Fatalf("%d questions", len(asked))
		}
		s.check(asked[0].SessionID == s.child("two").ID && asked[1].SessionID == s.child("one").ID, "questions %+v", asked)
		s.check(s.child("two").Title == "Job of two" && asked[0].Owner == agent.OwnerExact, "questions %+v", asked)
	})
}

// B118: a shell that is killed with its agent left the parent waiting.
func TestShellThatIsKilledWithItsAgentHoldsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			one := s.delegate("one", nil, false)
			s.shell(one, "b1")
			s.finish(one, taskCompleted)
			s.emit("system/task_notification", fields{"task_id": "b1", "run_id": "r-b1", "tool_use_id": "toolu_b1", "status": taskStopped})
			s.done("[root] done")
		})
		p := s.View().Processes
		s.check(len(p) == 1 && p[0].Status == agent.ProcessEnded && p[0].SessionID == s.child("one").ID, "processes %+v", p)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && len(s.View().Children()) == 1, "root turn %+v", s.rootTurn())
	})
}

// B119: "completed" was said while a process ran; it must be listed, and be stoppable.
func TestShellOutlivesTheRootAndCanBeStopped(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.shell(nil, "b1")
			s.done("[root] started")
		})
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
		p := s.View().Processes
		s.check(len(p) == 1 && p[0].Status == agent.ProcessRunning && p[0].Command == "serve" && p[0].Stoppable, "processes %+v", p)
		stop := s.rt.(provider.ProcessStopper)
		done := make(chan error, 1)
		go func() { done <- stop.StopProcess(s.t.Context(), s.Root, "b1") }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("StopProcess believed the answer: %v", err)
		default:
		}
		s.does(func() {
			s.emit("system/task_notification", fields{"task_id": "b1", "run_id": "r-b1", "tool_use_id": "toolu_b1", "status": taskStopped})
		})
		s.check(<-done == nil && s.View().Processes[0].Status == agent.ProcessEnded, "processes %+v", s.View().Processes)
		s.check(stop.StopProcess(s.t.Context(), s.Root, "b1") == nil, "an ended process cannot be stopped again")
		s.check(len(s.View().Turns) == 1, "a stopped shell began a turn")
	})
}

// B212: a rate limit looked like a clean completion.
func TestRateLimitIsNoCleanCompletion(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit(typeAssistant, fields{"error": "rate_limit", "message": fields{
				"id": "m", "model": "<synthetic>", "content": []fields{{"type": blockText, "text": "Claude AI usage limit reached|1796072965"}},
			}})
			s.done("")
		})
		turn := s.rootTurn()
		s.check(turn.Outcome == agent.OutcomeFailed && turn.Error != nil, "root turn %+v", turn)
		s.check(turn.Error.Message == "rate_limit: Claude AI usage limit reached. It is lifted at 2026-11-30 21:09 UTC.", "%q", turn.Error.Message)
	})
}

// L16: a stop was called confirmed for every child because the root's interrupt was taken.
func TestInterruptConfirmsNoChild(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one", "two")
		s.does(func() { s.deafTo = reqInterrupt })
		c := s.PrepareCancel(s.in.Turn)
		ctx, stop := context.WithTimeout(s.t.Context(), 15*time.Second)
		defer stop()
		result := make(chan error, 1)
		go func() { result <- s.rt.Cancel(ctx, c, s.Heard) }()
		synctest.Wait()
		s.does(func() {
			s.deafTo = reqStopTask
			s.answer("tk-2", fields{"still_queued": []string{}, "cancelled": []string{}})
			s.finish(s.kids["one"], taskStopped)
		})
		s.passes(5 * time.Second)
		s.check(s.wrote(reqStopTask) == 1, "the child that runs on was not asked to stop")
		s.passes(15 * time.Second)
		if err := <-result; err == nil {
			t.Error("the cancel ended before its bound")
		}
		states := s.CompleteCancel(c, s.Evidence())
		for i, want := range []agent.TargetState{agent.TargetCanceled, agent.TargetCanceled, agent.TargetInterrupted} {
			s.check(states[i] == want, "target %d is %s, want %s", i, states[i], want)
		}
		s.check(s.child("two").LatestTurn.Outcome == agent.OutcomeInterrupted, "the child is %+v", s.child("two").LatestTurn)
	})
}

// anthropics/claude-code#88545: the notice of an agent that ends in mid-turn is dropped.
func TestDroppedNoticeShowsOnTheLevel(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() {
			s.kids["one"].live = false
			s.level()
		})
		one := s.child("one").LatestTurn
		s.check(one.Outcome == agent.OutcomeInterrupted && one.Error != nil, "the child is %+v", one)
		s.check(s.View().Held[s.in.Turn] == agent.HeldByContinuation, "held by %q", s.View().Held[s.in.Turn])
	})
}

// anthropics/claude-code#77510: a resumed agent stayed marked as completed.
func TestAgentThatIsWrittenToRunsAgain(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			one := s.delegate("one", nil, true)
			s.finish(one, taskCompleted)
			s.use(nil, "toolu_sm", toolSendMessage, fields{"to": "one"})
			s.emit("system/task_started", fields{
				"task_id": one.task, "run_id": "run-2", "tool_use_id": "toolu_sm", "task_type": taskAgent, "is_backgrounded": true, "prompt": "And more.",
			})
			s.result(nil, "toolu_sm", "resumed", false)
			s.says(one, "[one] more")
		})
		v := s.View()
		one := s.child("one")
		s.check(len(v.Children()) == 1 && one.LatestTurn.Live() && one.LatestTurn.NativeID == "run-2", "the child is %+v", one.LatestTurn)
		s.check(one.LatestTurn.Trigger == agent.TriggerGuidance && one.LatestTurn.RootTurnID == s.in.Turn, "the turn is %+v", one.LatestTurn)
		s.does(func() {
			s.emit("system/task_notification", fields{"task_id": "aone", "run_id": "run-1-one", "status": taskFailed}) // of the first run: late
			s.emit("system/task_notification", fields{"task_id": "aone", "run_id": "run-2", "tool_use_id": "toolu_sm", "status": taskCompleted})
			s.done("[root] done")
		})
		s.check(s.child("one").LatestTurn.Outcome == agent.OutcomeCompleted && s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

// anthropics/claude-code#92952: an agent that its own shell wakes ran under nothing.
func TestAgentThatWakesByItselfRunsUnderATurnOfItsOwn(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.does(func() { s.state(stateIdle) })
		first := s.in.Turn
		s.does(func() { s.wake("one", "run-2") })
		v := s.View()
		root := v.RootTurn()
		s.check(root.ID != first && root.Trigger == agent.TriggerProvider && root.Live(), "root turn %+v", root)
		s.check(s.child("one").LatestTurn.RootTurnID == root.ID && v.Held[root.ID] == agent.HeldByChildren, "held by %q", v.Held[root.ID])
		s.does(func() {
			s.kids["one"].live = false
			s.emit("system/task_notification", fields{"task_id": "aone", "run_id": "run-2", "status": taskCompleted})
			s.begin()
			s.says(nil, "[root] it woke")
			s.done("")
		})
		s.check(s.View().RootTurn().ID == root.ID && s.View().RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.View().RootTurn())
	})
}

// #6: after a stop the program went on by itself.
func TestNothingWakesAfterAStop(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.cancel(s.in.Turn)
		s.does(func() { s.wake("one", "run-2") })
		s.check(len(s.View().Turns) == 2 && s.wrote(reqStopTask) == 1, "work that nobody asked for runs after a stop")
	})
}

// anthropics/claude-code#82617: a stop ended agents of earlier turns. Here one can only
// live below the turn that is open.
func TestStopOfOneLeavesTheOther(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one", "two")
		states := s.cancel(s.child("one").LatestTurn.ID)
		s.check(len(states) == 1 && states[0] == agent.TargetCanceled, "states %v", states)
		two, root := s.child("two"), s.rootTurn()
		s.check(two.LatestTurn.Live() && root.Live() && s.wrote(reqInterrupt) == 0, "the stop of one touched another")
	})
}

// t3code#5568: the answer to a stop may be the last that is heard.
func TestAnswerToAStopConfirmsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.deafTo = reqStopTask })
		one := s.child("one").LatestTurn.ID
		result := make(chan []agent.TargetState, 1)
		go func() { result <- s.cancel(one) }()
		synctest.Wait()
		s.does(func() { s.answer("tk-2", fields{}) })
		began := time.Now()
		states := <-result
		s.check(time.Since(began) == 15*time.Second && states[0] == agent.TargetInterrupted, "states %v after %v", states, time.Since(began))
	})
}

// anthropics/claude-agent-sdk-python#882: lines after a terminal.
func TestLinesAfterAStopAreHistory(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() { s.use(s.kids["one"], "toolu_run", "Bash", fields{"command": "make"}) })
		s.cancel(s.in.Turn)
		s.does(func() {
			s.result(s.kids["one"], "toolu_run", rejectedMark, true)
			s.block(s.kids["one"], typeUser, fields{"type": blockText, "text": interruptMark + "]"})
			s.emit("system/task_notification", fields{"task_id": "aone", "run_id": "run-1-one", "status": taskFailed})
		})
		one := s.child("one")
		s.check(one.LatestTurn.Outcome == agent.OutcomeCanceled && one.LatestTurn.Error == nil, "the child is %+v", one.LatestTurn)
		s.check(s.View().Holder("Interrupted.").ID == one.ID, "what it still said is lost")
	})
}
