package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/hub"
)

// Close codes of the stream. All but restart tell the client not to come back as it is.
const (
	closeRestart      = websocket.StatusServiceRestart // 1012
	closePolicy       = websocket.StatusPolicyViolation
	closeUnauthorized = websocket.StatusCode(4401)
	closeOrigin       = websocket.StatusCode(4403)
	closeNotFound     = websocket.StatusCode(4404)
	closeVersion      = websocket.StatusCode(4409)
)

const (
	streamVersion  = 1
	helloBound     = 10 * time.Second
	heartbeatEvery = 15 * time.Second
	pongBound      = 2 * heartbeatEvery // so a half-open peer is gone within a minute
	readLimit      = 64 << 10           // a hello with its list of sessions
	chatterLimit   = 64                 // frames that a client may send between two heartbeats
	closeBound     = 2 * time.Second    // how long a peer has to answer our close frame
)

// endingError says why a socket ends: what the peer is told, and the word for the metrics.
type endingError struct {
	code   websocket.StatusCode // 0: the peer is gone, nobody is told
	reason string
}

func (e *endingError) Error() string { return e.reason }

var (
	errClient       = &endingError{0, "client"}
	errHalfOpen     = &endingError{0, "half_open"}
	errSlow         = &endingError{0, "write"}
	errRestart      = &endingError{closeRestart, "restart"}
	errUnauthorized = &endingError{closeUnauthorized, "unauthorized"}
	errOrigin       = &endingError{closeOrigin, "origin_not_allowed"}
	errNotFound     = &endingError{closeNotFound, "not_found"}
	errVersion      = &endingError{closeVersion, "protocol_version"}
	errNoHello      = &endingError{closePolicy, "hello_expected"}
	errChatter      = &endingError{closePolicy, "too_many_frames"}
	errFailed       = &endingError{websocket.StatusInternalError, "internal"}
)

// socket is one client of the stream. The request's own goroutine writes, one more
// reads; a third lives only while a ping is on its way.
type socket struct {
	api     *API
	conn    *websocket.Conn
	cork    *cork
	cancel  context.CancelCauseFunc // ends the socket, with an endingError
	revoked <-chan struct{}         // closed when its token or cookie counts no more; nil: it has shown none
	chatter atomic.Int32
	pinging atomic.Bool
	others  sync.WaitGroup
}

func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	if p := checkHandshake(w, r); p != nil {
		p.write(w, r)
		return
	}
	if !a.enter() {
		newProblem(agent.CodeDaemonStopping, "The daemon is stopping.").write(w, r)
		return
	}
	defer a.sockets.Done()
	cw := &corkWriter{ResponseWriter: w, writes: &a.metrics.writes}
	conn, err := websocket.Accept(cw, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // checked below, where the refusal has a code that a page can read
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil { // the handshake was good: the connection is gone, or cannot be taken over
		a.metrics.closes.WithLabelValues("handshake").Inc()
		return
	}
	conn.SetReadLimit(readLimit)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	s := &socket{api: a, conn: conn, cork: cw.cork, cancel: cancel, revoked: principalOf(r.Context()).revoked}
	a.attend(s)
	defer a.dismiss(s)
	end := s.serve(ctx, r)
	a.metrics.closes.WithLabelValues(end.reason).Inc()
}

// isRevoked reports whether what it showed when it was opened counts no more.
func (s *socket) isRevoked() bool {
	select {
	case <-s.revoked:
		return true
	default:
		return false
	}
}

// serve runs the socket to its end.
func (s *socket) serve(ctx context.Context, r *http.Request) *endingError {
	end := s.follow(ctx, r)
	if end.code == 0 && s.api.closing.Err() != nil { // cut off, or it left in the same moment
		end = errRestart
	}
	if end.code == 0 {
		_ = s.conn.CloseNow()
	} else {
		// The close frame waits for its answer; a peer that gives none is cut off.
		late := time.AfterFunc(closeBound, func() { _ = s.cork.Close() })
		_ = s.conn.Close(end.code, end.reason)
		late.Stop()
	}
	s.cancel(end)
	s.others.Wait()
	return end
}

// follow does the handshake of the stream and then writes until something ends it.
func (s *socket) follow(ctx context.Context, r *http.Request) *endingError {
	if !s.api.origins.socket(r) {
		return errOrigin
	}
	if principalOf(r.Context()).kind == byNobody {
		return errUnauthorized
	}
	first := make(chan []byte, 1)
	s.others.Go(func() { s.read(ctx, first) })
	req, end := s.hello(ctx, first)
	if end != nil {
		return end
	}
	req.Workspace = agent.WorkspaceID(r.PathValue("workspaceID"))
	sub, ready, err := s.api.deps.Hub.Subscribe(ctx, req)
	if err != nil {
		return s.endOf(err)
	}
	defer sub.Close()
	s.api.metrics.sockets.Inc()
	defer s.api.metrics.sockets.Dec()
	b, err := json.Marshal(StreamReady{Type: "ready", Epoch: ready.Epoch, Seq: ready.Seq, Mode: string(ready.Mode)})
	if err != nil {
		return s.endOf(err)
	}
	if end := s.write(ctx, b); end != nil {
		return end
	}
	return s.pump(ctx, sub)
}

