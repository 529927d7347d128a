package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// read runs do over one snapshot of the file.
func (s *Store) read(ctx context.Context, do func(*dbgen.Queries) error) error {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.reading }()
	tx, err := s.db.Readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return coded(err)
	}
	defer func() { _ = tx.Rollback() }() // a read has nothing to commit
	return coded(do(dbgen.New(prepared{stmtCache: &s.reads, direct: tx, tx: tx})))
}

// sessionRow is one session of a workspace that is not deleted.
func sessionRow(ctx context.Context, q *dbgen.Queries, ws agent.WorkspaceID, id agent.SessionID) (*dbgen.Session, error) {
	row, err := q.SessionByID(ctx, id)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (row.WorkspaceID != ws || row.DeletedAt != 0):
		return nil, notFound("session", id)
	case err != nil:
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return &row, nil
}

func (s *Store) entity(ctx context.Context, q *dbgen.Queries, row *dbgen.Session) (agent.Session, error) {
	if row.LatestTurn == 0 {
		return s.sessionOf(row, nil, 0), nil
	}
	t, err := q.TurnByPK(ctx, row.LatestTurn)
	if err != nil {
		return agent.Session{}, fmt.Errorf("latest turn of %s: %w", row.ID, err)
	}
	var live int64
	if t.IsRoot == 1 && t.Phase != agent.PhaseSettled {
		if live, err = q.CountLiveBelow(ctx, t.PK); err != nil {
			return agent.Session{}, fmt.Errorf("live turns below %s: %w", row.ID, err)
		}
	}
	return s.sessionOf(row, &t, live), nil
}

// Session returns one session. CodeNotFound.
func (s *Store) Session(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (out agent.Session, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err == nil {
			out, err = s.entity(ctx, q, row)
		}
		return err
	})
	return out, err
}

// Detail returns one session with every session below it and the number it is true at: one
// snapshot, read by the root of the tree, one row for each session. CodeNotFound.
func (s *Store) Detail(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (out agent.SessionDetail, err error) {
	out.Epoch, out.ChildSessions = s.epoch, []agent.Session{}
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		if out.Session, err = s.entity(ctx, q, row); err != nil {
			return err
		}
		if out.ChildSessions, err = s.tree(ctx, q, row); err != nil {
			return err
		}
		out.Seq, err = newestSeq(ctx, q, row.Workspace)
		return err
	})
	return out, err
}

// tree is every session below one, in order of creation.
func (s *Store) tree(ctx context.Context, q *dbgen.Queries, row *dbgen.Session) ([]agent.Session, error) {
	if row.Kind == agent.KindRoot {
		rows, err := q.TreeBelowRoot(ctx, row.PK)
		out := make([]agent.Session, len(rows))
		for i := range rows {
			out[i] = s.sessionOf(&rows[i].Session, &rows[i].Turn, 0)
		}
		return out, err
	}
	rows, err := q.TreeBelowChild(ctx, row.PK)
	out := make([]agent.Session, len(rows))
	for i := range rows {
		out[i] = s.sessionOf(&rows[i].Session, &rows[i].Turn, 0)
	}
	return out, err
}

// Remember returns what is known of a whole tree, for a runtime that opens. CodeNotFound.
func (s *Store) Remember(ctx context.Context, root agent.SessionID) (out agent.Remembered, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := q.SessionByID(ctx, root)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (row.DeletedAt != 0 || row.Kind != agent.KindRoot) {
			return notFound("root session", root)
		}
		if err != nil {
			return fmt.Errorf("session %s: %w", root, err)
		}
		if out.Root, err = s.entity(ctx, q, &row); err != nil {
			return err
		}
		if out.Children, err = s.tree(ctx, q, &row); err != nil {
			return err
		}
		turns, err := q.ProviderTurnsOfSession(ctx, row.PK)
		out.ProviderTurns = make([]agent.RememberedProviderTurn, len(turns))
		for i, p := range turns {
			out.ProviderTurns[i] = agent.RememberedProviderTurn{Turn: p.TurnID, Key: p.ID, NativeID: p.NativeID}
		}
		return err
	})
	return out, err
}

