package claude

import (
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// deadline is that of the latest reservation.
func (s *scene) deadline() time.Time {
	var at time.Time
	for _, r := range s.Records() {
		if f, ok := r.Fact.(agent.ProviderTurnStarted); ok && f.Reserved != nil {
			at = *f.Reserved
		}
	}
	return at
}

func TestContinuationBelongsToTheTurnThatCausedIt(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.check(s.View().Held[s.in.Turn] == agent.HeldByChildren, "held by %q", s.View().Held[s.in.Turn])
		ended := time.Now()
		s.ends("one")
		s.check(s.View().Held[s.in.Turn] == agent.HeldByContinuation, "held by %q", s.View().Held[s.in.Turn])
		s.check(s.deadline().Equal(ended.Add(30*time.Second)), "the wait ends at %v", s.deadline())
		s.passes(time.Second)
		s.does(func() { s.begin() }) // its start is no word
		s.check(s.View().Held[s.in.Turn] == agent.HeldByContinuation, "held by %q", s.View().Held[s.in.Turn])
		s.passes(28 * time.Second)
		s.does(func() { s.says(nil, "[root] so") })
		s.check(s.View().Held[s.in.Turn] == agent.HeldByProvider, "held by %q", s.View().Held[s.in.Turn])
		s.passes(time.Hour) // once it speaks nothing hurries it
		s.does(func() { s.done("[root] done") })
		v := s.View()
		s.check(v.RootTurn().ID == s.in.Turn && v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
		s.check(len(v.ProviderTurns) == 2, "provider turns %+v", v.ProviderTurns)
	})
}

func TestWaitForAContinuationEnds(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.passes(time.Second)
		s.does(func() {
			s.begin() // its model hangs
			s.deafTo = reqInterrupt
		})
		s.passes(28*time.Second + 999*time.Millisecond)
		turn := s.rootTurn()
		s.check(turn.Live(), "it ended before its time")
		s.passes(time.Millisecond)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "the outcome that was retained is lost")
		s.check(s.wrote(`"cancel_queued":true`) == 1, "the continuation was not interrupted with all that is queued")
		s.does(func() { // the interrupt is slow
			s.deafTo = ""
			s.says(nil, "[root] stale")
			s.done("[root] stale, too")
		})
		v := s.View()
		s.check(!s.said("stale") && v.RootTurn().ID == s.in.Turn, "stale output is shown")
		s.start(func() { s.done("[root] next") })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.View().Holder("[root] next").ID == s.Root, "the next turn is not its own")
	})
}

func TestStaleContinuationIsInterrupted(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.does(func() { s.deafTo = reqInterrupt })
		s.passes(30 * time.Second)
		before := s.wrote(reqInterrupt)
		s.does(func() { s.begin() })
		s.check(s.wrote(reqInterrupt) == before+1, "a continuation that came too late runs on")
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

func TestIdleEndsTheWaitAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.does(func() { s.state(stateIdle) })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

func TestGuidanceInTheWaitDoesNotProlongIt(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		end := s.deadline()
		s.passes(20 * time.Second)
		s.mu.Lock()
		s.puppet.open = true // the message waits behind a continuation that never speaks
		s.mu.Unlock()
		in := s.guide()
		s.check(s.deadline().Equal(end), "the wait was prolonged to %v", s.deadline())
		s.passes(10 * time.Second)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
		s.check(s.status(in.Message) == agent.MessageUndelivered, "the message is %s", s.status(in.Message))
		s.check(len(s.View().ProviderTurns) == 2, "provider turns %+v", s.View().ProviderTurns)
	})
}

func TestMessageInTheWaitFollowsTheContinuation(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		s.does(func() { s.begin() })
		in := s.guide()
		s.does(func() {
			s.onTurn = append(s.onTurn, func(string) { s.done("[root] noted") })
			s.done("[root] report")
		})
		v := s.View()
		s.check(v.RootTurn().ID == s.in.Turn && v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
		s.check(s.status(in.Message) == agent.MessageCompleted && s.said("[root] noted"), "the message is %s", s.status(in.Message))
	})
}

