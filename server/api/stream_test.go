package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// anyFrame is any frame of the stream, decoded.
type anyFrame struct {
	Type  string `json:"type"`
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
	Mode  string `json:"mode"`
	Kind  string `json:"kind"`

	SessionID string `json:"agentSessionId"`
	MessageID string `json:"messageId"`

	Reason string          `json:"reason"`
	Offset int64           `json:"offset"`
	Text   string          `json:"text"`
	Data   json.RawMessage `json:"data"`
}

// listen serves f on a real socket of the loopback.
func (f *fixture) listen(t testing.TB) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f.h)
	s.Config = Server(f.h)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

type client struct {
	testing.TB
	conn *websocket.Conn
}

func dialAs(t testing.TB, url string, h http.Header, protocols ...string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, url+ws+"/events/stream", &websocket.DialOptions{HTTPHeader: h, Subprotocols: protocols})
	if err != nil {
		t.Fatalf("%v (%+v)", err, res)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t, conn}
}

// dialPath connects to the stream of the workspace at url.
func dialPath(t testing.TB, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url+"/events/stream", &websocket.DialOptions{HTTPHeader: bearer()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func bearer() http.Header { return http.Header{"Authorization": {"Bearer " + secret}} }

func dial(t testing.TB, url, hello string) *client {
	t.Helper()
	c := dialAs(t, url, bearer())
	c.send(hello)
	return c
}

func (c *client) send(s string) {
	c.Helper()
	if err := c.conn.Write(c.Context(), websocket.MessageText, []byte(s)); err != nil {
		c.Fatal(err)
	}
}

func (c *client) next() anyFrame {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		c.Fatalf("read: %v", err)
	}
	var f anyFrame
	if err := json.Unmarshal(b, &f); err != nil {
		c.Fatalf("%v in %s", err, b)
	}
	return f
}

func (c *client) wantClose(code websocket.StatusCode, reason string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	for {
		_, _, err := c.conn.Read(ctx)
		if err == nil {
			continue
		}
		if websocket.CloseStatus(err) != code || !strings.Contains(err.Error(), reason) {
			c.Errorf("closed with %v, want %d %s", err, code, reason)
		}
		return
	}
}

const helloFrom0 = `{"type":"hello","v":1,"after":0}`

func TestStreamReplaysAndFollows(t *testing.T) {
	f := newFixture(t)
	f.commit(f.hub, agent.Event{SessionID: "a"}, agent.Event{SessionID: "b"})
	c := dial(t, f.listen(t), `{"type":"hello","v":1,"after":1,"epoch":"e1"}`)
	if r := c.next(); r.Type != "ready" || r.Epoch != "e1" || r.Seq != 2 || r.Mode != "replay" {
		t.Errorf("%+v", r)
	}
	if e := c.next(); e.Type != "event" || e.Seq != 2 || e.Kind != "turn.updated" || string(e.Data) != `{"id":"trn_1"}` {
		t.Errorf("%+v", e)
	}
	f.commit(f.hub, agent.Event{})
	if e := c.next(); e.Seq != 3 {
		t.Errorf("%+v", e)
	}
	f.hub.Delta(agent.Delta{WorkspaceID: "ws_1", SessionID: "a", MessageID: "m", Offset: 0, Text: "héllo"})
	if d := c.next(); d.Type != "delta" || d.Text != "héllo" || d.Offset != 0 {
		t.Errorf("%+v", d)
	}
	c.send(helloFrom0) // said again: it changes nothing
	f.commit(f.hub, agent.Event{})
	if e := c.next(); e.Seq != 4 {
		t.Errorf("a second hello was answered with %+v", e)
	}
	if err := c.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

func TestStreamModes(t *testing.T) {
	f := newFixture(t)
	f.commit(f.hub, make([]agent.Event, 3)...)
	url := f.listen(t)
	c := dial(t, url, `{"type":"hello","v":1}`)
	if r := c.next(); r.Mode != "snapshot" || r.Seq != 3 {
		t.Errorf("from now on: %+v", r)
	}
	c = dial(t, url, `{"type":"hello","v":1,"after":2,"epoch":"old"}`)
	if r := c.next(); r.Mode != "snapshot" || r.Seq != 3 {
		t.Errorf("other epoch: %+v", r)
	}
	if r := c.next(); r.Type != "reset" || r.Reason != "epoch" || r.Seq != 3 || r.Epoch != "e1" {
		t.Errorf("other epoch: %+v", r)
	}
	c = dial(t, url, `{"type":"hello","v":1,"after":0,"sessions":["root"]}`)
	c.next()
	f.commit(f.hub, agent.Event{SessionID: "x", RootSessionID: "x"}, agent.Event{SessionID: "kid", RootSessionID: "root"})
	if e := c.next(); e.Seq != 5 {
		t.Errorf("filtered: %+v", e)
	}
}

func TestStreamCloseCodes(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	origin := bearer()
	origin.Set("Origin", "http://evil.example")
	dialAs(t, url, origin).wantClose(4403, "origin_not_allowed")
	null := bearer()
	null.Set("Origin", "null")
	dialAs(t, url, null).wantClose(4403, "origin_not_allowed")
	dialAs(t, url, nil).wantClose(4401, "unauthorized")
	dialAs(t, url, http.Header{"Authorization": {"Bearer no"}}).wantClose(4401, "unauthorized")
	dialAs(t, url, nil, "turnkeeper.v1", subprotocolBearer+"wrong").wantClose(4401, "unauthorized")
	dial(t, url, `{"type":"hello","v":2}`).wantClose(4409, "protocol_version")
	for _, hello := range []string{`{"type":"hi","v":1}`, `{`, `[]`, `{"type":"hello","v":1,"after":-1}`} {
		dial(t, url, hello).wantClose(websocket.StatusPolicyViolation, "hello_expected")
	}
	c := dialAs(t, strings.Replace(url, "127.0.0.1", "localhost", 1), bearer())
	c.send(helloFrom0)
	c.next()
	f.hub.Close("ws_1")
	c.wantClose(4404, "not_found")

	ctx := t.Context()
	none := &client{t, dialPath(t, url+"/v1/workspaces/ws_none")}
	none.send(helloFrom0)
	none.wantClose(4404, "not_found")

	_, res, err := websocket.Dial(ctx, url+ws+"/events/stream", &websocket.DialOptions{HTTPHeader: bearer(), Host: "evil.example"})
	if err == nil || res.StatusCode != 421 {
		t.Errorf("foreign host: %v %+v", err, res)
	}
}

func TestStreamSignIn(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	cookie := f.signIn(t)
	own := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}, "Origin": {url}}
	c := dialAs(t, url, own)
	c.send(helloFrom0)
	if r := c.next(); r.Type != "ready" {
		t.Errorf("%+v", r)
	}
	c = dialAs(t, url, nil, "turnkeeper.v1", subprotocolBearer+secret)
	c.send(helloFrom0)
	if r := c.next(); r.Type != "ready" || c.conn.Subprotocol() != "turnkeeper.v1" {
		t.Errorf("%+v, subprotocol %q", r, c.conn.Subprotocol())
	}
}

