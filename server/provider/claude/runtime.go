package claude

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Bounds of what the program owes us, on the sink's clock.
const (
	handshakeBound = 60 * time.Second // initialize: it loads the user's settings and MCP servers first
	messageBound   = 60 * time.Second // that a message is queued
	requestBound   = 10 * time.Second // interrupt, stop_task: answered at once
	stopBound      = 30 * time.Second // that a process has ended
	ownerBound     = 2 * time.Second  // that an agent which asks has been launched
	closeBound     = 15 * time.Second // the stop ladder when the runtime ends by itself
)

// runtime is one program with one root session and all its children.
type runtime struct {
	o      Options
	params provider.OpenParams
	sink   provider.Sink
	clock  provider.Clock
	mint   agent.Minter
	link   Transport
	conn   *conn
	ended  chan struct{} // the reading goroutine is through
	quit   chan struct{} // closed when the runtime must end by itself
	quits  sync.Once
	loop   *serial.Loop // what follows is guarded by its lock

	closing    bool   // Close was called: nothing is reported any more
	broken     error  // storage failed: the runtime ends
	ready      bool   // the handshake is done; an end from now on is a loss
	startError string // what the program said instead of answering
	seen       recent // ids of lines, so that none counts twice
	sessionID  string // the conversation's name at the program, as reported

	lanes
	turnState
	detached
	books
	asked   map[string]*prompt // by the program's request id
	cancels []*cancelRun
	limit   string // of the account, as it was told last
}

