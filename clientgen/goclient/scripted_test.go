package goclient_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
)

// scripted is a daemon that says what it is told to: each connection is given the hello and
// a way to send.
func scripted(t *testing.T, serve func(n int64, hello goclient.StreamHello, send func(string))) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		_, b, err := conn.Read(r.Context())
		var hello goclient.StreamHello
		if err != nil || json.Unmarshal(b, &hello) != nil {
			t.Errorf("no hello: %s %v", b, err)
			return
		}
		gone := conn.CloseRead(context.Background())
		serve(n.Add(1), hello, func(s string) { _ = conn.Write(context.Background(), websocket.MessageText, []byte(s)) })
		<-gone.Done()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (o seqs) ask(t *testing.T, url string, change func(*goclient.StreamOptions)) (items []goclient.StreamItem) {
	t.Helper()
	opt := goclient.StreamOptions{
		Server: url, Workspace: "ws_1", From: &goclient.Cursor{},
		MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
	}
	if change != nil {
		change(&opt)
	}
	for item, err := range goclient.Follow(t.Context(), opt) {
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == len(o) || item.Seq != o[len(items)] {
			t.Fatalf("item %d is %+v, want the numbers %v", len(items), item, o)
		}
		if items = append(items, item); len(items) == len(o) {
			break
		}
	}
	return items
}

// seqs are the numbers that are expected.
type seqs []int64

// A daemon that is newer than the client says what the client does not know: a type of
// frame, a kind of event, a kind of message, a field. It keeps its place and shows that
// something is there.
func TestWhatIsNewerIsKeptAndShown(t *testing.T) {
	url := scripted(t, func(_ int64, _ goclient.StreamHello, send func(string)) {
		send(`{"type":"ready","epoch":"e","seq":3,"mode":"replay","mood":"new"}`)
		send(`{"type":"presence","who":["somebody"]}`)
		send(`{"type":"event","seq":1,"time":"2026-01-02T03:04:05Z","kind":"goal.updated","agentSessionId":"s","data":{"id":"g"}}`)
		send(`{"type":"event","seq":2,"time":"2026-01-02T03:04:05Z","kind":"message.updated","agentSessionId":"s","data":{"id":"m","role":"critic","kind":"hologram","status":"folded"}}`)
		send(`{"type":"event","seq":3,"time":"2026-01-02T03:04:05Z","kind":"session.deleted","agentSessionId":"s","data":{}}`)
	})
	items := seqs{1, 2, 3}.ask(t, url, nil)
	if _, err := items[0].Value(); err == nil || items[0].Kind != "goal.updated" || items[0].Event == nil {
		t.Errorf("a kind that is not known yet: %+v, %v", items[0], err)
	}
	v, err := items[1].Value()
	m, ok := v.(goclient.EventMessageUpdated)
	if err != nil || !ok || m.Data.ID != "m" || m.Data.Kind != "hologram" || m.Data.Role != "critic" {
		t.Errorf("a message of a kind that is not known yet: %+v, %v", v, err)
	}
}

// A line that is dead without a word is noticed by its silence, and the client goes on
// from the number it has come to.
func TestASilentLineIsGivenUp(t *testing.T) {
	url := scripted(t, func(n int64, hello goclient.StreamHello, send func(string)) {
		send(`{"type":"ready","epoch":"e","seq":2,"mode":"replay"}`)
		if n == 1 {
			send(`{"type":"event","seq":1,"time":"2026-01-02T03:04:05Z","kind":"session.deleted","agentSessionId":"s","data":{}}`)
			return // and nothing more, ever
		}
		if hello.After == nil || *hello.After != 1 || hello.Epoch == nil || *hello.Epoch != "e" {
			t.Errorf("connection %d asks for what follows %v of %v", n, hello.After, hello.Epoch)
		}
		send(`{"type":"event","seq":2,"time":"2026-01-02T03:04:05Z","kind":"session.deleted","agentSessionId":"s","data":{}}`)
	})
	var lost int
	seqs{1, 2}.ask(t, url, func(o *goclient.StreamOptions) {
		o.Silence = 250 * time.Millisecond
		o.State = func(err error) {
			if err != nil {
				lost++
			}
		}
	})
	if lost == 0 {
		t.Error("no line was given up: the test tests nothing")
	}
}
