package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

const (
	// maxBatch is how many waiting writes one transaction takes at most.
	maxBatch = 256
	// busyRetries bounds how often a transaction that another process kept from
	// starting is tried again; each try waits for SQLite's own bound first.
	busyRetries = 3
	// seqBits is how many bits of an event's key are its number in the workspace.
	seqBits = 40
	// maxCached bounds the identities and streams kept in memory; past it they are
	// dropped and read again.
	maxCached = 30_000
	// maxCancels likewise, of open cancels with their targets.
	maxCancels = 64
)

// bg is the context of every statement that writes. A write is short and is never
// interrupted half way: its caller may go, the commit does not.
var bg = context.Background()

// write is one unit of work on its way through the writer.
type write struct {
	do   func(*tx) error
	tx   *tx
	err  error
	done chan struct{} // nil for one that its caller commits itself
}

// writer is what whoever writes owns, under Store.writing: the connection, its statements, and what it
// remembers of the file it alone changes.
type writer struct {
	conn *sql.Conn
	q    *dbgen.Queries

	stmtCache
	begin, commit, rollback         *sql.Stmt
	insertEvents                    map[int]*sql.Stmt
	seqs                            map[int64]int64 // newest seq of each workspace
	sessionKey, turnKey, messageKey int64           // newest keys given
	idents                          map[agent.SessionID]*ident
	turns                           map[int64]*turnRow // live ones, mostly: see evict
	turnIDs                         map[agent.TurnID]*turnRow
	streams                         map[agent.MessageID]*stream
	targets                         map[int64][]dbgen.OperationTarget // of open cancels
	lastBatch                       int                               // how many writes the last transaction took
}

func (w *writer) init(ctx context.Context, s *Store) (err error) {
	w.conn, w.on = s.db.Writer, s.db.Writer
	w.q = dbgen.New(prepared{stmtCache: &w.stmtCache, direct: w.conn})
	for to, text := range map[**sql.Stmt]string{&w.begin: "BEGIN IMMEDIATE", &w.commit: "COMMIT", &w.rollback: "ROLLBACK"} {
		if *to, err = w.get(ctx, text); err != nil {
			return err
		}
	}
	w.insertEvents = map[int]*sql.Stmt{}
	w.forget()
	if w.sessionKey, err = w.q.MaxSessionKey(ctx); err != nil {
		return err
	}
	if w.turnKey, err = w.q.MaxTurnKey(ctx); err != nil {
		return err
	}
	if w.messageKey, err = w.q.MaxMessageKey(ctx); err != nil {
		return err
	}
	w.seqs = map[int64]int64{}
	keys, err := w.q.WorkspaceKeys(ctx)
	if err != nil {
		return err
	}
	for _, ws := range keys {
		if w.seqs[ws.PK], err = newestSeq(ctx, w.q, ws.PK); err != nil {
			return err
		}
		if ws.Deleted != 0 && w.seqs[ws.PK] > 0 { // the last run did not come to it
			s.check.cut.Store(true)
		}
	}
	return nil
}

func (w *writer) close() {
	for _, st := range w.insertEvents {
		_ = st.Close()
	}
	w.stmtCache.close()
}

// forget drops what is remembered of rows: after anything was rolled back, memory may
// know of rows that are not there.
func (w *writer) forget() {
	w.idents = map[agent.SessionID]*ident{}
	w.turns = map[int64]*turnRow{}
	w.turnIDs = map[agent.TurnID]*turnRow{}
	w.streams = map[agent.MessageID]*stream{}
	w.targets = map[int64][]dbgen.OperationTarget{}
}

// evict drops what a unit of work has ended: of an idle conversation nothing is kept.
func (w *writer) evict(t *tx) {
	for _, r := range t.ended {
		delete(w.turns, r.PK)
		delete(w.turnIDs, r.ID)
	}
	for _, root := range t.idle {
		for _, id := range root.kids {
			delete(w.idents, id)
		}
		delete(w.idents, root.id)
	}
}

// run runs a statement that is seldom needed.
func (w *writer) run(text string) error {
	st, err := w.get(bg, text)
	if err == nil {
		_, err = st.ExecContext(bg)
	}
	return err
}

// eventStatement is the prepared insert of n events.
func (w *writer) eventStatement(n int) (*sql.Stmt, error) {
	if st := w.insertEvents[n]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(bg, db.InsertEvents(n))
	if err == nil {
		w.insertEvents[n] = st
	}
	return st, err
}

// write has do committed and waits for that. ctx counts only until the work is queued. The
// unit of work is returned for what it found out.
func (s *Store) write(ctx context.Context, do func(*tx) error) (*tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &write{do: do}
	s.gate.RLock()
	switch {
	case s.closed:
		s.gate.RUnlock()
		return nil, errClosed
	case s.alone(w):
		s.gate.RUnlock()
		return w.tx, coded(w.err)
	}
	w.done = make(chan struct{})
	select {
	case s.queue <- w:
		s.gate.RUnlock()
	case <-ctx.Done():
		s.gate.RUnlock()
		return nil, ctx.Err()
	}
	<-w.done
	return w.tx, coded(w.err)
}

// alone commits w at once, in the caller's goroutine, where nobody else writes or waits and
// the last transaction was of one write too: the way to the writer and back costs more
// than a small transaction. It reports whether it did.
func (s *Store) alone(w *write) bool {
	if !s.writing.TryLock() {
		return false
	}
	defer s.writing.Unlock()
	if s.w.lastBatch > 1 || len(s.queue) > 0 {
		return false
	}
	s.commitBatch([]*write{w})
	s.afterCommit()
	return true
}

