package live

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// run is one runtime from its opening to its end.
type run struct {
	a    *actor
	rt   provider.Runtime
	sink *sink

	closing sync.Once
	closed  chan struct{} // rt.Close has returned, or run out of time
	ended   chan struct{} // everything is reported and released

	mu       sync.Mutex
	reason   *agent.Error // why we closed it
	stopIdle func() bool
}

// ensure returns the open runtime, or opens one.
func (a *actor) ensure(ctx context.Context, turn agent.TurnID) (*run, error) {
	a.mu.Lock()
	r := a.run
	a.mu.Unlock()
	if r != nil {
		if !r.ending() {
			r.sink.touch()
			return r, nil
		}
		select { // a new one must not overtake its end
		case <-r.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return a.openRun(ctx, turn)
}

func (a *actor) openRun(ctx context.Context, turn agent.TurnID) (*run, error) {
	remembered, err := a.l.Recorder.Remember(ctx, a.root)
	if err != nil {
		return nil, err
	}
	if t := remembered.Root.LatestTurn; t != nil && t.ID == turn {
		switch t.Phase {
		case agent.PhaseSettled:
			return nil, agent.Errorf(agent.CodeTurnSettled, "the turn ended before it started")
		case agent.PhaseSettling:
			return nil, agent.Errorf(agent.CodeTurnCanceling, "the turn is being stopped")
		case agent.PhaseSubmitted, agent.PhaseRunning, agent.PhaseWaiting:
		}
	}
	adapter := a.l.Adapters[a.provider]
	if adapter == nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "this daemon has no provider %q", a.provider)
	}
	s := newSink(a)
	rt, err := a.openBounded(ctx, adapter, provider.OpenParams{Remembered: remembered, Env: a.l.Env}, s)
	if err != nil {
		s.end()
		return nil, err
	}
	return a.adopt(rt, s)
}

// openBounded opens a runtime without being held up by an adapter that does not heed
// its context: such an opening is left behind, and closed when it comes back.
func (a *actor) openBounded(ctx context.Context, adapter provider.Adapter, p provider.OpenParams, s *sink) (provider.Runtime, error) {
	ctx, cancel := context.WithTimeout(ctx, a.l.OpenTimeout)
	defer cancel()
	type opened struct {
		rt  provider.Runtime
		err error
	}
	result := make(chan opened, 1)
	if !a.l.spawn(func() {
		var o opened
		o.err = guard("Open", func() (err error) { o.rt, err = adapter.Open(ctx, p, s); return err })
		if p, ok := o.err.(*panicked); ok { //nolint:errorlint // guard returns it bare
			a.l.Logger.Error("a provider adapter panicked", "session", a.root, "call", p.what, "panic", p.value, "stack", string(p.stack))
		}
		result <- o
	}) {
		return nil, stopping()
	}
	select {
	case o := <-result:
		return o.rt, o.err
	case <-ctx.Done():
	}
	grace := make(chan struct{})
	stop := a.l.Clock.AfterFunc(a.l.CloseTimeout, func() { close(grace) })
	defer stop()
	select {
	case o := <-result:
		if o.err == nil {
			a.discard(o.rt)
		}
	case <-grace:
		a.l.Logger.Error("a provider does not stop opening", "session", a.root, "provider", a.provider)
		a.l.spawn(func() {
			if o := <-result; o.err == nil {
				a.discard(o.rt)
			}
		})
	}
	return nil, context.Cause(ctx)
}

// discard closes a runtime. One that does not heed the bound is left behind, so that a
// fault in one adapter cannot hold up the daemon's end.
func (a *actor) discard(rt provider.Runtime) {
	ctx, cancel := context.WithTimeout(context.Background(), a.l.CloseTimeout)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- guard("Close", func() error { return rt.Close(ctx) }) }()
	hung := make(chan struct{})
	stop := a.l.Clock.AfterFunc(a.l.CloseTimeout+a.l.CloseTimeout/5, func() { close(hung) })
	defer stop()
	select {
	case err := <-result:
		if err != nil {
			a.l.Logger.Error("close a provider", "session", a.root, "error", err)
		}
	case <-hung:
		a.l.Logger.Error("a provider does not close; it is left behind", "session", a.root, "provider", a.provider)
	}
}

// adopt makes an opened runtime the session's.
func (a *actor) adopt(rt provider.Runtime, s *sink) (*run, error) {
	r := &run{a: a, rt: rt, sink: s, closed: make(chan struct{}), ended: make(chan struct{})}
	s.own(r)
	a.mu.Lock()
	a.run = r
	a.mu.Unlock()
	if !a.l.spawn(r.watch) {
		a.mu.Lock()
		a.run = nil
		a.mu.Unlock()
		s.end()
		r.shut()
		close(r.ended)
		return nil, stopping()
	}
	r.armIdle(a.l.IdleClose)
	return r, nil
}

