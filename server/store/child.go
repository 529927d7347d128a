package store

import (
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// startChild creates a child session with its first turn, behind the fence, in one step.
func (t *tx) startChild(f agent.ChildStarted) (agent.Applied, error) {
	known, err := t.session(f.Session)
	switch {
	case err != nil:
		return agent.Applied{}, err
	case known != nil && known.deleted:
		return refused(agent.CodeSessionDeleted), nil
	case known != nil:
		return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: f.Turn}, nil
	}
	parent, err := t.session(f.Parent)
	switch {
	case err != nil:
		return agent.Applied{}, err
	case parent == nil:
		return refused(agent.CodeUnknownOwner), nil
	}
	if parent.deleted {
		return refused(agent.AdmitChild(agent.AdmitView{SessionGone: true})), nil
	}
	creator, err := t.turn(parent, f.ParentTurn)
	switch {
	case err != nil:
		return agent.Applied{}, err
	case creator == nil:
		return refused(agent.CodeUnknownOwner), nil
	}
	rootTurn, err := t.turnByPK(creator.RootTurn)
	if err != nil {
		return agent.Applied{}, err
	}
	view, err := t.admitView(parent, rootTurn)
	if err != nil {
		return agent.Applied{}, err
	}
	view.ParentClosed = view.ParentClosed || creator.Closed == 1
	if code := agent.AdmitChild(view); code != "" {
		return refused(code), nil
	}
	if err := t.insertChild(parent, rootTurn, f); err != nil {
		return agent.Applied{}, err
	}
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: f.Turn}, nil
}

// admitView is what the fence knows of new work in or below a session, under a root turn.
func (t *tx) admitView(in *ident, rootTurn *turnRow) (agent.AdmitView, error) {
	root, err := t.root(in)
	if err != nil {
		return agent.AdmitView{}, err
	}
	v := agent.AdmitView{RootExists: !root.deleted, SessionGone: in.deleted}
	if rootTurn == nil {
		return v, nil
	}
	v.RootOpen, v.RootClosed = rootTurn.Phase != agent.PhaseSettled, rootTurn.Closed == 1
	if in.kind == agent.KindChild && v.RootOpen {
		if v.ParentClosed, err = t.q.ClosedAbove(bg, dbgen.ClosedAboveParams{Session: in.pk, RootTurn: rootTurn.PK}); err != nil {
			return v, fmt.Errorf("fence above %s: %w", in.id, err)
		}
	}
	return v, nil
}

func (t *tx) insertChild(parent *ident, rootTurn *turnRow, f agent.ChildStarted) error {
	root, err := t.root(parent)
	if err != nil {
		return err
	}
	t.s.w.sessionKey++
	t.s.w.turnKey++
	turn := dbgen.Turn{
		PK: t.s.w.turnKey, ID: f.Turn, Session: t.s.w.sessionKey, SessionID: f.Session, RootTurn: rootTurn.PK,
		RootTurnID: rootTurn.ID, Cause: agent.TriggerDelegation, Phase: agent.PhaseSubmitted, CreatedAt: t.now,
	}
	row := dbgen.Session{
		PK: turn.Session, ID: f.Session, Workspace: root.workspace, WorkspaceID: root.workspaceID, Kind: agent.KindChild,
		Root: root.pk, Parent: &parent.pk, ParentID: parent.id, ParentTurnID: f.ParentTurn, ParentCallID: f.Call,
		RootID: root.id, RootTurnID: rootTurn.ID, Provider: root.provider, Title: f.Title, Model: f.Model,
		AgentType: f.AgentType, Prompt: f.Prompt, Handles: handlesText(f.Handles), LatestTurn: turn.PK, Seq: t.nextSeq(root.workspace),
		CreatedAt: t.now, UpdatedAt: t.now,
	}
	if err := agent.CheckChild(t.s.sessionOf(&row, nil, 0)); err != nil {
		return err
	}
	if err := t.insertSession(&row); err != nil {
		return err
	}
	child := identOf(&row)
	if err := t.remember(child); err != nil {
		return err
	}
	if err := t.bindAliases(child, row.Handles); err != nil {
		return err
	}
	if parent.kind == agent.KindChild {
		if err := t.q.InsertClosure(bg, dbgen.InsertClosureParams{Child: row.PK, Parent: parent.pk}); err != nil {
			return fmt.Errorf("ancestors of %s: %w", f.Session, err)
		}
	}
	t.emit(pendingEvent{kind: agent.SessionCreated, session: child.home, shows: child})
	if _, err := t.insertTurn(child, turn); err != nil {
		return err
	}
	t.countLive(root, 1)
	t.touch(rootTurn.PK)
	return nil
}

func (t *tx) insertSession(r *dbgen.Session) error {
	if err := t.q.InsertSession(bg, dbgen.InsertSessionParams{
		PK: r.PK, ID: r.ID, Workspace: r.Workspace, WorkspaceID: r.WorkspaceID, Kind: r.Kind, Root: r.Root, Parent: r.Parent,
		ParentID: r.ParentID, ParentTurnID: r.ParentTurnID, ParentCallID: r.ParentCallID, RootID: r.RootID,
		RootTurnID: r.RootTurnID, Provider: r.Provider, Title: r.Title, Titled: r.Titled, Cwd: r.Cwd, Model: r.Model,
		AgentType: r.AgentType, Prompt: r.Prompt, PermissionMode: r.PermissionMode, Scenario: r.Scenario, Handles: r.Handles,
		Capabilities: r.Capabilities, LatestTurn: r.LatestTurn, Seq: r.Seq, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}); err != nil {
		return fmt.Errorf("session %s: %w", r.ID, err)
	}
	return nil
}

