package store

import (
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// tx is one unit of work inside the writer's transaction. Rows are held once, by the writer,
// so that two changes of one row are one row; what a unit of work that fails has done to them
// is forgotten with them. It collects the events, and the root turns whose gate must be asked.
type tx struct {
	s   *Store
	q   *dbgen.Queries
	now int64

	deltas  []*sessionDelta
	touched []int64 // keys of root turns, in the order they were touched
	pending []pendingEvent
	ended   []*turnRow   // turns that have settled: not remembered past the commit
	idle    []*ident     // roots whose turn settled here, likewise
	answer  func() error // builds what the caller gets, when everything is written

	workspace int64 // whose seq moves, 0 before the first event
	base      int64 // its seq before this unit of work
	committed []agent.Event
	buffer    []byte // that turns are encoded into
}

func newTx(s *Store) *tx {
	return &tx{s: s, q: s.w.q, now: micros(s.opt.Now())}
}

// ident is a session as the writer remembers it: what never changes of it, and its row
// once somebody needed that.
type ident struct {
	home
	pk, root int64
	kind     agent.Kind
	provider string
	deleted  bool
	row      *dbgen.Session
	active   int64             // of a root: live turns below it
	kids     []agent.SessionID // of a root: what is remembered below it
}

// home is where an event of a session belongs. It is known of every session of a tree whose
// root is, without reading the session.
type home struct {
	workspace   int64
	workspaceID agent.WorkspaceID
	id, rootID  agent.SessionID
}

func identOf(r *dbgen.Session) *ident {
	i := &ident{
		home: home{workspace: r.Workspace, workspaceID: r.WorkspaceID, id: r.ID, rootID: r.RootID},
		pk:   r.PK, root: r.Root, kind: r.Kind, provider: r.Provider, deleted: r.DeletedAt != 0, row: r,
	}
	if i.kind == agent.KindRoot {
		i.rootID = i.id
	}
	return i
}

// session returns a session, tombstones included, or nil.
func (t *tx) session(id agent.SessionID) (*ident, error) {
	if i := t.s.w.idents[id]; i != nil {
		return i, nil
	}
	row, err := t.q.SessionByID(bg, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	i := identOf(&row)
	return i, t.remember(i)
}

// remember keeps a session until its root turn settles.
func (t *tx) remember(i *ident) (err error) {
	t.s.w.idents[i.id] = i
	if i.kind == agent.KindRoot {
		if i.row.LatestTurn != 0 {
			if i.active, err = t.q.CountLiveBelow(bg, i.row.LatestTurn); err != nil {
				err = fmt.Errorf("live turns below %s: %w", i.id, err)
			}
		}
		return err
	}
	root, err := t.root(i)
	if err == nil {
		root.kids = append(root.kids, i.id)
	}
	return err
}

// liveSession is session for commands: what is missing or deleted is CodeNotFound.
func (t *tx) liveSession(id agent.SessionID) (*ident, error) {
	i, err := t.session(id)
	if err == nil && (i == nil || i.deleted) {
		err = notFound("session", id)
	}
	return i, err
}

// turnRow is a turn as the writer remembers it while it lives, and what this unit of work
// has done to it.
type turnRow struct {
	dbgen.Turn
	mayHaveOpen bool // messages that have not ended; false is certain
	dirty       bool // a root turn with columns to write, by the gate
	shown       bool // what people see of it changed
}

// hold returns the one turnRow of a row that was read.
func (t *tx) hold(row dbgen.Turn, mayHaveOpen bool) *turnRow {
	if r := t.s.w.turns[row.PK]; r != nil {
		return r
	}
	r := &turnRow{Turn: row, mayHaveOpen: mayHaveOpen}
	t.s.w.turns[row.PK] = r
	t.s.w.turnIDs[row.ID] = r
	if row.Phase == agent.PhaseSettled {
		t.ended = append(t.ended, r)
	}
	return r
}

// turn returns a turn of exactly that session, or nil.
func (t *tx) turn(owner *ident, id agent.TurnID) (*turnRow, error) {
	r := t.s.w.turnIDs[id]
	if r == nil {
		row, err := t.q.TurnForFact(bg, id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("turn %s: %w", id, err)
		}
		r = t.hold(row.Turn, row.OpenMessages)
	}
	if r.Session != owner.pk {
		return nil, nil
	}
	return r, nil
}

func (t *tx) turnByPK(pk int64) (*turnRow, error) {
	if r := t.s.w.turns[pk]; r != nil {
		return r, nil
	}
	row, err := t.q.TurnByPK(bg, pk)
	if err != nil {
		return nil, fmt.Errorf("turn %d: %w", pk, err)
	}
	return t.hold(row, true), nil
}

// openRootTurn returns the root turn of a root session that has not settled, or nil. It is
// the session's latest turn, if any is.
func (t *tx) openRootTurn(root *ident) (*turnRow, error) {
	if root.row.LatestTurn == 0 {
		return nil, nil
	}
	r, err := t.turnByPK(root.row.LatestTurn)
	if err != nil || r.Phase == agent.PhaseSettled {
		return nil, err
	}
	return r, nil
}

// touch has the gate of a root turn asked at the end of this unit of work.
func (t *tx) touch(rootTurn int64) {
	if !slices.Contains(t.touched, rootTurn) {
		t.touched = append(t.touched, rootTurn)
	}
}

// sessionDelta says that a session's row changed: its counters are to be written, or it
// was written and is to be shown.
type sessionDelta struct {
	session *ident
	counted bool
	touch   bool // it moves to the top of the list
}

// changed notes that a session's row was written; a session event follows.
func (t *tx) changed(i *ident) *sessionDelta {
	for _, d := range t.deltas {
		if d.session.pk == i.pk {
			return d
		}
	}
	d := &sessionDelta{session: i}
	t.deltas = append(t.deltas, d)
	return d
}

// count moves the number of a session's open questions.
func (t *tx) count(i *ident, pending int64) {
	i.row.Pending += pending
	t.changed(i).counted = true
}

// countLive moves the number of turns that live below a root. It is shown, not stored.
func (t *tx) countLive(root *ident, by int64) {
	root.active += by
	t.changed(root)
}

// raise moves a session to the top of the list.
func (t *tx) raise(i *ident) {
	i.row.UpdatedAt = t.now
	t.changed(i).touch = true
}

// latest makes a turn the latest of its session.
func (t *tx) latest(i *ident, turn int64) {
	i.row.LatestTurn = turn
	t.changed(i).counted = true
}

// root returns the identity of the root of i's tree.
func (t *tx) root(i *ident) (*ident, error) {
	if i.kind == agent.KindRoot {
		return i, nil
	}
	r, err := t.session(i.rootID)
	if err == nil && r == nil {
		err = fmt.Errorf("session %s has no root", i.id)
	}
	return r, err
}

// pendingEvent is one event whose data is encoded when everything else is done, so that
// it shows the row as it is committed.
type pendingEvent struct {
	kind    agent.EventKind
	session home
	turnID  agent.TurnID
	turn    *turnRow // turn events
	shows   *ident   // session events: the session itself
	entity  any      // message, interaction and operation events
}

// emit appends an event and returns the number it will have.
func (t *tx) emit(e pendingEvent) int64 {
	if t.workspace == 0 {
		t.workspace = e.session.workspace
		t.base = t.s.w.seqs[t.workspace]
	}
	t.pending = append(t.pending, e)
	return t.base + int64(len(t.pending))
}

// nextSeq is the number that the next event will have.
func (t *tx) nextSeq(workspace int64) int64 {
	if t.workspace == 0 {
		return t.s.w.seqs[workspace] + 1
	}
	return t.base + int64(len(t.pending)) + 1
}

// emitTurn says that a turn changed, once however often it did.
func (t *tx) emitTurn(kind agent.EventKind, owner *ident, r *turnRow) {
	for i := range t.pending {
		if t.pending[i].turn == r {
			return
		}
	}
	t.emit(pendingEvent{kind: kind, session: owner.home, turnID: r.ID, turn: r})
}

// finish asks the gates, writes the sessions and appends the events.
func (t *tx) finish() error {
	for i := 0; i < len(t.touched); i++ {
		if err := t.decide(t.touched[i]); err != nil {
			return err
		}
	}
	if err := t.writeSessions(); err != nil {
		return err
	}
	if len(t.pending) > 0 {
		if err := t.encodeEvents(); err != nil {
			return err
		}
		if err := t.insertEvents(); err != nil {
			return err
		}
	}
	if t.answer != nil {
		return t.answer()
	}
	return nil
}

// writeSessions writes the counters that moved, roots last, and emits the events.
func (t *tx) writeSessions() error {
	for _, roots := range []bool{false, true} {
		for _, d := range t.deltas {
			if (d.session.kind == agent.KindRoot) != roots {
				continue
			}
			if err := t.writeSession(d); err != nil {
				return fmt.Errorf("session %s: %w", d.session.id, err)
			}
			t.emit(pendingEvent{kind: agent.SessionUpdated, session: d.session.home, shows: d.session})
		}
	}
	return nil
}

func (t *tx) writeSession(d *sessionDelta) error {
	r := d.session.row
	switch {
	case d.touch:
		return t.q.CountAndTouchSession(bg, dbgen.CountAndTouchSessionParams{
			Pending: r.Pending, LatestTurn: r.LatestTurn, UpdatedAt: r.UpdatedAt, PK: r.PK,
		})
	case d.counted:
		return t.q.CountSession(bg, dbgen.CountSessionParams{
			Pending: r.Pending, LatestTurn: r.LatestTurn, PK: r.PK,
		})
	}
	return nil
}

// encodeEvents gives every event its number and its data.
func (t *tx) encodeEvents() error {
	t.committed = make([]agent.Event, len(t.pending))
	if len(t.pending) >= manyEvents {
		t.encodeTurns(runtime.GOMAXPROCS(0))
	}
	at := timeOf(t.now)
	for i := range t.pending {
		p := &t.pending[i]
		data := []byte(t.committed[i].Data)
		if data == nil {
			var err error
			if data, err = t.encode(p); err != nil {
				return fmt.Errorf("encode %s: %w", p.kind, err)
			}
		}
		t.committed[i] = agent.Event{
			Seq: t.base + int64(i) + 1, Time: at, Kind: p.kind, SessionID: p.session.id, TurnID: p.turnID, Data: data,
			WorkspaceID: p.session.workspaceID, RootSessionID: p.session.rootID,
		}
	}
	return nil
}

// manyEvents is from how many events on their turns are encoded side by side: the writer
// holds everybody up for as long as a large tree takes.
const manyEvents = 1024

// encodeTurns sets the data of the events of turns, in so many goroutines.
func (t *tx) encodeTurns(workers int) {
	var wait sync.WaitGroup
	share := (len(t.pending) + workers - 1) / workers
	for from := 0; from < len(t.pending); from += share {
		to := min(from+share, len(t.pending))
		wait.Go(func() {
			var buffer []byte
			for i := from; i < to; i++ {
				if r := t.pending[i].turn; r != nil {
					t.committed[i].Data, buffer = encodeTurn(r, buffer, to-i)
				}
			}
		})
	}
	wait.Wait()
}

// encodeTurn encodes into the buffer, or into a new one for that and others to come, and
// returns the data and the buffer: a large tree's turns share their memory.
func encodeTurn(r *turnRow, buffer []byte, others int) (data, _ []byte) {
	turn := turnOf(&r.Turn)
	if cap(buffer)-len(buffer) < maxShortTurn {
		buffer = make([]byte, 0, maxShortTurn*min(others, 512))
	}
	from := len(buffer)
	buffer = agent.AppendTurn(buffer, &turn)
	return buffer[from:len(buffer):len(buffer)], buffer
}

// maxShortTurn is what an encoded turn is expected to need.
const maxShortTurn = 640

func (t *tx) encode(p *pendingEvent) ([]byte, error) {
	switch {
	case p.turn != nil:
		var data []byte
		data, t.buffer = encodeTurn(p.turn, t.buffer, len(t.pending))
		return data, nil
	case p.shows != nil:
		session, err := t.sessionEntity(p.shows)
		if err != nil {
			return nil, err
		}
		if session.Attention == agent.AttentionStalled {
			session.Attention = agent.AttentionNone // a log that said it would have to say that it is over
		}
		return agent.AppendSession(make([]byte, 0, 1792), &session), nil
	}
	switch e := p.entity.(type) {
	case agent.Message:
		return agent.AppendMessage(make([]byte, 0, len(e.Content)+len(e.Input)+len(e.Output)+512), &e), nil
	case agent.Operation:
		return agent.AppendOperation(make([]byte, 0, 512+160*len(e.Targets)), &e), nil
	}
	return marshal(p.entity)
}

// sessionEntity is the session with its latest turn, as this unit of work sees both.
func (t *tx) sessionEntity(i *ident) (agent.Session, error) {
	var latest *dbgen.Turn
	if i.row.LatestTurn != 0 {
		r, err := t.turnByPK(i.row.LatestTurn)
		if err != nil {
			return agent.Session{}, err
		}
		latest = &r.Turn
	}
	return t.s.sessionOf(i.row, latest, i.active), nil
}

// insertEvents appends the events: all in one statement for the few of a common change; for
// the many of a large tree in shared rows where they are of turns, and else in statements of
// many rows.
func (t *tx) insertEvents() error {
	all := t.committed
	plain := 0 // all[plain:i] are to be rows of their own
	for i := 0; i < len(all); {
		n := turnRun(all[i:])
		if n < leastInPage {
			i += max(n, 1)
			continue
		}
		if err := t.insertRows(all[plain:i]); err != nil {
			return err
		}
		if err := t.insertPages(all[i : i+n]); err != nil {
			return fmt.Errorf("events: %w", err)
		}
		i += n
		plain = i
	}
	if err := t.insertRows(all[plain:]); err != nil {
		return err
	}
	t.s.w.seqs[t.workspace] = t.base + int64(len(all))
	return nil
}

// insertRows appends events that have a row each.
func (t *tx) insertRows(rest []agent.Event) error {
	const exact, page = 12, 256
	at := micros(t.committed[0].Time)
	args := make([]any, 0, min(len(rest), page)*db.EventColumns)
	for len(rest) > 0 {
		n := len(rest)
		if n > exact {
			n = min(n, page)
			if n < page { // a remainder goes in statements that other remainders share
				n = exact
			}
		}
		args = args[:0]
		for i := range rest[:n] {
			e := &rest[i]
			args = append(args, t.workspace<<seqBits|e.Seq, at, string(e.Kind), string(e.SessionID), string(e.TurnID),
				string(e.RootSessionID), []byte(e.Data))
		}
		st, err := t.s.w.eventStatement(n)
		if err != nil {
			return fmt.Errorf("events: %w", err)
		}
		if _, err := st.ExecContext(bg, args...); err != nil {
			return fmt.Errorf("events: %w", err)
		}
		rest = rest[n:]
	}
	return nil
}