// newRuntime wires a runtime to a transport; nothing is read before run.
func newRuntime(sink provider.Sink, link Transport, o Options, p provider.OpenParams) *runtime {
	r := &runtime{
		o: o, params: p, sink: sink, clock: sink.Clock(), mint: sink.Mint(), link: link, loop: serial.New(o.Park),
		ended:     make(chan struct{}),
		quit:      make(chan struct{}),
		lanes:     newLanes(p.Root.ID),
		turnState: newTurnState(),
		detached:  newDetached(),
		asked:     map[string]*prompt{},
	}
	r.conn = newConn(link, connOptions{
		handle: r.handle, clock: r.clock, record: o.Record,
		odd: func(kind provider.DiagnosticKind, method, detail string) {
			r.do(func() { r.diagnose(kind, method, detail) })
		},
	})
	r.remember(p.Remembered)
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

// abandon ends the runtime from within. The reading goroutine is blocked in the program's
// output until the program has ended: that is run's to do.
func (r *runtime) abandon(err error) {
	r.conn.close(err)
	r.quits.Do(func() { close(r.quit) })
}

func (r *runtime) diagnose(kind provider.DiagnosticKind, method, detail string) {
	if !r.closing {
		r.sink.Diagnose(provider.Diagnostic{Kind: kind, Method: method, Detail: detail})
	}
}

// send writes a request after the lock is released. done is called exactly once, with
// the lock held: with the answer, with errNoAnswer after bound, or with why it could not
// be written. Called with the lock held.
func (r *runtime) send(request any, bound time.Duration, done func(answer)) {
	r.later(func() {
		r.conn.ask(request, bound, func(a answer) {
			r.unwritten(a.err)
			r.do(func() { done(a) })
		})
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

// begin takes the answer to initialize.
func (r *runtime) begin(who initializeAnswer) error {
	if err := tooOld(who.Version); err != nil {
		return err
	}
	able := capabilities()
	r.sessionID = cmp.Or(r.sessionID, r.params.Root.ProviderSessionID, nativeSession(r.params.Root.ID))
	if _, ok := r.apply(agent.SessionDescribed{Session: r.root.session, ProviderSessionID: r.sessionID, Capabilities: &able}); !ok {
		return agent.Errorf(agent.CodeUnavailable, "storage did not take the session")
	}
	r.reconcile()
	r.ready = true
	return nil
}

// named notes the conversation's name, which every line bears. It changes when the
// program goes on under another one.
func (r *runtime) named(id string) {
	if !r.ready || id == "" || id == r.sessionID {
		return
	}
	r.sessionID = id
	r.apply(agent.SessionDescribed{Session: r.root.session, ProviderSessionID: id})
}

// handle is the reading goroutine's entry: one line, start to end.
func (r *runtime) handle(f frame) {
	r.do(func() {
		if r.closing || r.broken != nil {
			return
		}
		h := f.head()
		if r.seen.again(h.UUID) {
			r.diagnose(provider.Ignored, h.name(), "said before")
			return
		}
		r.named(h.SessionID)
		r.route(f)
	})
}

// route finds what a line is about.
func (r *runtime) route(f frame) {
	switch f := f.(type) {
	case *initFrame:
		r.turnBegan(f)
	case *resultFrame:
		r.turnResult(f)
	case *stateFrame:
		r.stateChanged(f)
	case *lifecycleFrame:
		r.messageFate(f)
	case *taskFrame:
		r.taskFrame(f)
	case *tasksFrame:
		r.level(f)
	case *messageFrame:
		r.spoken(f)
	case *streamFrame:
		r.streamed(f)
	case *requestFrame:
		r.ask(f)
	case *withdrawFrame:
		r.withdrawn(f)
	default:
		r.remark(f)
	}
}

// run reads until the program ends, and then says what was lost.
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
	reason := r.conn.run()
	close(over)
	<-closed
	r.do(func() {
		r.stopTimers()
		for _, c := range r.cancels {
			c.stopTimer()
			r.finish(c.wait, agent.Errorf(agent.CodeProviderGone, "the Claude process ended"))
		}
		r.cancels = nil
		r.letGo(agent.Errorf(agent.CodeProviderGone, "the Claude process ended"))
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
		return agent.Errorf(agent.CodeProviderGone, "Claude stopped reading what it was told, so it was ended")
	case how != "":
		return agent.Errorf(agent.CodeProviderGone, "the Claude process ended: %s", how)
	case reason != nil:
		return agent.Errorf(agent.CodeProviderGone, "the connection to Claude broke: %v", reason)
	}
	return agent.Errorf(agent.CodeProviderGone, "the Claude process ended")
}

// Close implements provider.Runtime.
func (r *runtime) Close(ctx context.Context) error {
	r.do(func() {
		r.closing = true
		r.stopTimers()
	})
	err := r.link.Close(ctx)
	r.conn.close(nil) // what still lies in the pipe is not wanted
	<-r.ended
	return err
}

// Done implements provider.Runtime.
func (r *runtime) Done() <-chan struct{} { return r.ended }

// gone is the error of a call that came after the end.
func (r *runtime) gone() *agent.Error {
	if r.closing || r.broken != nil || r.conn.err() != nil {
		return agent.Errorf(agent.CodeProviderGone, "the Claude process of this session has ended")
	}
	return nil
}

// callError turns the error of an answer, or of a write, into one that crosses packages.
func callError(what string, err error) *agent.Error {
	var refused *refusedError
	var closed *wire.ClosedError
	var unwritten *wire.WriteError
	switch {
	case errors.As(err, &refused):
		return agent.Errorf(agent.CodeProviderRefused, "Claude refused to %s: %s", what, strings.TrimSpace(refused.Message))
	case errors.Is(err, errNoAnswer):
		return agent.Errorf(agent.CodeTimeout, "Claude did not answer when asked to %s", what)
	case errors.As(err, &closed), errors.As(err, &unwritten):
		return agent.Errorf(agent.CodeProviderGone, "the Claude process ended when asked to %s", what)
	case errors.Is(err, wire.ErrMessageTooLong):
		return agent.Errorf(agent.CodeInvalid, "Claude cannot be asked to %s: the message is too long", what)
	}
	return agent.Errorf(agent.CodeProviderRefused, "Claude gave an answer that cannot be read when asked to %s", what)
}

// recent remembers the last ids that were seen.
type recent struct {
	known map[string]bool
	order []string
}

// keptIDs is far more than what can still be on its way.
const keptIDs = 4096

// again notes an id and says whether it was known; "" never is.
func (s *recent) again(id string) bool {
	if id == "" || s.known[id] {
		return id != ""
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[id] = true
	s.order = append(s.order, id)
	if len(s.order) > keptIDs {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	return false
}
