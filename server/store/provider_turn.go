package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// startProviderTurn records a provider turn under its root turn. It clears the outcome
// that was retained, as the later turn decides; one that is only reserved does not,
// until it speaks.
func (t *tx) startProviderTurn(owner *ident, f agent.ProviderTurnStarted) (agent.Applied, error) {
	if owner.kind != agent.KindRoot {
		return refused(agent.CodeUnknownOwner), nil
	}
	known, err := t.providerTurn(owner, f.Turn, f.Key)
	if err != nil {
		return agent.Applied{}, err
	}
	if known != nil {
		return t.sayMoreOfProviderTurn(known, f)
	}
	root, code, err := t.placeProviderTurn(owner, f.Turn)
	if err != nil || code != "" {
		return refused(code), err
	}
	p := dbgen.InsertProviderTurnParams{
		Turn: root.PK, TurnID: root.ID, Session: owner.pk, ID: f.Key, NativeID: f.NativeID,
		Phase: agent.ProviderRunning, CreatedAt: t.now,
	}
	root.ProviderLive++
	if f.Reserved != nil {
		p.Phase, p.Deadline = agent.ProviderReserved, micros(*f.Reserved)
		root.ProviderReserved++
	} else {
		dropRetained(root)
	}
	if err := t.q.InsertProviderTurn(bg, p); err != nil {
		return agent.Applied{}, fmt.Errorf("provider turn %s: %w", f.Key, err)
	}
	t.showProviderTurn(root, &dbgen.ProviderTurn{ID: f.Key, NativeID: f.NativeID, Deadline: p.Deadline})
	t.s.activity.heard(root.PK, owner.pk, t.now)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: root.ID}, nil
}

func dropRetained(root *turnRow) { root.Retained, root.RetainedCode, root.RetainedText = "", "", "" }

// showProviderTurn makes a provider turn the one that people see, and has the gate asked.
func (t *tx) showProviderTurn(root *turnRow, p *dbgen.ProviderTurn) {
	root.ProviderID, root.ProviderNative, root.ProviderOutcome, root.ProviderUntil = p.ID, p.NativeID, p.Outcome, max(p.EndedAt, p.Deadline)
	root.dirty, root.shown = true, true
	t.touch(root.PK)
}

// providerTurn returns a provider turn by the adapter's key: of the root turn named, else
// the newest of the session with that key; nil if there is none.
func (t *tx) providerTurn(owner *ident, turn agent.TurnID, key agent.ProviderTurnID) (*dbgen.ProviderTurn, error) {
	var row dbgen.ProviderTurn
	var err error
	if turn != "" {
		r, e := t.turn(owner, turn)
		if e != nil || r == nil {
			return nil, e
		}
		row, err = t.q.ProviderTurn(bg, dbgen.ProviderTurnParams{Turn: r.PK, ID: key})
	} else {
		row, err = t.q.LatestProviderTurn(bg, dbgen.LatestProviderTurnParams{Session: owner.pk, ID: key})
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("provider turn %s: %w", key, err)
	}
	return &row, nil
}

// placeProviderTurn finds the root turn that a new provider turn runs under.
func (t *tx) placeProviderTurn(owner *ident, id agent.TurnID) (*turnRow, agent.Code, error) {
	if id != "" {
		r, err := t.turn(owner, id)
		switch {
		case err != nil:
			return nil, "", err
		case r == nil || r.IsRoot == 0:
			return nil, agent.CodeUnknownOwner, nil
		case r.Phase == agent.PhaseSettled:
			return nil, agent.CodeTurnSettled, nil
		case r.Closed == 1:
			return nil, agent.CodeTurnCanceling, nil
		}
		return r, "", nil
	}
	view := agent.AdmitView{RootExists: true, SessionGone: owner.deleted}
	var latest *turnRow
	if owner.row.LatestTurn != 0 {
		var err error
		if latest, err = t.turnByPK(owner.row.LatestTurn); err != nil {
			return nil, "", err
		}
		view.RootOpen = latest.Phase != agent.PhaseSettled
		view.RootClosed = latest.Closed == 1
		view.UnaskedBarred = latest.Outcome == agent.OutcomeCanceled
	}
	switch where, code := agent.AdmitProviderTurn(view); where {
	case agent.AdmissionAttach:
		return latest, "", nil
	case agent.AdmissionNew:
		r, err := t.newRootTurn(owner, agent.TriggerProvider)
		return r, "", err
	default:
		return nil, code, nil
	}
}

// newRootTurn begins a root turn.
func (t *tx) newRootTurn(owner *ident, cause agent.Trigger) (*turnRow, error) {
	t.s.w.turnKey++
	row := dbgen.Turn{
		PK: t.s.w.turnKey, ID: t.s.opt.Mint.Turn(), Session: owner.pk, SessionID: owner.id, IsRoot: 1,
		Cause: cause, Phase: agent.PhaseSubmitted, CreatedAt: t.now,
	}
	row.RootTurn, row.RootTurnID = row.PK, row.ID
	r, err := t.insertTurn(owner, row)
	if err == nil {
		t.touch(r.PK)
		t.raise(owner)
		t.latest(owner, r.PK)
	}
	return r, err
}