const maxSessionPage = 200

// List returns one page of root sessions, most recently updated first. CodeNotFound, and
// CodeInvalid for a cursor that is not one of ours.
func (s *Store) List(ctx context.Context, f agent.SessionFilter) (out agent.SessionPage, err error) {
	out.Items = []agent.Session{}
	limit := min(max(f.Limit, 1), maxSessionPage)
	p := dbgen.ListRootsParams{
		BeforeAt: math.MaxInt64, BeforePK: math.MaxInt64, Provider: f.Provider, Query: strings.ToLower(f.Query),
		Attention: string(f.Attention), Stalled: "[]", Page: int64(limit) + 1,
	}
	if f.Attention != "" {
		p.Stalled = keysJSON(s.activity.stalledTrees(s.opt.StallAfter, s.opt.Now()))
	}
	if f.Cursor != "" {
		if p.BeforeAt, p.BeforePK, err = parseCursor(f.Cursor); err != nil {
			return out, err
		}
	}
	err = s.read(ctx, func(q *dbgen.Queries) error {
		w, err := liveWorkspace(ctx, q, f.Workspace)
		if err != nil {
			return err
		}
		p.Workspace = w.PK
		rows, err := q.ListRoots(ctx, p)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if len(rows) > limit {
			rows = rows[:limit]
			out.NextCursor = cursor(rows[limit-1].UpdatedAt, rows[limit-1].PK)
		}
		if out.Items, err = s.withLatestTurns(ctx, q, rows); err != nil {
			return err
		}
		out.Seq, err = newestSeq(ctx, q, w.PK)
		return err
	})
	return out, err
}

// withLatestTurns reads the latest turns of a page of sessions in one statement: a root
// may have none, so they are not joined.
func (s *Store) withLatestTurns(ctx context.Context, q *dbgen.Queries, rows []dbgen.Session) ([]agent.Session, error) {
	keys := make([]int64, 0, len(rows))
	for i := range rows {
		if rows[i].LatestTurn != 0 {
			keys = append(keys, rows[i].LatestTurn)
		}
	}
	list := keysJSON(keys)
	turns, err := q.TurnsByPK(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("latest turns: %w", err)
	}
	counts, err := q.CountLiveBelowEach(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("live turns: %w", err)
	}
	live := make(map[int64]int64, len(counts))
	for _, c := range counts {
		live[c.RootTurn] = c.Live
	}
	byKey := make(map[int64]*dbgen.Turn, len(turns))
	for i := range turns {
		byKey[turns[i].PK] = &turns[i]
	}
	out := make([]agent.Session, len(rows))
	for i := range rows {
		out[i] = s.sessionOf(&rows[i], byKey[rows[i].LatestTurn], live[rows[i].LatestTurn])
	}
	return out, nil
}

// A cursor is where a page ended: two numbers that clients need not understand.

func cursor(at, pk int64) string { return fmt.Sprintf("%x-%x", at, pk) }

func parseCursor(s string) (at, pk int64, err error) {
	if n, err := fmt.Sscanf(s, "%x-%x", &at, &pk); n != 2 || err != nil || cursor(at, pk) != s {
		return 0, 0, agent.Errorf(agent.CodeInvalid, "%q is no cursor of this list", s)
	}
	return at, pk, nil
}

// Counts returns figures of the whole file.
func (s *Store) Counts(ctx context.Context) (out agent.Counts, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		for to, count := range map[*int64]func(context.Context) (int64, error){
			&out.Sessions: q.CountSessions, &out.RootSessions: q.CountRootSessions, &out.LiveTurns: q.CountLiveTurns, &out.PendingQuestions: q.CountOpenInteractions,
			&out.OpenOperations: q.CountOpenOperations, &out.OpenBelowSettled: q.CountOpenBelowSettled,
		} {
			n, err := count(ctx)
			if err != nil {
				return fmt.Errorf("counts: %w", err)
			}
			*to = n
		}
		return nil
	})
	return out, err
}
