package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// shownTargets is up to how many targets an operation may have for each piece of evidence
// to be an event of its own. An event carries the whole operation: of a large tree it is
// sent when the cancel is prepared, claimed and completed.
const shownTargets = 64

// insertOperation records an operation about a turn, due at once.
func (t *tx) insertOperation(owner *ident, r *turnRow, p dbgen.InsertOperationParams) (*dbgen.Operation, error) {
	p.ID = t.s.opt.Mint.Operation()
	p.Workspace, p.Root, p.Session, p.SessionID = owner.workspace, owner.root, owner.pk, owner.id
	p.Turn, p.TurnID, p.RootTurnID = r.PK, r.ID, r.RootTurnID
	p.Due, p.CreatedAt, p.UpdatedAt = t.now, t.now, t.now
	row, err := t.q.InsertOperation(bg, p)
	if err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	if p.Kind != agent.OperationCancel { // a cancel is shown with its targets
		t.emitOperation(owner.home, &row, nil)
	}
	return &row, nil
}

// emitOperation says that an operation changed, and returns it as it is told.
func (t *tx) emitOperation(of home, r *dbgen.Operation, targets []dbgen.OperationTarget) agent.Operation {
	shown := operationOf(r, targets)
	t.emit(pendingEvent{kind: agent.OperationUpdated, session: of, turnID: r.TurnID, entity: shown})
	return shown
}

// latestOperation is the newest operation of a kind about a turn, a question or a message
// of it, or nil.
func (t *tx) latestOperation(turn int64, id agent.TurnID, kind agent.OperationKind, request agent.RequestID, message agent.MessageID) (*dbgen.Operation, error) {
	row, err := t.q.LatestOperation(bg, dbgen.LatestOperationParams{Turn: turn, TurnID: id, Kind: kind, RequestID: request, MessageID: message})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	return &row, nil
}

// operation returns an operation with the session it is about. CodeNotFound.
func (t *tx) operation(id agent.OperationID) (*dbgen.Operation, *ident, error) {
	row, err := t.q.OperationByID(bg, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, notFound("operation", id)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("operation %s: %w", id, err)
	}
	owner, err := t.session(row.SessionID)
	if err == nil && owner == nil {
		err = fmt.Errorf("operation %s has no session", id)
	}
	return &row, owner, err
}

func (t *tx) writeOperation(r *dbgen.Operation) error {
	row, err := t.q.WriteOperation(bg, dbgen.WriteOperationParams{
		Status: r.Status, Attempts: r.Attempts, Due: r.Due, Worker: r.Worker, Deadline: r.Deadline,
		ErrorCode: r.ErrorCode, ErrorText: r.ErrorText, UpdatedAt: t.now, PK: r.PK,
	})
	if err != nil {
		return fmt.Errorf("operation %s: %w", r.ID, err)
	}
	*r = row
	return nil
}

