package command_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A command that stays behind holds nothing open; it is ended alone, and the rest go with
// the runtime.
func TestProcessEndToEnd(t *testing.T) {
	withHouse(t, "shell", func(t *testing.T, h *house) {
		running := func() (n int, last agent.Process) {
			all, err := h.store.Processes(t.Context(), h.ws, h.session)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				if p.Status == agent.ProcessRunning {
					n, last = n+1, p
				}
			}
			return n, last
		}
		h.settles(agent.OutcomeCompleted)
		n, p := running()
		if n != 1 || p.SessionID == h.session {
			t.Fatalf("%d processes, %+v", n, p)
		}
		got, err := h.service.StopProcess(t.Context(), h.ws, p.SessionID, p.ID)
		if err != nil || got.Status != agent.ProcessEnded {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := h.service.StopProcess(t.Context(), h.ws, h.session, p.ID); codeOf(err) != agent.CodeNotFound {
			t.Errorf("through another session: %v", err)
		}
		sub, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "shell"})
		if err != nil {
			t.Fatal(err)
		}
		h.turn = sub.Turn.ID
		h.settles(agent.OutcomeCompleted)
		if n, _ := running(); n != 1 {
			t.Fatalf("%d processes", n)
		}
		if err := h.live.CloseSession(t.Context(), h.session); err != nil {
			t.Fatal(err)
		}
		if n, p := running(); n != 0 {
			t.Errorf("without a runtime there is %+v", p)
		}
	})
}
