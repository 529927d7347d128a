package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Recorder is what live needs of storage.
type Recorder interface {
	// Apply commits one fact. CodeUnavailable means that trying again helps.
	Apply(ctx context.Context, f agent.Fact) (agent.Applied, error)
	// Remember says what is known of a root's tree; CodeNotFound if it was deleted.
	Remember(ctx context.Context, root agent.SessionID) (agent.Remembered, error)
}

// Options are the parts and the bounds. Zero bounds take the defaults below.
type Options struct {
	Adapters map[string]provider.Adapter // by name
	Recorder Recorder
	Deltas   func(agent.Delta) // streaming text as it comes; must not block
	Clock    provider.Clock    // default: the machine's
	Mint     agent.Minter
	Logger   *slog.Logger // default: slog.Default
	Env      []string     // for the providers' processes

	TextDeltas   int           // pieces of text that make a chunk: 32
	TextDelay    time.Duration // how long text waits for its chunk: 50 ms
	OpenTimeout  time.Duration // to open a runtime: 60 s
	StartTimeout time.Duration // for a provider to take a message: 60 s
	CloseTimeout time.Duration // to close a runtime: 10 s
	IdleClose    time.Duration // how long a runtime with nothing to do stays open: 30 min
	Retries      int           // of a fact while storage is busy: 8, about 2 s in all
}