func TestStopInTheWait(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.ends("one")
		states := s.cancel(s.in.Turn)
		s.check(len(states) == 1 && states[0] == agent.TargetCanceled, "states %v", states)
		s.check(s.rootTurn().Outcome == agent.OutcomeCanceled, "root turn %+v", s.rootTurn())
		s.check(s.wrote(`"cancel_queued":true`) == 1, "what was queued was not withdrawn")
		s.passes(time.Minute)
		s.does(func() {
			s.begin()
			s.says(nil, "[root] after all")
		})
		s.check(!s.said("after all") && s.View().RootTurn().ID == s.in.Turn, "a continuation is shown after the stop")
		s.check(s.wrote(reqInterrupt) == 2, "the continuation after the stop runs on")
	})
}

// Facts 12 and 13: with no live child a result is not the end.
func TestResultIsNotTheEnd(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.delegate("one", nil, true)
			s.finish(s.kids["one"], taskCompleted)
			s.delegate("two", nil, true)
			s.finish(s.kids["two"], taskCompleted)
			s.puppet.open = false // its result, and nothing after it yet
			s.emit("result/success", fields{"user_message_uuids": s.turn, "num_turns": 1, "terminal_reason": reasonCompleted})
		})
		turn := s.rootTurn()
		s.check(turn.Live(), "the root ended with its result")
		s.does(func() {
			s.begin()
			s.puppet.open = false
			s.emit("result/success", fields{"num_turns": 0, "origin": fields{"kind": originNotice}}) // empty
		})
		turn = s.rootTurn()
		s.check(turn.Live(), "an empty turn ended the root")
		s.does(func() {
			s.notice = 0
			s.begin()
			s.says(nil, "[root] both")
			s.puppet.open = false
			s.emit("result/success", fields{"num_turns": 1, "is_error": true, "result": "API Error: overloaded", "origin": fields{"kind": originNotice}})
		})
		turn = s.rootTurn()
		s.check(turn.Live(), "the root ended with a result")
		s.does(func() { s.state(stateIdle) })
		s.check(s.rootTurn().Outcome == agent.OutcomeFailed && s.rootTurn().Error != nil, "root turn %+v", s.rootTurn())
		s.check(len(s.View().ProviderTurns) == 2, "the empty turn counts: %+v", s.View().ProviderTurns)
	})
}

func TestHeldEndWithoutStates(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.puppet.open = false
			s.emit("result/success", fields{"user_message_uuids": s.turn, "num_turns": 1, "terminal_reason": reasonCompleted})
		})
		rt := s.rt.(*runtime)
		rt.Do(func() { rt.stateTold = false }) // a program that tells none: hold again
		turn := s.rootTurn()
		s.check(turn.Live(), "the end was not held")
		rt.Do(func() { rt.holdEnd(rt.held, agent.OutcomeCompleted, nil) })
		s.passes(heldBound)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

// A workflow keeps the program busy; it is a process, and holds no turn.
func TestWorkflowHoldsNoTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.use(nil, "toolu_w", "Workflow", fields{"name": "w"})
			s.emit("system/task_started", fields{"task_id": "w1", "run_id": "r", "tool_use_id": "toolu_w", "task_type": "local_workflow", "is_backgrounded": true, "workflow_name": "w"})
			s.result(nil, "toolu_w", "started", false)
			s.kids["w"] = &kid{live: true} // the puppet does not say idle
			s.done("[root] started it")
		})
		s.passes(heldBound)
		v := s.View()
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
		s.check(len(v.Processes) == 1 && v.Processes[0].Status == agent.ProcessRunning && len(v.Children()) == 0, "processes %+v", v.Processes)
	})
}

// An idle that is older than a message must not end the turn which that message began.
func TestOlderIdleDoesNotEndAMessage(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.done("[root] done") })
		s.mu.Lock()
		s.onTurn = []func(string){func(string) {}}
		s.mu.Unlock()
		rt := s.rt.(*runtime)
		in := s.Submit(s.Root, "More.")
		rt.Do(func() {
			x := &userText{uuid: wireID(in.Message), turn: in.Turn, message: in.Message, wait: serial.NewWaiter()}
			rt.texts[x.uuid] = x
			rt.announce(x)
			rt.stateChanged(&stateFrame{State: stateIdle})
		})
		turn := s.View().Turn(in.Turn)
		s.check(turn.Live() && s.status(in.Message) == agent.MessagePending, "an older idle ended the turn: %+v", turn)
	})
}

