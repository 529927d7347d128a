package command_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A process is ended at once or there is a clear word why not.
func TestStopProcess(t *testing.T) {
	for _, c := range []struct {
		name    string
		process agent.Process
		fails   error
		want    agent.Code
		asked   bool
	}{
		{"running", agent.Process{ID: "p", SessionID: "root", Status: agent.ProcessRunning, Stoppable: true}, nil, "", true},
		{"ended", agent.Process{ID: "p", SessionID: "root", Status: agent.ProcessEnded, Stoppable: true}, nil, "", false},
		{"not stoppable", agent.Process{ID: "p", SessionID: "root", Status: agent.ProcessRunning}, nil, agent.CodeCancelUnsupported, false},
		{"refused", agent.Process{ID: "p", SessionID: "root", Status: agent.ProcessRunning, Stoppable: true}, agent.Errorf(agent.CodeProviderRefused, "no"), agent.CodeProviderRefused, true},
		{"nobody there", agent.Process{ID: "p", SessionID: "root", Status: agent.ProcessRunning, Stoppable: true}, agent.Errorf(agent.CodeProviderGone, "gone"), "", true},
		{"unknown", agent.Process{ID: "other"}, nil, agent.CodeNotFound, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *desk) {
				w.store.processes = map[agent.ProcessID]agent.Process{c.process.ID: c.process}
				w.live.stopProcess = c.fails
				w.live.onStop = func() {
					c.process.Status = agent.ProcessEnded
					w.store.processes[c.process.ID] = c.process
				}
				got, err := w.StopProcess(t.Context(), "ws", "root", "p")
				if codeOf(err) != c.want {
					t.Fatalf("error %v", err)
				}
				if c.want == "" && got.Status != agent.ProcessEnded {
					t.Errorf("process %+v", got)
				}
				if asked := len(w.live.seen()) > 0; asked != c.asked {
					t.Errorf("the provider was asked: %v", asked)
				}
			})
		})
	}
}
