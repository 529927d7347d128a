package live

import (
	"context"
	"errors"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// actor is one root session.
type actor struct {
	l         *Live
	root      agent.SessionID
	workspace agent.WorkspaceID
	provider  string
	users     int // calls that hold it; guarded by the registry's lock

	serial chan struct{} // Start, Guide and idle closing: one at a time

	mu     sync.Mutex // short sections only
	run    *run       // the open runtime, or nil
	starts map[agent.TurnID]*starting
	closed bool
	gone   chan struct{} // closed when a closed actor has left the registry
	// boundary is the root turn that was canceled last: what its execution still says on
	// the root session is dropped, until a person starts another turn.
	boundary agent.TurnID
	inputs   map[agent.MessageID]bool // people's messages of the current root turn
}

// starting is one Start that has not returned.
type starting struct {
	opening bool // nothing was given to the provider yet
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// Causes for which a Start is given up.
var (
	errTurnCanceled = errors.New("the turn was canceled while it started")
	errClosed       = errors.New("the session was closed while it started")
)

func newActor(l *Live, s agent.Session) *actor {
	return &actor{
		l: l, root: s.ID, workspace: s.WorkspaceID, provider: s.Provider, serial: make(chan struct{}, 1), gone: make(chan struct{}),
		starts: map[agent.TurnID]*starting{}, inputs: map[agent.MessageID]bool{},
	}
}

// acquire waits for this root's turn to start or guide something.
func (a *actor) acquire(ctx context.Context) error {
	select {
	case a.serial <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *actor) release() { <-a.serial }

func (a *actor) start(ctx context.Context, in provider.Input) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	st, err := a.enter(in, cancel)
	if err != nil {
		return err
	}
	defer a.leave(in.Turn, st)
	if err := a.acquire(ctx); err != nil {
		return a.notStarted(ctx, in, err)
	}
	defer a.release()

	r, err := a.give(ctx, st, in)
	if r != nil && a.wasDying(r, in.Turn, err) && a.awaitEnd(ctx, st, r) {
		r, err = a.give(ctx, st, in)
	}
	switch {
	case err == nil:
		return nil
	case r == nil:
		return a.notStarted(ctx, in, err)
	}
	return a.notTaken(ctx, r, in, err)
}

// give hands the message to the open runtime, or to one that it opens. The run is nil if
// nothing was given to any.
func (a *actor) give(ctx context.Context, st *starting, in provider.Input) (*run, error) {
	r, err := a.ensure(ctx, in.Turn)
	if err != nil {
		return nil, err
	}
	if err := a.pass(ctx, st, in.Turn); err != nil {
		return nil, err
	}
	bounded, stop := context.WithTimeout(ctx, a.l.StartTimeout)
	defer stop()
	return r, r.call("Start", func() error { return r.rt.Start(bounded, in) })
}

// wasDying reports whether the runtime refused only because it was at its end already: its
// process has gone, it has reported no turn, so nothing was written, and a new runtime can
// take the message. A person whose turn a death has just ended sends the next one in that
// moment.
func (a *actor) wasDying(r *run, turn agent.TurnID, err error) bool {
	if !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
		return false
	}
	_, state := r.sink.providerTurn(turn)
	return state == neverStarted
}

// awaitEnd waits for the end of a runtime that is dying, and reports whether it came. A
// cancel ends the wait, as it ends an opening.
func (a *actor) awaitEnd(ctx context.Context, st *starting, r *run) bool {
	a.mu.Lock()
	st.opening = true
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, a.l.CloseTimeout)
	defer cancel()
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// watch opens a runtime and gives it nothing.
func (a *actor) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := a.acquire(ctx); err != nil {
		return err
	}
	defer a.release()
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return gone()
	}
	// It stands among the starts under no turn, so that closing the session ends it.
	st := &starting{opening: true, cancel: cancel, done: make(chan struct{})}
	a.starts[""] = st
	a.mu.Unlock()
	defer a.leave("", st)
	if _, err := a.ensure(ctx, ""); err != nil {
		if err := a.givenUp(ctx); err != nil {
			return err
		}
		return coded(err)
	}
	return nil
}

// enter registers a Start, so that a cancel finds it from here on.
func (a *actor) enter(in provider.Input, cancel context.CancelCauseFunc) (*starting, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errClosed
	}
	st := &starting{opening: true, cancel: cancel, done: make(chan struct{})}
	a.starts[in.Turn] = st
	clear(a.inputs)
	a.inputs[in.Message] = true
	return st, nil
}

func (a *actor) leave(turn agent.TurnID, st *starting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.starts[turn] == st {
		delete(a.starts, turn)
	}
	close(st.done)
}

// pass is the point from which a cancel goes to the provider instead of ending the
// opening.
func (a *actor) pass(ctx context.Context, st *starting, turn agent.TurnID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	st.opening = false
	if a.boundary != turn {
		a.boundary = "" // a person started another turn
	}
	return nil
}

// notStarted is the end of a Start that gave nothing to a provider.
func (a *actor) notStarted(ctx context.Context, in provider.Input, err error) error {
	if err := a.givenUp(ctx); err != nil {
		return err
	}
	failure := coded(err)
	switch failure.Code {
	case agent.CodeTurnSettled, agent.CodeTurnCanceling, agent.CodeNotFound, agent.CodeSessionDeleted:
		return failure // nothing is left to end
	}
	a.l.Logger.Warn("provider did not open", "session", a.root, "turn", in.Turn, "error", err)
	a.endFailed(in.Turn, startKey(in.Turn), true, failure)
	return failure
}

