package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// tx is one unit of work inside the writer's transaction. It holds each row it has read
// once, so that two changes of one row are one row; it collects the events, and the
// root turns whose gate must be asked.
type tx struct {
	s   *Store
	q   *dbgen.Queries
	now int64

	turns    map[int64]*turnRow
	deltas   []*sessionDelta
	touched  []int64 // keys of root turns, in the order they were touched
	pending  []pendingEvent
	rootDone bool // a root turn settled

	workspace int64 // whose seq moves, 0 before the first event
	base      int64 // its seq before this unit of work
	committed []agent.Event
}

func newTx(s *Store) *tx {
	return &tx{s: s, q: s.w.q, now: micros(s.opt.Now())}
}

// ident is what never changes of a session, and whether it is a tombstone.
type ident struct {
	pk, workspace, root, parent int64
	id, rootID                  agent.SessionID
	workspaceID                 agent.WorkspaceID
	kind                        agent.Kind
	provider                    string
	deleted                     bool
}

func identOf(r *dbgen.Session) *ident {
	i := &ident{
		pk: r.PK, workspace: r.Workspace, root: r.Root, id: r.ID, rootID: r.RootID,
		workspaceID: r.WorkspaceID, kind: r.Kind, provider: r.Provider, deleted: r.DeletedAt != 0,
	}
	if r.Parent != nil {
		i.parent = *r.Parent
	}
	if i.kind == agent.KindRoot {
		i.rootID = i.id
	}
	return i
}

// session returns the identity of a session, tombstones included, or nil.
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
	t.s.w.idents[id] = i
	return i, nil
}

// liveSession is session for commands: what is missing or deleted is CodeNotFound.
func (t *tx) liveSession(id agent.SessionID) (*ident, error) {
	i, err := t.session(id)
	if err == nil && (i == nil || i.deleted) {
		err = notFound("session", id)
	}
	return i, err
}

// turnRow is one turn as this unit of work sees it.
type turnRow struct {
	dbgen.Turn
	openMessages bool // it has messages that have not ended; known when checked
	checked      bool
	dirty        bool // a root turn with columns to write, by the gate
	shown        bool // what people see of it changed
}

func (t *tx) hold(row dbgen.Turn) *turnRow {
	if r := t.turns[row.PK]; r != nil {
		return r
	}
	if t.turns == nil {
		t.turns = make(map[int64]*turnRow, 4)
	}
	r := &turnRow{Turn: row}
	t.turns[row.PK] = r
	return r
}

// turn returns a turn of exactly that session, or nil.
func (t *tx) turn(owner *ident, id agent.TurnID) (*turnRow, error) {
	if len(t.turns) <= 4 {
		for _, r := range t.turns {
			if r.ID == id && r.Session == owner.pk {
				return r, nil
			}
		}
	}
	row, err := t.q.TurnForFact(bg, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("turn %s: %w", id, err)
	}
	if row.Turn.Session != owner.pk {
		return nil, nil
	}
	r := t.hold(row.Turn)
	r.openMessages, r.checked = row.OpenMessages, true
	return r, nil
}

func (t *tx) turnByPK(pk int64) (*turnRow, error) {
	if r := t.turns[pk]; r != nil {
		return r, nil
	}
	row, err := t.q.TurnByPK(bg, pk)
	if err != nil {
		return nil, fmt.Errorf("turn %d: %w", pk, err)
	}
	return t.hold(row), nil
}

// openRootTurn returns the root turn of a root session that has not settled, or nil.
func (t *tx) openRootTurn(root int64) (*turnRow, error) {
	row, err := t.q.LiveRootTurn(bg, root)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open root turn: %w", err)
	}
	return t.hold(row), nil
}

// touch has the gate of a root turn asked at the end of this unit of work.
func (t *tx) touch(rootTurn int64) {
	if !slices.Contains(t.touched, rootTurn) {
		t.touched = append(t.touched, rootTurn)
	}
}

// sessionDelta is what changes of a session row besides what people may edit.
type sessionDelta struct {
	session         *ident
	pending, active int64
	latest          int64 // pk of a turn that began
	touch           bool  // it moves to the top of the list
	row             *dbgen.Session
}