// Claim gives a worker up to limit operations that are due: pending ones, and running ones
// whose lease has expired. Each counts an attempt and is held until the lease ends.
func (s *Store) Claim(ctx context.Context, worker string, lease time.Duration, limit int) ([]agent.Claimed, error) {
	var out []agent.Claimed
	_, err := s.write(ctx, func(t *tx) error {
		due, err := t.q.DueOperations(bg, dbgen.DueOperationsParams{Now: t.now, Page: int64(limit)})
		if err != nil {
			return fmt.Errorf("due operations: %w", err)
		}
		out = make([]agent.Claimed, 0, len(due))
		for i := range due {
			if i > 0 && due[i].Workspace != due[0].Workspace {
				continue // one unit of work numbers events of one workspace; the rest stays due
			}
			c, err := t.claim(&due[i], worker, lease)
			if err != nil {
				return err
			}
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (t *tx) claim(op *dbgen.Operation, worker string, lease time.Duration) (agent.Claimed, error) {
	op.Status, op.Worker, op.Due = agent.OperationRunning, worker, micros(t.s.opt.Now().Add(lease))
	op.Attempts++
	if err := t.writeOperation(op); err != nil {
		return agent.Claimed{}, err
	}
	targets, err := t.targets(op)
	if err != nil {
		return agent.Claimed{}, err
	}
	owner, err := t.session(op.SessionID)
	if err != nil {
		return agent.Claimed{}, err
	}
	t.emitOperation(owner.home, op, targets)
	asked, err := t.stillThere(targets)
	if err != nil {
		return agent.Claimed{}, err
	}
	c := agent.Claimed{
		Operation: operationOf(op, asked), Workspace: owner.workspaceID, RootTurn: op.RootTurnID,
		RootTarget: op.Kind == agent.OperationCancel && op.TurnID == op.RootTurnID,
	}
	root, err := t.root(owner)
	if err != nil {
		return c, err
	}
	if c.Root, err = t.sessionEntity(root); err != nil {
		return c, err
	}
	if op.Kind == agent.OperationAnswer {
		row, err := t.interaction(op.Turn, op.RequestID)
		if err != nil {
			return c, err
		}
		if row != nil {
			i := interactionOf(row)
			c.Interaction = &i
		}
	}
	if op.Kind == agent.OperationGuide {
		row, err := t.message(op.MessageID)
		if err != nil {
			return c, err
		}
		if row != nil {
			m := messageOf(row, "")
			c.Message = &m
		}
	}
	return c, nil
}

// stillThere leaves out the targets of a cancel that a deletion took: nothing is to be asked
// of them, though what was heard is kept.
func (t *tx) stillThere(targets []dbgen.OperationTarget) ([]dbgen.OperationTarget, error) {
	turns, err := t.holdTargets(targets)
	if err != nil || !slices.Contains(turns, nil) {
		return targets, err
	}
	var there []dbgen.OperationTarget
	for i := range targets {
		if turns[i] != nil {
			there = append(there, targets[i])
		}
	}
	return there, nil
}

// complete ends an open operation with what finish decides; one that has ended already is
// returned as it is.
func (s *Store) complete(ctx context.Context, id agent.OperationID, kind agent.OperationKind,
	finish func(*tx, *dbgen.Operation, []dbgen.OperationTarget) (agent.OperationStatus, *agent.Error, error),
) (agent.Operation, error) {
	var out agent.Operation
	_, err := s.write(ctx, func(t *tx) error {
		op, owner, err := t.operation(id)
		if err != nil {
			return err
		}
		if op.Kind != kind {
			return agent.Errorf(agent.CodeInvalid, "operation %s is no %s", id, kind)
		}
		targets, err := t.targets(op)
		if err != nil {
			return err
		}
		if op.Status.Open() {
			var shown *agent.Error
			if op.Status, shown, err = finish(t, op, targets); err != nil {
				return err
			}
			op.Worker = ""
			op.ErrorCode, op.ErrorText = codeText(shown)
			if err := t.writeOperation(op); err != nil {
				return err
			}
			out = t.emitOperation(owner.home, op, targets)
			delete(t.s.w.targets, op.PK)
			return nil
		}
		out = operationOf(op, targets)
		return nil
	})
	return out, err
}

// CompleteGuide records how the delivery of a guidance ended. A message that the provider
// did not take is undelivered. One that it took stays pending: taken is not read, and the
// adapter says when the agent has it, or that a stop lost it.
func (s *Store) CompleteGuide(ctx context.Context, id agent.OperationID, failure *agent.Error) (agent.Operation, error) {
	return s.complete(ctx, id, agent.OperationGuide, func(t *tx, op *dbgen.Operation, _ []dbgen.OperationTarget) (agent.OperationStatus, *agent.Error, error) {
		owner, err := t.liveSession(op.SessionID)
		if err != nil {
			return agent.OperationFailed, nil, err
		}
		row, err := t.message(op.MessageID)
		if err != nil {
			return agent.OperationFailed, nil, err
		}
		if failure != nil && row != nil && row.Status == agent.MessagePending {
			row.Status = agent.MessageUndelivered
			delete(t.s.w.streams, row.ID)
			if err := t.writeMessage(owner, row, ""); err != nil {
				return agent.OperationFailed, nil, err
			}
		}
		if failure != nil {
			return agent.OperationFailed, failure, nil
		}
		return agent.OperationSucceeded, nil, nil
	})
}

// Retry puts an open operation back, to be claimed again at notBefore, with what went wrong
// shown. One that has ended is left alone.
func (s *Store) Retry(ctx context.Context, id agent.OperationID, failure *agent.Error, notBefore time.Time) error {
	_, err := s.write(ctx, func(t *tx) error {
		op, owner, err := t.operation(id)
		if err != nil || !op.Status.Open() {
			return err
		}
		op.Status, op.Worker, op.Due = agent.OperationPending, "", micros(notBefore)
		op.ErrorCode, op.ErrorText = codeText(failure)
		if err := t.writeOperation(op); err != nil {
			return err
		}
		targets, err := t.targets(op)
		if err == nil {
			t.emitOperation(owner.home, op, targets)
		}
		return err
	})
	return err
}

// NextDue is when the next operation may be claimed; false if none is open.
func (s *Store) NextDue(ctx context.Context) (at time.Time, open bool, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		due, err := q.NextDue(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		at, open = timeOf(due), err == nil
		return err
	})
	return at, open, err
}
