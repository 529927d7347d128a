package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const rotated = "another-secret-token"

// With a new token everything that was given out for the old one ends at once: the token
// itself, cookies, login codes, and sockets, whatever they have shown.
func TestNewTokenEndsWhatTheOldOneOpened(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	cookie, code := f.signIn(t), f.mint(t)
	byToken := dial(t, url, helloFrom0)
	byCookie := dialAs(t, url, http.Header{"Cookie": {cookie.String()}})
	byCookie.send(helloFrom0)
	silent := dialAs(t, url, bearer()) // has not said hello yet
	byToken.next()
	byCookie.next()

	f.api.SetToken(rotated)
	for _, c := range []*client{byToken, byCookie, silent} {
		c.wantClose(websocket.StatusCode(4401), "unauthorized")
	}
	wantProblem(t, f.get(ses), 401, "unauthorized")
	wantProblem(t, f.do(request("GET", ses, "", with(cookie))), 401, "unauthorized")
	wantProblem(t, f.do(request("GET", code.Path, "", noToken)), 401, "login_code_invalid")

	fresh := header("Authorization", "Bearer "+rotated)
	if w := f.do(request("GET", ses, "", fresh)); w.Code != http.StatusOK {
		t.Errorf("the new token: %d %s", w.Code, w.Body)
	}
	again := dialAs(t, url, http.Header{"Authorization": {"Bearer " + rotated}})
	again.send(helloFrom0)
	again.next()
	f.api.SetToken(rotated) // the same one again ends nothing
	f.commit(f.hub, agent.Event{})
	if e := again.next(); e.Type != "event" {
		t.Errorf("after a token that was no other: %+v", e)
	}
}

// A peer that takes nothing does not keep its socket past the bound.
func TestNewTokenCutsOffAPeerThatStalls(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
		conn, _ := rawClient(t, l)
		f.commit(f.hub, make([]agent.Event, 300)...)
		start := time.Now()
		f.api.SetToken(rotated)
		f.api.sockets.Wait()
		if took := time.Since(start); took > restartBound {
			t.Errorf("it ended after %s", took)
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}

// Whoever keeps the token is asked when an unknown one is shown, and not otherwise.
func TestUnknownTokenHasTheKeeperLook(t *testing.T) {
	var f *fixture
	var asked atomic.Int32
	f = newFixture(t, func(d *Deps) {
		d.Refresh = func() {
			asked.Add(1)
			f.api.SetToken(rotated)
		}
	})
	cookie := f.signIn(t)
	f.get(ses)
	f.do(request("GET", ses, "", with(cookie)))
	f.do(request("GET", ses, "", noToken))
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times although nothing unknown was shown", n)
	}
	if w := f.do(request("GET", ses, "", header("Authorization", "Bearer "+rotated))); w.Code != http.StatusOK {
		t.Errorf("the new token: %d", w.Code)
	}
	wantProblem(t, f.do(request("GET", ses, "", with(cookie))), 401, "unauthorized")
	wantProblem(t, f.do(request("GET", ses, "", header("Authorization", "Bearer guess"))), 401, "unauthorized")
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times about two unknown tokens", n)
	}
}

// The library would refuse a handshake in plain text: a client gets a problem, as always.
func TestHandshakeRefusalsAreProblems(t *testing.T) {
	good := map[string]string{
		"Upgrade": "websocket", "Connection": "keep-alive, Upgrade",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		status int
		code   string
	}{
		{"no connection header", func(r *http.Request) { r.Header.Del("Connection") }, 426, "upgrade_required"},
		{"another upgrade", header("Upgrade", "h2c"), 426, "upgrade_required"},
		{"HTTP/1.0", func(r *http.Request) { r.ProtoMinor = 0 }, 426, "upgrade_required"},
		{"old version", header("Sec-WebSocket-Version", "8"), 400, "invalid_request"},
		{"no version", func(r *http.Request) { r.Header.Del("Sec-WebSocket-Version") }, 400, "invalid_request"},
		{"no key", func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") }, 400, "invalid_request"},
		{"short key", header("Sec-WebSocket-Key", "AAAA"), 400, "invalid_request"},
		{"two keys", func(r *http.Request) { r.Header.Add("Sec-WebSocket-Key", "BAAAAAAAAAAAAAAAAAAAAA==") }, 400, "invalid_request"},
		{"foreign host", host("evil.example"), 421, "host_not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			r := request("GET", ws+"/events/stream", "")
			for k, v := range good {
				r.Header.Set(k, v)
			}
			c.change(r)
			w := httptest.NewRecorder()
			f.h.ServeHTTP(w, r)
			wantProblem(t, w, c.status, c.code)
		})
	}
}

// An empty list of sessions is none, a missing one or null is all.
func TestStreamOfNoSessions(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	f.commit(f.hub, agent.Event{SessionID: "a"})
	none := dial(t, url, `{"type":"hello","v":1,"after":0,"sessions":[]}`)
	all := dial(t, url, `{"type":"hello","v":1,"after":0,"sessions":null}`)
	none.next() // ready
	all.next()
	if e := all.next(); e.Type != "event" {
		t.Errorf("all: %+v", e)
	}
	f.api.SetToken(rotated) // the next thing that comes is its end: no event was sent
	if _, b, err := none.conn.Read(t.Context()); websocket.CloseStatus(err) != 4401 {
		t.Errorf("none: got %s, %v", b, err)
	}
}
