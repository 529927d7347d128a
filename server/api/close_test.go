package api

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A page that takes nothing must not make the end of the daemon a failure, nor a long one,
// whatever its socket waits for.
func TestCloseWithPeersThatStall(t *testing.T) {
	for name, stall := range map[string]func(t *testing.T, f *fixture, l *pipes, dial func() *client){
		"in the middle of a frame": func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
			rawClient(t, l)
			f.commit(f.hub, make([]agent.Event, 300)...)
		},
		"without a hello": func(t *testing.T, _ *fixture, l *pipes, _ func() *client) {
			conn, err := l.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			shakeHands(t, conn, secret)
		},
		"before it is told where it begins": func(_ *testing.T, _ *fixture, _ *pipes, dial func() *client) {
			c := dial()
			c.send(`{"type":"hello","v":1}`)
		},
		"while it is being refused": func(t *testing.T, _ *fixture, l *pipes, _ func() *client) {
			conn, err := l.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			shakeHands(t, conn, "wrong")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fixture, l *pipes, dial func() *client) {
				stall(t, f, l, dial)
				healthy := dial()
				healthy.send(`{"type":"hello","v":1}`)
				healthy.next()
				told := make(chan error, 1)
				go func() { _, _, err := healthy.conn.Read(context.Background()); told <- err }()

				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				start := time.Now()
				if err := f.api.Close(ctx); err != nil {
					t.Errorf("closing failed: %v", err)
				}
				if took := time.Since(start); took > restartBound {
					t.Errorf("closing took %s", took)
				}
				if err := <-told; websocket.CloseStatus(err) != websocket.StatusServiceRestart {
					t.Errorf("beside the stalled one a healthy page is told %v", err)
				}
			})
		})
	}
}

// Without time left the connections are cut at once; that is no failure either.
func TestCloseWithoutTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
		rawClient(t, l)
		f.commit(f.hub, agent.Event{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		if err := f.api.Close(ctx); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// The same over real sockets, where the system takes some of what nobody reads: of one peer
// all, the close frame too, which it then does not answer.
func TestCloseWithPeersThatReadNothing(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	body := json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
	for range 200 { // more than any system's buffers
		f.commit(f.hub, agent.Event{Kind: agent.MessageUpdated, Data: body})
	}
	for _, hello := range []string{helloFrom0, `{"type":"hello","v":1}`} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		shakeHands(t, conn, secret)
		say(t, conn, hello)
	}
	for f.api.metrics.writes.Load() < 5 { // on its way: ready and the first frames
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := f.api.Close(ctx); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("closing took all the time it was given")
	}
}

// A socket whose handshake ends after closing has begun ends too.
func TestCloseReachesASocketInItsHandshake(t *testing.T) {
	f := newFixture(t)
	if !f.api.enter() {
		t.Fatal("closed already")
	}
	closed := make(chan error, 1)
	go func() { closed <- f.api.Close(context.Background()) }()
	<-f.api.closing.Done()
	mine, theirs := net.Pipe()
	s := &socket{api: f.api, cork: &cork{Conn: theirs, writes: &f.api.metrics.writes}, cancel: func(error) {}}
	f.api.attend(s)
	if _, err := s.cork.Write([]byte("x")); err == nil { // nobody reads it
		t.Error("a write to nobody succeeded")
	}
	if _, err := s.cork.Write([]byte("y")); err == nil {
		t.Error("what follows a broken write was sent")
	}
	f.api.dismiss(s)
	f.api.sockets.Done()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	_, _ = mine.Close(), theirs.Close()
}
