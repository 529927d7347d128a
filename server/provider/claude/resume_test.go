package claude

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// killed is a session whose program was killed with a child in the background, and that
// is about to be opened again.
func killed(s *scene) {
	s.background("one")
	s.kill("signal: killed")
	<-s.rt.Done()
	s.check(s.child("one").LatestTurn.Outcome == agent.OutcomeInterrupted, "the child is %+v", s.child("one").LatestTurn)
	s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "the retained outcome is lost: %+v", s.rootTurn())
	s.again()
}

func TestResumeBindsWhatIsToldUnasked(t *testing.T) {
	play(t, func(s *scene) {
		killed(s)
		s.open()
		before := len(s.View().Turns)
		s.does(func() {
			s.emit("system/task_notification", fields{"task_id": "aone", "status": taskStopped, "summary": "didn't finish"})
			s.state(stateRunning)
			s.begin()
			s.end(fields{"subtype": resultSuccess, "num_turns": 0, "result": ""})
		})
		v := s.View()
		s.check(len(v.Turns) == before && len(v.Children()) == 1, "a turn was made of it")
		s.check(s.Diagnosed(provider.Late) == 1 && s.Diagnosed(provider.Unrouted) == 0, "the notice was not bound to its child")
		// The old child is written to, and runs again under the person's next turn.
		s.start(func() {
			s.use(nil, "toolu_sm", toolSendMessage, fields{"to": "aone"})
			s.emit("system/task_started", fields{
				"task_id": "aone", "run_id": "run-2", "tool_use_id": "toolu_sm", "task_type": taskAgent, "is_backgrounded": true, "prompt": "Go on.",
			})
		})
		one := s.child("one").LatestTurn
		s.check(one.Live() && one.RootTurnID == s.in.Turn && one.NativeID == "run-2", "the child is %+v", one)
	})
}

func TestResumeReadsTheProgramsOwnList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{Sink: providertest.NewSink(t, agent.Session{Provider: "claude"}), puppet: newPuppet(), t: t}
		s.open()
		s.start(func() { s.edge("one", nil, true) }) // killed before its task was told
		s.kill("signal: killed")
		<-s.rt.Done()
		s.again()
		a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return s.puppet, nil }})
		a.o.index = func(_ provider.OpenParams, session string) ([]indexed, error) {
			if session != puppetSession {
				return nil, errors.New("another session")
			}
			return []indexed{{TaskID: "aone", ToolUseID: "toolu_one"}, {TaskID: "anobody", ToolUseID: "toolu_nobody"}}, nil
		}
		rt, err := a.Open(t.Context(), s.OpenParams(), s.Sink)
		if err != nil {
			t.Fatal(err)
		}
		s.rt = rt
		s.check(s.child("one").Handles.TaskID == "aone", "handles %+v", s.child("one").Handles)
		s.check(s.Diagnosed(provider.Unrouted) == 1, "an unknown child was not counted")
		s.does(func() {
			s.emit("system/task_notification", fields{"task_id": "aone", "status": taskStopped})
		})
		s.check(s.Diagnosed(provider.Late) == 1, "the notice did not find its child")
		s.close()
	})
}

// refuser is a program that does not find the conversation: it says so in a result, and
// ends without an answer.
type refuser struct{ *puppet }

func (p refuser) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.emit("result/error_during_execution", fields{"is_error": true, "errors": []string{"No conversation found with session ID: x"}})
	p.closed = true
	p.moved.Broadcast()
	p.mu.Unlock()
	return len(b), nil
}

func TestForgottenConversationBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{Sink: providertest.NewSink(t, agent.Session{Provider: "claude"}), puppet: newPuppet(), t: t}
		s.open()
		s.start(func() { s.done("[root] done") })
		s.close()
		s.Reopened()
		s.again()
		var asked []string
		a := New(Options{Connect: func(_ context.Context, p provider.OpenParams) (Transport, error) {
			asked = append(asked, p.Root.ProviderSessionID)
			if p.Root.ProviderSessionID != "" {
				return refuser{newPuppet()}, nil
			}
			return s.puppet, nil
		}})
		rt, err := a.Open(t.Context(), s.OpenParams(), s.Sink)
		if err != nil {
			t.Fatal(err)
		}
		s.rt = rt
		s.check(len(asked) == 2 && asked[0] == puppetSession, "asked for %q", asked)
		s.check(s.View().Holder("Claude no longer has this conversation. The agent begins anew and remembers nothing of what was said before.").ID == s.Root, "nobody was told")
		s.start(func() { s.done("[root] new") })
		s.check(s.rootTurn().Outcome == agent.OutcomeCompleted, "root turn %+v", s.rootTurn())
		s.close()
	})
}

func TestProgramThatEndsWhileItStarts(t *testing.T) {
	for name, old := range map[string]string{"ended": "", "too old": "2.1.100"} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet()
			a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) {
				if old == "" {
					p.kill("exit 1: no such model")
				}
				p.version = old
				return p, nil
			}})
			s := providertest.NewSink(t, agent.Session{Provider: "claude"})
			rt, err := a.Open(t.Context(), s.OpenParams(), s)
			var e *agent.Error
			if rt != nil || !errors.As(err, &e) || e.Code != agent.CodeProviderUnavailable {
				t.Fatalf("Open = %v, %v", rt, err)
			}
			if s.Lost() != 0 {
				t.Error("a start that failed was told as a loss")
			}
		})
	}
}

// A session that was canceled stays barred when it is opened again: what the program then
// does by itself is nobody's.
func TestStopOutlivesTheProcess(t *testing.T) {
	play(t, func(s *scene) {
		s.background("one")
		s.cancel(s.in.Turn)
		s.close()
		s.Reopened()
		s.again()
		s.open()
		s.does(func() {
			s.begin()
			s.says(nil, "[root] after all")
		})
		s.check(!s.said("after all") && len(s.View().Turns) == 2, "work that nobody asked for is shown")
	})
}

func TestQuestionOfAStrangerIsRefused(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("control_request", fields{"request_id": "q1", "request": fields{
				"subtype": reqCanUseTool, "tool_name": "Bash", "input": fields{}, "agent_id": "astranger", "tool_use_id": "t",
			}})
		})
		s.passes(ownerBound)
		s.check(len(s.View().Interactions) == 0 && s.Diagnosed(provider.Refused) == 1, "questions %+v", s.View().Interactions)
		s.check(s.wrote(`"subtype":"error","request_id":"q1"`) == 1, "the program waits for ever")
	})
}

// The link breaks while a message is on its way: it was lost, not refused.
func TestDeathWhileAMessageIsOnItsWay(t *testing.T) {
	play(t, func(s *scene) {
		s.does(func() { s.deafTo = typeUser })
		in := s.Submit(s.Root, "Go.")
		result := make(chan error, 1)
		go func() { result <- s.rt.Start(s.t.Context(), in) }()
		synctest.Wait()
		s.kill("signal: killed")
		err := <-result
		<-s.rt.Done()
		s.check(errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}), "Start = %v", err)
		s.check(s.View().Turn(in.Turn).Outcome == agent.OutcomeInterrupted && s.Lost() == 1, "turn %+v", s.View().Turn(in.Turn))
	})
}
