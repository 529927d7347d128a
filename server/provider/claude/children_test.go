package claude

import (
	"fmt"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// shell is a detached shell of an agent.
func (s *scene) shell(k *kid, task string) {
	s.use(k, "toolu_"+task, "Bash", fields{"command": "serve", "run_in_background": true})
	f := fields{"task_id": task, "run_id": "r-" + task, "tool_use_id": "toolu_" + task, "task_type": taskShell, "is_backgrounded": true, "description": "Serve"}
	if k != nil {
		f["parent_task_id"], f["owned_by_subagent"] = k.task, true
	}
	s.emit("system/task_started", f)
	s.result(k, "toolu_"+task, "running in background with ID: "+task, false)
}

// wake is another run of an agent that has ended.
func (s *scene) wake(name, run string) {
	k := s.kids[name]
	k.live, k.run = true, run
	s.emit("system/task_started", fields{"task_id": k.task, "run_id": run, "tool_use_id": k.call, "task_type": taskAgent, "is_backgrounded": true})
}

// The earliest sign of the call is a block that has only begun to stream.
func TestChildBeginsWithItsCall(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("stream_event", fields{"event": fields{"type": "message_start", "message": fields{"id": "m1"}}})
			s.emit("stream_event", fields{"event": fields{
				"type": streamBlockStart, "index": 0, "content_block": fields{"type": blockToolUse, "id": "toolu_one", "name": toolTask, "input": fields{}},
			}})
		})
		one := s.child("one")
		s.check(one.Title == "Agent" && one.LatestTurn.Phase == agent.PhaseSubmitted && one.ParentTurnID == s.in.Turn, "the child is %+v", one)
		s.does(func() {
			s.emit(typeAssistant, fields{"message": fields{"id": "m1", "content": []fields{{
				"type": blockToolUse, "id": "toolu_one", "name": toolTask, "input": fields{"description": "Look", "prompt": "Look at it.", "subagent_type": "Explore"},
			}}}})
		})
		one = s.child("one")
		s.check(one.Title == "Look" && one.Prompt == "Look at it." && one.AgentType == "Explore", "the child is %+v", one)
		s.check(len(s.View().Children()) == 1, "a second child was made of it")
	})
}

func TestRefusedLaunchFails(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.use(nil, "toolu_one", toolAgent, fields{"description": "Job", "subagent_type": "nope"})
			s.result(nil, "toolu_one", "Agent type 'nope' not found.", true)
			s.done("[root] it is not there")
		})
		one := s.child("one").LatestTurn
		s.check(one.Outcome == agent.OutcomeFailed && one.Error.Message == "Agent type 'nope' not found.", "the child is %+v", one)
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
	})
}

// A call that is cut off while it streams launches nobody.
func TestLaunchThatWasCutOff(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("stream_event", fields{"event": fields{
				"type": streamBlockStart, "index": 0, "content_block": fields{"type": blockToolUse, "id": "toolu_one", "name": toolAgent},
			}})
		})
		states := s.cancel(s.in.Turn)
		s.check(len(states) == 2 && s.child("one").LatestTurn.Outcome == agent.OutcomeCanceled, "states %v", states)
		for _, m := range s.View().Messages {
			s.check(m.Status.Ended(), "message %s is %s", m.Title, m.Status)
		}
	})
}

// Two that begin and end together, and whose lines mix, are never taken for one another.
func TestTwoChildrenAreNeverCrossBound(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			a, b := s.edge("one", nil, true), s.edge("two", nil, true)
			s.started(b)
			s.started(a)
			for i := range 3 {
				s.says(a, fmt.Sprintf("[one] %d", i))
				s.says(b, fmt.Sprintf("[two] %d", i))
			}
			// One's call with two's agent: nobody's.
			s.emit(typeAssistant, fields{"parent_tool_use_id": a.call, "agent_id": "astranger", "message": fields{"id": "x", "content": []fields{{"type": blockText, "text": "[stray] hi"}}}})
			s.finish(b, taskFailed)
			s.finish(a, taskCompleted)
		})
		v := s.View()
		one, two := s.child("one"), s.child("two")
		s.check(one.LatestTurn.Outcome == agent.OutcomeCompleted && two.LatestTurn.Outcome == agent.OutcomeFailed, "ends")
		for i := range 3 {
			s.check(v.Holder(fmt.Sprintf("[one] %d", i)).ID == one.ID && v.Holder(fmt.Sprintf("[two] %d", i)).ID == two.ID, "words are mixed")
		}
		s.check(!s.said("[stray] hi") && s.Diagnosed(provider.Held) == 1, "a stranger's words are shown")
		s.check(one.Handles.TaskID == "aone" && two.Handles.TaskID == "atwo", "handles %+v %+v", one.Handles, two.Handles)
	})
}

