package hub

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Log is the table that a reader falls back to.
type Log interface {
	// Events returns up to limit events above after, with the newest number, the epoch
	// and the oldest number still kept.
	Events(ctx context.Context, ws agent.WorkspaceID, after int64, limit int) (agent.Log, error)
	Head(ctx context.Context, ws agent.WorkspaceID) (seq int64, epoch string, oldest int64, err error)
}

// Options bounds what the hub keeps; zero fields take the defaults.
type Options struct {
	RingEvents  int // events kept encoded in each workspace that somebody follows: 4096
	RingBytes   int // and their bytes: 8 MiB
	BatchEvents int // frames of one batch: 256
	BatchBytes  int // bytes after which a batch is full: 256 KiB
	TextBytes   int // bytes kept of one streaming message: 256 KiB
	TextsBytes  int // bytes kept of all streaming messages of a workspace: 16 MiB
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.RingEvents, 4096)
	set(&o.RingBytes, 8<<20)
	set(&o.BatchEvents, 256)
	set(&o.BatchBytes, 256<<10)
	set(&o.TextBytes, 256<<10)
	set(&o.TextsBytes, 16<<20)
	return o
}

// ErrClosed is what a subscription of a deleted workspace gets.
var ErrClosed = errors.New("hub: the workspace is gone")

// Hub is safe for concurrent use. Publish and Delta never wait for a reader.
type Hub struct {
	log  Log
	opts Options

	mu     sync.RWMutex
	spaces map[agent.WorkspaceID]*space

	eventsEncoded atomic.Int64
	deltasEncoded atomic.Int64
	pagesRead     atomic.Int64
}

// Stats are figures of the hub for metrics and tests.
type Stats struct {
	Subscriptions int
	RingBytes     int
	TextBytes     int
	EventsEncoded int64 // since the start; once for each event that somebody follows, and for each read of the log
	DeltasEncoded int64
	PagesRead     int64 // reads of the log by readers that lag
}

// New returns a hub over log.
func New(log Log, o Options) *Hub {
	return &Hub{log: log, opts: o.withDefaults(), spaces: map[agent.WorkspaceID]*space{}}
}

// space is one workspace's bell, ring and texts.
type space struct {
	mu    sync.Mutex
	subs  int
	head  int64 // newest number known
	ring  ring
	texts texts
	bell  chan struct{} // closed by the next change; nil while nobody waits
	gone  bool          // the workspace was deleted; the space stays, as the door that late pieces meet
}

func (h *Hub) space(ws agent.WorkspaceID) *space {
	h.mu.RLock()
	s := h.spaces[ws]
	h.mu.RUnlock()
	if s != nil {
		return s
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s = h.spaces[ws]; s == nil {
		s = &space{
			ring:  ring{maxEntries: h.opts.RingEvents, maxBytes: h.opts.RingBytes},
			texts: texts{maxText: h.opts.TextBytes, maxBytes: h.opts.TextsBytes},
		}
		h.spaces[ws] = s
	}
	return s
}

// Publish takes events that were just committed, in the order of their commits.
func (h *Hub) Publish(events []agent.Event) {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].WorkspaceID == events[0].WorkspaceID {
			n++
		}
		h.space(events[0].WorkspaceID).publish(h, events[:n])
		events = events[n:]
	}
}

func (s *space) publish(h *Hub, events []agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	dead := deletionsIn(events)
	if dead != nil {
		s.dropDeleted(events, dead)
	}
	for i := range events {
		e := &events[i]
		s.endTexts(e)
		if e.Seq <= s.head { // known from the log already
			continue
		}
		s.head = e.Seq
		if s.subs == 0 { // nobody follows: whoever comes reads the log
			s.ring.clear()
			continue
		}
		if dead.overtakes(i, e) {
			continue // the ring begins anew after the gap
		}
		h.eventsEncoded.Add(1)
		s.ring.push(e.Seq, entry{encodeEvent(e), e.SessionID, e.RootSessionID, e.Kind == agent.SessionDeleted})
	}
	s.ringBell()
}

// Delta takes streaming text. Its message's events must have been published before; text
// of what has ended or was deleted since is nobody's any more.
func (h *Hub) Delta(d agent.Delta) {
	if d.Text == "" {
		return
	}
	s := h.space(d.WorkspaceID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.texts.late(&d) {
		return
	}
	s.texts.add(&d)
	s.ringBell()
}

// Close ends every subscription of a workspace that was deleted, and takes nothing more
// of it.
func (h *Hub) Close(ws agent.WorkspaceID) {
	s := h.space(ws)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.ring.clear()
	s.texts = texts{}
	s.ringBell()
}

// Stats returns the hub's figures.
func (h *Hub) Stats() Stats {
	st := Stats{
		EventsEncoded: h.eventsEncoded.Load(), DeltasEncoded: h.deltasEncoded.Load(), PagesRead: h.pagesRead.Load(),
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.spaces {
		s.mu.Lock()
		st.Subscriptions += s.subs
		st.RingBytes += s.ring.bytes
		st.TextBytes += s.texts.bytes
		s.mu.Unlock()
	}
	return st
}

func (s *space) ringBell() {
	if s.bell != nil {
		close(s.bell)
		s.bell = nil
	}
}

func (s *space) waitBell() <-chan struct{} {
	if s.bell == nil {
		s.bell = make(chan struct{})
	}
	return s.bell
}
