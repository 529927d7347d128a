package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// PrepareCancel records the wish to stop a turn: of a root turn everything under it, of a
// child's turn that one and what lives below its session. The targets are chosen inside
// the transaction, which also closes them and, for a root turn, everything that might
// still start under it (decisions.md 10). A turn that has settled is reported as such with the
// operation that stopped it, if one did. An open operation is returned as it is; one
// that ended while the turn lives gets another attempt. CodeNotFound.
func (s *Store) PrepareCancel(ctx context.Context, session agent.SessionID, turn agent.TurnID, client string) (agent.Operation, bool, error) {
	var out agent.Operation
	var settled bool
	_, err := s.write(ctx, func(t *tx) error {
		owner, err := t.liveSession(session)
		if err != nil {
			return err
		}
		r, err := t.turn(owner, turn)
		if err == nil && r == nil {
			err = notFound("turn", turn)
		}
		if err != nil {
			return err
		}
		settled = r.Phase == agent.PhaseSettled
		op, err := t.latestOperation(r.PK, agent.OperationCancel, "", "")
		if err != nil {
			return err
		}
		if op == nil && settled {
			return nil
		}
		if op == nil || !op.Status.Open() && !settled {
			if op, err = t.prepareCancel(owner, r, op, client); err != nil {
				return err
			}
		}
		targets, err := t.q.Targets(bg, op.PK)
		if err != nil {
			return fmt.Errorf("targets of %s: %w", op.ID, err)
		}
		out = operationOf(op, targets)
		if op.Status == agent.OperationPending && op.UpdatedAt == t.now {
			t.emitOperation(owner, op, targets)
		}
		return nil
	})
	return out, settled, err
}

// prepareCancel opens a cancel, or again the one that ended, on everything that lives now.
func (t *tx) prepareCancel(owner *ident, r *turnRow, op *dbgen.Operation, client string) (*dbgen.Operation, error) {
	children, err := t.liveTargets(owner, r)
	if err != nil {
		return nil, err
	}
	deadline := micros(t.s.opt.Now().Add(t.s.opt.CancelBound))
	if op == nil {
		op, err = t.insertOperation(owner, r, dbgen.InsertOperationParams{
			Kind: agent.OperationCancel, Client: client, Deadline: deadline})
	} else {
		op.Status, op.Due, op.Deadline, op.Worker, op.ErrorCode, op.ErrorText = agent.OperationPending, t.now, deadline, "", "", ""
		err = t.writeOperation(op)
	}
	if err != nil {
		return nil, err
	}
	keys := make([]int64, len(children), len(children)+1)
	for i, c := range children {
		keys[i] = c.PK
	}
	if err := t.closeChildren(owner, children, keys); err != nil {
		return nil, err
	}
	if r.IsRoot == 1 {
		keys = append(keys, r.PK)
		r.Closed, r.Cancel, r.dirty = 1, agent.CancelOpen, true
		t.touch(r.PK)
	}
	if err := t.q.InsertTargets(bg, dbgen.InsertTargetsParams{Operation: op.PK, Keys: keysJSON(keys)}); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	return op, nil
}

// liveTargets is every live child turn that a cancel of r is about.
func (t *tx) liveTargets(owner *ident, r *turnRow) ([]*turnRow, error) {
	var rows []dbgen.Turn
	var err error
	if r.IsRoot == 1 {
		rows, err = t.q.LiveBelow(bg, r.PK)
	} else {
		rows, err = t.q.LiveOfSubtree(bg, dbgen.LiveOfSubtreeParams{Session: owner.pk, RootTurn: r.RootTurn})
	}
	if err != nil {
		return nil, fmt.Errorf("live turns: %w", err)
	}
	return t.holdAll(rows), nil
}

func (t *tx) holdAll(rows []dbgen.Turn) []*turnRow {
	out := make([]*turnRow, len(rows))
	for i := range rows {
		out[i] = t.hold(rows[i], true)
	}
	return out
}

// closeChildren is the fence: the targets are settling from here on.
func (t *tx) closeChildren(owner *ident, rows []*turnRow, keys []int64) error {
	if len(rows) == 0 {
		return nil
	}
	root, err := t.root(owner)
	if err != nil {
		return err
	}
	n, err := t.q.CloseTurns(bg, keysJSON(keys))
	if err != nil {
		return fmt.Errorf("close %d turns: %w", len(rows), err)
	}
	if n != int64(len(rows)) {
		return fmt.Errorf("close %d turns: %d were live", len(rows), n)
	}
	for _, r := range rows {
		next, verdict, _ := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepClose})
		applyState(r, next)
		r.Closed = 1
		if verdict == agent.VerdictApplied {
			t.emit(pendingEvent{kind: agent.TurnUpdated, session: below(root, r), turnID: r.ID, turn: r})
		}
	}
	return nil
}

