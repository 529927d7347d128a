package hub

import (
	"context"
	"fmt"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Reason says why a cursor means nothing any more.
type Reason string

const (
	ReasonRetention Reason = "retention" // the events after it are no longer kept
	ReasonEpoch     Reason = "epoch"     // it belongs to another log
	ReasonAhead     Reason = "ahead"     // it has not happened yet
)

// Request says what a client wants to follow.
type Request struct {
	Workspace agent.WorkspaceID
	After     *int64            // newest number the client has; nil: from now on
	Epoch     string            // of After; "" is not compared
	Sessions  []agent.SessionID // only these, a root with every session below it; nil: all
}

// Mode says what the client must do first.
type Mode string

const (
	ModeReplay   Mode = "replay"   // nothing: everything after its cursor follows
	ModeSnapshot Mode = "snapshot" // read a snapshot: the subscription begins at Ready.Seq
)

// Ready says where a subscription begins.
type Ready struct {
	Epoch string
	Seq   int64
	Mode  Mode
}

// Batch is what there is to send at once. Frames are shared with other readers and must
// not be changed; the slice itself is good until the next call.
type Batch struct {
	Frames [][]byte
	// Seq is the number that the reader has come to with this batch: it was sent
	// everything up to it, or that was filtered out.
	Seq int64
	// Bell is closed by the next change. It is set only on an empty batch.
	Bell <-chan struct{}
}

// Subscription is one reader's cursor. It must be used by one goroutine at a time and
// closed.
type Subscription struct {
	hub    *Hub
	space  *space
	ws     agent.WorkspaceID
	epoch  string
	after  int64
	filter map[agent.SessionID]struct{} // nil takes all
	reset  Reason                       // to be told first

	seen   uint64                    // clock of the texts up to which everything was sent
	sent   map[agent.MessageID]int64 // offset up to which each streaming message was sent
	frames [][]byte
	bytes  int
}

// Subscribe begins to follow a workspace. Errors are the log's: not_found for a workspace
// that is not there.
func (h *Hub) Subscribe(ctx context.Context, r Request) (*Subscription, Ready, error) {
	seq, epoch, oldest, err := h.log.Head(ctx, r.Workspace)
	if err != nil {
		return nil, Ready{}, fmt.Errorf("hub: read the head of the log: %w", err)
	}
	s := &Subscription{hub: h, space: h.space(r.Workspace), ws: r.Workspace, epoch: epoch}
	s.space.mu.Lock()
	s.space.subs++ // the ring fills from here on; what came since the head was read is in the log
	s.space.head = max(s.space.head, seq)
	s.space.mu.Unlock()
	if r.Sessions != nil {
		s.filter = make(map[agent.SessionID]struct{}, len(r.Sessions))
		for _, id := range r.Sessions {
			s.filter[id] = struct{}{}
		}
	}
	ready := Ready{Epoch: epoch, Seq: seq, Mode: ModeReplay}
	switch {
	case r.After == nil:
		ready.Mode = ModeSnapshot
	case r.Epoch != "" && r.Epoch != epoch:
		s.reset = ReasonEpoch
	case *r.After > seq:
		s.reset = ReasonAhead
	case *r.After < oldest-1:
		s.reset = ReasonRetention
	default:
		s.after = *r.After
		return s, ready, nil
	}
	s.after, ready.Mode = seq, ModeSnapshot
	return s, ready, nil
}

// Close lets go of the cursor.
func (s *Subscription) Close() {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	if s.hub == nil {
		return
	}
	s.hub = nil
	s.space.subs--
	if s.space.subs == 0 {
		s.space.ring.clear()
	}
}

// Next waits until there is something to send.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		b, err := s.Poll(ctx)
		if err != nil || len(b.Frames) > 0 {
			return b, err
		}
		select {
		case <-b.Bell:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// Poll returns what there is now. An empty batch has a bell to wait for; after any other
// one, poll again. It may read the log, and ctx bounds that.
func (s *Subscription) Poll(ctx context.Context) (Batch, error) {
	clear(s.frames) // a reader that waits holds no frames
	if cap(s.frames) > 16 && s.bytes == 0 {
		s.frames = nil
	}
	s.frames, s.bytes = s.frames[:0], 0
	for {
		done, err := s.collect()
		if err != nil {
			return Batch{}, err
		}
		if done.Bell != nil || len(done.Frames) > 0 {
			return done, nil
		}
		if err := s.readLog(ctx); err != nil {
			return Batch{}, err
		}
		if len(s.frames) > 0 {
			return Batch{Frames: s.frames, Seq: s.after}, nil
		}
	}
}

// collect takes what the hub itself has. A batch without frames and without a bell means
// that the log must be asked.
func (s *Subscription) collect() (Batch, error) {
	p := s.space
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return Batch{}, ErrClosed
	}
	if s.reset != "" {
		s.push(encodeReset(s.reset, s.epoch, s.after))
		s.reset = ""
	}
	for s.after < p.head && !s.full() {
		entries, ok := p.ring.after(s.after)
		if !ok {
			return Batch{Frames: s.frames, Seq: s.after}, nil
		}
		s.takeEntries(entries)
	}
	if s.after >= p.head && !s.full() { // text is told only after every event before it
		s.takeTexts(&p.texts)
	}
	b := Batch{Frames: s.frames, Seq: s.after}
	if len(s.frames) == 0 {
		b.Bell = p.waitBell()
	}
	return b, nil
}

func (s *Subscription) takeEntries(entries []entry) {
	for i := range entries {
		if s.full() {
			return
		}
		s.after++
		if e := &entries[i]; s.wants(e.session, e.root) {
			s.push(e.frame)
		}
	}
}

// takeTexts takes what each streaming message has beyond what was sent: one piece,
// however many deltas it came in.
func (s *Subscription) takeTexts(x *texts) {
	for t := x.newest; t != nil && t.changed > s.seen; t = t.older {
		if !s.wants(t.session, t.root) {
			continue
		}
		from := max(s.sent[t.message], t.base)
		if from >= t.end() {
			continue
		}
		if s.full() { // the rest comes with the next batch
			return
		}
		if t.pieceFrom != from || t.pieceEnd != t.end() {
			t.piece = encodeDelta(t.session, t.message, from, t.buf[from-t.base:])
			t.pieceFrom, t.pieceEnd = from, t.end()
			s.hub.deltasEncoded.Add(1)
		}
		s.push(t.piece)
		if s.sent == nil {
			s.sent = map[agent.MessageID]int64{}
		}
		s.sent[t.message] = t.end()
	}
	s.seen = x.clock
	if len(s.sent) > 2*len(x.byID)+16 { // forget messages that have ended
		for id := range s.sent {
			if x.byID[id] == nil {
				delete(s.sent, id)
			}
		}
	}
}

// readLog takes one page of the log, for a reader that the ring has left behind.
func (s *Subscription) readLog(ctx context.Context) error {
	l, err := s.hub.log.Events(ctx, s.ws, s.after, s.hub.opts.BatchEvents)
	if err != nil {
		return fmt.Errorf("hub: read the log: %w", err)
	}
	s.hub.pagesRead.Add(1)
	switch {
	case l.Epoch != s.epoch:
		s.startOver(ReasonEpoch, l)
		return nil
	case s.after < l.Oldest-1, len(l.Items) == 0: // an empty page with more promised: trimmed in between
		s.startOver(ReasonRetention, l)
		return nil
	}
	for i := range l.Items {
		e := &l.Items[i]
		s.after = e.Seq
		if s.wants(e.SessionID, e.RootSessionID) {
			s.hub.eventsEncoded.Add(1)
			s.push(encodeEvent(e))
		}
		if s.full() {
			break
		}
	}
	return nil
}

func (s *Subscription) startOver(r Reason, l agent.Log) {
	s.epoch, s.reset = l.Epoch, r
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	s.after = max(l.Seq, s.space.head)
	s.space.head = s.after
}

func (s *Subscription) wants(session, root agent.SessionID) bool {
	if s.filter == nil {
		return true
	}
	if _, ok := s.filter[session]; ok {
		return true
	}
	_, ok := s.filter[root]
	return ok
}

func (s *Subscription) push(frame []byte) {
	s.frames = append(s.frames, frame)
	s.bytes += len(frame)
}

func (s *Subscription) full() bool {
	return len(s.frames) >= s.hub.opts.BatchEvents || s.bytes >= s.hub.opts.BatchBytes
}
