package realtest

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// follower is a client that reads the log from its beginning, and the text that streams
// ahead of it.
type follower struct {
	mu   sync.Mutex
	last int64
	gaps []int64
	had  map[string]json.RawMessage // each entity as last told, by kind and id
	text map[agent.MessageID]string
	torn []agent.MessageID // whose text has a hole
}

func newFollower() *follower {
	return &follower{had: map[string]json.RawMessage{}, text: map[agent.MessageID]string{}}
}

func (f *follower) commit(events []agent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if e.Seq != f.last+1 {
			f.gaps = append(f.gaps, e.Seq)
		}
		f.last = e.Seq
		kind, _, _ := strings.Cut(string(e.Kind), ".")
		var id struct {
			ID        string `json:"id"`
			RequestID string `json:"requestId"`
		}
		_ = json.Unmarshal(e.Data, &id) // an entity always has one
		f.had[kind+" "+string(e.SessionID)+" "+id.ID+id.RequestID] = e.Data
	}
}

func (f *follower) delta(d agent.Delta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	had := f.text[d.MessageID]
	if d.Offset > int64(len(had)) {
		f.torn = append(f.torn, d.MessageID)
		return
	}
	f.text[d.MessageID] = had[:d.Offset] + d.Text
}

// compare fails the test for every entity that the follower knows in another shape than
// storage.
func (f *follower) compare(t testing.TB, s stored) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.gaps)+len(f.torn) > 0 {
		t.Errorf("the log has gaps at %v, the text of %v has holes", f.gaps, f.torn)
	}
	for _, x := range s.sessions {
		same(t, f, "session "+string(x.ID)+" "+string(x.ID), x, "activeTurn", "latestTurn") // told by the events of turns
	}
	for _, x := range s.turns {
		same(t, f, "turn "+string(x.SessionID)+" "+string(x.ID), x)
	}
	for _, x := range s.messages {
		same(t, f, "message "+string(x.SessionID)+" "+string(x.ID), x)
		if text, ok := f.text[x.ID]; ok && !strings.HasSuffix(x.Content, text) {
			t.Errorf("message %s streamed as %q and is %q", x.ID, text, x.Content)
		}
	}
	for _, x := range s.asks {
		same(t, f, "interaction "+string(x.SessionID)+" "+string(x.RequestID), x)
	}
	for _, x := range s.processes {
		same(t, f, "process "+string(x.SessionID)+" "+string(x.ID), x)
	}
}

func same[T any](t testing.TB, f *follower, key string, want T, derived ...string) {
	t.Helper()
	var got T
	raw, ok := f.had[key]
	if !ok {
		t.Errorf("%s is stored, and nobody was told", key)
		return
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Errorf("%s: %v", key, err)
		return
	}
	clean := func(v T) map[string]any {
		var tree map[string]any
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, &tree)
		}
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		for _, name := range derived {
			delete(tree, name)
		}
		return tree
	}
	if diff := cmp.Diff(clean(want), clean(got)); diff != "" {
		t.Errorf("%s (-stored +told):\n%s", key, diff)
	}
}