// The result of a foreground call can come before the notice: the first is the end, the
// second a repetition.
func TestFirstOfResultAndNoticeCounts(t *testing.T) {
	for _, order := range []string{"result", "notice"} {
		t.Run(order, func(t *testing.T) {
			play(t, func(s *scene) {
				s.start(func() {
					one := s.delegate("one", nil, false)
					steps := []func(){
						func() { s.result(nil, one.call, "report", false) },
						func() {
							s.emit("system/task_notification", fields{"task_id": one.task, "run_id": one.run, "tool_use_id": one.call, "status": taskFailed})
						},
					}
					if order == "notice" {
						steps[0], steps[1] = steps[1], steps[0]
					}
					steps[0]()
					steps[1]()
				})
				want := map[string]agent.Outcome{"result": agent.OutcomeCompleted, "notice": agent.OutcomeFailed}[order]
				s.check(s.child("one").LatestTurn.Outcome == want, "the child is %+v", s.child("one").LatestTurn)
			})
		})
	}
}

// A foreground agent that a person has moved to the background ends by its notice.
func TestMovedToTheBackground(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			one := s.delegate("one", nil, false)
			one.background = true
			s.level()
			s.emit("system/task_updated", fields{"task_id": one.task, "run_id": one.run, "patch": fields{"is_backgrounded": true}})
			s.result(nil, one.call, "Async agent launched successfully.", false)
			s.done("[root] moved")
		})
		one, root := s.child("one"), s.rootTurn()
		s.check(one.LatestTurn.Live() && root.Live(), "the launch ended the child")
		s.ends("one")
		s.check(s.child("one").LatestTurn.Outcome == agent.OutcomeCompleted, "the child is %+v", s.child("one").LatestTurn)
	})
}

// A grandchild whose launching call was not forwarded hangs below its parent's task.
func TestGrandchildBelowItsParentsTask(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.does(func() {
			two := &kid{name: "two", call: "toolu_two", task: "atwo", run: "run-1-two", parent: s.kids["one"], background: true, live: true}
			three := &kid{name: "three", call: "toolu_three", task: "athree", run: "run-1-three", parent: two, background: true, live: true}
			s.kids["two"], s.kids["three"] = two, three
			s.quietly(three) // the deepest first
			s.quietly(two)
		})
		one, two, three := s.child("one"), s.child("two"), s.child("three")
		s.check(two.ParentSessionID == one.ID && three.ParentSessionID == two.ID, "edges %+v %+v", two.Relation, three.Relation)
		s.does(func() { s.finish(s.kids["one"], taskCompleted) })
		root := s.rootTurn()
		s.check(root.Live() && s.View().Held[s.in.Turn] == agent.HeldByChildren, "held by %q", s.View().Held[s.in.Turn])
		// Nested agents are targets of their own.
		states := s.cancel(s.child("two").LatestTurn.ID)
		s.check(len(states) == 2 && s.wrote(reqStopTask) == 2, "states %v", states)
	})
}

// quietly starts a child whose call nobody has seen.
func (s *scene) quietly(k *kid) {
	s.emit("system/task_started", fields{
		"task_id": k.task, "run_id": k.run, "tool_use_id": k.call, "task_type": taskAgent, "is_backgrounded": true, "parent_task_id": k.parent.task,
		"description": "Job of " + k.name,
	})
}

// A shell that an agent waits for is told of when it takes long. It is no process.
func TestLongForegroundShellIsNoProcess(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.use(nil, "toolu_b", "Bash", fields{"command": "make"})
			s.emit("system/task_started", fields{"task_id": "b1", "run_id": "r", "tool_use_id": "toolu_b", "task_type": taskShell, "is_backgrounded": false})
		})
		s.check(len(s.View().Processes) == 0, "processes %+v", s.View().Processes)
		s.does(func() { // until it is put into the background
			s.emit("system/task_updated", fields{"task_id": "b1", "run_id": "r", "patch": fields{"is_backgrounded": true}})
		})
		s.check(len(s.View().Processes) == 1 && s.View().Processes[0].Command == "make", "processes %+v", s.View().Processes)
		s.does(func() { s.emit("system/background_tasks_changed", fields{"tasks": []fields{}}) })
		s.check(s.View().Processes[0].Status == agent.ProcessEnded, "processes %+v", s.View().Processes)
	})
}

// The end of a shell begins a turn that nobody asked for; after a stop it is dropped.
func TestEndOfAShellBeginsATurn(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint(stopped), func(t *testing.T) {
			play(t, func(s *scene) {
				s.start(func() {
					s.shell(nil, "b1")
					if !stopped {
						s.done("[root] started")
					}
				})
				if stopped {
					s.cancel(s.in.Turn)
					s.check(s.View().Processes[0].Status == agent.ProcessRunning, "the stop ended the shell: %+v", s.View().Processes)
				}
				before := s.wrote(reqInterrupt)
				s.does(func() {
					s.emit("system/task_notification", fields{"task_id": "b1", "run_id": "r-b1", "tool_use_id": "toolu_b1", "status": taskCompleted})
					s.begin()
					s.says(nil, "[root] it has ended")
					s.done("")
				})
				v := s.View()
				s.check(v.Processes[0].Status == agent.ProcessEnded, "processes %+v", v.Processes)
				if stopped {
					s.check(v.RootTurn().ID == s.in.Turn && !s.said("it has ended") && s.wrote(reqInterrupt) == before+1, "it is shown after the stop")
					return
				}
				s.check(v.RootTurn().Trigger == agent.TriggerProvider && v.RootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", v.RootTurn())
			})
		})
	}
}