// hello waits for the client's first frame, within a bound. The reader reads it: a read
// that is given up takes the connection with it, and the peer would not be told why.
func (s *socket) hello(ctx context.Context, first <-chan []byte) (hub.Request, *endingError) {
	bound := time.NewTimer(helloBound)
	defer bound.Stop()
	var h StreamHello
	select {
	case <-ctx.Done():
		return hub.Request{}, causeOf(ctx)
	case <-s.api.closing.Done():
		return hub.Request{}, errRestart
	case <-s.revoked:
		return hub.Request{}, errUnauthorized
	case <-bound.C:
		return hub.Request{}, errNoHello
	case b := <-first:
		if json.Unmarshal(b, &h) != nil || h.Type != "hello" {
			return hub.Request{}, errNoHello
		}
	}
	switch {
	case h.V != streamVersion:
		return hub.Request{}, errVersion
	case h.After != nil && *h.After < 0:
		return hub.Request{}, errNoHello
	}
	req := hub.Request{After: h.After, Epoch: h.Epoch}
	if h.Sessions != nil { // an empty list is none, not all
		req.Sessions = make([]agent.SessionID, 0, len(h.Sessions))
	}
	for _, id := range h.Sessions {
		req.Sessions = append(req.Sessions, agent.SessionID(id))
	}
	return req, nil
}

// read takes what the client sends: its hello, answers to pings, its close frame. A hello
// that is said again changes nothing; a client that chatters is ended.
func (s *socket) read(ctx context.Context, first chan<- []byte) {
	_, b, err := s.conn.Read(ctx)
	if err != nil {
		s.cancel(errClient)
		return
	}
	first <- b
	for {
		_, r, err := s.conn.Reader(ctx)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			s.cancel(errClient)
			return
		}
		if s.chatter.Add(1) > chatterLimit {
			s.cancel(errChatter) // nothing is being read now: the connection stays for the close frame
			return
		}
	}
}

// pump writes batch after batch, and a heartbeat with the number it has come to.
func (s *socket) pump(ctx context.Context, sub *hub.Subscription) *endingError {
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	var seq int64
	for {
		if s.isRevoked() { // before more is told to it, whatever else has come
			return errUnauthorized
		}
		batch, err := sub.Poll(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return causeOf(ctx)
			}
			return s.endOf(err)
		}
		seq = batch.Seq
		if len(batch.Frames) > 0 {
			if end := s.write(ctx, batch.Frames...); end != nil {
				return end
			}
		}
		select { // a full batch goes on at once, but the beat is kept all the same
		case <-beat.C:
			if end := s.beat(ctx, seq); end != nil {
				return end
			}
		case <-ctx.Done():
			return causeOf(ctx)
		case <-s.api.closing.Done():
			return errRestart
		case <-s.revoked:
			return errUnauthorized
		case <-ready(batch.Bell):
		}
	}
}

// always is a bell that has rung.
var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// ready is the bell to wait for; a batch without one wants no waiting.
func ready(bell <-chan struct{}) <-chan struct{} {
	if bell == nil {
		return always
	}
	return bell
}

// beat sends a heartbeat, which the page sees, and a ping, which its browser answers.
func (s *socket) beat(ctx context.Context, seq int64) *endingError {
	s.chatter.Store(0)
	if s.pinging.CompareAndSwap(false, true) {
		s.others.Go(func() {
			defer s.pinging.Store(false)
			bound, stop := context.WithTimeout(ctx, pongBound)
			defer stop()
			if s.conn.Ping(bound) != nil && ctx.Err() == nil {
				s.cancel(errHalfOpen)
			}
		})
	}
	b := strconv.AppendInt([]byte(`{"type":"heartbeat","seq":`), seq, 10)
	return s.write(ctx, append(b, '}'))
}

// write sends frames with as few system calls as it can.
func (s *socket) write(ctx context.Context, frames ...[]byte) *endingError {
	s.cork.hold()
	var err error
	for _, f := range frames {
		if err = s.conn.Write(context.Background(), websocket.MessageText, f); err != nil {
			break
		}
	}
	if err = errors.Join(err, s.cork.release()); err != nil {
		if ctx.Err() != nil { // something else has ended the socket, and says why
			return causeOf(ctx)
		}
		return errSlow
	}
	s.api.metrics.frames.Add(float64(len(frames)))
	return nil
}

func causeOf(ctx context.Context) *endingError {
	if e, ok := errors.AsType[*endingError](context.Cause(ctx)); ok {
		return e
	}
	return errClient
}

// endOf turns an error of the hub into an ending.
func (s *socket) endOf(err error) *endingError {
	if errors.Is(err, hub.ErrClosed) || errors.Is(err, &agent.Error{Code: agent.CodeNotFound}) {
		return errNotFound
	}
	s.api.log.Error("the stream failed", "error", err)
	return errFailed
}
