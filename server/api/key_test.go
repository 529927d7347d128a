package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// post calls w with a key, as often as it is asked to, and returns the answers' bodies.
func (w *whole) post(path, key string, body any) map[string]any {
	w.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, request("POST", path, string(raw), header("Idempotency-Key", key)))
	if rec.Code/100 != 2 {
		w.Fatalf("%s answered %d %s", path, rec.Code, rec.Body)
	}
	var out map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		w.Fatal(err)
	}
	return out
}

// Of Idempotency-Key the document says that the key decides, or that it is not looked at;
// each is so.
func TestKeysDoWhatTheDocumentSays(t *testing.T) {
	w := newWhole(t)
	dir, other := t.TempDir(), t.TempDir()
	first := w.post("/v1/workspaces", "k1", map[string]any{"path": dir, "name": "one"})
	if again := w.post("/v1/workspaces", "k2", map[string]any{"path": dir, "name": "two"}); again["id"] != first["id"] || again["name"] != "one" {
		t.Errorf("the same path gave %v after %v", again, first)
	}
	if second := w.post("/v1/workspaces", "k1", map[string]any{"path": other}); second["id"] == first["id"] {
		t.Error("the key of a workspace was looked at, which the document denies")
	}

	base := "/v1/workspaces/" + id(t, first, "id") + "/agent-sessions"
	body := map[string]any{"provider": "demo", "message": map[string]any{"clientMessageId": "c1", "content": text("go")}}
	one, same := w.post(base, "k1", body), w.post(base, "k1", body)
	if id(t, one, "session", "id") != id(t, same, "session", "id") || id(t, one, "turn", "id") != id(t, same, "turn", "id") {
		t.Error("one key made two sessions")
	}
	// A client that was cut off and sends the same with another key has asked for another.
	body["message"] = map[string]any{"clientMessageId": "c2", "content": text("go")}
	if two := w.post(base, "k2", body); id(t, one, "session", "id") == id(t, two, "session", "id") {
		t.Error("another key gave the same session")
	}
	cancel := base + "/" + id(t, one, "session", "id") + "/turns/" + id(t, one, "turn", "id") + "/cancel"
	if a, b := w.post(cancel, "k1", struct{}{}), w.post(cancel, "k3", struct{}{}); id(t, a, "operation", "id") != id(t, b, "operation", "id") {
		t.Error("two keys made two cancels of one turn")
	}

	said := map[bool]string{true: "gives the first one's answer", false: "Taken and not looked at"}
	for path, item := range w.api.huma.OpenAPI().Paths {
		if item.Post == nil {
			continue
		}
		for _, p := range item.Post.Parameters {
			if p.Name == "Idempotency-Key" {
				if want := said[item.Post.OperationID == "createAgentSession"]; !strings.Contains(p.Description+p.Schema.Description, want) {
					t.Errorf("%s says of the key %q", path, p.Description)
				}
			}
		}
	}
}
