package api

// Several people, or one with several devices, look at the same sessions (the field's
// faults of the class "multi-client").

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// asking begins a root with one child of its own, each of which asks the same question
// under the same number, and returns the paths of both.
func (w *whole) asking(base string, n int) (root, child string) {
	w.Helper()
	created := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{
		"provider": "demo", "title": fmt.Sprint("Session ", n), "permissionMode": "plan",
		"message": map[string]any{"clientMessageId": "c", "content": text("Go")},
	})
	s, turn := agent.SessionID(id(w.T, created, "session", "id")), agent.TurnID(id(w.T, created, "turn", "id"))
	kid := agent.SessionID(fmt.Sprintf("ses_kid%d", n))
	kidTurn := agent.TurnID(fmt.Sprintf("trn_kid%d", n))
	ask := func(s agent.SessionID, t agent.TurnID) agent.Fact {
		return agent.InteractionAsked{Interaction: agent.Interaction{
			SessionID: s, TurnID: t, RequestID: "1", Kind: agent.InteractionApproval, Title: "Run it?", Owner: agent.OwnerExact,
			Detail:  agent.Detail{Command: fmt.Sprint("command of ", s)},
			Options: []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}, {ID: "no", Label: "No", Role: agent.RoleDeny}},
		}}
	}
	w.apply(
		agent.ProviderTurnStarted{Session: s, Turn: turn, Key: "p"},
		agent.ChildStarted{Session: kid, Turn: kidTurn, Parent: s, ParentTurn: turn, Call: "call", Title: fmt.Sprint("Child of ", n)},
		ask(s, turn), ask(kid, kidTurn),
	)
	sessions := base + "/agent-sessions/"
	return sessions + string(s) + "/turns/" + string(turn), sessions + string(kid) + "/turns/" + string(kidTurn)
}

func (w *whole) workspace() string {
	w.Helper()
	return "/v1/workspaces/" + id(w.T, w.call(201, "createWorkspace", "/v1/workspaces", map[string]any{"path": w.TempDir()}), "id")
}

// await reads until an event of kind has come and returns its entity.
func (c *client) await(kind string) map[string]any {
	c.Helper()
	for {
		if f := c.next(); f.Kind == kind {
			var e map[string]any
			if err := json.Unmarshal(f.Data, &e); err != nil {
				c.Fatal(err)
			}
			return e
		}
	}
}

// What one client changes the other is shown; an answer from either changes nothing else.
func TestClientsSeeWhatTheOthersDo(t *testing.T) {
	w := newWhole(t)
	base := w.workspace()
	root, child := w.asking(base, 1)
	rootPath, _, _ := strings.Cut(root, "/turns/")
	before := object(t, w.call(200, "getAgentSession", rootPath, nil)["session"])
	head, _ := w.call(200, "listEvents", base+"/events", nil)["seq"].(float64)
	a, b := w.follow(base, int64(head)), w.follow(base, int64(head))

	w.call(200, "updateAgentSession", rootPath, map[string]any{"title": "Said on A", "pinned": true})
	for _, c := range []*client{a, b} {
		if e := c.await("session.updated"); e["title"] != "Said on A" || e["permissionMode"] != "plan" {
			t.Errorf("%v", e)
		}
	}
	w.call(202, "respondToInteraction", child+"/interactions/1/response", map[string]any{"optionId": "yes"})
	for _, c := range []*client{a, b} {
		if e := c.await("interaction.updated"); e["requestId"] != "1" || e["agentSessionId"] != "ses_kid1" {
			t.Errorf("%v", e)
		}
	}
	after := object(t, w.call(200, "getAgentSession", rootPath, nil)["session"])
	for _, field := range []string{"permissionMode", "model", "provider", "cwd", "capabilities", "id"} {
		if fmt.Sprint(before[field]) != fmt.Sprint(after[field]) {
			t.Errorf("%s was %v, is %v", field, before[field], after[field])
		}
	}
}

// A client that comes after a question has been asked finds it in the snapshot and can
// answer it.
func TestLateClientFindsTheQuestion(t *testing.T) {
	w := newWhole(t)
	base := w.workspace()
	root, child := w.asking(base, 1)
	page := w.call(200, "listAgentSessions", base+"/agent-sessions?attention=waiting", nil)
	items, _ := page["items"].([]any)
	if len(items) != 1 || object(t, items[0])["pendingInteractionCount"] != 2.0 {
		t.Fatalf("%v", page)
	}
	rootPath := base + "/agent-sessions/" + id(t, object(t, items[0]), "id")
	asked, _ := w.call(200, "listInteractions", rootPath+"/interactions?status=pending", nil)["items"].([]any)
	if len(asked) != 2 {
		t.Fatalf("%v", asked)
	}
	for _, path := range []string{root, child} {
		w.call(202, "respondToInteraction", path+"/interactions/1/response", map[string]any{"optionId": "no"})
	}
	if left, _ := w.call(200, "listInteractions", rootPath+"/interactions?status=pending", nil)["items"].([]any); len(left) != 0 {
		t.Errorf("still asked: %v", left)
	}
}

// Three roots and their children ask under one number: each question says whose it is, and
// an answer reaches that one alone.
func TestAnAnswerReachesOneQuestion(t *testing.T) {
	w := newWhole(t)
	base := w.workspace()
	var turns []string
	for n := range 3 {
		root, child := w.asking(base, n)
		turns = append(turns, root, child)
	}
	open := func() map[string]string { // path of the turn → its command
		list := map[string]string{}
		page, _ := w.call(200, "listAgentSessions", base+"/agent-sessions", nil)["items"].([]any)
		for _, v := range page {
			path := base + "/agent-sessions/" + id(t, object(t, v), "id")
			asked, _ := w.call(200, "listInteractions", path+"/interactions?status=pending", nil)["items"].([]any)
			for _, q := range asked {
				i := object(t, q)
				s := id(t, i, "agentSessionId")
				if got := id(t, i, "detail", "command"); got != "command of "+s {
					t.Errorf("a question of %s shows %q", s, got)
				}
				list[base+"/agent-sessions/"+s+"/turns/"+id(t, i, "turnId")] = s
			}
		}
		return list
	}
	for n, path := range turns {
		if got := len(open()); got != len(turns)-n {
			t.Fatalf("%d questions open, want %d", got, len(turns)-n)
		}
		w.call(202, "respondToInteraction", path+"/interactions/1/response", map[string]any{"optionId": "yes"})
		if s, still := open()[path]; still {
			t.Errorf("the question of %s is still open", s)
		}
	}
	// The right number below the wrong turn is nobody's question.
	w.call(404, "respondToInteraction", turns[0]+"0/interactions/1/response", map[string]any{"optionId": "yes"})
}
