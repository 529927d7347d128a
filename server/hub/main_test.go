package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const ws agent.WorkspaceID = "ws_1"

// memLog is a log in memory that numbers what is committed.
type memLog struct {
	mu     sync.Mutex
	epoch  string
	events []agent.Event
	oldest int64
	reads  int
}

func newMemLog() *memLog { return &memLog{epoch: "e1", oldest: 1} }

func (l *memLog) Head(_ context.Context, id agent.WorkspaceID) (int64, string, int64, error) {
	if id != ws {
		return 0, "", 0, agent.Errorf(agent.CodeNotFound, "no such workspace")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events)), l.epoch, l.oldest, nil
}

func (l *memLog) Events(_ context.Context, _ agent.WorkspaceID, after int64, limit int) (agent.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	from := min(max(after, l.oldest-1), int64(len(l.events)))
	to := min(from+int64(limit), int64(len(l.events)))
	return agent.Log{Items: l.events[from:to], Seq: int64(len(l.events)), Epoch: l.epoch, Oldest: l.oldest}, nil
}

// commit appends one event, as the writer of storage would, and returns it.
func (l *memLog) commit(e agent.Event) agent.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Seq, e.WorkspaceID = int64(len(l.events)+1), ws
	if e.Time.IsZero() {
		e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	if e.Kind == "" {
		e.Kind = agent.TurnUpdated
	}
	if e.Data == nil {
		e.Data = json.RawMessage(`{"id":"trn_1"}`)
	}
	if e.Kind == agent.SessionDeleted { // as storage does: what is gone is told to nobody who comes later
		for i := range l.events {
			if past := &l.events[i]; past.Kind != e.Kind && (past.SessionID == e.SessionID || past.RootSessionID == e.SessionID) {
				past.Data = json.RawMessage(`{}`)
			}
		}
	}
	l.events = append(l.events, e)
	return e
}

func (l *memLog) trim(oldest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldest = oldest
}

// fixture is a hub over a memLog.
type fixture struct {
	*memLog
	*Hub
}

func newFixture(o Options) fixture {
	l := newMemLog()
	return fixture{l, New(l, o)}
}

// put commits and publishes.
func (f fixture) put(events ...agent.Event) {
	for i := range events {
		events[i] = f.commit(events[i])
	}
	f.Publish(events)
}

func (f fixture) subscribe(t testing.TB, after int64, sessions ...agent.SessionID) *Subscription {
	t.Helper()
	s, _, err := f.Subscribe(context.Background(), Request{Workspace: ws, After: &after, Sessions: sessions})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func session(id agent.SessionID) agent.Event {
	return agent.Event{SessionID: id, RootSessionID: "ses_root"}
}

// frame is any frame, decoded.
type frame struct {
	Type      string          `json:"type"`
	Seq       int64           `json:"seq"`
	Kind      agent.EventKind `json:"kind"`
	SessionID string          `json:"agentSessionId"`
	MessageID string          `json:"messageId"`
	Offset    int64           `json:"offset"`
	Text      string          `json:"text"`
	Reason    string          `json:"reason"`
	Epoch     string          `json:"epoch"`
	Data      json.RawMessage `json:"data"`
}

func decode(t testing.TB, b []byte) frame {
	t.Helper()
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("frame %s: %v", b, err)
	}
	return f
}

// drain polls until there is nothing more to send.
func drain(t testing.TB, s *Subscription) []frame {
	t.Helper()
	var all []frame
	for {
		b, err := s.Poll(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Frames) == 0 {
			return all
		}
		for _, raw := range b.Frames {
			all = append(all, decode(t, raw))
		}
	}
}

// describe makes a short line of frames, for comparing.
func describe(frames []frame) string {
	var parts []string
	for _, f := range frames {
		switch f.Type {
		case "event":
			parts = append(parts, fmt.Sprint(f.Seq))
		case "delta":
			parts = append(parts, fmt.Sprintf("%s@%d=%s", f.MessageID, f.Offset, f.Text))
		default:
			parts = append(parts, f.Type+"/"+f.Reason)
		}
	}
	return strings.Join(parts, " ")
}
