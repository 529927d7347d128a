package store

import (
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// gateRow returns a root turn and whether anything lives below it, as of now.
func (t *tx) gateRow(pk int64) (*turnRow, bool, error) {
	r := t.s.w.turns[pk]
	if r == nil { // both in one statement
		row, err := t.q.GateRow(bg, pk)
		if err != nil {
			return nil, false, fmt.Errorf("root turn %d: %w", pk, err)
		}
		return t.hold(row.Turn, row.OpenMessages), row.LiveChildren, nil
	}
	if r.Phase == agent.PhaseSettled {
		return r, false, nil
	}
	live, err := t.q.HasLiveBelow(bg, pk)
	if err != nil {
		err = fmt.Errorf("live children: %w", err)
	}
	return r, live, err
}

// viewOf is what the gate knows of a root turn.
func viewOf(r *dbgen.Turn, liveChildren bool) agent.GateView {
	return agent.GateView{
		Phase: r.Phase, Outcome: r.Outcome,
		LiveProvider: int(r.ProviderLive), Reserved: int(r.ProviderReserved), Retained: r.Retained,
		LiveChildren: liveChildren, OwnPrompts: int(r.Prompts), Cancel: r.Cancel,
	}
}

// decide asks the gate of a root turn and writes what it must be. It is the only caller
// of agent.Gate that writes.
func (t *tx) decide(pk int64) error {
	r, live, err := t.gateRow(pk)
	if err != nil {
		return err
	}
	if r.Phase == agent.PhaseSettled {
		return t.writeLate(r)
	}
	d := agent.Gate(viewOf(&r.Turn, live))
	if d.Phase != r.Phase {
		r.dirty, r.shown = true, true
	}
	r.Phase = d.Phase
	if d.Phase == agent.PhaseRunning && r.StartedAt == 0 {
		r.StartedAt = t.now
	}
	prompts := r.Prompts
	if d.Phase == agent.PhaseSettled {
		settleRow(r, d.Outcome, errorOf(r.RetainedCode, r.RetainedText), t.now)
		r.Prompts = 0
	}
	if !r.dirty {
		return nil
	}
	if err := t.writeRootTurn(r); err != nil {
		return err
	}
	owner, err := t.session(r.SessionID)
	if err != nil {
		return err
	}
	if r.shown {
		t.emitTurn(agent.TurnUpdated, owner, r)
	}
	r.dirty, r.shown = false, false
	if d.Phase == agent.PhaseSettled {
		t.ended, t.idle = append(t.ended, r), append(t.idle, owner)
		t.s.activity.drop(r.PK)
		t.s.activity.dropTree(owner.pk)
		t.raise(owner)
		return t.closeTurns([]*turnRow{r}, prompts, owner)
	}
	return nil
}

// settleRow ends a turn as agent.Settle says.
func settleRow(r *turnRow, o agent.Outcome, cause *agent.Error, now int64) {
	applyState(r, agent.Settle(agent.TurnState{Root: r.IsRoot == 1, Phase: r.Phase}, o, cause))
	r.SettledAt = now
}

func (t *tx) writeRootTurn(r *turnRow) (err error) {
	var n int64
	if r.Phase == agent.PhaseSettled {
		n, err = t.q.SettleRootTurn(bg, dbgen.SettleRootTurnParams{
			Outcome: r.Outcome, ErrorCode: r.ErrorCode, ErrorText: r.ErrorText, Closed: r.Closed, Cancel: r.Cancel,
			ProviderLive: r.ProviderLive, ProviderReserved: r.ProviderReserved,
			Retained: r.Retained, RetainedCode: r.RetainedCode, RetainedText: r.RetainedText,
			ProviderID: r.ProviderID, ProviderNative: r.ProviderNative,
			ProviderOutcome: r.ProviderOutcome, ProviderUntil: r.ProviderUntil, SettledAt: r.SettledAt, PK: r.PK,
		})
	} else {
		n, err = t.q.MoveRootTurn(bg, dbgen.MoveRootTurnParams{
			Phase: r.Phase, Closed: r.Closed, Prompts: r.Prompts, Cancel: r.Cancel,
			ProviderLive: r.ProviderLive, ProviderReserved: r.ProviderReserved,
			Retained: r.Retained, RetainedCode: r.RetainedCode, RetainedText: r.RetainedText,
			ProviderID: r.ProviderID, ProviderNative: r.ProviderNative,
			ProviderOutcome: r.ProviderOutcome, ProviderUntil: r.ProviderUntil, StartedAt: r.StartedAt, PK: r.PK,
		})
	}
	if err != nil {
		return fmt.Errorf("root turn %s: %w", r.ID, err)
	}
	if n != 1 {
		return fmt.Errorf("%w: %s to %s %s", errGateDisagrees, r.ID, r.Phase, r.Outcome)
	}
	return nil
}

// writeLate keeps what a provider says of its own turn after the root turn has ended
// (spec: it must not stay "running" there), and changes nothing else.
func (t *tx) writeLate(r *turnRow) error {
	if !r.dirty {
		return nil
	}
	if err := t.q.WriteLateProvider(bg, dbgen.WriteLateProviderParams{
		ProviderLive: r.ProviderLive, ProviderReserved: r.ProviderReserved,
		ProviderID: r.ProviderID, ProviderNative: r.ProviderNative,
		ProviderOutcome: r.ProviderOutcome, ProviderUntil: r.ProviderUntil, PK: r.PK,
	}); err != nil {
		return fmt.Errorf("late provider turn: %w", err)
	}
	owner, err := t.session(r.SessionID)
	if err == nil && r.shown {
		t.emitTurn(agent.TurnUpdated, owner, r)
	}
	r.dirty, r.shown = false, false
	return err
}