// insertTurn writes a new turn, which becomes the latest of its session.
func (t *tx) insertTurn(owner *ident, row dbgen.Turn) (*turnRow, error) {
	if err := t.q.InsertTurn(bg, dbgen.InsertTurnParams{
		PK: row.PK, ID: row.ID, Session: row.Session, SessionID: row.SessionID, RootTurn: row.RootTurn,
		RootTurnID: row.RootTurnID, IsRoot: row.IsRoot, Cause: row.Cause, Phase: row.Phase, NativeID: row.NativeID,
		CreatedAt: row.CreatedAt, StartedAt: row.StartedAt,
	}); err != nil {
		return nil, fmt.Errorf("turn %s: %w", row.ID, err)
	}
	r := t.hold(row, false)
	t.s.activity.heard(row.PK, owner.root, t.now)
	t.emitTurn(agent.TurnCreated, owner, r)
	return r, nil
}

// sayMoreOfProviderTurn takes a second report of the same key: the native id, or the
// first words of a reservation.
func (t *tx) sayMoreOfProviderTurn(p *dbgen.ProviderTurn, f agent.ProviderTurnStarted) (agent.Applied, error) {
	out := agent.Applied{Verdict: agent.VerdictUnchanged, Turn: p.TurnID}
	root, err := t.turnByPK(p.Turn)
	if err != nil {
		return out, err
	}
	speaks := p.Phase == agent.ProviderReserved && f.Reserved == nil
	if root.Phase == agent.PhaseSettled && speaks {
		return agent.Applied{Verdict: agent.VerdictRefused, Code: agent.CodeTurnSettled, Turn: p.TurnID}, nil
	}
	named := f.NativeID != "" && f.NativeID != p.NativeID
	if !speaks && !named {
		return out, nil
	}
	if named {
		p.NativeID = f.NativeID
	}
	if speaks {
		p.Phase, p.Deadline = agent.ProviderRunning, 0
		root.ProviderReserved--
		dropRetained(root)
		root.dirty = true
		t.touch(root.PK)
	}
	if err := t.writeProviderTurn(p); err != nil {
		return out, err
	}
	if speaks || root.ProviderID == p.ID {
		t.showProviderTurn(root, p)
	}
	out.Verdict = agent.VerdictApplied
	return out, nil
}

func (t *tx) writeProviderTurn(p *dbgen.ProviderTurn) error {
	if err := t.q.UpdateProviderTurn(bg, dbgen.UpdateProviderTurnParams{
		NativeID: p.NativeID, Phase: p.Phase, Outcome: p.Outcome, ErrorCode: p.ErrorCode, ErrorText: p.ErrorText,
		Deadline: p.Deadline, EndedAt: p.EndedAt, PK: p.PK,
	}); err != nil {
		return fmt.Errorf("provider turn %s: %w", p.ID, err)
	}
	return nil
}

// endProviderTurn retains a provider turn's outcome. The gate decides what it is worth.
func (t *tx) endProviderTurn(owner *ident, f agent.ProviderTurnEnded) (agent.Applied, error) {
	p, err := t.providerTurn(owner, f.Turn, f.Key)
	if err != nil {
		return agent.Applied{}, err
	}
	if p == nil {
		return refused(agent.CodeUnknownOwner), nil
	}
	out := agent.Applied{Verdict: agent.VerdictUnchanged, Turn: p.TurnID}
	if p.Phase == agent.ProviderEnded {
		if p.Outcome != f.Outcome {
			out.Verdict = agent.VerdictLate
		}
		return out, nil
	}
	root, err := t.turnByPK(p.Turn)
	if err != nil {
		return out, err
	}
	root.ProviderLive--
	if p.Phase == agent.ProviderReserved {
		root.ProviderReserved--
	}
	p.Phase, p.Outcome, p.Deadline, p.EndedAt = agent.ProviderEnded, f.Outcome, 0, t.now
	p.ErrorCode, p.ErrorText = codeText(f.Err)
	if err := t.writeProviderTurn(p); err != nil {
		return out, err
	}
	t.showProviderTurn(root, p)
	if root.Phase == agent.PhaseSettled {
		out.Verdict = agent.VerdictLate
		return out, nil
	}
	// A reservation that ends in silence keeps what was retained before it; where
	// nothing was, its own end is all there is.
	if !f.Silent || root.Retained == "" {
		root.Retained, root.RetainedCode, root.RetainedText = f.Outcome, p.ErrorCode, p.ErrorText
	}
	t.s.activity.heard(root.PK, owner.root, t.now)
	out.Verdict = agent.VerdictApplied
	return out, nil
}
