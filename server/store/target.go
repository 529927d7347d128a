package store

import (
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// targets is what an operation is about, in the order of keys. Those of an open cancel are
// remembered: of a large tree, every piece of evidence would read thousands of rows. Whoever
// changes one writes the row as well.
func (t *tx) targets(op *dbgen.Operation) ([]dbgen.OperationTarget, error) {
	if op.Kind != agent.OperationCancel {
		return nil, nil
	}
	if known := t.s.w.targets[op.PK]; known != nil {
		return known, nil
	}
	rows, err := t.q.Targets(bg, op.PK)
	if err != nil {
		return nil, fmt.Errorf("targets of %s: %w", op.ID, err)
	}
	if op.Status.Open() && len(rows) > 0 {
		t.s.w.targets[op.PK] = rows
	}
	return rows, nil
}

// insertTargets records what a cancel of r is about: the children, and r if it is a root turn.
func (t *tx) insertTargets(r *turnRow, op *dbgen.Operation, children []*turnRow, again bool) error {
	keys := []int64{r.PK}
	switch {
	case again || r.IsRoot == 0:
		delete(t.s.w.targets, op.PK)
		keys = keysOf(children)
		if r.IsRoot == 1 {
			keys = append(keys, r.PK)
		}
	case len(children) > 0:
		if err := t.q.InsertTargetsBelow(bg, dbgen.InsertTargetsBelowParams{Operation: op.PK, RootTurn: r.PK}); err != nil {
			return err
		}
	}
	return t.q.InsertTargets(bg, dbgen.InsertTargetsParams{Operation: op.PK, Keys: keysJSON(keys)})
}

// writeStates writes what each target now reads: the state that most have to all of them,
// and then the others.
func (t *tx) writeStates(op *dbgen.Operation, targets []dbgen.OperationTarget, states []agent.TargetState) error {
	groups := map[agent.TargetState][]int64{}
	var most agent.TargetState
	changed := false
	for i, state := range states {
		groups[state] = append(groups[state], targets[i].Turn)
		if len(groups[state]) > len(groups[most]) {
			most = state
		}
		changed = changed || targets[i].State != state
	}
	if !changed {
		return nil
	}
	err := t.q.WriteAllTargets(bg, dbgen.WriteAllTargetsParams{State: most, Operation: op.PK})
	for state, turns := range groups {
		if state != most && err == nil {
			err = t.q.WriteTargets(bg, dbgen.WriteTargetsParams{State: state, Operation: op.PK, Turns: keysJSON(turns)})
		}
	}
	if err != nil {
		return fmt.Errorf("targets of %s: %w", op.ID, err)
	}
	return nil
}

// finder looks targets up by name: one after the other for a few, through a map for many.
func finder(targets []dbgen.OperationTarget, times int) func(agent.SessionID, agent.TurnID) int {
	if times < 8 {
		return func(s agent.SessionID, id agent.TurnID) int {
			return slices.IndexFunc(targets, func(o dbgen.OperationTarget) bool { return o.TurnID == id && o.SessionID == s })
		}
	}
	at := make(map[agent.TurnID]int, len(targets))
	for i := range targets {
		at[targets[i].TurnID] = i
	}
	return func(s agent.SessionID, id agent.TurnID) int {
		if i, ok := at[id]; ok && targets[i].SessionID == s {
			return i
		}
		return -1
	}
}

func keysOf(rows []*turnRow) []int64 {
	keys := make([]int64, len(rows), len(rows)+1)
	for i, r := range rows {
		keys[i] = r.PK
	}
	return keys
}
