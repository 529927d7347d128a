package command

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Options are the parts and the bounds. Zero bounds take the defaults below.
type Options struct {
	Store Store
	Live  Live
	// Card says what a provider can do, for a new session. Its error refuses the session:
	// CodeInvalid for a provider there is none of, CodeProviderUnavailable with what helps.
	Card func(ctx context.Context, provider string) (agent.Capabilities, error)
	// Accept says whether a new session could be opened as it was chosen; nil accepts all.
	// CodeInvalid.
	Accept func(n agent.NewSession) error
	Logger *slog.Logger // default: slog.Default
	Clock  Clock        // default: the machine's

	Worker      string        // names the holder of a lease: "daemon"
	Lease       time.Duration // how long a claim stands without a word: 2 min, more than any bound
	Parallel    int           // operations carried out at a time: 128
	CancelBound time.Duration // of a cancel that has no deadline of its own: 15 s
	AnswerBound time.Duration // for a provider to take an answer: 15 s
	GuideBound  time.Duration // for a provider to take a message: 60 s
	CloseBound  time.Duration // to stop what was deleted: 30 s
	Backoff     time.Duration // before the second attempt of a cancel, then doubling: 250 ms
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&o.Lease, 2 * time.Minute},
		{&o.CancelBound, 15 * time.Second},
		{&o.AnswerBound, 15 * time.Second},
		{&o.GuideBound, time.Minute},
		{&o.CloseBound, 30 * time.Second},
		{&o.Backoff, 250 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	if o.Worker == "" {
		o.Worker = "daemon"
	}
	if o.Parallel <= 0 {
		o.Parallel = 128
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = machineClock{}
	}
	return o
}

// Service takes what people want. It is safe for concurrent use. Run carries out what
// it takes; Close ends both.
type Service struct {
	Options
	bell     chan struct{} // rings the worker; one pending ring is enough
	lanes    *lanes
	underWay operations

	ctx    context.Context // of everything that goes on in the background
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// New returns a service. Nothing is carried out before Run.
func New(o Options) *Service {
	s := &Service{Options: o.withDefaults(), bell: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.lanes = &lanes{spawn: s.spawn}
	return s
}

// Ring wakes the worker: an operation may be due.
func (s *Service) Ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// Close stops the worker and everything that goes on in the background, and waits for
// it until ctx ends. What was not carried out is still there at the next start.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return agent.Errorf(agent.CodeTimeout, "commands did not end in time: %v", ctx.Err())
	}
}

// spawn runs f in a goroutine that Close waits for; after Close has begun it does not.
func (s *Service) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

// CreateWorkspace gives the workspace of a directory; the same directory gives the
// same one. Errors: CodeInvalid.
func (s *Service) CreateWorkspace(ctx context.Context, name, path string) (agent.Workspace, error) {
	path, err := directory(path)
	if err != nil {
		return agent.Workspace{}, err
	}
	if name, err = workspaceName(name, path); err != nil {
		return agent.Workspace{}, err
	}
	return s.Store.CreateWorkspace(ctx, name, path)
}

// RenameWorkspace changes what people call it.
func (s *Service) RenameWorkspace(ctx context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error) {
	name, err := title(name)
	if err != nil {
		return agent.Workspace{}, err
	}
	if name == "" {
		return agent.Workspace{}, agent.Errorf(agent.CodeInvalid, "a workspace needs a name")
	}
	return s.Store.RenameWorkspace(ctx, id, name)
}

// DeleteWorkspace deletes it with every session in it, and stops what still runs there.
// The directory is not touched.
func (s *Service) DeleteWorkspace(ctx context.Context, id agent.WorkspaceID) error {
	deleted, err := s.Store.DeleteWorkspace(ctx, id)
	if err != nil {
		return err
	}
	for _, d := range deleted {
		s.stopDeleted(d)
	}
	return nil
}

// CreateSession makes a root session, with its first message if there is one. It is
// durable when this returns; the agent starts in the background.
func (s *Service) CreateSession(ctx context.Context, n agent.NewSession) (agent.Submitted, error) {
	ws, err := s.Store.Workspace(ctx, n.Workspace)
	if err != nil {
		return agent.Submitted{}, err
	}
	n = plain(n, ws)
	if n.Key != "" { // before any check: what was taken once is answered again, whatever has changed since
		if sub, found, err := s.Store.RepeatSession(ctx, n); found || err != nil {
			return sub, err
		}
	}
	if err := checkSession(n, ws); err != nil {
		return agent.Submitted{}, err
	}
	if n.Capabilities, err = s.Card(ctx, n.Provider); err != nil {
		return agent.Submitted{}, err
	}
	if s.Accept != nil {
		if err := s.Accept(n); err != nil {
			return agent.Submitted{}, err
		}
	}
	sub, err := s.Store.CreateSession(ctx, n)
	if err != nil {
		return agent.Submitted{}, err
	}
	s.dispatch(sub)
	return sub, nil
}

