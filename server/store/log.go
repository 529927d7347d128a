package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

const seqMask = 1<<seqBits - 1

// newestSeq is the number of a workspace's newest event, 0 before any.
func newestSeq(ctx context.Context, q *dbgen.Queries, ws int64) (int64, error) {
	pk, err := q.NewestEvent(ctx, (ws+1)<<seqBits)
	if errors.Is(err, sql.ErrNoRows) || err == nil && pk>>seqBits != ws {
		return 0, nil
	}
	return pk & seqMask, err
}

// oldestSeq is the number of the oldest event that is kept, 0 if there is none.
func oldestSeq(ctx context.Context, q *dbgen.Queries, ws int64) (int64, error) {
	pk, err := q.OldestEvent(ctx, ws<<seqBits)
	if errors.Is(err, sql.ErrNoRows) || err == nil && pk>>seqBits != ws {
		return 0, nil
	}
	return pk & seqMask, err
}

// maxLogPage bounds one answer of Events.
const maxLogPage = 1000

// Events returns up to limit events of a workspace after a number, oldest first, with the
// newest and the oldest number there are: all true at one moment. CodeNotFound.
func (s *Store) Events(ctx context.Context, ws agent.WorkspaceID, after int64, limit int) (agent.Log, error) {
	log := agent.Log{Items: []agent.Event{}, Epoch: s.epoch}
	err := s.read(ctx, func(q *dbgen.Queries) error {
		w, err := liveWorkspace(ctx, q, ws)
		if err != nil {
			return err
		}
		if log.Seq, log.Oldest, err = ends(ctx, q, w.PK); err != nil {
			return err
		}
		log.Items, err = eventsBetween(ctx, q, &w, span{max(after, 0), log.Oldest, log.Seq, min(max(limit, 1), maxLogPage)})
		return err
	})
	return log, err
}

// Head returns the newest number of a workspace, the epoch, and the oldest number kept
// (newest + 1 where none is). CodeNotFound.
func (s *Store) Head(ctx context.Context, ws agent.WorkspaceID) (seq int64, epoch string, oldest int64, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		w, err := liveWorkspace(ctx, q, ws)
		if err == nil {
			seq, oldest, err = ends(ctx, q, w.PK)
		}
		return err
	})
	return seq, s.epoch, oldest, err
}

func ends(ctx context.Context, q *dbgen.Queries, ws int64) (newest, oldest int64, err error) {
	if newest, err = newestSeq(ctx, q, ws); err != nil {
		return 0, 0, fmt.Errorf("newest event: %w", err)
	}
	if oldest, err = oldestSeq(ctx, q, ws); err != nil {
		return 0, 0, fmt.Errorf("oldest event: %w", err)
	}
	if oldest == 0 {
		oldest = newest + 1
	}
	return newest, oldest, nil
}

func eventOf(r *dbgen.Event, ws agent.WorkspaceID) agent.Event {
	if len(r.Data) == 0 {
		return erased(r, ws)
	}
	return agent.Event{
		Seq: r.PK & seqMask, Time: timeOf(r.At), Kind: r.Kind, SessionID: r.SessionID, TurnID: r.TurnID,
		Data: r.Data, WorkspaceID: ws, RootSessionID: r.RootID,
	}
}

// erased is an event whose content was deleted: it tells that its session is gone.
func erased(r *dbgen.Event, ws agent.WorkspaceID) agent.Event {
	gone := agent.Session{
		ID: r.SessionID, WorkspaceID: ws, Kind: agent.KindRoot, Attention: agent.AttentionNone,
		CreatedAt: timeOf(r.At), UpdatedAt: timeOf(r.At),
	}
	if r.SessionID != r.RootID {
		gone.Kind, gone.RootSessionID = agent.KindChild, r.RootID
	}
	return agent.Event{
		Seq: r.PK & seqMask, Time: timeOf(r.At), Kind: agent.SessionDeleted, SessionID: r.SessionID,
		Data: agent.AppendSession(nil, &gone), WorkspaceID: ws, RootSessionID: r.RootID,
	}
}
