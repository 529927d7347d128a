package claude

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Bounds of what the program owes us, on the sink's clock.
const (
	handshakeBound = 60 * time.Second // initialize: it loads the user's settings and MCP servers first
	messageBound   = 60 * time.Second // that a message is queued
	requestBound   = 10 * time.Second // interrupt, stop_task: answered at once
	stopBound      = 30 * time.Second // that a process has ended
	ownerBound     = 2 * time.Second  // that an agent which asks has been launched
)

// runtime is one program with one root session and all its children.
type runtime struct {
	o              Options
	params         provider.OpenParams
	conn           *conn
	*runner.Runner // its lock guards what follows

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
		o: o, params: p,
		lanes:     newLanes(p.Root.ID),
		turnState: newTurnState(),
		detached:  newDetached(),
		asked:     map[string]*prompt{},
	}
	r.Runner = runner.New(sink, link, o.Park, func(err error) { r.conn.close(err) })
	r.conn = newConn(link, connOptions{
		handle: r.handle, clock: r.Clock, record: o.Record,
		odd: func(kind provider.DiagnosticKind, method, detail string) {
			r.Do(func() { r.Diagnose(kind, method, detail) })
		},
	})
	r.remember(p.Remembered)
	return r
}

// send writes a request after the lock is released. done is called exactly once, with
// the lock held: with the answer, with errNoAnswer after bound, or with why it could not
// be written. Called with the lock held.
func (r *runtime) send(request any, bound time.Duration, done func(answer)) {
	r.Later(func() {
		r.conn.ask(request, bound, func(a answer) {
			r.Unwritten(a.err)
			r.Do(func() { done(a) })
		})
	})
}

// begin takes the answer to initialize.
func (r *runtime) begin(who initializeAnswer) error {
	if err := tooOld(who.Version); err != nil {
		return err
	}
	able := capabilities()
	r.sessionID = cmp.Or(r.sessionID, r.params.Root.ProviderSessionID, nativeSession(r.params.Root.ID))
	if _, ok := r.Apply(agent.SessionDescribed{Session: r.root.session, ProviderSessionID: r.sessionID, Capabilities: &able}); !ok {
		return agent.Errorf(agent.CodeUnavailable, "storage did not take the session")
	}
	r.reconcile()
	r.Ready = true
	return nil
}

// named notes the conversation's name, which every line bears. It changes when the
// program goes on under another one.
func (r *runtime) named(id string) {
	if !r.Ready || id == "" || id == r.sessionID {
		return
	}
	r.sessionID = id
	r.Apply(agent.SessionDescribed{Session: r.root.session, ProviderSessionID: id})
}

// handle is the reading goroutine's entry: one line, start to end.
func (r *runtime) handle(f frame) {
	r.Do(func() {
		if r.Over() {
			return
		}
		h := f.head()
		if r.seen.again(h.UUID) {
			r.Diagnose(provider.Ignored, h.name(), "said before")
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

// run reads until the program ends.
func (r *runtime) run() {
	r.Serve(r.conn.run, r.lost)
}

// lost lets go of everybody who waits for the program, and says what was lost with it.
func (r *runtime) lost(reason error) {
	r.Do(func() {
		r.stopTimers()
		for _, c := range r.cancels {
			c.stopTimer()
			r.Finish(c.wait, agent.Errorf(agent.CodeProviderGone, "the Claude process ended"))
		}
		r.cancels = nil
		r.letGo(agent.Errorf(agent.CodeProviderGone, "the Claude process ended"))
		if r.Losing() {
			r.Lose(r.root.session, r.Loss("Claude", reason))
		}
	})
}

// Close implements provider.Runtime.
func (r *runtime) Close(ctx context.Context) error {
	r.Do(func() {
		r.Hush()
		r.stopTimers()
	})
	err := r.Link.Close(ctx)
	r.conn.close(nil) // what still lies in the pipe is not wanted
	<-r.Done()
	return err
}

// gone is the error of a call that came after the end.
func (r *runtime) gone() *agent.Error {
	if r.Over() || r.conn.err() != nil {
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
