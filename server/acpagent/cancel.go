package acpagent

import (
	"context"
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// stopping is one stop that is on its way to the daemon. Another of the same target joins
// it, and is tried once more after it: the first may have met an older turn.
type stopping struct {
	again bool
	gone  []*ask // questions that were closed for it
}

// cancel is session/cancel: of a root that was taken up here, or of a child whose stop is
// granted. Every other id (the provider's own, another root's, unknown, stale) is ignored,
// as a notification has nobody to tell.
func (c *conn) cancel(params json.RawMessage) {
	var p acp.SessionRef
	if json.Unmarshal(params, &p) != nil {
		return
	}
	if s := c.session(p.SessionID); s != nil {
		s.stopRoot()
		return
	}
	for _, s := range c.all() {
		if s.mayStop(p.SessionID) {
			s.stop(p.SessionID)
			return
		}
	}
	c.log.Debug("a cancel was ignored", "session", p.SessionID)
}

// stopRoot stops the root's turn and everything below it.
func (s *session) stopRoot() { s.stop(s.id) }

// stop asks the daemon to stop the newest turn of an agent. Questions of what is stopped
// are closed at once, in the order of the wire: an answer that comes after the stop may not
// let the work go on.
func (s *session) stop(id string) {
	gone := s.closeBelow(id)
	if len(gone) > 0 {
		s.c.work.Go(func() {
			for _, a := range gone {
				s.withdraw(a)
			}
		})
	}
	s.mu.Lock()
	if running := s.stopping[id]; running != nil {
		running.again = true
		running.gone = append(running.gone, gone...)
		s.mu.Unlock()
		return
	}
	s.stopping[id] = &stopping{gone: gone}
	s.mu.Unlock()
	var sent <-chan struct{}
	if id == s.id {
		sent = s.sendings() // a prompt before it on the wire is met by it
	}
	s.c.work.Go(func() {
		if sent != nil {
			select {
			case <-sent:
			case <-s.c.ctx.Done():
			}
		}
		s.carryOut(id)
	})
}

func (s *session) carryOut(id string) {
	for {
		if err := s.stopNewest(id); err != nil && s.c.ctx.Err() == nil {
			s.c.log.Warn("a stop did not reach the daemon", "session", id, "error", err)
			s.reopen(id)
		}
		s.mu.Lock()
		running := s.stopping[id]
		if !running.again {
			delete(s.stopping, id)
			s.mu.Unlock()
			return
		}
		running.again = false
		s.mu.Unlock()
	}
}

// stopNewest reads which turn is open now, from the daemon and not from what was told, and
// stops that one. A session without an open turn has nothing to stop.
func (s *session) stopNewest(id string) error {
	ws, _ := s.place()
	if ws == "" {
		return nil // it was never set up
	}
	d, err := s.c.api.detail(s.c.ctx, ws, id)
	if err != nil {
		return err
	}
	t := d.Session.ActiveTurn
	if t == nil {
		return nil
	}
	return s.c.api.stop(s.c.ctx, ws, id, string(t.ID))
}

// reopen asks the questions again that were closed for a stop which did not happen.
func (s *session) reopen(id string) {
	s.mu.Lock()
	gone := s.stopping[id].gone
	s.stopping[id].gone = nil
	s.mu.Unlock()
	if err := s.askAgain(gone); err != nil && s.c.ctx.Err() == nil {
		s.c.log.Warn("questions were not asked again", "session", id, "error", err)
	}
}

// setParent notes where a child belongs.
func (s *session) setParent(child, parent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents[child] = parent
}

// closeBelow closes the questions of an agent and of everything below it, and returns them.
func (s *session) closeBelow(id string) []*ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []*ask
	for key, a := range s.asked {
		for at := string(key.session); at != ""; at = s.parents[at] {
			if at == id {
				gone = append(gone, a)
				delete(s.asked, key)
				break
			}
		}
	}
	return gone
}

// untilTold waits until the end of the session's newest turn was told.
func (s *session) untilTold(ctx context.Context) error {
	ws, id := s.place()
	for {
		changed := s.nextEnd()
		d, err := s.c.api.detail(ctx, ws, id)
		if err != nil {
			return err
		}
		newest := d.Session.LatestTurn
		if d.Session.ActiveTurn != nil {
			newest = d.Session.ActiveTurn
		}
		if newest == nil || s.hasEnded(newest.ID) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *session) hasEnded(t agent.TurnID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, over := s.ended.of(t)
	return over
}