// runWriter commits what is queued, together.
func (s *Store) runWriter() {
	defer s.check.stop()
	batch := make([]*write, 0, maxBatch)
	for first := range s.queue {
		s.writing.Lock()
		batch = s.gather(append(batch[:0], first))
		s.commitBatch(batch)
		clear(batch)
		s.afterCommit()
		s.writing.Unlock()
	}
}

// gather takes what waits behind the first write. Producers that were just answered are
// about to queue their next write, and one commit for all of them costs what one for the
// first would; so where the last batch shows that there are many, it lets them run first.
func (s *Store) gather(batch []*write) []*write {
	idle, patience := 0, 1
	if s.w.lastBatch > 1 {
		patience = 16
	}
	for idle < patience && len(batch) < maxBatch {
		runtime.Gosched()
		before := len(batch)
		var closed bool
		if batch, closed = s.drain(batch); closed {
			break
		}
		idle++
		if len(batch) > before {
			idle = 0
		}
		if len(batch) >= s.w.lastBatch && idle > 0 {
			break
		}
	}
	s.w.lastBatch = len(batch)
	return batch
}

// drain takes what is queued without waiting.
func (s *Store) drain(batch []*write) (_ []*write, closed bool) {
	for len(batch) < maxBatch {
		select {
		case w, ok := <-s.queue:
			if !ok {
				return batch, true
			}
			batch = append(batch, w)
		default:
			return batch, false
		}
	}
	return batch, false
}

// commitBatch runs the batch in one transaction and answers every write. Each write
// succeeds or fails alone: behind a savepoint of its own if need be. As failures are
// rare and savepoints are not free, the batch is first tried without them.
func (s *Store) commitBatch(batch []*write) {
	ok := s.try(batch, false)
	if !ok && len(batch) > 1 {
		ok = s.try(batch, true)
	}
	if ok {
		s.publish(batch)
	}
	for _, w := range batch {
		if w.done != nil {
			close(w.done)
		}
	}
}

// try runs the batch in one transaction. When it returns false, nothing of the batch is
// there and every write has an error.
func (s *Store) try(batch []*write, savepoints bool) bool {
	err := s.beginBatch()
	if err == nil {
		err = s.runBatch(batch, savepoints)
	}
	if err == nil {
		return true
	}
	_, _ = s.w.rollback.ExecContext(bg)
	for i := len(batch) - 1; i >= 0; i-- {
		s.undo(batch[i])
		if batch[i].err == nil {
			batch[i].err = err
		}
	}
	return false
}

func (s *Store) beginBatch() error {
	var err error
	for range busyRetries {
		if _, err = s.w.begin.ExecContext(bg); err == nil || !isBusy(err) {
			return err
		}
	}
	return err
}

// runBatch runs the writes and commits. It returns an error when the transaction is lost:
// without savepoints, by the first write that fails.
func (s *Store) runBatch(batch []*write, savepoints bool) error {
	for _, w := range batch {
		w.err = nil
	}
	for _, w := range batch {
		if savepoints {
			if err := s.w.run("SAVEPOINT one"); err != nil {
				return err
			}
		}
		w.err = s.runOne(w)
		switch {
		case w.err == nil:
		case w.tx.untouched(w.err):
			s.w.evict(w.tx) // refused: there is nothing to undo
		default:
			if !savepoints {
				return w.err
			}
			s.undo(w)
			if err := s.w.run("ROLLBACK TO one"); err != nil {
				return err // SQLite has rolled back everything by itself
			}
		}
		if savepoints {
			if err := s.w.run("RELEASE one"); err != nil {
				return err
			}
		}
	}
	_, err := s.w.commit.ExecContext(bg)
	return err
}

// runOne is one unit of work: what was asked for, then the gates of what it touched,
// then the events.
func (s *Store) runOne(w *write) (err error) {
	w.tx = newTx(s)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v", p)
			s.opt.Logger.Error("a write panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if err := w.do(w.tx); err != nil {
		return err
	}
	return w.tx.finish()
}

// untouched reports whether a unit of work was refused before it changed anything. A refusal
// is an [agent.Error], and every change of a row is followed by an event, a session to show or
// a gate to ask before another refusal can come; what SQLite says is never taken for one.
func (t *tx) untouched(err error) bool {
	var refusal *agent.Error
	return errors.As(err, &refusal) && resultCode(err) == 0 && len(t.pending)+len(t.deltas)+len(t.touched) == 0
}

// undo makes memory agree with the rows that were rolled back.
func (s *Store) undo(w *write) {
	if w.tx != nil && w.tx.workspace != 0 {
		s.w.seqs[w.tx.workspace] = w.tx.base
		w.tx.workspace = 0
	}
	s.w.forget()
}

// publish tells what was committed, before anyone is answered.
func (s *Store) publish(batch []*write) {
	var events []agent.Event
	for _, w := range batch {
		if w.err == nil {
			if events == nil { // the common one, and the large one, is alone
				events = w.tx.committed
			} else {
				events = append(events, w.tx.committed...)
			}
			s.w.evict(w.tx)
		}
	}
	if len(events) > 0 {
		s.opt.OnCommit(events)
	}
	s.check.wrote(len(batch), events) // text that streams is no event
	if max(len(s.w.idents), len(s.w.turns), len(s.w.streams)) > maxCached || len(s.w.targets) > maxCancels {
		s.w.forget()
	}
}
