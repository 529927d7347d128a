package goclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// StreamVersion is the version of the contract that this client speaks.
const StreamVersion = 1

// Cursor is a place in a workspace's log.
type Cursor struct {
	Seq   int64
	Epoch string
}

// StreamOptions says what to follow and how. Zero bounds take the defaults.
type StreamOptions struct {
	Server    string // base address of the daemon
	Workspace string
	Sessions  []string // only these, a root with every session below it; nil: all
	Token     string
	Client    string // how this program names itself: cli, …

	// From is where to begin; nil begins with Snapshot, or where there is none, now.
	From *Cursor
	// Snapshot reads the state anew and says where it is true. It is called at the start
	// where From is nil, and whenever the log begins anew or no longer reaches back. Its
	// error ends the stream. Without it a reset ends the stream with ErrReset.
	Snapshot func(context.Context) (Cursor, error)
	// State, if set, is told when the connection is lost (with the reason) and when it
	// is there (with nil).
	State func(error)

	HTTPClient *http.Client
	Silence    time.Duration // no frame for that long: the line is dead. 35 s, two heartbeats and some
	MinBackoff time.Duration // before the first new attempt, then doubling: 250 ms
	MaxBackoff time.Duration // 8 s
}

// StreamItem is one event or one delta.
type StreamItem struct {
	// Of an event: its number, what changed, where. Value gives the entity.
	Seq       int64
	Kind      string
	Time      time.Time
	SessionID string
	TurnID    string
	Event     *Event

	Delta *StreamDelta // of streaming text; nil for an event
}

// Value returns the variant of the event (EventTurnUpdated, …), or an error for a kind
// that this client does not know yet.
func (i StreamItem) Value() (any, error) {
	if i.Event == nil {
		return nil, errors.New("goclient: not an event")
	}
	return i.Event.ValueByDiscriminator()
}

// StreamError is an ending that coming back does not help against.
type StreamError struct {
	Code   int    // close code, or status of the refused handshake
	Reason string // the daemon's word for it
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("the stream ended with %d %s", e.Code, e.Reason)
}

// Is compares by code.
func (e *StreamError) Is(target error) bool {
	t, ok := target.(*StreamError)
	return ok && t.Code == e.Code
}

// Endings to compare with.
var (
	ErrUnauthorized = &StreamError{4401, "unauthorized"}
	ErrOrigin       = &StreamError{4403, "origin_not_allowed"}
	ErrNotFound     = &StreamError{4404, "not_found"}
	ErrVersion      = &StreamError{4409, "protocol_version"}

	// ErrReset ends a stream without a Snapshot whose cursor means nothing any more.
	ErrReset = errors.New("goclient: the log does not reach back to the cursor")
)

func (o StreamOptions) withDefaults() StreamOptions {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Silence, 35*time.Second)
	set(&o.MinBackoff, 250*time.Millisecond)
	set(&o.MaxBackoff, 8*time.Second)
	if o.State == nil {
		o.State = func(error) {}
	}
	return o
}

// Follow yields every event after the cursor once and in order, and deltas in between,
// over as many connections as that takes. It ends with the one error it yields: of ctx, a
// *StreamError, ErrReset, or Snapshot's own.
func Follow(ctx context.Context, o StreamOptions) iter.Seq2[StreamItem, error] {
	f := &follower{StreamOptions: o.withDefaults()}
	return func(yield func(StreamItem, error) bool) {
		if err := f.run(ctx, func(i StreamItem) bool { return yield(i, nil) }); err != nil && !errors.Is(err, errEnough) {
			yield(StreamItem{}, err)
		}
	}
}

var (
	errEnough = errors.New("the caller has enough")
	errAnew   = errors.New("begin anew")
)

type follower struct {
	StreamOptions
	at    *Cursor
	tries int
}

func (f *follower) run(ctx context.Context, yield func(StreamItem) bool) error {
	f.at = f.From
	if f.at == nil && f.Snapshot != nil {
		if err := f.snapshot(ctx); err != nil {
			return err
		}
	}
	for {
		err := f.connection(ctx, yield)
		var final *StreamError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errEnough), errors.As(err, &final):
			return err
		case errors.Is(err, errAnew):
			if err := f.snapshot(ctx); err != nil {
				return err
			}
			continue
		}
		f.State(err)
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

func (f *follower) snapshot(ctx context.Context) error {
	if f.Snapshot == nil {
		return ErrReset
	}
	at, err := f.Snapshot(ctx)
	if err != nil {
		return err
	}
	f.at = &at
	return nil
}

