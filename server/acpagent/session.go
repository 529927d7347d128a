package acpagent

import (
	"context"
	"sync"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// session is one root session that the editor has taken up.
type session struct {
	c  *conn
	id string

	// Of the teller, and of a setup while no teller runs.
	view   *view
	at     goclient.Cursor
	unsaid *agent.SessionDetail // of a setup that a later one overtook

	mu        sync.Mutex
	workspace string
	tail      chan struct{} // closed when the last request of the lane has had its turn
	stopTell  context.CancelFunc
	told      chan struct{} // closed when the teller has ended

	// Grants. A setup that is admitted takes the next epoch and suspends them; when it has
	// succeeded it releases them if no later one was admitted since.
	epoch     int
	suspended bool
	granted   map[string]bool // children whose stop was granted on the wire, and not taken back

	sending int           // prompts on their way to the daemon
	quiet   chan struct{} // closed when none is; nil while none is
	own     map[agent.MessageID]bool
	held    map[agent.TurnID][]*prompt
	ended   endings
	changed chan struct{} // closed when a root turn ends

	parents  map[string]string // of the children that were announced
	asked    map[askKey]*ask
	stopping map[string]*stopping
}

func newSession(c *conn, id string) *session {
	tail := make(chan struct{})
	close(tail)
	return &session{
		c: c, id: id, tail: tail, suspended: true, changed: make(chan struct{}),
		granted: map[string]bool{}, own: map[agent.MessageID]bool{}, held: map[agent.TurnID][]*prompt{},
		parents: map[string]string{}, asked: map[askKey]*ask{}, stopping: map[string]*stopping{},
	}
}

// turnInLane gives a place in the order in which what the editor asks of this session is
// done. The place is taken now; wait returns when it has come, done gives it to the next.
func (s *session) turnInLane() (wait func(context.Context) error, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, mine := s.tail, make(chan struct{})
	s.tail = mine
	return func(ctx context.Context) error {
			select {
			case <-before:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, sync.OnceFunc(func() {
			// Whoever gave up waiting must not let the next one overtake those before.
			s.c.work.Go(func() {
				select {
				case <-before:
				case <-s.c.ctx.Done():
				}
				close(mine)
			})
		})
}

// startTelling follows the daemon's log from where the session's view is true.
func (s *session) startTelling() {
	ctx, cancel := context.WithCancel(s.c.ctx)
	told := make(chan struct{})
	s.mu.Lock()
	s.stopTell, s.told = cancel, told
	s.mu.Unlock()
	s.c.work.Go(func() {
		defer close(told)
		defer cancel()
		s.tell(ctx)
	})
}

// stopTelling ends the teller and waits for it, so that the caller can speak in its place.
func (s *session) stopTelling() {
	s.mu.Lock()
	stop, told := s.stopTell, s.told
	s.stopTell, s.told = nil, nil
	s.mu.Unlock()
	if stop != nil {
		stop()
		<-told
	}
}

// place is where the session is at the daemon.
func (s *session) place() (workspace, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workspace, s.id
}

func (s *session) setWorkspace(ws agent.WorkspaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workspace = string(ws)
}

// suspend begins a setup: from here on no grant counts. It returns the setup's epoch.
func (s *session) suspend() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.suspended = true
	return s.epoch
}

// release ends a setup that succeeded, if it is still the latest.
func (s *session) release(epoch int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		return false
	}
	s.suspended = false
	return true
}

func (s *session) isSuspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended
}

// grant notes what the editor was told of a child's stop.
func (s *session) grant(child string, given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if given {
		s.granted[child] = true
	} else {
		delete(s.granted, child)
	}
}

// mayStop reports whether the editor holds a grant for a child that counts now.
func (s *session) mayStop(child string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.suspended && s.granted[child]
}
