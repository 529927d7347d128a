package store

import (
	"context"
	"fmt"
	"math"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// maxOperationPage bounds a page: a cancel carries a target for every turn of its tree.
const maxOperationPage = 100

// Operations returns one page of what was asked for about a session, newest first: of a root
// everything in its tree; of a child what is about it, and the cancels that have a turn of it
// among their targets. It is how a client that was not there knows what a stop was answered.
// CodeNotFound, and CodeInvalid for a cursor that is not one of ours.
func (s *Store) Operations(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, f agent.OperationFilter) (out agent.OperationPage, err error) {
	out.Items = []agent.Operation{}
	limit := min(max(f.Limit, 1), maxOperationPage)
	p := dbgen.OperationsOfTreeParams{Before: math.MaxInt64, Kind: string(f.Kind), Page: int64(limit) + 1}
	if f.Cursor != "" {
		if _, p.Before, err = parseCursor(f.Cursor); err != nil {
			return out, err
		}
	}
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		if p.Root = row.PK; row.Kind != agent.KindRoot {
			p.Root, p.SessionID = row.Root, string(row.ID)
		}
		rows, err := q.OperationsOfTree(ctx, p)
		if err != nil {
			return fmt.Errorf("operations of %s: %w", id, err)
		}
		if len(rows) > limit {
			rows = rows[:limit]
			out.NextCursor = cursor(0, rows[limit-1].PK)
		}
		if out.Items, err = withTargets(ctx, q, rows); err != nil {
			return err
		}
		out.Seq, err = newestSeq(ctx, q, row.Workspace)
		return err
	})
	return out, err
}

// withTargets reads the targets of a page of operations in one statement.
func withTargets(ctx context.Context, q *dbgen.Queries, rows []dbgen.Operation) ([]agent.Operation, error) {
	out := make([]agent.Operation, len(rows))
	if len(rows) == 0 {
		return out, nil
	}
	keys := make([]int64, len(rows))
	for i := range rows {
		keys[i] = rows[i].PK
	}
	targets, err := q.TargetsOfOperations(ctx, keysJSON(keys))
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	of := make(map[int64][]dbgen.OperationTarget, len(rows))
	for _, t := range targets {
		of[t.Operation] = append(of[t.Operation], t)
	}
	for i := range rows {
		out[i] = operationOf(&rows[i], of[rows[i].PK])
	}
	return out, nil
}
