package api

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A stop of what has ended is no silent success: it says how the turn had ended, and by
// which stop if by one, and changes nothing.
func TestCancelOfAnEndedTurnSaysWhatItFound(t *testing.T) {
	w := newWhole(t)
	base := w.workspace()
	created := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{
		"provider": "demo", "message": map[string]any{"clientMessageId": "c1", "content": text("Go")},
	})
	s, turn := agent.SessionID(id(t, created, "session", "id")), agent.TurnID(id(t, created, "turn", "id"))
	path := base + "/agent-sessions/" + string(s) + "/turns/" + string(turn)
	w.apply(
		agent.ProviderTurnStarted{Session: s, Turn: turn, Key: "p"},
		agent.ProviderTurnEnded{Session: s, Turn: turn, Key: "p", Outcome: agent.OutcomeCompleted},
	)
	before := w.call(200, "listEvents", base+"/events", nil)["seq"]
	answer := w.call(200, "cancelTurn", path+"/cancel", nil)
	if _, some := answer["operation"]; some || object(t, answer["turn"])["outcome"] != "completed" || id(t, answer, "turn", "id") != string(turn) {
		t.Errorf("answered %v", answer)
	}
	if after := w.call(200, "listEvents", base+"/events", nil)["seq"]; after != before {
		t.Errorf("events went from %v to %v", before, after)
	}

	sent := w.call(202, "sendMessage", base+"/agent-sessions/"+string(s)+"/messages", map[string]any{"clientMessageId": "c2", "content": text("More")})
	turn = agent.TurnID(id(t, sent, "turn", "id"))
	path = base + "/agent-sessions/" + string(s) + "/turns/" + string(turn)
	op := id(t, w.call(202, "cancelTurn", path+"/cancel", nil), "operation", "id")
	if _, err := w.st.CompleteCancel(t.Context(), agent.OperationID(op), nil); err != nil {
		t.Fatal(err)
	}
	answer = w.call(200, "cancelTurn", path+"/cancel", nil)
	if object(t, answer["turn"])["outcome"] != "canceled" || id(t, answer, "operation", "id") != op {
		t.Errorf("answered %v", answer)
	}
}
