// Package runner is the part of a runtime that is the same for every provider with a
// process of its own: the lock, the way of facts to the sink, and how the process and the
// runtime end together. It owns no conversation: what a line means, and what is asked of
// the process, is the adapter's.
package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// CloseBound is the stop ladder's when a runtime ends by itself, and nobody's ctx bounds it.
const CloseBound = 15 * time.Second

// Transport is a provider's running process as a runtime needs it.
type Transport interface {
	io.Reader
	io.Writer
	// Close ends the process and all that it started, and waits for them. It is idempotent,
	// and afterwards Read returns an error. When ctx ends it hurries.
	Close(ctx context.Context) error
	// Explain says in words how the process ended, "" while it runs or if there is nothing
	// to say.
	Explain() string
}

// Runner is embedded in the runtime of an adapter, whose own state the loop's lock guards,
// too. Its methods are called with that lock held unless they say otherwise.
type Runner struct {
	*serial.Loop
	Sink  provider.Sink
	Clock provider.Clock
	Mint  agent.Minter
	Link  Transport
	Ready bool // the handshake is done; an end from now on is a loss

	hangUp  func(error) // ends the conversation over Link
	closing bool        // nothing is reported any more
	broken  bool        // storage failed: the runtime ends
	ended   chan struct{}
	quit    chan struct{} // closed when the runtime must end by itself
	quits   sync.Once
}

// New prepares a runner. hangUp ends the conversation over link, so that nothing is written
// any more; park is as in [serial.New].
func New(sink provider.Sink, link Transport, park func(change int), hangUp func(error)) *Runner {
	return &Runner{
		Loop: serial.New(park), Sink: sink, Clock: sink.Clock(), Mint: sink.Mint(), Link: link, hangUp: hangUp,
		ended: make(chan struct{}), quit: make(chan struct{}),
	}
}

// Over says whether nothing is taken any more: the runtime was closed, or storage failed.
func (r *Runner) Over() bool { return r.closing || r.broken }

// Closing says whether nothing is reported any more.
func (r *Runner) Closing() bool { return r.closing }

// Broken says whether storage has failed.
func (r *Runner) Broken() bool { return r.broken }

// Hush has nothing reported from now on.
func (r *Runner) Hush() { r.closing = true }

// Apply commits one fact. False means that storage failed, and the runtime ends, or that it
// is over already.
func (r *Runner) Apply(f agent.Fact) (agent.Applied, bool) {
	if r.Over() {
		return agent.Applied{Verdict: agent.VerdictRefused, Code: agent.CodeProviderGone}, false
	}
	applied, err := r.Sink.Apply(f)
	if err != nil {
		r.fail(err)
		return agent.Applied{}, false
	}
	return applied, true
}

// Text appends to a message that streams.
func (r *Runner) Text(session agent.SessionID, turn agent.TurnID, message agent.MessageID, text string) {
	if r.broken {
		return
	}
	if err := r.Sink.Text(session, turn, message, text); err != nil {
		r.fail(err)
	}
}

// Diagnose counts something that could not become a fact.
func (r *Runner) Diagnose(kind provider.DiagnosticKind, method, detail string) {
	if !r.closing {
		r.Sink.Diagnose(provider.Diagnostic{Kind: kind, Method: method, Detail: detail})
	}
}

// fail ends the runtime because storage cannot take what it learns.
func (r *Runner) fail(err error) {
	if !r.broken {
		r.broken = true
		r.Later(func() { r.Abandon(err) })
	}
}

// Abandon ends the runtime from within. The reading goroutine is blocked in the process's
// output until that has ended, which is Serve's to do. Called with or without the lock.
func (r *Runner) Abandon(err error) {
	r.hangUp(err)
	r.quits.Do(func() { close(r.quit) })
}

// Unwritten ends the runtime after a failed write: how much of the line arrived is not
// known, so the stream cannot be used again. Called without the lock.
func (r *Runner) Unwritten(err error) {
	var broken *wire.WriteError
	if errors.As(err, &broken) {
		r.Abandon(err)
	}
}

// Serve reads until the process has ended, and then calls over with why reading ended. It is
// the reading goroutine; both are called without the lock.
func (r *Runner) Serve(read func() error, over func(reason error)) {
	defer close(r.ended)
	through, closed := make(chan struct{}), make(chan struct{})
	provider.Go(r.Sink, func() {
		defer close(closed)
		select {
		case <-r.quit:
		case <-through:
		}
		ctx, stop := context.WithTimeout(context.Background(), CloseBound)
		defer stop()
		_ = r.Link.Close(ctx) // a process that will not die is reported by its own log line
	})
	reason := read()
	close(through)
	<-closed
	over(reason)
}

// Losing says whether the end of the process is a loss: it was in use, and not closed.
func (r *Runner) Losing() bool { return r.Ready && !r.closing }

// Lose reports that the process took its session with it, as the last fact. Storage that
// failed before is tried once more.
func (r *Runner) Lose(session agent.SessionID, why *agent.Error) {
	if _, err := r.Sink.Apply(agent.SessionLost{Session: session, Err: why}); err != nil {
		r.Sink.Diagnose(provider.Diagnostic{Kind: provider.Refused, Method: "exit", Detail: "the loss could not be recorded"})
	}
	r.closing = true
}

// Loss says of a process that ended by itself why it did; reason is why reading ended.
func (r *Runner) Loss(name string, reason error) *agent.Error {
	switch how := r.Link.Explain(); {
	case r.broken:
		return agent.Errorf(agent.CodeUnavailable, "the session was closed because storage failed")
	case errors.Is(reason, os.ErrDeadlineExceeded): // how it ended was then our doing
		return agent.Errorf(agent.CodeProviderGone, "%s stopped reading what it was told, so it was ended", name)
	case how != "":
		return agent.Errorf(agent.CodeProviderGone, "the %s process ended: %s", name, how)
	case reason != nil:
		return agent.Errorf(agent.CodeProviderGone, "the connection to %s broke: %v", name, reason)
	}
	return agent.Errorf(agent.CodeProviderGone, "the %s process ended", name)
}

// Done implements provider.Runtime.
func (r *Runner) Done() <-chan struct{} { return r.ended }