// startTurn notes that a child's turn runs, or begins another turn of a child, behind the
// same fence as a new child (decisions.md 1 and 2).
func (t *tx) startTurn(owner *ident, f agent.TurnStarted) (agent.Applied, error) {
	r, err := t.turn(owner, f.Turn)
	if err != nil {
		return agent.Applied{}, err
	}
	if r == nil {
		return t.startAnotherTurn(owner, f)
	}
	out := agent.Applied{Turn: f.Turn}
	var next agent.TurnState
	next, out.Verdict, out.Code = agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepBegin})
	named := f.NativeID != "" && f.NativeID != r.NativeID
	if r.IsRoot == 1 || r.Phase == agent.PhaseSettled || out.Verdict != agent.VerdictApplied && !named {
		return out, nil // a root turn runs when its provider turn does
	}
	applyState(r, next)
	if r.StartedAt == 0 {
		r.StartedAt = t.now
	}
	if named {
		r.NativeID = f.NativeID
		out.Verdict = agent.VerdictApplied
	}
	if err := t.moveChild(r); err != nil {
		return out, err
	}
	t.s.activity.heard(r.PK, owner.root, t.now)
	t.emitTurn(agent.TurnUpdated, owner, r)
	return out, nil
}

// moveChild writes a child turn that has not settled.
func (t *tx) moveChild(r *turnRow) error {
	n, err := t.q.MoveChildTurn(bg, dbgen.MoveChildTurnParams{
		Phase: r.Phase, NativeID: r.NativeID, Prompts: r.Prompts, StartedAt: r.StartedAt, PK: r.PK,
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("it is not a live child turn")
	}
	if err != nil {
		return fmt.Errorf("turn %s: %w", r.ID, err)
	}
	t.touch(r.RootTurn)
	return nil
}

func (t *tx) startAnotherTurn(owner *ident, f agent.TurnStarted) (agent.Applied, error) {
	if owner.kind == agent.KindRoot {
		return refused(agent.CodeUnknownOwner), nil
	}
	root, err := t.root(owner)
	if err != nil {
		return agent.Applied{}, err
	}
	rootTurn, err := t.openRootTurn(root)
	if err != nil {
		return agent.Applied{}, err
	}
	view, err := t.admitView(owner, rootTurn)
	if err != nil {
		return agent.Applied{}, err
	}
	if view.RootOpen {
		if view.SessionBusy, err = t.q.HasLiveChildTurn(bg, dbgen.HasLiveChildTurnParams{RootTurn: rootTurn.PK, Session: owner.pk}); err != nil {
			return agent.Applied{}, fmt.Errorf("live turn of %s: %w", owner.id, err)
		}
	}
	if code := agent.AdmitTurn(view); code != "" {
		return refused(code), nil
	}
	cause := f.Trigger
	if cause != agent.TriggerDelegation {
		cause = agent.TriggerGuidance
	}
	t.s.w.turnKey++
	r, err := t.insertTurn(owner, dbgen.Turn{
		PK: t.s.w.turnKey, ID: f.Turn, Session: owner.pk, SessionID: owner.id, RootTurn: rootTurn.PK, RootTurnID: rootTurn.ID,
		Cause: cause, Phase: agent.PhaseRunning, NativeID: f.NativeID, CreatedAt: t.now, StartedAt: t.now,
	})
	if err != nil {
		return agent.Applied{}, err
	}
	t.latest(owner, r.PK)
	t.countLive(root, 1)
	t.touch(rootTurn.PK)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: f.Turn}, nil
}

// endTurn settles exactly one child turn by its provider's terminal.
func (t *tx) endTurn(owner *ident, r *turnRow, f agent.TurnSettled) (agent.Applied, error) {
	next, verdict, code := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepEnd, Outcome: f.Outcome, Err: f.Err})
	out := agent.Applied{Verdict: verdict, Code: code}
	if verdict != agent.VerdictApplied {
		return out, nil
	}
	prompts := r.Prompts
	applyState(r, next)
	r.SettledAt, r.Prompts = t.now, 0
	n, err := t.q.SettleChildTurn(bg, dbgen.SettleChildTurnParams{
		Outcome: r.Outcome, ErrorCode: r.ErrorCode, ErrorText: r.ErrorText, SettledAt: t.now, PK: r.PK,
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("it is not a live child turn")
	}
	if err != nil {
		return out, fmt.Errorf("settle %s: %w", r.ID, err)
	}
	t.ended = append(t.ended, r)
	t.s.activity.drop(r.PK)
	t.emitTurn(agent.TurnUpdated, owner, r)
	if err := t.closeTurns([]*turnRow{r}, prompts, owner); err != nil {
		return out, err
	}
	if agent.AttentionOf(int(owner.row.Pending), &agent.Turn{Outcome: r.Outcome}) != agent.AttentionNone {
		t.changed(owner)
	}
	root, err := t.root(owner)
	if err != nil {
		return out, err
	}
	t.countLive(root, -1)
	t.touch(r.RootTurn)
	return out, nil
}