// A message that the root takes in its last breath has a turn of its own; the root must
// not settle between the two.
func TestMessageOverTheLastText(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() { s.says(nil, "[root] last words") })
		in := s.guide()
		s.does(func() {
			s.onTurn = append(s.onTurn, func(string) { s.done("[root] noted") })
			s.done("")
		})
		v := s.View()
		s.check(v.RootTurn().ID == s.in.Turn && v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
		s.check(s.status(in.Message) == agent.MessageCompleted, "the message is %s", s.status(in.Message))
		s.check(len(v.ProviderTurns) == 2, "provider turns %+v", v.ProviderTurns)
	})
}

func TestMessageThatIsNeverQueued(t *testing.T) {
	play(t, func(s *scene) {
		s.mu.Lock()
		s.deafTo = typeUser
		s.mu.Unlock()
		in := s.Submit(s.Root, "Go.")
		began := time.Now()
		err := s.rt.Start(s.t.Context(), in)
		s.check(err != nil && time.Since(began) == messageBound, "Start = %v after %v", err, time.Since(began))
		turn := s.View().Turn(in.Turn)
		s.check(turn.Outcome == agent.OutcomeFailed && s.status(in.Message) == agent.MessageUndelivered, "turn %+v", turn)
		s.check(s.wrote(reqWithdraw) == 1, "the message was not withdrawn")
	})
}

func TestAnotherProgramsNoticesDoNotEndOurMessage(t *testing.T) {
	root := agent.Session{ProviderSessionID: puppetSession}
	playWith(t, root, func(s *scene) {
		s.does(func() { // what a resumed program says of the agents that did not finish
			s.emit("system/task_notification", fields{"task_id": "old", "status": taskStopped, "summary": "didn't finish"})
			s.state(stateRunning)
			s.begin()
		})
		s.does(func() { s.deafTo = "" })
		s.mu.Lock()
		s.onTurn = append(s.onTurn, func(string) { s.done("[root] answer") })
		s.mu.Unlock()
		s.in = s.Submit(s.Root, "What happened?")
		if err := s.rt.Start(s.t.Context(), s.in); err != nil {
			t.Fatal(err)
		}
		s.does(func() {
			s.puppet.open = false
			s.emit("result/success", fields{"num_turns": 0, "result": "", "origin": fields{"kind": originNotice}})
			s.follow()
		})
		v := s.View()
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.said("[root] answer"), "root turn %+v", s.rootTurn())
		s.check(len(v.ProviderTurns) == 1 && len(v.Children()) == 0, "provider turns %+v", v.ProviderTurns)
		s.check(s.Diagnosed(provider.Unrouted) == 1, "the notice of nobody's agent was not counted")
	})
}

// anthropics/claude-agent-sdk-typescript#383, obsidian-copilot#2907: the result of a notice
// ended the person's turn with an empty answer.
func TestResultOfANoticeDoesNotEndAPersonsTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("result/success", fields{"num_turns": 0, "result": "", "origin": fields{"kind": originNotice}})
			s.emit("result/success", fields{"num_turns": 1, "result": "x", "origin": fields{"kind": originNotice}})
		})
		turn := s.rootTurn()
		s.check(turn.Phase == agent.PhaseRunning, "root turn %+v", turn)
		s.does(func() { s.done("[root] answer") })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.said("[root] answer"), "root turn %+v", s.rootTurn())
	})
}

// An init that is said again in mid-turn begins nothing; one of another message proves
// that a result was lost.
func TestInitInMidTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.says(nil, "[root] first")
			s.begin()
			s.says(nil, "[root] second")
		})
		s.check(len(s.View().ProviderTurns) == 1, "provider turns %+v", s.View().ProviderTurns)
		in := s.guide()
		s.does(func() {
			q := s.queue[0]
			s.queue = nil
			s.begin(q.uuid)
			s.says(nil, "[root] third")
		})
		v := s.View()
		s.check(v.ProviderTurns[0].Outcome == agent.OutcomeInterrupted && v.RootTurn().Phase == agent.PhaseRunning, "provider turns %+v", v.ProviderTurns)
		s.does(func() { s.done("") })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted && s.status(in.Message) == agent.MessageCompleted, "root turn %+v", s.rootTurn())
	})
}