// evidenceWords say what was heard, for people.
var evidenceWords = map[agent.TargetState]string{
	agent.TargetAcknowledged:    "the provider took the request",
	agent.TargetCanceled:        "the provider confirmed the end",
	agent.TargetAlreadyTerminal: "it had ended by itself",
}

// Hear records what an adapter learned of targets. Evidence never weakens; what comes
// after the operation has ended is dropped.
func (s *Store) Hear(ctx context.Context, id agent.OperationID, heard []agent.Evidence) error {
	if len(heard) == 0 {
		return nil
	}
	_, err := s.write(ctx, func(t *tx) error {
		op, owner, err := t.operation(id)
		if err != nil || !op.Status.Open() {
			return err
		}
		targets, err := t.q.Targets(bg, op.PK)
		if err != nil {
			return fmt.Errorf("targets of %s: %w", id, err)
		}
		changed := false
		for _, e := range heard {
			i := slices.IndexFunc(targets, func(o dbgen.OperationTarget) bool {
				return o.TurnID == e.TurnID && o.SessionID == e.SessionID
			})
			if i < 0 {
				continue // not one of ours: nothing is decided by it
			}
			moved, err := t.hear(op, &targets[i], e)
			if err != nil {
				return err
			}
			changed = changed || moved
		}
		if changed && len(targets) <= shownTargets {
			t.emitOperation(owner, op, targets)
		}
		return nil
	})
	return err
}

func (t *tx) hear(op *dbgen.Operation, o *dbgen.OperationTarget, e agent.Evidence) (bool, error) {
	state, words := o.State, o.Evidence
	if e.Err != nil {
		words = e.Err.Message
	} else if next := state.Stronger(e.State); next != state {
		state, words = next, evidenceWords[next]
	}
	if state == o.State && words == o.Evidence {
		return false, nil
	}
	o.State, o.Evidence = state, words
	if err := t.q.WriteTarget(bg, dbgen.WriteTargetParams{State: state, Evidence: words, Operation: op.PK, Turn: o.Turn}); err != nil {
		return false, fmt.Errorf("evidence of %s: %w", o.TurnID, err)
	}
	return true, nil
}

// CompleteCancel ends a cancel with the evidence there is, in one commit: every target
// settles, questions and messages close, and the gate is released. It always does, so that
// an open cancel never holds a root for ever; failure says why the provider could not be
// asked, and makes the operation failed unless every target was confirmed all the same.
func (s *Store) CompleteCancel(ctx context.Context, id agent.OperationID, failure *agent.Error) (agent.Operation, error) {
	return s.complete(ctx, id, agent.OperationCancel, func(t *tx, op *dbgen.Operation) (agent.OperationStatus, *agent.Error, error) {
		states, err := t.settleTargets(op)
		if err != nil {
			return agent.OperationFailed, nil, err
		}
		status := agent.CancelStatus(states)
		switch {
		case status == agent.OperationSucceeded:
			return status, nil, nil
		case failure != nil:
			return agent.OperationFailed, failure, nil
		}
		return status, nil, nil
	})
}

// settleTargets ends the targets of a cancel and returns what each now reads.
func (t *tx) settleTargets(op *dbgen.Operation) ([]agent.TargetState, error) {
	rows, err := t.q.TargetsWithTurns(bg, op.PK)
	if err != nil {
		return nil, fmt.Errorf("targets of %s: %w", op.ID, err)
	}
	root, err := t.rootOf(op)
	if err != nil {
		return nil, err
	}
	var endings []ending
	states := make([]agent.TargetState, len(rows))
	words := map[agent.TargetState][]int64{} // targets whose row changes, by what it then reads
	for i := range rows {
		o, r := &rows[i].OperationTarget, t.hold(rows[i].Turn, true)
		outcome, state := agent.CancelOutcome(agent.CancelTarget{
			Root: r.IsRoot == 1, Settled: r.Phase == agent.PhaseSettled, Outcome: r.Outcome, Evidence: o.State})
		if states[i] = state; state != o.State {
			words[state] = append(words[state], o.Turn)
		}
		switch {
		case r.Phase == agent.PhaseSettled:
		case r.IsRoot == 1:
			r.Cancel, r.dirty = agent.CancelDone, true
			t.touch(r.PK)
		default:
			next, _, _ := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepStop, Outcome: outcome})
			endings = append(endings, ending{r, next})
		}
	}
	for state, turns := range words {
		if err := t.q.WriteTargets(bg, dbgen.WriteTargetsParams{State: state, Operation: op.PK, Turns: keysJSON(turns)}); err != nil {
			return nil, fmt.Errorf("targets of %s: %w", op.ID, err)
		}
	}
	return states, t.settleChildren(root, endings)
}

func (t *tx) rootOf(op *dbgen.Operation) (*ident, error) {
	owner, err := t.session(op.SessionID)
	if err != nil {
		return nil, err
	}
	return t.root(owner)
}
