package store

import (
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// The log is copied into the file beside the writer, not by it: an automatic checkpoint
// inside a commit is what makes the slowest commits slow.
const (
	// checkpointEvery is how large the log grows until it is copied, and it is copied again
	// each time it has grown by an eighth of that.
	checkpointEvery = 8 << 20
	// Where nothing is left to copy, the next transaction starts the log over. Under a load
	// something always is, mostly few frames: so a copy is made again at once, mostTries times,
	// and meets a gap between two transactions. If none of them does, finishAt is the size at
	// which the writer copies what is left between two of its transactions.
	mostTries = 4
	finishAt  = 10 << 20
	// logBound is the size of the log at which the writer copies all of that itself: where
	// nobody else is at it, or readers keep the log. For a copy that is being made it waits at
	// hardBound.
	logBound  = 12 << 20
	hardBound = 13 << 20
	pageSize  = 4096
	// trimEvery is after how many events the outbox is trimmed, trimBatch how much of it
	// one transaction removes.
	trimEvery = 4096
	trimBatch = 2000
)

// The writer waits this long at most for readers that keep the log from starting over: a
// moment, as every commit waits with it. One that reads for long is not waited for.
const (
	inlineWait = "PRAGMA busy_timeout = 20"
	commonWait = "PRAGMA busy_timeout = 5000" // as db opens the connection
)

type checkpointer struct {
	wake     chan struct{}
	ended    chan struct{}
	once     sync.Once
	written  int   // bytes since the writer last looked, by estimate; its own
	copied   int64 // size of the log when it was last to be copied; the writer's own
	sinceCut atomic.Int64
	cut      atomic.Bool  // trim now: a workspace was deleted
	ready    atomic.Bool  // the writer is to copy the little that is left
	overdue  atomic.Bool  // the log is over its bound, and it is time to try
	logBytes atomic.Int64 // as the last checkpoint saw it
	nextTry  atomic.Int64 // how large the log must be for that

	copying sync.Mutex // held while the log is copied beside the writer

	every int   // checkpointEvery, and
	bound int64 // logBound; tests have smaller ones
}

func (c *checkpointer) init() {
	c.wake, c.ended = make(chan struct{}, 1), make(chan struct{})
	c.every, c.bound = checkpointEvery, logBound
	c.nextTry.Store(c.bound)
	if c.cut.Load() {
		c.ring()
	}
}

func (c *checkpointer) stop() { c.once.Do(func() { close(c.ended) }) }

// wrote counts what one transaction committed. What it adds to the log is estimated: pages
// that every transaction touches, pages of each write, and the data twice, as an entity is
// in its row and in its event.
func (c *checkpointer) wrote(writes int, events []agent.Event) {
	const common, each = 8 << 10, 6 << 10
	c.written += common + writes*each
	for i := range events {
		c.written += 2 * len(events[i].Data)
	}
	c.sinceCut.Add(int64(len(events)))
}

// trimNow has the outbox trimmed without waiting for more events.
func (c *checkpointer) trimNow() {
	c.cut.Store(true)
	c.ring()
}

func (c *checkpointer) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// runCheckpointer copies the log and trims the outbox until the writer has ended.
func (s *Store) runCheckpointer() {
	for {
		select {
		case <-s.check.ended:
			return
		case <-s.check.wake:
		}
		s.copyLog()
		if s.check.cut.Swap(false) || s.check.sinceCut.Load() >= trimEvery {
			s.check.sinceCut.Store(0)
			s.trimAll()
		}
	}
}

// copyLog copies the log until nothing of it is left, or more keeps coming.
func (s *Store) copyLog() {
	for range mostTries {
		if left, ok := s.passive(s.db.Checkpoint); !ok || left == 0 {
			return
		}
	}
	s.check.ready.Store(s.check.logBytes.Load() >= finishAt)
}

// passive copies what the log has when it begins, without waiting for anybody. It returns how
// many frames came meanwhile, or were kept by readers, and false where nothing was copied.
func (s *Store) passive(c *sql.Conn) (left int64, ok bool) {
	s.check.copying.Lock()
	defer s.check.copying.Unlock()
	var busy, frames, done int64
	if err := c.QueryRowContext(bg, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &done); err != nil {
		if !isBusy(err) {
			s.opt.Logger.Warn("checkpoint failed", "error", err)
		}
		return 0, false
	}
	s.check.saw(frames)
	if s.check.logBytes.Load() <= s.check.bound { // it has started over by itself
		s.check.nextTry.Store(s.check.bound)
	}
	s.check.overdue.Store(s.check.logBytes.Load() > s.check.nextTry.Load())
	if c != s.w.conn { // frames are counted when the copy begins
		var now int64
		if err := c.QueryRowContext(bg, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &now, new(int64)); err == nil && now > frames {
			frames = now
		}
	}
	return frames - done, busy == 0
}

// saw notes the size of the log; frames is negative where SQLite could not look.
func (c *checkpointer) saw(frames int64) {
	if frames >= 0 {
		c.logBytes.Store(frames * pageSize)
	}
}

// look asks how large the log is now and has it copied when it has grown enough. It returns the
// size, 0 where it was not yet time to ask.
func (s *Store) look() int64 {
	c := &s.check
	if c.written < c.every/8 {
		return 0
	}
	c.written = 0
	var busy, frames, done int64
	if err := s.w.conn.QueryRowContext(bg, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &done); err != nil || frames < 0 {
		return 0
	}
	size := frames * pageSize
	if size < c.copied { // it has started over
		c.copied = 0
		c.nextTry.Store(c.bound)
	}
	if size >= int64(c.every) && size-c.copied >= int64(c.every)/8 {
		c.copied = size
		c.ring()
	}
	return size
}

// afterCommit keeps the log bounded; it is called between two transactions.
func (s *Store) afterCommit() {
	c := &s.check
	size := s.look()
	switch late := size > c.nextTry.Load(); {
	case c.overdue.Swap(false) || late:
		if size > hardBound {
			c.copying.Lock()
		} else if !c.copying.TryLock() {
			return // it is being copied
		}
		s.restart()
		c.copying.Unlock()
	case c.ready.Swap(false):
		s.passive(s.w.conn)
	}
}

// restart copies the whole log and lets it start over. Where somebody reads for long it is
// tried again only when the log has grown by its bound once more.
func (s *Store) restart() {
	c := s.w.conn
	var busy, frames, done int64 = 1, -1, -1
	_, _ = c.ExecContext(bg, inlineWait)
	err := c.QueryRowContext(bg, "PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &frames, &done)
	_, _ = c.ExecContext(bg, commonWait)
	if err != nil && !isBusy(err) {
		s.opt.Logger.Warn("checkpoint failed", "error", err)
	}
	s.check.saw(frames)
	if next := s.check.bound; err != nil || busy != 0 {
		s.check.nextTry.Store(s.check.logBytes.Load() + next)
	} else {
		s.check.nextTry.Store(next)
	}
}

// trimAll removes what no client may come back for, a batch a transaction.
func (s *Store) trimAll() {
	var all []dbgen.WorkspaceKeysRow
	err := s.read(bg, func(q *dbgen.Queries) (err error) {
		all, err = q.WorkspaceKeys(bg)
		return err
	})
	for _, ws := range all {
		for more := true; more && err == nil; {
			_, err = s.write(bg, func(t *tx) (e error) {
				more, e = t.trim(ws.PK, ws.Deleted != 0)
				return e
			})
		}
	}
	if err != nil && !errors.Is(err, errClosed) {
		s.opt.Logger.Warn("trimming the event log failed", "error", err)
	}
}

// trim removes one batch of the oldest events, and of a deleted workspace every event. It
// says whether there is more to remove.
func (t *tx) trim(ws int64, deleted bool) (more bool, err error) {
	base := ws << seqBits
	oldest, err := oldestSeq(bg, t.q, ws)
	if err != nil {
		return false, err
	}
	keepFrom := t.s.w.seqs[ws] - t.s.opt.RetainEvents + 1
	if deleted {
		keepFrom = t.s.w.seqs[ws] + 1
	}
	if oldest == 0 || oldest >= keepFrom {
		return false, nil
	}
	below := min(keepFrom, oldest+trimBatch)
	_, err = t.q.TrimEvents(bg, dbgen.TrimEventsParams{After: base, Below: base + below})
	return below < keepFrom, err
}