// watch waits for the runtime's end and makes sure that it is told.
func (r *run) watch() {
	select {
	case <-r.rt.Done():
	case <-r.closed:
	}
	r.mu.Lock()
	if r.stopIdle != nil {
		r.stopIdle()
	}
	reason := r.reason
	r.mu.Unlock()
	if reason == nil {
		reason = agent.Errorf(agent.CodeProviderGone, "the agent's process ended by itself")
	}
	r.sink.lose(reason)
	r.a.mu.Lock()
	if r.a.run == r {
		r.a.run = nil
	}
	r.a.mu.Unlock()
	r.shut() // releases what a runtime that ended by itself still holds
	close(r.ended)
	r.a.l.mu.Lock()
	defer r.a.l.mu.Unlock()
	r.a.l.prune(r.a)
}

// ending reports whether the runtime has ended, or is about to.
func (r *run) ending() bool {
	r.mu.Lock()
	doomed := r.reason != nil
	r.mu.Unlock()
	select {
	case <-r.rt.Done():
		return true
	default:
		return doomed
	}
}

// doom keeps the first reason for which we close the runtime. From then on nobody is
// given it.
func (r *run) doom(reason *agent.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == nil {
		r.reason = reason
	}
}

// shutdown closes the runtime for a reason and waits until its end is reported.
func (r *run) shutdown(reason *agent.Error) {
	r.doom(reason)
	r.shut()
	<-r.ended
}

// shut calls Close once, within its bound.
func (r *run) shut() {
	r.closing.Do(func() {
		defer close(r.closed)
		r.a.discard(r.rt)
	})
}

// fail ends the runtime after a fault of the adapter or of storage. It returns at
// once: the caller may be inside the adapter.
func (r *run) fail(reason *agent.Error) {
	r.doom(reason)
	r.a.l.spawn(func() { r.shutdown(reason) })
}

// call runs one call into the adapter. A panic there ends the runtime, not the daemon.
// So does the answer that its process is gone, whether or not the adapter comes to see
// the end of that by itself.
func (r *run) call(what string, f func() error) error {
	err := guard(what, f)
	if p, ok := err.(*panicked); ok { //nolint:errorlint // guard returns it bare
		r.crashed(p)
		return p.coded()
	}
	if errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
		r.fail(coded(err))
	}
	return err
}

func (r *run) crashed(p *panicked) {
	r.a.l.Logger.Error("a provider adapter panicked", "session", r.a.root, "call", p.what, "panic", p.value, "stack", string(p.stack))
	r.fail(p.coded())
}

// panicked is a panic that was caught.
type panicked struct {
	what  string
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic in %s: %v", p.what, p.value) }

func (p *panicked) coded() *agent.Error {
	return agent.Errorf(agent.CodeInternal, "the provider adapter failed; the daemon's log has the details")
}

func guard(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{what, v, debug.Stack()}
		}
	}()
	return f()
}

// armIdle looks after d whether the runtime still has something to do.
func (r *run) armIdle(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopIdle = r.a.l.Clock.AfterFunc(d, func() { r.a.l.spawn(r.closeIdle) })
}

// closeIdle closes the runtime if nothing has happened for IdleClose, no turn below the
// root is live and no process runs; silence alone is never a reason (decisions.md 8). The
// process would end with the runtime, and whoever had a server started wants it to stay.
func (r *run) closeIdle() {
	select {
	case <-r.rt.Done():
		return
	case <-r.closed:
		return
	default:
	}
	idle := r.a.l.Clock.Now().Sub(r.sink.active())
	if idle < r.a.l.IdleClose {
		r.armIdle(r.a.l.IdleClose - idle)
		return
	}
	select {
	case r.a.serial <- struct{}{}:
		defer r.a.release()
	default: // a message is on its way
		r.armIdle(r.a.l.IdleClose)
		return
	}
	remembered, err := r.a.l.Recorder.Remember(r.a.l.ctx, r.a.root)
	if err != nil || anyLive(remembered) || r.sink.processes() > 0 {
		r.armIdle(r.a.l.IdleClose)
		return
	}
	r.shutdown(agent.Errorf(agent.CodeProviderGone, "the idle session was closed"))
}

func anyLive(m agent.Remembered) bool {
	live := func(s agent.Session) bool {
		return s.ActiveTurn != nil || (s.LatestTurn != nil && s.LatestTurn.Live())
	}
	if live(m.Root) {
		return true
	}
	for _, c := range m.Children {
		if live(c) {
			return true
		}
	}
	return false
}