func (o Options) withDefaults() Options {
	positive(&o.TextDelay, 50*time.Millisecond)
	positive(&o.OpenTimeout, time.Minute)
	positive(&o.StartTimeout, time.Minute)
	positive(&o.CloseTimeout, 10*time.Second)
	positive(&o.IdleClose, 30*time.Minute)
	if o.TextDeltas <= 0 {
		o.TextDeltas = 32
	}
	if o.Retries <= 0 {
		o.Retries = 8
	}
	if o.Clock == nil {
		o.Clock = provider.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Deltas == nil {
		o.Deltas = func(agent.Delta) {}
	}
	return o
}

func positive(d *time.Duration, otherwise time.Duration) {
	if *d <= 0 {
		*d = otherwise
	}
}

// Live is the registry of actors. It is safe for concurrent use.
type Live struct {
	Options
	diagnostics diagnostics

	// ctx ends when everything has closed, or when Close has run out of time: it stops
	// what still waits for storage.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	actors map[agent.SessionID]*actor
}

// New returns an empty registry. Close it.
func New(o Options) *Live {
	l := &Live{Options: o.withDefaults(), actors: map[agent.SessionID]*actor{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Start gives a person's message, which began the root turn in.Turn, to the session's
// runtime, which is opened or resumed where none is open. It returns when the provider
// has taken the message. ctx is the daemon's, not a request's: a Start whose ctx ends
// is left to recovery. A failure ends the root turn as failed (reported here if the
// adapter has not); a turn that is canceled meanwhile is left to its cancel.
func (l *Live) Start(ctx context.Context, session agent.Session, in provider.Input) error {
	for {
		a, err := l.actorFor(session)
		if err != nil {
			return err
		}
		err = a.start(ctx, in)
		l.letGo(a)
		if !errors.Is(err, errClosed) {
			return err
		}
		select { // the session is just being closed; it opens again after that
		case <-a.gone:
		case <-ctx.Done():
			return stopping()
		case <-l.ctx.Done():
			return stopping()
		}
	}
}

// Watch opens or resumes the session's runtime without giving it anything: what the
// provider does there by itself, work for a goal for one, is then seen as it happens. It
// is harmless where one is open.
func (l *Live) Watch(ctx context.Context, session agent.Session) error {
	a, err := l.actorFor(session)
	if err != nil {
		return err
	}
	defer l.letGo(a)
	return a.watch(ctx)
}

// Guide adds a person's message to the open root turn, after whatever Start is still
// doing. CodeProviderGone if no runtime is open.
func (l *Live) Guide(ctx context.Context, root agent.SessionID, in provider.Input) error {
	a := l.hold(root)
	if a == nil {
		return gone()
	}
	defer l.letGo(a)
	return a.guide(ctx, in)
}

// Cancel asks the provider to stop the targets and passes on what is learnt of each. A
// runtime that is still opening for this very turn is not waited for: its opening is
// canceled. CodeProviderGone if there is nothing to ask.
func (l *Live) Cancel(ctx context.Context, root agent.SessionID, c provider.Cancel, heard func(agent.Evidence)) error {
	a := l.hold(root)
	if a == nil {
		return gone()
	}
	defer l.letGo(a)
	return a.stop(ctx, c, heard)
}

// Answer delivers an answer to the question it was asked in.
func (l *Live) Answer(ctx context.Context, root agent.SessionID, ans provider.Answer) error {
	r := l.running(root)
	if r == nil {
		return gone()
	}
	return r.call("Answer", func() error { return r.rt.Answer(ctx, ans) })
}

// StopProcess ends one process that outlived its turn. CodeProviderGone if no runtime is
// open; then the process has ended too. CodeCancelUnsupported if the provider cannot.
func (l *Live) StopProcess(ctx context.Context, root, session agent.SessionID, process agent.ProcessID) error {
	r := l.running(root)
	if r == nil {
		return gone()
	}
	stopper, able := r.rt.(provider.ProcessStopper)
	if !able {
		return agent.Errorf(agent.CodeCancelUnsupported, "this provider cannot end one process alone")
	}
	return r.call("StopProcess", func() error { return stopper.StopProcess(ctx, session, process) })
}

// Forget stops what still runs of deleted sessions, if anything does.
func (l *Live) Forget(ctx context.Context, root agent.SessionID, sessions []agent.SessionID) {
	if r := l.running(root); r != nil {
		_ = r.call("Forget", func() error { r.rt.Forget(ctx, sessions); return nil }) // a panic was logged
		r.sink.forget(sessions)
	}
}

// CloseSession ends the session's runtime, or its opening, and waits for that.
func (l *Live) CloseSession(ctx context.Context, root agent.SessionID) error {
	a := l.hold(root)
	if a == nil {
		return nil
	}
	defer l.letGo(a)
	err := a.close(ctx, agent.Errorf(agent.CodeProviderGone, "the session was closed"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.actors[root] == a {
		delete(l.actors, root)
		close(a.gone)
	}
	return err
}

// Close ends every runtime and waits for all of them, until ctx ends.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	actors := make([]*actor, 0, len(l.actors))
	for _, a := range l.actors {
		actors = append(actors, a)
	}
	l.mu.Unlock()

	reason := agent.Errorf(agent.CodeDaemonStopping, "the daemon was stopped while the turn ran")
	done := make(chan struct{})
	go func() {
		defer close(done)
		var each sync.WaitGroup
		for _, a := range actors {
			each.Go(func() { _ = a.close(ctx, reason) }) // what went wrong was logged
		}
		each.Wait()
		l.wg.Wait()
	}()
	defer l.cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return agent.Errorf(agent.CodeTimeout, "providers did not end in time: %v", ctx.Err())
	}
}

// Open reports whether the session has a runtime, or is just getting one.
func (l *Live) Open(root agent.SessionID) bool {
	a := l.lookup(root)
	return a != nil && a.open()
}

// OpenCount says how many runtimes are open.
func (l *Live) OpenCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range l.actors {
		if a.open() {
			n++
		}
	}
	return n
}

func gone() error {
	return agent.Errorf(agent.CodeProviderGone, "the agent's process is not running; send a message to start it again")
}

func stopping() error {
	return agent.Errorf(agent.CodeDaemonStopping, "the daemon is shutting down")
}

// actorFor returns the session's actor, for a new one if need be, until letGo.
func (l *Live) actorFor(s agent.Session) (*actor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, stopping()
	}
	a := l.actors[s.ID]
	if a == nil {
		a = newActor(l, s)
		l.actors[s.ID] = a
	}
	a.users++
	return a, nil
}

// hold returns the session's actor, or nil, until letGo.
func (l *Live) hold(root agent.SessionID) *actor {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.actors[root]
	if a != nil {
		a.users++
	}
	return a
}

func (l *Live) letGo(a *actor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.users--
	l.prune(a)
}

// prune drops an actor that holds nothing and that nobody uses: a daemon that runs for
// months must not keep one of every session. Whoever uses an actor holds it, so that no
// root ever has two. One that is being closed is its closer's to drop. Called with l.mu
// held.
func (l *Live) prune(a *actor) {
	if a.users == 0 && l.actors[a.root] == a && !a.kept() {
		delete(l.actors, a.root)
	}
}

func (l *Live) lookup(root agent.SessionID) *actor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.actors[root]
}

// running returns the session's runtime, or nil.
func (l *Live) running(root agent.SessionID) *run {
	a := l.lookup(root)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run
}

// spawn runs f in a goroutine that Close waits for; after Close has begun it does not.
func (l *Live) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.wg.Go(f)
	return true
}
