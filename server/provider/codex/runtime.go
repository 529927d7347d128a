package codex

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

// Bounds of what the server owes us, on the sink's clock.
const (
	handshakeBound = 30 * time.Second // initialize, and thread/start or thread/resume
	requestBound   = 60 * time.Second // turn/start and turn/steer
	interruptBound = 10 * time.Second // one turn/interrupt (openai/codex#36926: may never be answered)
	adoptBound     = 2 * time.Second  // a child's wait for its spawn edge
	closeBound     = 15 * time.Second // the stop ladder when the runtime ends by itself
)

var errNoAnswer = errors.New("codex: no answer within the bound")

// Transport is a running app-server as the runtime needs it.
type Transport interface {
	io.Reader
	io.Writer
	// Close ends the server and waits for it. It is idempotent, and afterwards Read
	// returns an error. When ctx ends it hurries.
	Close(ctx context.Context) error
	// Explain says in words how the server ended, "" if there is nothing to say.
	Explain() string
}

// runtime is one app-server process with one root thread.
type runtime struct {
	sink  provider.Sink
	clock provider.Clock
	mint  agent.Minter
	link  Transport
	peer  *wire.Peer
	ended chan struct{} // the reading goroutine is through
	quit  chan struct{} // closed when the runtime must end by itself
	quits sync.Once

	loop *serial.Loop // what follows is guarded by its lock

	closing bool  // Close was called: nothing is reported any more
	broken  error // storage failed: the runtime ends
	ready   bool  // the handshake is done; an end from now on is a loss

	threads
	turnState
	asked   map[agent.RequestID]*question
	cancels []*cancelRun
}

// newRuntime wires a runtime to a transport; nothing is read before run.
func newRuntime(sink provider.Sink, link Transport, o Options) *runtime {
	r := &runtime{
		sink: sink, clock: sink.Clock(), mint: sink.Mint(), link: link, loop: serial.New(o.Park),
		ended:     make(chan struct{}),
		quit:      make(chan struct{}),
		threads:   newThreads(),
		turnState: newTurnState(),
		asked:     map[agent.RequestID]*question{},
	}
	options := wire.Options{Handler: r.handle, OnDiagnostic: r.unusable}
	if o.Record != nil {
		options.OnFrame = func(dir wire.Direction, line []byte) {
			o.Record(map[wire.Direction]string{wire.In: "in", wire.Out: "out"}[dir], line)
		}
	}
	r.peer = wire.NewPeer(link, link, options)
	return r
}

// do runs f under the lock and afterwards what f put off.
func (r *runtime) do(f func()) { r.loop.Do(f) }

// later puts f off until the lock is released. Called with the lock held.
func (r *runtime) later(f func()) { r.loop.Later(f) }

// waiter is one call of the daemon that waits for the provider.
type waiter = serial.Waiter

func newWaiter() *waiter { return serial.NewWaiter() }

// finish lets a waiter go, after everything put off before. Called with the lock held;
// the first call counts.
func (r *runtime) finish(w *waiter, err error) { r.loop.Finish(w, err) }

// await blocks until the waiter is let go or ctx ends. Called without the lock.
func (r *runtime) await(ctx context.Context, w *waiter) error { return r.loop.Await(ctx, w) }

// apply commits one fact. False means that storage failed and the runtime ends.
// Called with the lock held.
func (r *runtime) apply(f agent.Fact) (agent.Applied, bool) {
	if r.closing || r.broken != nil {
		return agent.Applied{Verdict: agent.VerdictRefused, Code: agent.CodeProviderGone}, false
	}
	applied, err := r.sink.Apply(f)
	if err != nil {
		r.fail(err)
		return agent.Applied{}, false
	}
	return applied, true
}

// fail ends the runtime because storage cannot take what it learns.
func (r *runtime) fail(err error) {
	if r.broken == nil {
		r.broken = err
		r.later(func() { r.abandon(err) })
	}
}

// abandon ends the runtime from within. The reading goroutine is blocked in the server's
// output until the server has ended: that is run's to do.
func (r *runtime) abandon(err error) {
	r.peer.Close(err)
	r.quits.Do(func() { close(r.quit) })
}

func (r *runtime) diagnose(kind provider.DiagnosticKind, method, detail string) {
	if !r.closing {
		r.sink.Diagnose(provider.Diagnostic{Kind: kind, Method: method, Detail: detail})
	}
}

// unusable counts a line that was no message. It runs in the reading goroutine,
// without the lock.
func (r *runtime) unusable(d wire.Diagnostic) {
	r.do(func() {
		kind := provider.Malformed
		if d.Kind == wire.DiagUnknownAnswer || d.Kind == wire.DiagLateAnswer {
			kind = provider.Late
		}
		r.diagnose(kind, "", string(d.Kind))
	})
}

