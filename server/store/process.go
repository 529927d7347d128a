package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

func processOf(r *dbgen.Process) agent.Process {
	p := agent.Process{
		ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, CallID: r.CallID, Command: r.Command, Cwd: r.Cwd,
		Status: agent.ProcessRunning, Stoppable: r.Stoppable == 1, CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
		EndedAt: timeOrNil(r.EndedAt),
	}
	if r.EndedAt != 0 {
		p.Status = agent.ProcessEnded
	}
	return p
}

// seeProcess records a process that outlives its turn, or its end.
func (t *tx) seeProcess(owner *ident, p agent.Process) (agent.Applied, error) {
	row, err := t.q.Process(bg, dbgen.ProcessParams{Session: owner.pk, ID: p.ID})
	ended := p.Status == agent.ProcessEnded
	switch {
	case errors.Is(err, sql.ErrNoRows) && ended:
		return agent.Applied{Verdict: agent.VerdictUnchanged}, nil // nobody knew that it ran
	case errors.Is(err, sql.ErrNoRows):
		stoppable := int64(0)
		if p.Stoppable {
			stoppable = 1
		}
		row, err = t.q.InsertProcess(bg, dbgen.InsertProcessParams{
			ID: p.ID, Session: owner.pk, SessionID: owner.id, Root: owner.root, TurnID: p.TurnID, CallID: p.CallID,
			Command: p.Command, Cwd: p.Cwd, Stoppable: stoppable, CreatedAt: t.now, UpdatedAt: t.now,
		})
	case err == nil && ended && row.EndedAt == 0:
		row, err = t.q.EndProcess(bg, dbgen.EndProcessParams{EndedAt: t.now, PK: row.PK})
	case err == nil:
		return agent.Applied{Verdict: agent.VerdictUnchanged}, nil
	}
	if err != nil {
		return agent.Applied{}, fmt.Errorf("process %s of %s: %w", p.ID, owner.id, err)
	}
	t.emitProcess(owner, &row)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: row.TurnID}, nil
}

func (t *tx) emitProcess(owner *ident, r *dbgen.Process) {
	t.emit(pendingEvent{kind: agent.ProcessUpdated, session: owner.home, turnID: r.TurnID, entity: processOf(r)})
}

// loseProcesses ends what ran below a root whose provider is gone: its processes go with
// it.
func (t *tx) loseProcesses(root *ident) error {
	rows, err := t.q.RunningProcesses(bg, root.pk)
	if err != nil {
		return fmt.Errorf("processes of %s: %w", root.id, err)
	}
	for _, r := range rows {
		owner, err := t.session(r.SessionID)
		if err != nil {
			return err
		}
		row, err := t.q.EndProcess(bg, dbgen.EndProcessParams{EndedAt: t.now, PK: r.PK})
		if err != nil {
			return fmt.Errorf("process %s: %w", r.ID, err)
		}
		t.emitProcess(owner, &row)
	}
	return nil
}

// Processes lists the commands of a session that outlived their turns, of a root those of
// its whole tree, oldest first. CodeNotFound.
func (s *Store) Processes(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) ([]agent.Process, error) {
	out := []agent.Process{}
	err := s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		rows, err := processRows(ctx, q, row)
		for i := range rows {
			out = append(out, processOf(&rows[i]))
		}
		return err
	})
	return out, err
}

func processRows(ctx context.Context, q *dbgen.Queries, session *dbgen.Session) ([]dbgen.Process, error) {
	if session.Kind == agent.KindRoot {
		return q.ProcessesOfTree(ctx, session.PK)
	}
	return q.ProcessesOfSession(ctx, session.PK)
}

// Process returns one process. CodeNotFound.
func (s *Store) Process(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, process agent.ProcessID) (out agent.Process, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		session, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		row, err := q.Process(ctx, dbgen.ProcessParams{Session: session.PK, ID: process})
		if errors.Is(err, sql.ErrNoRows) {
			return notFound("process", process)
		}
		out = processOf(&row)
		return err
	})
	return out, err
}