// adjust returns the difference to write of a session; a session event follows.
func (t *tx) adjust(i *ident) *sessionDelta {
	for _, d := range t.deltas {
		if d.session.pk == i.pk {
			return d
		}
	}
	d := &sessionDelta{session: i}
	t.deltas = append(t.deltas, d)
	return d
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
	session *ident
	turnID  agent.TurnID
	turn    *turnRow       // turn events
	row     *dbgen.Session // session events
	entity  any            // message, interaction and operation events
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

// emitTurn says that a turn changed, once however often it did.
func (t *tx) emitTurn(kind agent.EventKind, owner *ident, r *turnRow) {
	for i := range t.pending {
		if t.pending[i].turn == r {
			return
		}
	}
	t.emit(pendingEvent{kind: kind, session: owner, turnID: r.ID, turn: r})
}

// emitTurns is emitTurn for many turns that have no event yet.
func (t *tx) emitTurns(rows []*turnRow, owner func(*turnRow) *ident) {
	for _, r := range rows {
		t.emit(pendingEvent{kind: agent.TurnUpdated, session: owner(r), turnID: r.ID, turn: r})
	}
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
	if len(t.pending) == 0 {
		return nil
	}
	if err := t.encodeEvents(); err != nil {
		return err
	}
	return t.insertEvents()
}

// writeSessions writes the differences, roots last, and emits their events.
func (t *tx) writeSessions() error {
	for _, roots := range []bool{false, true} {
		for _, d := range t.deltas {
			if (d.session.kind == agent.KindRoot) != roots {
				continue
			}
			row, err := t.writeSession(d)
			if err != nil {
				return fmt.Errorf("session %s: %w", d.session.id, err)
			}
			t.emit(pendingEvent{kind: agent.SessionUpdated, session: d.session, row: row})
		}
	}
	return nil
}

func (t *tx) writeSession(d *sessionDelta) (*dbgen.Session, error) {
	var row dbgen.Session
	var err error
	switch {
	case d.touch:
		row, err = t.q.AdjustAndTouchSession(bg, dbgen.AdjustAndTouchSessionParams{
			Pending: d.pending, Active: d.active, LatestTurn: d.latest, UpdatedAt: t.now, PK: d.session.pk})
	case d.pending != 0 || d.active != 0 || d.latest != 0 || d.row == nil:
		row, err = t.q.AdjustSession(bg, dbgen.AdjustSessionParams{
			Pending: d.pending, Active: d.active, LatestTurn: d.latest, PK: d.session.pk})
	default:
		return d.row, nil // written already, by the statement that knew more
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// encodeEvents gives every event its number and its data.
func (t *tx) encodeEvents() error {
	t.committed = make([]agent.Event, len(t.pending))
	at := timeOf(t.now)
	for i := range t.pending {
		p := &t.pending[i]
		data, err := t.encode(p)
		if err != nil {
			return fmt.Errorf("encode %s: %w", p.kind, err)
		}
		t.committed[i] = agent.Event{
			Seq: t.base + int64(i) + 1, Time: at, Kind: p.kind, SessionID: p.session.id, TurnID: p.turnID, Data: data,
			WorkspaceID: p.session.workspaceID, RootSessionID: p.session.rootID,
		}
	}
	return nil
}

func (t *tx) encode(p *pendingEvent) ([]byte, error) {
	switch {
	case p.turn != nil:
		turn := turnOf(&p.turn.Turn)
		return appendTurn(make([]byte, 0, 512), &turn), nil
	case p.row != nil:
		session, err := t.sessionEntity(p.row)
		if err != nil {
			return nil, err
		}
		return appendSession(make([]byte, 0, 2048), &session), nil
	}
	return marshal(p.entity)
}

// sessionEntity is the session with its latest turn, as this unit of work sees both.
func (t *tx) sessionEntity(row *dbgen.Session) (agent.Session, error) {
	var latest *dbgen.Turn
	if row.LatestTurn != 0 {
		r, err := t.turnByPK(row.LatestTurn)
		if err != nil {
			return agent.Session{}, err
		}
		latest = &r.Turn
	}
	return t.s.sessionOf(row, latest), nil
}

// insertEvents appends the events: all in one statement for the few of a common change,
// in pages for the many of a large tree.
func (t *tx) insertEvents() error {
	const exact, page = 12, 128
	at := micros(t.committed[0].Time)
	args := make([]any, 0, min(len(t.committed), page)*db.EventColumns)
	for rest := t.committed; len(rest) > 0; {
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
				string(e.RootSessionID), string(e.Data))
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
	t.s.w.seqs[t.workspace] = t.base + int64(len(t.committed))
	return nil
}