// notTaken is the end of a Start that the provider refused. The adapter has reported
// it; what it left open is ended here.
func (a *actor) notTaken(ctx context.Context, r *run, in provider.Input, err error) error {
	if err := a.givenUp(ctx); err != nil {
		return err
	}
	failure := coded(err)
	switch failure.Code {
	case agent.CodeTurnSettled, agent.CodeTurnCanceling:
		return failure
	case agent.CodeProviderGone: // it was not refused but lost, and the loss ends it
		<-r.ended
		return failure
	}
	switch key, state := r.sink.providerTurn(in.Turn); state {
	case neverStarted:
		a.endFailed(in.Turn, startKey(in.Turn), true, failure)
	case stillRuns:
		a.endFailed(in.Turn, key, false, failure)
	case hasEnded:
	}
	return failure
}

// givenUp says why we ourselves gave up a Start, or nil. Such a turn is ended by its
// cancel, by the close, or by recovery.
func (a *actor) givenUp(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTurnCanceled):
		return agent.Errorf(agent.CodeTurnCanceling, "the turn was canceled while it started")
	case errors.Is(cause, errClosed), errors.Is(cause, context.Canceled), a.l.isClosed():
		return stopping()
	}
	return nil
}

// endFailed ends a root turn whose provider never took it: as a provider turn that
// failed, which is what a refused submission is.
func (a *actor) endFailed(turn agent.TurnID, key agent.ProviderTurnID, begin bool, err *agent.Error) {
	if begin {
		applied, failed := a.l.record(a.l.ctx, agent.ProviderTurnStarted{Session: a.root, Turn: turn, Key: key})
		if failed != nil || applied.Verdict == agent.VerdictRefused {
			a.l.Logger.Info("a failed start could not be recorded", "session", a.root, "turn", turn, "code", applied.Code, "error", failed)
			return
		}
	}
	f := agent.ProviderTurnEnded{Session: a.root, Turn: turn, Key: key, Outcome: agent.OutcomeFailed, Err: err}
	if _, failed := a.l.record(a.l.ctx, f); failed != nil {
		a.l.Logger.Error("a failed start could not be recorded", "session", a.root, "turn", turn, "error", failed)
	}
}

// startKey names the provider turn that stands for a start without a provider.
func startKey(turn agent.TurnID) agent.ProviderTurnID {
	return agent.ProviderTurnID("start-" + string(turn))
}

func (a *actor) guide(ctx context.Context, in provider.Input) error {
	if err := a.acquire(ctx); err != nil {
		return agent.Errorf(agent.CodeTimeout, "the agent took no message in time")
	}
	defer a.release()
	a.mu.Lock()
	r := a.run
	if r != nil {
		a.inputs[in.Message] = true
	}
	a.mu.Unlock()
	if r == nil {
		return gone()
	}
	r.sink.touch()
	return r.call("Guide", func() error { return r.rt.Guide(ctx, in) })
}

// stop carries out one cancel.
func (a *actor) stop(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	a.mu.Lock()
	if c.Root {
		a.boundary = c.Turn
	}
	st, r := a.starts[c.Turn], a.run
	if !c.Root {
		st = nil
	}
	opening := st != nil && st.opening
	if opening {
		st.cancel(errTurnCanceled)
	}
	a.mu.Unlock()

	if opening {
		return a.stopOpening(ctx, st, c, heard)
	}
	if r == nil {
		return gone()
	}
	err := r.call("Cancel", func() error { return r.rt.Cancel(ctx, c, heard) })
	if st != nil {
		st.cancel(errTurnCanceled) // only now: the provider's own stop comes first
	}
	return err
}

// stopOpening waits until the opening has ended. Nothing ran, so the root's stop is
// confirmed; a child of this turn cannot exist.
func (a *actor) stopOpening(ctx context.Context, st *starting, c provider.Cancel, heard func(agent.Evidence)) error {
	select {
	case <-st.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, t := range c.Targets {
		if t.Session == a.root {
			heard(agent.Evidence{SessionID: t.Session, TurnID: t.Turn, State: agent.TargetCanceled})
		}
	}
	return nil
}

// close ends the actor for good: what starts is given up, what is open is closed.
func (a *actor) close(ctx context.Context, reason *agent.Error) error {
	a.mu.Lock()
	a.closed = true
	var waits []chan struct{}
	for _, st := range a.starts {
		st.cancel(errClosed)
		waits = append(waits, st.done)
	}
	r := a.run
	a.mu.Unlock()
	if r != nil { // first, for a Start may hang in it
		r.shutdown(reason)
	}
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.mu.Lock()
	r = a.run // one that was opened at the last moment
	a.mu.Unlock()
	switch {
	case r != nil:
		r.shutdown(reason)
	case len(waits) > 0: // a turn that never started is told its end too
		if _, err := a.l.record(a.l.ctx, agent.SessionLost{Session: a.root, Err: reason}); err != nil {
			a.l.Logger.Error("the end of a start could not be stored", "session", a.root, "error", err)
		}
	}
	return nil
}

func (a *actor) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run != nil || len(a.starts) > 0
}

// kept reports whether the registry must keep the actor though nobody uses it.
func (a *actor) kept() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run != nil || len(a.starts) > 0 || a.closed
}

// dropped reports whether a fact is output of a canceled root execution.
func (a *actor) dropped(session agent.SessionID, turn agent.TurnID, message agent.MessageID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.boundary != "" && session == a.root && turn == a.boundary && !a.inputs[message]
}

func (l *Live) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// coded gives any error a code.
func coded(err error) *agent.Error {
	var e *agent.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return agent.Errorf(agent.CodeTimeout, "the provider did not answer in time")
	}
	return agent.Errorf(agent.CodeInternal, "the provider could not be used; the daemon's log has the details")
}
