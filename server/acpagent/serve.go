package acpagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Options say whom to serve, and with which daemon.
type Options struct {
	In  io.Reader // closed at the end if it can be
	Out io.Writer

	Server     string // base address of the daemon
	Token      string
	HTTPClient *http.Client // nil: one of its own

	// Of new sessions that say nothing else. Without a provider the first that was found.
	Provider, Model, Mode string

	Version string // of this program
	Logger  *slog.Logger
	Backlog int // bytes that may wait for a slow editor; 0: wire.DefaultOutbox
}

// Bounds.
const (
	maxRequests  = 256              // of the editor, unanswered
	answerBound  = 30 * time.Second // of one call to the daemon
	closeBound   = 90 * time.Second // until a session that is closed has stopped
	absenceBound = 60 * time.Second // how long held prompts wait for a daemon that is gone
	farewell     = 2 * time.Second  // for what still waits to be written at the end
	clientName   = "acp"            // under which answers are recorded
)

// conn is one editor.
type conn struct {
	opt  Options
	log  *slog.Logger
	ctx  context.Context //nolint:containedctx // its end is the connection's
	peer *wire.Peer
	out  *wire.Outbox
	api  *daemon
	work sync.WaitGroup

	mu       sync.Mutex
	spoken   int                 // version; 0 before initialize
	subagent bool                // children are shown as sessions
	notices  bool                // version 1: the editor shows notices
	forms    bool                // the editor asks people with forms
	sessions map[string]*session // roots that were taken up here
	children map[string]struct{} // sessions below them, and the provider's names for these
	requests map[wire.RawID]*request
}

// Serve speaks to one editor until it leaves (nil), ctx ends, or the streams fail. What
// runs in the daemon goes on.
func Serve(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: &http.Transport{}}
		defer o.HTTPClient.CloseIdleConnections()
	}
	api, err := newDaemon(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &conn{
		opt: o, log: o.Logger, ctx: ctx, api: api,
		sessions: map[string]*session{}, children: map[string]struct{}{}, requests: map[wire.RawID]*request{},
	}
	c.out = wire.NewOutbox(o.Out, o.Backlog, 0)
	c.peer = wire.NewPeer(o.In, c.out, wire.Options{
		Version: "2.0", Refuse: true, Handler: c.handle,
		OnDiagnostic: func(d wire.Diagnostic) {
			c.log.Debug("a line that is of no use", "kind", d.Kind, "size", d.Size)
		},
	})
	read := make(chan error, 1)
	go func() { read <- c.peer.Run() }()
	select {
	case err = <-read:
	case <-ctx.Done():
		c.peer.Close(ctx.Err())
		within(farewell, c.peer.Done()) // a stream that cannot be closed is left to the process's end
	}
	cancel()
	c.end()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// end waits for what was begun and writes what waits, within a bound: an editor that does
// not read any more holds nobody.
func (c *conn) end() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.work.Wait()
		if err := c.out.Close(); err != nil {
			c.log.Debug("the last lines were not written", "error", err)
		}
	}()
	if within(farewell, over) {
		return
	}
	if w, ok := c.opt.Out.(io.Closer); ok {
		_ = w.Close() // frees the writer, where it can be freed; nobody is left to be told
		within(farewell, over)
	}
}

// within waits for something no longer than a bound, and reports whether it came.
func within(bound time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// say tells one update on a session's stream.
func (c *conn) say(session string, kind acp.UpdateKind, variant any) {
	err := c.peer.Notify(acp.MethodUpdate, acp.SessionNotification{SessionID: session, Update: acp.Say(kind, variant)})
	if err != nil && c.ctx.Err() == nil {
		c.log.Warn("an update was not written", "session", session, "kind", kind, "error", err)
	}
}

// version is what is spoken, 0 before that is known.
func (c *conn) version() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoken
}

// flat reports whether children are shown as tool calls of their root, because the editor
// did not ask for sessions of their own.
func (c *conn) flat() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.subagent
}

// adopt notes sessions that are below another, so that nothing but a stop reaches them.
func (c *conn) adopt(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		if n != "" {
			c.children[n] = struct{}{}
		}
	}
}

func (c *conn) isChild(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.children[id]
	return found
}

// session is the root of that id if it was taken up here.
func (c *conn) session(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// all are the roots that were taken up here.
func (c *conn) all() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}

// take is the root of that id, known from now on.
func (c *conn) take(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = newSession(c, id)
		c.sessions[id] = s
	}
	return s
}

func (c *conn) drop(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.id] == s {
		delete(c.sessions, s.id)
	}
}

// ends are the errors of the stream that coming back does not help against.
func ends(err error) bool {
	var final *goclient.StreamError
	return errors.As(err, &final) || errors.Is(err, goclient.ErrReset)
}
