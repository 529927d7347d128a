package acpagent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// stopping is one stop that is on its way to the daemon. Another of the same target joins
// it, and is tried once more after it: the first may have met an older turn.
type stopping struct{ again bool }

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
// are taken back at once: an answer that is under way may not let the work go on.
func (s *session) stop(id string) {
	s.mu.Lock()
	if running := s.stopping[id]; running != nil {
		running.again = true
		s.mu.Unlock()
		return
	}
	s.stopping[id] = &stopping{}
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
	gone := s.takeBack(below(d, id))
	if err := s.c.api.stop(s.c.ctx, ws, id, string(t.ID)); err != nil {
		// The questions are open still: they are asked again.
		return errors.Join(err, s.askAgain(gone))
	}
	return nil
}

// below is a session and everything under it.
func below(d agent.SessionDetail, id string) map[string]bool {
	in := map[string]bool{id: true}
	for grown := true; grown; {
		grown = false
		for _, c := range d.ChildSessions {
			if in[string(c.ParentSessionID)] && !in[string(c.ID)] {
				in[string(c.ID)], grown = true, true
			}
		}
	}
	return in
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
