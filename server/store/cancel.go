package store

import (
	"cmp"
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
		op, err := t.latestOperation(r.PK, r.ID, agent.OperationCancel, "", "")
		if err != nil {
			return err
		}
		if op == nil && settled {
			return nil
		}
		if op == nil || !op.Status.Open() && !settled {
			out, err = t.prepareCancel(owner, r, op, client)
			return err
		}
		targets, err := t.targets(op)
		if err == nil {
			out = operationOf(op, targets)
		}
		return err
	})
	return out, settled, err
}

// prepareCancel opens a cancel, or again the one that ended, on everything that lives now.
func (t *tx) prepareCancel(owner *ident, r *turnRow, op *dbgen.Operation, client string) (agent.Operation, error) {
	var out agent.Operation
	children, err := t.liveTargets(owner, r)
	if err != nil {
		return out, err
	}
	again := op != nil
	deadline := micros(t.s.opt.Now().Add(t.s.opt.CancelBound))
	if op == nil {
		op, err = t.insertOperation(owner, r, dbgen.InsertOperationParams{
			Kind: agent.OperationCancel, Client: client, Deadline: deadline,
		})
	} else {
		op.Status, op.Due, op.Deadline, op.Worker, op.ErrorCode, op.ErrorText = agent.OperationPending, t.now, deadline, "", "", ""
		err = t.writeOperation(op)
	}
	if err != nil {
		return out, err
	}
	targets, err := t.closeTargets(owner, r, op, children, again)
	if err != nil {
		return out, err
	}
	return t.emitOperation(owner.home, op, targets), nil
}

// closeTargets closes the turns that a cancel is about, records them, and returns its targets.
func (t *tx) closeTargets(owner *ident, r *turnRow, op *dbgen.Operation, children []*turnRow, again bool) ([]dbgen.OperationTarget, error) {
	if err := t.closeChildren(owner, r, children); err != nil {
		return nil, err
	}
	if err := t.insertTargets(r, op, children, again); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	if r.IsRoot == 1 {
		children = append(children, r)
		r.Closed, r.Cancel, r.dirty = 1, agent.CancelOpen, true
		t.touch(r.PK)
	}
	if err := t.supersedeQuestions(owner, children); err != nil {
		return nil, err
	}
	if again { // those of earlier attempts that have ended since are targets too
		return t.targets(op)
	}
	targets := make([]dbgen.OperationTarget, len(children))
	for i, c := range children {
		targets[i] = dbgen.OperationTarget{Operation: op.PK, Turn: c.PK, SessionID: c.SessionID, TurnID: c.ID, State: agent.TargetRequested}
	}
	slices.SortFunc(targets, func(a, b dbgen.OperationTarget) int { return cmp.Compare(a.Turn, b.Turn) })
	t.s.w.targets[op.PK] = targets
	return targets, nil
}

// liveTargets is every live child turn that a cancel of r is about.
func (t *tx) liveTargets(owner *ident, r *turnRow) ([]*turnRow, error) {
	var keys []int64
	var err error
	if r.IsRoot == 1 {
		if all := t.remembered(owner, r); all != nil {
			return all, nil
		}
		keys, err = t.q.LiveBelow(bg, r.PK)
	} else {
		keys, err = t.q.LiveOfSubtree(bg, dbgen.LiveOfSubtreeParams{Session: owner.pk, RootTurn: r.RootTurn})
	}
	if err != nil {
		return nil, fmt.Errorf("live turns: %w", err)
	}
	return t.holdAll(keys)
}

// remembered is every live turn below a root turn in the order of sessions, or nil where the
// writer does not remember all of them.
func (t *tx) remembered(root *ident, r *turnRow) []*turnRow {
	if int64(len(t.s.w.turns)) < root.active {
		return nil
	}
	all := make([]*turnRow, 0, root.active)
	for _, c := range t.s.w.turns {
		if c.RootTurn == r.PK && c.IsRoot == 0 && c.SettledAt == 0 {
			all = append(all, c)
		}
	}
	if int64(len(all)) != root.active {
		return nil
	}
	slices.SortFunc(all, func(a, b *turnRow) int { return cmp.Compare(a.Session, b.Session) })
	return all
}

// holdAll returns turns in the order of their keys, nil for one that is not there; what the
// writer does not remember is read in one statement.
func (t *tx) holdAll(keys []int64) ([]*turnRow, error) {
	var missing []int64
	for _, pk := range keys {
		if t.s.w.turns[pk] == nil {
			missing = append(missing, pk)
		}
	}
	if len(missing) > 0 {
		rows, err := t.q.TurnsByPK(bg, keysJSON(missing))
		if err != nil {
			return nil, fmt.Errorf("turns: %w", err)
		}
		for i := range rows {
			t.hold(rows[i], true)
		}
	}
	out := make([]*turnRow, len(keys))
	for i, pk := range keys {
		out[i] = t.s.w.turns[pk]
	}
	return out, nil
}

