package api

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// follow opens the stream of a workspace after a number.
func (w *whole) follow(base string, after int64) *client {
	w.Helper()
	s := httptest.NewServer(w.h)
	w.Cleanup(s.Close)
	c := &client{TB: w.T, conn: dialPath(w.T, s.URL+base)}
	hello, err := json.Marshal(map[string]any{"type": "hello", "v": 1, "after": after})
	if err != nil {
		w.Fatal(err)
	}
	c.send(string(hello))
	if ready := c.next(); ready.Type != "ready" || ready.Mode != "replay" {
		w.Fatalf("%+v", ready)
	}
	return c
}

// model is what a client makes of the events alone.
type model struct {
	cursor   int64
	sessions map[string]map[string]any
}

// catchUp reads up to the newest event there is.
func (m *model) catchUp(w *whole, c *client, base string) {
	w.Helper()
	head, _ := w.call(200, "listEvents", base+"/events?limit=1", nil)["seq"].(float64)
	for m.cursor < int64(head) {
		f := c.next()
		if f.Type != "event" {
			continue
		}
		if f.Seq != m.cursor+1 {
			w.Fatalf("after %d came %d", m.cursor, f.Seq)
		}
		m.cursor = f.Seq
		m.apply(w.T, f)
	}
}

func (m *model) apply(t *testing.T, f anyFrame) {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(f.Data, &e); err != nil {
		t.Fatal(err)
	}
	switch f.Kind {
	case "session.created", "session.updated":
		m.sessions[f.SessionID] = e
	case "session.deleted":
		delete(m.sessions, f.SessionID)
	case "turn.created", "turn.updated":
		s := m.sessions[f.SessionID]
		if s == nil {
			t.Fatalf("event %d is of a turn of %s, which is not there", f.Seq, f.SessionID)
		}
		s["latestTurn"] = e
		if delete(s, "activeTurn"); e["phase"] != "settled" {
			s["activeTurn"] = e
		}
		// The mark follows from the turn and the questions; no event of its own tells it.
		var turn agent.Turn
		if err := json.Unmarshal(f.Data, &turn); err != nil {
			t.Fatal(err)
		}
		pending, _ := s["pendingInteractionCount"].(float64)
		s["attention"] = string(agent.AttentionOf(int(pending), &turn))
	}
}

// compare holds the model against a fresh snapshot of the tree. What comes from the clock
// is left out.
func (m *model) compare(w *whole, rootPath, when string) {
	w.Helper()
	detail := w.call(200, "getAgentSession", rootPath, nil)
	if seq, _ := detail["seq"].(float64); int64(seq) != m.cursor {
		w.Errorf("%s: the snapshot is true at %v, the client has come to %d", when, seq, m.cursor)
	}
	root := object(w.T, detail["session"])
	want := map[string]map[string]any{id(w.T, root, "id"): root}
	kids, _ := detail["childSessions"].([]any)
	for _, v := range kids {
		k := object(w.T, v)
		want[id(w.T, k, "id")] = k
	}
	for _, s := range want {
		delete(s, "updatedAt")
	}
	for _, s := range m.sessions {
		delete(s, "updatedAt")
	}
	if diff := cmp.Diff(want, m.sessions); diff != "" {
		w.Errorf("%s, the snapshot (-) and the events (+) differ:\n%s", when, diff)
	}
}
