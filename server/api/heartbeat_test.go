package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	dto "github.com/prometheus/client_model/go"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// pipes is a listener of in-memory connections: with it a whole server runs in virtual
// time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs body against a server in virtual time.
func inBubble(t *testing.T, body func(t *testing.T, f *fixture, l *pipes, dial func() *client)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := newPipes()
		s := Server(f.h)
		go func() { _ = s.Serve(l) }()
		hc := &http.Client{Transport: &http.Transport{DialContext: l.dial}}
		body(t, f, l, func() *client {
			conn, _, err := websocket.Dial(t.Context(), "http://localhost"+ws+"/events/stream", &websocket.DialOptions{HTTPClient: hc, HTTPHeader: bearer()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.CloseNow() })
			return &client{t, conn}
		})
		if err := f.api.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = s.Close()
		hc.CloseIdleConnections()
	})
}

func TestHeartbeatTellsTheNewestNumber(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, _ *pipes, dial func() *client) {
		c := dial()
		c.send(`{"type":"hello","v":1,"after":0,"sessions":["nobody"]}`)
		c.next()
		start := time.Now()
		f.commit(f.hub, make([]agent.Event, 4)...) // none of them is for this client
		for i := range 3 {
			b := c.next()
			if b.Type != "heartbeat" || b.Seq != 4 {
				t.Errorf("%+v", b)
			}
			if since, want := time.Since(start), time.Duration(i+1)*heartbeatEvery; since != want {
				t.Errorf("beat %d after %s, want %s", i, since, want)
			}
		}
		_ = c.conn.CloseNow()
	})
}

// rawClient is a peer that speaks just enough of the protocol to say hello, and then
// does nothing that it is not told to.
func rawClient(t *testing.T, l *pipes) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := l.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := shakeHands(t, conn, secret)
	say(t, conn, helloFrom0)
	if _, err := r.Peek(2); err != nil { // ready has come
		t.Fatal(err)
	}
	return conn, r
}

// shakeHands opens a WebSocket on conn, as whoever has the token.
func shakeHands(t *testing.T, conn net.Conn, token string) *bufio.Reader {
	t.Helper()
	_, err := io.WriteString(conn, "GET "+ws+"/events/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %+v", err, res)
	}
	return r
}

func say(t *testing.T, conn net.Conn, hello string) {
	t.Helper()
	frame := append([]byte{0x81, 0x80 | byte(len(hello)), 0, 0, 0, 0}, hello...) // masked with zeroes
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// A peer that is gone without a word answers no ping; within a minute its socket ends,
// although every write to it still succeeds.
func TestHalfOpenPeerIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
		conn, r := rawClient(t, l)
		start := time.Now()
		_, _ = io.Copy(io.Discard, r)
		if since := time.Since(start); since > time.Minute || since < pongBound {
			t.Errorf("dropped after %s", since)
		}
		_ = conn.Close()
		f.wantEnding(t, errHalfOpen)
	})
}

// A peer that takes nothing at all is given up after the write bound, and until then
// nobody else waits for it.
func TestStalledPeerIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, dial func() *client) {
		conn, _ := rawClient(t, l)
		c := dial()
		c.send(helloFrom0)
		c.next()
		start := time.Now()
		f.commit(f.hub, agent.Event{})
		if e := c.next(); e.Seq != 1 || time.Since(start) > 0 {
			t.Errorf("%+v after %s", e, time.Since(start))
		}
		_ = c.conn.CloseNow()
		time.Sleep(writeBound + time.Second)
		f.wantEnding(t, errSlow)
		_ = conn.Close()
	})
}

func (f *fixture) wantEnding(t *testing.T, end *endingError) {
	t.Helper()
	synctest.Wait()
	var m dto.Metric
	if err := f.api.metrics.closes.WithLabelValues(end.reason).Write(&m); err != nil {
		t.Fatal(err)
	}
	if n := m.GetCounter().GetValue(); n != 1 {
		t.Errorf("%v sockets ended with %q", n, end.reason)
	}
}

func TestHelloIsWaitedForWithinABound(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fixture, _ *pipes, dial func() *client) {
		c := dial()
		start := time.Now()
		_, _, err := c.conn.Read(t.Context())
		if err == nil || time.Since(start) > helloBound+5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