func TestStreamEndsWithTheDaemon(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	c := dial(t, url, helloFrom0)
	c.next()
	silent := dialAs(t, url, bearer()) // has not said hello
	go func() { _ = f.api.Close(context.Background()) }()
	c.wantClose(websocket.StatusServiceRestart, "restart")
	silent.wantClose(websocket.StatusServiceRestart, "restart")
	if err := f.api.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, res, err := websocket.Dial(t.Context(), url+ws+"/events/stream", &websocket.DialOptions{HTTPHeader: bearer()})
	if err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a late socket: %v", err)
	}
}

func TestStreamReadsAreBounded(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	c := dial(t, url, helloFrom0)
	c.next()
	for range chatterLimit + 1 {
		c.send(helloFrom0)
	}
	c.wantClose(websocket.StatusPolicyViolation, "too_many_frames")
	c = dialAs(t, url, bearer())
	c.send(`{"type":"hello","v":1,"epoch":"` + strings.Repeat("x", readLimit) + `"}`)
	c.wantClose(websocket.StatusMessageTooBig, "")
}

// A client that reconnects with after a hundred times during a run of 50 children sees
// every event once, in order.
func TestStreamOver100Reconnects(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	const events = 5000
	go func() {
		r := rand.New(rand.NewPCG(7, 8))
		for n := 0; n < events; {
			k := min(1+r.IntN(10), events-n)
			batch := make([]agent.Event, k)
			for i := range batch {
				kid := agent.SessionID(fmt.Sprintf("ses_%d", r.IntN(50)))
				batch[i] = agent.Event{SessionID: kid, RootSessionID: "ses_root"}
				f.hub.Delta(agent.Delta{WorkspaceID: "ws_1", SessionID: kid, MessageID: "m", Offset: int64(n), Text: "x"})
			}
			f.commit(f.hub, batch...)
			n += k
			runtime.Gosched()
		}
	}()
	r := rand.New(rand.NewPCG(9, 10))
	var cursor int64
	for connects := 0; cursor < events; connects++ {
		c := dial(t, url, fmt.Sprintf(`{"type":"hello","v":1,"after":%d,"epoch":"e1"}`, cursor))
		until := cursor + 1 + r.Int64N(events/100)
		if connects >= 100 {
			until = events
		}
		for cursor < min(until, events) {
			switch e := c.next(); e.Type {
			case "event":
				if e.Seq != cursor+1 {
					t.Fatalf("after %d came %d", cursor, e.Seq)
				}
				cursor = e.Seq
			case "reset":
				t.Fatalf("reset %+v", e)
			}
		}
		_ = c.conn.CloseNow()
	}
}