// send writes a request after the lock is released. done is called exactly once, with
// the lock held: with the answer, with errNoAnswer after bound, or with why it could
// not be written. Called with the lock held.
func (r *runtime) send(method string, params any, bound time.Duration, done func(wire.Answer)) {
	var once sync.Once
	finish := func(a wire.Answer) {
		once.Do(func() { r.do(func() { done(a) }) })
	}
	stop := r.clock.AfterFunc(bound, func() { finish(wire.Answer{Method: method, Err: errNoAnswer}) })
	r.later(func() {
		_, err := r.peer.Go(method, params, func(a wire.Answer) {
			stop()
			finish(a)
		})
		if err != nil {
			stop()
			r.unwritten(err)
			finish(wire.Answer{Method: method, Err: err})
		}
	})
}

// unwritten ends the runtime after a failed write: how much of the line arrived is not
// known, so the stream cannot be used again.
func (r *runtime) unwritten(err error) {
	var broken *wire.WriteError
	if errors.As(err, &broken) {
		r.abandon(err)
	}
}

// run reads until the server ends, and then says what was lost.
func (r *runtime) run() {
	defer close(r.ended)
	over, closed := make(chan struct{}), make(chan struct{})
	provider.Go(r.sink, func() {
		defer close(closed)
		select {
		case <-r.quit:
		case <-over:
		}
		ctx, stop := context.WithTimeout(context.Background(), closeBound)
		defer stop()
		_ = r.link.Close(ctx) // a process that will not die is reported by its own log line
	})
	reason := r.peer.Run()
	close(over)
	<-closed
	r.do(func() {
		r.stopTimers()
		for _, c := range r.cancels {
			c.stopPauses()
			r.finish(c.wait, agent.Errorf(agent.CodeProviderGone, "the Codex process ended"))
		}
		r.cancels = nil
		if r.root != nil {
			for _, u := range r.root.turns {
				r.wakeGuides(u)
			}
		}
		if r.closing || !r.ready {
			return
		}
		if _, err := r.sink.Apply(agent.SessionLost{Session: r.root.session, Err: r.lossError(reason)}); err != nil {
			r.sink.Diagnose(provider.Diagnostic{Kind: provider.Refused, Method: "exit", Detail: "the loss could not be recorded"})
		}
		r.closing = true
	})
}

func (r *runtime) lossError(reason error) *agent.Error {
	switch how := r.link.Explain(); {
	case r.broken != nil:
		return agent.Errorf(agent.CodeUnavailable, "the session was closed because storage failed")
	case errors.Is(reason, os.ErrDeadlineExceeded): // how it ended was then our doing
		return agent.Errorf(agent.CodeProviderGone, "Codex stopped reading what it was told, so it was ended")
	case how != "":
		return agent.Errorf(agent.CodeProviderGone, "the Codex process ended: %s", how)
	case reason != nil:
		return agent.Errorf(agent.CodeProviderGone, "the connection to Codex broke: %v", reason)
	}
	return agent.Errorf(agent.CodeProviderGone, "the Codex process ended")
}

// Close implements provider.Runtime.
func (r *runtime) Close(ctx context.Context) error {
	r.do(func() {
		r.closing = true
		r.stopTimers()
	})
	err := r.link.Close(ctx)
	r.peer.Close(nil) // what still lies in the pipe is not wanted
	<-r.ended
	return err
}

// Done implements provider.Runtime.
func (r *runtime) Done() <-chan struct{} { return r.ended }

// gone is the error of a call that came after the end.
func (r *runtime) gone() *agent.Error {
	if r.closing || r.broken != nil || r.peer.Err() != nil {
		return agent.Errorf(agent.CodeProviderGone, "the Codex process of this session has ended")
	}
	return nil
}

// callError turns the error of an answer into one that crosses packages.
func callError(what string, err error) *agent.Error {
	var refused *wire.Error
	var unwritten *wire.WriteError
	switch {
	case errors.As(err, &refused):
		return agent.Errorf(agent.CodeProviderRefused, "Codex refused to %s: %s", what, refused.Message)
	case errors.Is(err, errNoAnswer):
		return agent.Errorf(agent.CodeTimeout, "Codex did not answer when asked to %s", what)
	case errors.Is(err, wire.ErrClosed), errors.As(err, &unwritten):
		return agent.Errorf(agent.CodeProviderGone, "the Codex process ended when asked to %s", what)
	case errors.Is(err, wire.ErrMessageTooLong):
		return agent.Errorf(agent.CodeInvalid, "Codex cannot be asked to %s: the message is too long", what)
	}
	return agent.Errorf(agent.CodeProviderRefused, "Codex gave an answer that cannot be read when asked to %s", what)
}
