package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// What was said below a deleted session is told to nobody who comes later: not by the log,
// not by the stream's replay, not as text that was still streaming, and not when a provider
// goes on talking.
func TestDeletedTreeIsToldToNobody(t *testing.T) {
	for _, which := range []string{"child", "root"} {
		t.Run(which, func(t *testing.T) {
			w := newWhole(t)
			base := w.workspace()
			created := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{
				"provider": "demo", "title": "Kept", "message": map[string]any{"clientMessageId": "c1", "content": text("Kept")},
			})
			root, turn := agent.SessionID(id(t, created, "session", "id")), agent.TurnID(id(t, created, "turn", "id"))
			started := func(s, parent agent.SessionID, parentTurn agent.TurnID) agent.Fact {
				return agent.ChildStarted{Session: s, Turn: "trn_" + agent.TurnID(s), Parent: parent, ParentTurn: parentTurn, Call: "call_" + agent.CallID(s), Title: "secret title"}
			}
			says := func(s agent.SessionID) agent.Fact {
				return agent.MessagePut{Message: agent.Message{
					ID: "msg_" + agent.MessageID(s), SessionID: s, TurnID: "trn_" + agent.TurnID(s), Role: agent.RoleAssistant, Kind: agent.MessageText,
					Status: agent.MessageStreaming, Content: "secret",
				}}
			}
			delta := func(s agent.SessionID, offset int64) {
				w.api.deps.Hub.Delta(agent.Delta{
					WorkspaceID: agent.WorkspaceID(strings.TrimPrefix(base, "/v1/workspaces/")), RootSessionID: root, SessionID: s,
					MessageID: "msg_" + agent.MessageID(s), Offset: offset, Text: " secret",
				})
			}
			early := w.follow(base, 0) // the ring fills for it, from here on
			begin, _ := w.call(200, "listEvents", base+"/events?limit=1", nil)["seq"].(float64)
			w.apply(
				agent.ProviderTurnStarted{Session: root, Turn: turn, Key: "p"},
				started("child", root, turn), says("child"), started("nested", "child", "trn_child"), says("nested"),
			)
			delta("child", 6)
			delta("nested", 6)
			for seen := 0; seen < 2; {
				if f := early.next(); f.Type == "delta" {
					seen++
				}
			}
			path := base + "/agent-sessions/child"
			if which == "root" {
				path = base + "/agent-sessions/" + string(root)
			}
			w.call(204, "deleteAgentSession", path, nil)
			delta("child", 13)
			delta("nested", 13)

			rec := httptest.NewRecorder()
			w.h.ServeHTTP(rec, request("GET", base+"/events?limit=1000", ""))
			if strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("the log still tells %s", rec.Body)
			}
			head, _ := w.call(200, "listEvents", base+"/events?limit=1", nil)["seq"].(float64)
			last := fmt.Sprint(int64(head) + 1)
			late := w.follow(base, int64(begin))
			w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{"provider": "demo", "title": "The end"})
			for _, c := range []*client{early, late} {
				gone := map[string]bool{}
				for {
					f := c.next()
					if f.Kind == "session.deleted" {
						gone[f.SessionID] = true
					}
					if c == late && (f.Type == "delta" || strings.Contains(string(f.Data), "secret")) || f.Type == "delta" && f.Offset >= 13 {
						t.Errorf("%s tells %+v %s", f.Type, f, f.Data)
					}
					if fmt.Sprint(f.Seq) == last {
						break
					}
				}
				if !gone["child"] || !gone["nested"] || gone[string(root)] != (which == "root") {
					t.Errorf("told of the end of %v", gone)
				}
			}
		})
	}
}
