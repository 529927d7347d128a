package hub

import (
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// endTexts lets go of streaming text that e makes needless: its message has ended and
// the event carries it whole.
func (s *space) endTexts(e *agent.Event) {
	if e.Kind != agent.MessageUpdated && e.Kind != agent.MessageCreated || !s.texts.of(e.SessionID) {
		return
	}
	var m struct {
		ID     agent.MessageID     `json:"id"`
		Status agent.MessageStatus `json:"status"`
	}
	if json.Unmarshal(e.Data, &m) != nil || !m.Status.Ended() {
		return
	}
	if t := s.texts.byID[m.ID]; t != nil {
		s.texts.drop(t)
		s.texts.ended.add(m.ID)
	}
}

// deletions is which sessions a batch of events deletes, with the index of the event that
// does; nil for none, as nearly always.
type deletions map[agent.SessionID]int

func deletionsIn(events []agent.Event) deletions {
	var d deletions
	for i := range events {
		if events[i].Kind == agent.SessionDeleted {
			if d == nil {
				d = deletions{}
			}
			d[events[i].SessionID] = i
		}
	}
	return d
}

// of returns the index of the event that deletes session, alone or with its whole tree.
func (d deletions) of(session, root agent.SessionID) (int, bool) {
	if d == nil {
		return 0, false
	}
	if i, ok := d[session]; ok {
		return i, true
	}
	i, ok := d[root]
	return i, ok
}

// overtakes reports whether the event at index i tells of a session that a later event of
// the batch deletes.
func (d deletions) overtakes(i int, e *agent.Event) bool {
	at, ok := d.of(e.SessionID, e.RootSessionID)
	return ok && i < at && e.Kind != agent.SessionDeleted
}

// dropDeleted lets go of everything that is held of deleted sessions: their text, and the
// ring, if it still tells of them. Whoever lags reads the log, which has been emptied of
// them. A root takes its whole tree with it.
func (s *space) dropDeleted(events []agent.Event, d deletions) {
	for id, i := range d {
		if root := events[i].RootSessionID; root != id {
			if _, whole := d[root]; whole {
				continue // remembered by its root
			}
		}
		s.texts.deleted.add(id)
	}
	s.texts.dropWhere(func(t *text) bool { _, ok := d.of(t.session, t.root); return ok })
	for i := range s.ring.entries {
		e := &s.ring.entries[i]
		if _, ok := d.of(e.session, e.root); ok && !e.deletion {
			s.ring.clear()
			return
		}
	}
}

// goneKept is how many ids of what is gone are remembered: a late piece is late by
// moments, so that the newest are enough.
const goneKept = 4096

// gone remembers the newest ids of what has ended, so that a late piece of it is not
// taken for the beginning of something new.
type gone[K comparable] struct {
	ids   map[K]struct{}
	order []K
	next  int // in order, once it is full: the oldest
}

func (g *gone[K]) has(k K) bool { _, ok := g.ids[k]; return ok }

func (g *gone[K]) add(k K) {
	if g.has(k) {
		return
	}
	if g.ids == nil {
		g.ids = map[K]struct{}{}
	}
	g.ids[k] = struct{}{}
	if len(g.order) < goneKept {
		g.order = append(g.order, k)
		return
	}
	delete(g.ids, g.order[g.next])
	g.order[g.next] = k
	g.next = (g.next + 1) % goneKept
}