// Send takes a person's message to a root session: it begins a turn, or joins the open
// one. It never begins a second turn beside an open one; where the provider takes no
// message now, that is CodeGuidanceUnsupported. Other errors: CodeInvalid, CodeNotFound,
// CodeChildInput, CodeTurnCanceling, CodeConflict.
func (s *Service) Send(ctx context.Context, ws agent.WorkspaceID, m agent.NewMessage) (agent.Submitted, error) {
	if err := checkMessage(m); err != nil {
		return agent.Submitted{}, err
	}
	session, err := s.Store.Session(ctx, ws, m.Session)
	if err != nil {
		return agent.Submitted{}, err
	}
	if !session.IsRoot() {
		return agent.Submitted{}, agent.Errorf(agent.CodeChildInput, "messages go to the main agent, not to one of its agents; send it to session %s", session.RootSessionID)
	}
	sub, err := s.Store.Submit(ctx, m)
	if err != nil {
		return agent.Submitted{}, err
	}
	s.dispatch(sub)
	return sub, nil
}

// dispatch carries on with what was committed. A repeated request was carried on with
// when it came first.
func (s *Service) dispatch(sub agent.Submitted) {
	switch {
	case sub.Repeated || sub.Message == nil:
	case sub.Delivery == agent.DeliveryStarted:
		s.lanes.do(sub.Session.ID, func() { s.start(sub.Session, *sub.Message) })
	default:
		s.Ring()
	}
}

// start gives the first message of a turn to the agent. Live ends the turn if that
// fails; if the daemon stops meanwhile, recovery does.
func (s *Service) start(session agent.Session, m agent.Message) {
	if err := s.Live.Start(s.ctx, session, m); err != nil && s.ctx.Err() == nil {
		s.Logger.Info("a turn did not start", "session", session.ID, "turn", m.TurnID, "error", err)
	}
}

// Cancel makes the stop of a turn durable: of a root turn with everything below it, or
// of one child turn with what is below that. settled reports that the turn had ended
// already and nothing was done. Errors: CodeNotFound, CodeCancelUnsupported.
func (s *Service) Cancel(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID, client string) (op agent.Operation, settled bool, err error) {
	t, err := s.Store.Turn(ctx, ws, id, turn)
	if err != nil {
		return op, false, err
	}
	if !t.IsRoot() && t.Live() {
		if err := s.mayCancelChild(ctx, ws, id); err != nil {
			return op, false, err
		}
	}
	op, settled, err = s.Store.PrepareCancel(ctx, id, turn, client)
	if err == nil && !settled {
		s.Ring()
	}
	return op, settled, err
}

// mayCancelChild refuses to stop one child alone where the provider cannot: a clear
// word rather than a stop that never comes. Some providers grant it for each child, and for
// as long as they like.
func (s *Service) mayCancelChild(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) error {
	child, err := s.Store.Session(ctx, ws, id)
	if err != nil {
		return err
	}
	root, err := s.Store.Session(ctx, ws, child.RootSessionID)
	if err != nil {
		return err
	}
	if !root.Capabilities.ChildCancel && !child.Capabilities.ChildCancel {
		return agent.Errorf(agent.CodeCancelUnsupported, "this agent cannot be stopped alone now; stop the whole turn instead")
	}
	return nil
}

// Answer records a person's answer to one exact question; it is delivered in the
// background. The first answer wins: the same one again gives what was recorded.
// Errors: CodeNotFound, CodeInvalidAnswer, CodeInteractionAnswered, CodeInteractionGone.
func (s *Service) Answer(ctx context.Context, ws agent.WorkspaceID, a agent.NewAnswer) (agent.Interaction, agent.Operation, error) {
	if err := checkResponse(a.Response); err != nil {
		return agent.Interaction{}, agent.Operation{}, err
	}
	if _, err := s.Store.Interaction(ctx, ws, a.Session, a.Turn, a.Request); err != nil {
		return agent.Interaction{}, agent.Operation{}, err
	}
	i, op, err := s.Store.PrepareAnswer(ctx, a)
	if err == nil {
		s.Ring()
	}
	return i, op, err
}

// UpdateSession changes what a person may of a session. Errors: CodeNotFound, CodeInvalid,
// CodeConflict for a choice that comes after the first turn.
func (s *Service) UpdateSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error) {
	for _, w := range []struct {
		name  string
		value *string
	}{{"permissionMode", p.PermissionMode}, {"model", p.Model}} {
		if w.value != nil && !isWord(*w.value) {
			return agent.Session{}, notAWord(w.name)
		}
	}
	if p.Title != nil {
		checked, err := title(*p.Title)
		if err != nil {
			return agent.Session{}, err
		}
		if checked == "" {
			return agent.Session{}, agent.Errorf(agent.CodeInvalid, "a title cannot be empty")
		}
		p.Title = &checked
	}
	return s.Store.UpdateSession(ctx, ws, id, p)
}

// DeleteSession deletes a session with everything below it and stops what still runs
// there. A second call is as good as the first.
func (s *Service) DeleteSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) error {
	d, err := s.Store.Delete(ctx, ws, id)
	if err == nil {
		s.stopDeleted(d)
	}
	return err
}

// stopDeleted stops what runs of deleted sessions, in the background: for people they
// are gone already.
func (s *Service) stopDeleted(d agent.Deleted) {
	if len(d.Sessions) == 0 {
		return
	}
	s.spawn(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.CloseBound)
		defer cancel()
		if !d.WasRoot {
			s.Live.Forget(ctx, d.Root.ID, d.Sessions)
			return
		}
		if err := s.Live.CloseSession(ctx, d.Root.ID); err != nil && s.ctx.Err() == nil {
			s.Logger.Warn("a deleted session did not close", "session", d.Root.ID, "error", err)
		}
	})
}