// wait backs off, longer each time, and never in step with other clients.
func (f *follower) wait(ctx context.Context) error {
	d := min(f.MinBackoff<<min(f.tries, 16), f.MaxBackoff)
	f.tries++
	t := time.NewTimer(time.Duration(float64(d) * (0.75 + rand.Float64()/2))) //nolint:gosec // spreads load, keeps no secret
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connection follows over one socket until it ends.
func (f *follower) connection(ctx context.Context, yield func(StreamItem) bool) error {
	conn, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	hello := StreamHello{Type: StreamHelloTypeHello, V: StreamVersion}
	if f.at != nil {
		hello.After = &f.at.Seq
		if f.at.Epoch != "" {
			hello.Epoch = &f.at.Epoch
		}
	}
	if f.Sessions != nil {
		hello.Sessions = &f.Sessions
	}
	b, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	if err := conn.Write(ctx, websocket.MessageText, b); err != nil {
		return err
	}
	for {
		b, err := f.read(ctx, conn)
		if err != nil {
			return err
		}
		if err := f.take(b, yield); err != nil {
			return err
		}
	}
}

func (f *follower) dial(ctx context.Context) (*websocket.Conn, error) {
	u, err := url.Parse(strings.TrimRight(f.Server, "/") + "/v1/workspaces/" + url.PathEscape(f.Workspace) + "/events/stream")
	if err != nil {
		return nil, &StreamError{0, err.Error()}
	}
	h := http.Header{}
	if f.Token != "" {
		h.Set("Authorization", "Bearer "+f.Token)
	}
	if f.Client != "" {
		h.Set("Turnkeeper-Client", f.Client)
	}
	ctx, cancel := context.WithTimeout(ctx, f.Silence)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: f.HTTPClient, HTTPHeader: h})
	if err != nil {
		if res != nil && res.StatusCode < 500 && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, &StreamError{res.StatusCode, http.StatusText(res.StatusCode)}
		}
		return nil, err
	}
	conn.SetReadLimit(-1) // an event is as large as its entity; the daemon bounds those
	return conn, nil
}

// read waits for one frame, no longer than a live line can be silent.
func (f *follower) read(ctx context.Context, conn *websocket.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Silence)
	defer cancel()
	_, b, err := conn.Read(ctx)
	if err == nil {
		return b, nil
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) && (closed.Code >= 4400 && closed.Code < 4500 || closed.Code == websocket.StatusPolicyViolation) {
		return nil, &StreamError{int(closed.Code), closed.Reason}
	}
	return nil, err
}

// head is what every frame may have, read before its kind is known.
type head struct {
	Type      string    `json:"type"`
	Seq       int64     `json:"seq"`
	Epoch     string    `json:"epoch"`
	Kind      string    `json:"kind"`
	Time      time.Time `json:"time"`
	SessionID string    `json:"agentSessionId"`
	TurnID    string    `json:"turnId"`
}

func (f *follower) take(b []byte, yield func(StreamItem) bool) error {
	var h head
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("goclient: a frame that is not JSON: %w", err)
	}
	switch h.Type {
	case "ready":
		return f.ready(h)
	case "reset":
		return errAnew
	case "heartbeat":
		if f.at != nil && h.Seq > f.at.Seq {
			if f.Sessions == nil { // nothing was filtered out: events are missing
				return fmt.Errorf("goclient: heartbeat at %d after event %d", h.Seq, f.at.Seq)
			}
			f.at.Seq = h.Seq
		}
		return nil
	case "delta":
		var d StreamDelta
		if err := json.Unmarshal(b, &d); err != nil {
			return fmt.Errorf("goclient: delta: %w", err)
		}
		return enough(yield(StreamItem{Seq: f.at.Seq, SessionID: d.AgentSessionID, Delta: &d}))
	case "event":
		return f.event(b, h, yield)
	}
	return nil // a type that is newer than this client
}

// ready learns where the stream begins. A snapshot that the daemon asks for although we
// gave a cursor is followed by reset.
func (f *follower) ready(h head) error {
	if f.at == nil {
		f.at = &Cursor{Seq: h.Seq, Epoch: h.Epoch}
	} else {
		f.at = &Cursor{Seq: f.at.Seq, Epoch: h.Epoch} // From stays the caller's
	}
	f.tries = 0
	f.State(nil)
	return nil
}

func (f *follower) event(b []byte, h head, yield func(StreamItem) bool) error {
	switch {
	case f.at == nil:
		return errors.New("goclient: an event before ready")
	case h.Seq <= f.at.Seq:
		return nil // told before
	case f.Sessions == nil && h.Seq != f.at.Seq+1:
		return fmt.Errorf("goclient: event %d came after %d", h.Seq, f.at.Seq)
	}
	var e Event
	if err := json.Unmarshal(b, &e); err != nil {
		return fmt.Errorf("goclient: event: %w", err)
	}
	f.at.Seq = h.Seq
	return enough(yield(StreamItem{
		Seq: h.Seq, Kind: h.Kind, Time: h.Time, SessionID: h.SessionID, TurnID: h.TurnID, Event: &e,
	}))
}

func enough(more bool) error {
	if more {
		return nil
	}
	return errEnough
}
