package acp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// Options of an adapter: which agent it is, and how it is run.
type Options struct {
	Agent
	Owner  string        // marks the processes, see proc.Config
	Getenv Getenv        // os.Getenv by default
	Logger *slog.Logger  // slog.Default by default
	Grace  time.Duration // how long a process has to end by itself; 0 is proc's default

	// Silence is how long an agent may say nothing in a turn, with no question open, before
	// the person is told; 5 minutes by default.
	Silence time.Duration

	// Connect replaces the process: tests and replays bring their own.
	Connect func(ctx context.Context, p provider.OpenParams) (Transport, error)
	// Record sees every line, "in" or "out", in the order of the wire. It must not keep
	// the line.
	Record func(dir string, line []byte)
	// Park hears when a call begins (+1) and ceases (-1) to wait for the provider. A
	// replay in virtual time needs to know that nothing else moves.
	Park func(change int)

	learn func(card)
}

// card is what sessions have told of the agent itself.
type card struct {
	version       string
	modes, models []string
}

// Agent is one program that speaks the protocol.
type Agent struct {
	Name    string   // the word for it in the API
	Title   string   // its name for people; Name by default
	Command string   // the executable: a path, or a name that is looked for
	Args    []string // its arguments
	Env     []string // KEY=VALUE, for its process alone
	// Inherits names the variables of our own environment that it needs beside the common
	// ones; "X_*" is all that begin so.
	Inherits []string
	// Mode is that of sessions which name none, by the agent's own name; "" leaves it to the
	// agent, which may then decide by itself what is allowed.
	Mode string
	// Modes are those that a person can choose from before a session has told.
	Modes []string
	// Version is the protocol to ask for: 1 by default, 2 for an agent that has only that.
	Version int
	// Install says what helps where the program is not found.
	Install string
	Notes   []string // for people, beside those that hold for every agent
}

// Getenv reads one variable of the environment, "" if it is not set.
type Getenv func(string) string

// Transport is the other end of a conversation.
type Transport = runner.Transport

// Adapter opens root sessions with one agent. It is safe for concurrent use.
type Adapter struct {
	o Options

	mu   sync.Mutex
	seen card
}

// New returns an adapter.
func New(o Options) *Adapter {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Title = cmp.Or(o.Title, o.Name)
	o.Version = cmp.Or(o.Version, baseVersion)
	o.Silence = cmp.Or(o.Silence, silenceBound)
	a := &Adapter{o: o}
	a.o.learn = func(c card) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen = c
	}
	if a.o.Connect == nil {
		a.o.Connect = a.connect
	}
	return a
}

// Name implements provider.Adapter.
func (a *Adapter) Name() string { return a.o.Name }

// Open implements provider.Adapter.
func (a *Adapter) Open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
	if ctx.Err() != nil {
		return nil, a.givenUp()
	}
	link, err := a.o.Connect(ctx, p)
	if err != nil {
		return nil, err
	}
	r := newRuntime(sink, link, a.o, p)
	provider.Go(sink, r.run)
	if err := r.handshake(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), runner.CloseBound)
		defer cancel()
		if e := r.Close(stop); e != nil {
			a.o.Logger.Warn("the agent did not end after a failed start", "agent", a.o.Name, "err", e)
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, a.givenUp()
		}
		return nil, r.whyNotOpen(err)
	}
	return r, nil
}

func (a *Adapter) givenUp() error {
	return agent.Errorf(agent.CodeTimeout, "opening %s was given up before it was ready", a.o.Title)
}

// whyNotOpen adds how the process ended to why it could not be opened.
func (r *runtime) whyNotOpen(err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeProviderGone {
		return err
	}
	if how := r.Link.Explain(); how != "" {
		return agent.Errorf(agent.CodeProviderUnavailable, "%s ended while it started: %s", r.o.Title, how)
	}
	return e
}

// handshake opens the conversation and the session, and sets what the person chose.
func (r *runtime) handshake(ctx context.Context) error {
	w := serial.NewWaiter()
	r.Do(func() { r.hello(w, r.o.Version) })
	return r.Await(ctx, w)
}