// holdTargets returns the turns of a cancel's targets, nil for those that a deletion took.
func (t *tx) holdTargets(targets []dbgen.OperationTarget) ([]*turnRow, error) {
	keys := make([]int64, len(targets))
	for i := range targets {
		keys[i] = targets[i].Turn
	}
	turns, err := t.holdAll(keys)
	for i, r := range turns {
		if r != nil && r.ID != targets[i].TurnID {
			return nil, fmt.Errorf("turn %d is %s, not the target %s", r.PK, r.ID, targets[i].TurnID)
		}
	}
	return turns, err
}

// closeChildren is the fence: the targets below what is canceled are settling from here on.
func (t *tx) closeChildren(owner *ident, canceled *turnRow, rows []*turnRow) error {
	if len(rows) == 0 {
		return nil
	}
	root, err := t.root(owner)
	if err != nil {
		return err
	}
	var n int64
	if canceled.IsRoot == 1 {
		n, err = t.q.CloseLiveBelow(bg, canceled.PK)
	} else {
		n, err = t.q.CloseTurns(bg, keysJSON(keysOf(rows)))
	}
	if err != nil {
		return fmt.Errorf("close %d turns: %w", len(rows), err)
	}
	if n != int64(len(rows)) {
		return fmt.Errorf("close %d turns: %d were live", len(rows), n)
	}
	t.pending = slices.Grow(t.pending, len(rows))
	for _, r := range rows {
		next, verdict, _ := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepClose})
		applyState(r, next)
		r.Closed = 1
		if verdict == agent.VerdictApplied {
			t.emit(pendingEvent{kind: agent.TurnUpdated, session: below(root, r.SessionID), turnID: r.ID, turn: r})
		}
	}
	return nil
}

// supersedeQuestions closes what the targets ask: an answer would reach a turn that is being
// stopped.
func (t *tx) supersedeQuestions(owner *ident, targets []*turnRow) error {
	var asking []int64
	for _, r := range targets {
		if r.Prompts > 0 {
			r.Prompts = 0 // of a child, closing has written it
			asking = append(asking, r.PK)
		}
	}
	if len(asking) == 0 {
		return nil
	}
	return t.closeInteractions(asking, owner)
}

// evidenceWords say what was heard, for people.
var evidenceWords = map[agent.TargetState]string{
	agent.TargetAcknowledged:    "the provider took the request",
	agent.TargetCanceled:        "the provider confirmed the end",
	agent.TargetAlreadyTerminal: "it had ended by itself",
}

// Hear records what an adapter learned of targets. Evidence never weakens: an error says
// nothing of a target whose end is known. What comes after the operation has ended is dropped.
func (s *Store) Hear(ctx context.Context, id agent.OperationID, heard []agent.Evidence) error {
	if len(heard) == 0 {
		return nil
	}
	_, err := s.write(ctx, func(t *tx) error {
		op, owner, err := t.operation(id)
		if err != nil || !op.Status.Open() {
			return err
		}
		targets, err := t.targets(op)
		if err != nil {
			return err
		}
		changed := false
		find := finder(targets, len(heard))
		for _, e := range heard {
			i := find(e.SessionID, e.TurnID)
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
			t.emitOperation(owner.home, op, targets)
		}
		return nil
	})
	return err
}

func (t *tx) hear(op *dbgen.Operation, o *dbgen.OperationTarget, e agent.Evidence) (bool, error) {
	state, words := o.State, o.Evidence
	next := state.Stronger(e.State)
	ended := state.Stronger(agent.TargetCanceled) == state
	switch {
	case e.Err != nil && !ended:
		words = e.Err.Message
	case e.Err == nil && next != state:
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
	return s.complete(ctx, id, agent.OperationCancel, func(t *tx, op *dbgen.Operation, targets []dbgen.OperationTarget) (agent.OperationStatus, *agent.Error, error) {
		states, err := t.settleTargets(op, targets)
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
func (t *tx) settleTargets(op *dbgen.Operation, targets []dbgen.OperationTarget) ([]agent.TargetState, error) {
	turns, err := t.holdTargets(targets)
	if err != nil {
		return nil, err
	}
	root, err := t.rootOf(op)
	if err != nil {
		return nil, err
	}
	endings := make([]ending, 0, len(targets))
	states := make([]agent.TargetState, len(targets))
	for i, r := range turns {
		if r == nil { // deleted meanwhile: all there is is what was heard before
			_, states[i] = agent.CancelOutcome(agent.CancelTarget{Evidence: targets[i].State})
			continue
		}
		var outcome agent.Outcome
		outcome, states[i] = agent.CancelOutcome(agent.CancelTarget{
			Root: r.IsRoot == 1, Settled: r.Phase == agent.PhaseSettled, Outcome: r.Outcome, Evidence: targets[i].State,
		})
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
	if err := t.writeStates(op, targets, states); err != nil {
		return nil, err
	}
	for i := range targets {
		targets[i].State = states[i]
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
