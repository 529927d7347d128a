package codex

import (
	"context"
	"errors"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

const (
	openShell  = `{"type":"commandExecution","id":"bg","command":"/bin/bash -lc 'serve'","status":"inProgress"}`
	endedShell = `{"type":"commandExecution","id":"bg","command":"/bin/bash -lc 'serve'","status":"failed","aggregatedOutput":"bye"}`
	oneShell   = `{"data":[{"itemId":"bg","processId":"42","command":"serve","cwd":"/w","osPid":null},{"itemId":"of another turn","processId":"43","command":"x","cwd":"/w"}],"nextCursor":null}`
)

// withShell is a stage whose child has ended and left a shell behind.
func withShell(t *testing.T, end string) (*stage, agent.SessionID) {
	s := withChild(t)
	s.quiet()
	s.send(itemNote("started", "T1", "c1", openShell))
	s.quiet()
	s.send(completed("T1", "c1", "r1", end))
	m := s.expect(methodShells)
	if m.Params.ThreadID != "T1" {
		t.Errorf("asked about %s", m.Params.ThreadID)
	}
	s.answer(m, oneShell)
	return s, child(t, s.View(), "T1").ID
}

// A shell that outlives its turn is a process of exactly that turn: no child, and nothing
// waits for it.
func TestShellThatOutlivesItsTurnIsAProcess(t *testing.T) {
	for _, end := range []string{"completed", "interrupted"} {
		s, c := withShell(t, end)
		v := s.View()
		if len(v.Processes) != 1 || len(v.Sessions) != 2 {
			t.Fatalf("processes %+v, %d sessions", v.Processes, len(v.Sessions))
		}
		p := v.Processes[0]
		if p.ID != "bg" || p.SessionID != c || p.TurnID != turnsOf(v, c)[0].ID || p.Command != "serve" || p.Cwd != "/w" || p.CallID != "bg" ||
			p.Status != agent.ProcessRunning || !p.Stoppable {
			t.Errorf("process %+v", p)
		}
		s.send(completed(rootThread, "r1", "r1", "completed"))
		wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
		s.send(itemNote("completed", "T1", "c1", endedShell))
		if got := s.View().Processes[0].Status; got != agent.ProcessEnded {
			t.Errorf("it is %s", got)
		}
	}
}

// A turn that leaves nothing open asks for nothing.
func TestTurnWithoutOpenCommandsHasNoProcesses(t *testing.T) {
	s := withChild(t)
	s.quiet()
	s.send(itemNote("started", "T1", "c1", openShell), itemNote("completed", "T1", "c1", endedShell), completed("T1", "c1", "r1", "completed"))
	if line := s.srv.peek(); line != nil {
		t.Errorf("the adapter wrote %s", line)
	}
}

func TestStopOfOneProcess(t *testing.T) {
	s, c := withShell(t, "completed")
	stopper := s.rt.(provider.ProcessStopper)
	stop := func() <-chan error {
		return s.goes(func(ctx context.Context) error { return stopper.StopProcess(ctx, c, "bg") })
	}
	done := stop()
	s.fail(s.expect(methodEndShell), "not today")
	if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) || s.View().Processes[0].Status != agent.ProcessRunning {
		t.Errorf("refused: %v, %+v", err, s.View().Processes)
	}
	done = stop()
	s.answer(s.expect(methodEndShell), `{"terminated":true}`)
	if err := <-done; err != nil || s.View().Processes[0].Status != agent.ProcessEnded {
		t.Errorf("ended: %v, %+v", err, s.View().Processes)
	}
	s.send(itemNote("completed", "T1", "c1", endedShell)) // the server says so too
	if err := <-stop(); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := stopper.StopProcess(t.Context(), "nobody", "bg"); !errors.Is(err, &agent.Error{Code: agent.CodeNotFound}) {
		t.Errorf("of nobody: %v", err)
	}
}
