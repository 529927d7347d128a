package providertest

import (
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// startRun opens a provider turn, names it, or ends its reservation.
func (m *Model) startRun(f agent.ProviderTurnStarted) agent.Applied {
	s := m.session(f.Session)
	if !s.IsRoot() {
		return m.violate(agent.CodeInvalid, "provider turn %q reported on child session %s", f.Key, f.Session)
	}
	if r := m.run(f.Session, f.Turn, f.Key); r != nil {
		return m.updateRun(r, f)
	}
	turn, code := m.placeRun(f)
	if code != "" {
		return refused(code)
	}
	r := &runRow{session: f.Session, turn: turn.ID}
	r.ID, r.NativeID, r.Phase = f.Key, f.NativeID, agent.ProviderRunning
	if f.Reserved != nil {
		r.Phase = agent.ProviderReserved
	} else {
		turn.retained, turn.retainedErr = "", nil // a later provider turn decides
	}
	m.runs = append(m.runs, r)
	m.gate(turn)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: turn.ID}
}

func (m *Model) updateRun(r *runRow, f agent.ProviderTurnStarted) agent.Applied {
	turn := m.turnByID(r.turn)
	applied := agent.Applied{Verdict: agent.VerdictUnchanged, Turn: r.turn}
	if f.NativeID != "" && f.NativeID != r.NativeID {
		r.NativeID, applied.Verdict = f.NativeID, agent.VerdictApplied
	}
	if r.Phase == agent.ProviderReserved && f.Reserved == nil && turn.Live() {
		r.Phase, applied.Verdict = agent.ProviderRunning, agent.VerdictApplied
		turn.retained, turn.retainedErr = "", nil
	}
	m.gate(turn)
	return applied
}

// placeRun finds the root turn that a new provider turn runs under.
func (m *Model) placeRun(f agent.ProviderTurnStarted) (*turnRow, agent.Code) {
	if f.Turn == "" {
		switch place, code := agent.AdmitProviderTurn(m.admitView(f.Session, nil)); place {
		case agent.AdmissionAttach:
			return m.latest(f.Session), ""
		case agent.AdmissionNew:
			return m.addTurn(f.Session, "", agent.TriggerProvider), ""
		default:
			return nil, code
		}
	}
	turn := m.turn(f.Session, f.Turn)
	switch {
	case turn == nil:
		m.violate(agent.CodeUnknownOwner, "provider turn %q names turn %q, which is none of session %s", f.Key, f.Turn, f.Session)
		return nil, agent.CodeUnknownOwner
	case !turn.Live():
		return nil, agent.CodeTurnSettled
	case turn.closed:
		return nil, agent.CodeTurnCanceling
	}
	return turn, ""
}

func (m *Model) endRun(f agent.ProviderTurnEnded) agent.Applied {
	r := m.run(f.Session, f.Turn, f.Key)
	if r == nil {
		return m.violate(agent.CodeUnknownOwner, "provider turn %q ended and never started", f.Key)
	}
	if f.Outcome == "" {
		return m.violate(agent.CodeInvalid, "provider turn %q ended without an outcome", f.Key)
	}
	turn := m.turnByID(r.turn)
	if r.Phase == agent.ProviderEnded {
		if r.Outcome == f.Outcome {
			return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: r.turn}
		}
		return agent.Applied{Verdict: agent.VerdictLate, Turn: r.turn}
	}
	m.endOf(r, f.Outcome)
	if !turn.Live() {
		return agent.Applied{Verdict: agent.VerdictLate, Turn: r.turn}
	}
	if !f.Silent || turn.retained == "" {
		turn.retained, turn.retainedErr = f.Outcome, f.Err
	}
	m.gate(turn)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: r.turn}
}

func (m *Model) endOf(r *runRow, o agent.Outcome) {
	now := m.clock.Now()
	r.Phase, r.Outcome, r.EndedAt = agent.ProviderEnded, o, &now
}

func (m *Model) startChild(f agent.ChildStarted) agent.Applied {
	if known := m.session(f.Session); known != nil {
		if known.ParentSessionID != f.Parent || known.ParentTurnID != f.ParentTurn {
			return m.violate(agent.CodeConflict, "child %s was given another parent", f.Session)
		}
		return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: f.Turn}
	}
	parent, parentTurn := m.session(f.Parent), m.turn(f.Parent, f.ParentTurn)
	if parentTurn == nil {
		return m.violate(agent.CodeUnknownOwner, "child %s names parent turn %q, which is none of session %s", f.Session, f.ParentTurn, f.Parent)
	}
	if code := agent.AdmitChild(m.admitView(m.rootOf(parent), parentTurn)); code != "" {
		return refused(code)
	}
	child := &agent.Session{
		ID: f.Session, WorkspaceID: parent.WorkspaceID, Kind: agent.KindChild, Provider: parent.Provider,
		Title: f.Title, Prompt: f.Prompt, AgentType: f.AgentType, Model: f.Model, Handles: f.Handles, CreatedAt: m.clock.Now(),
	}
	child.Relation = agent.Relation{
		ParentSessionID: f.Parent, ParentTurnID: f.ParentTurn, ParentToolCallID: f.Call,
		RootSessionID: m.rootOf(parent), RootTurnID: parentTurn.RootTurnID,
	}
	if err := agent.CheckChild(*child); err != nil {
		return m.violate(agent.CodeInvalid, "child %s: %v", f.Session, err)
	}
	m.sessions = append(m.sessions, child)
	t := &turnRow{}
	t.ID, t.SessionID, t.RootTurnID, t.Trigger = f.Turn, f.Session, parentTurn.RootTurnID, agent.TriggerDelegation
	t.Phase, t.CreatedAt = agent.PhaseSubmitted, m.clock.Now()
	m.turns = append(m.turns, t)
	m.gate(m.turnByID(t.RootTurnID))
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: f.Turn}
}

func (m *Model) startTurn(f agent.TurnStarted) agent.Applied {
	s := m.session(f.Session)
	if s.IsRoot() {
		return m.violate(agent.CodeInvalid, "turn %q reported as started on root session %s", f.Turn, f.Session)
	}
	t := m.turn(f.Session, f.Turn)
	if t == nil {
		view := m.admitView(s.RootSessionID, nil)
		if l := m.latest(f.Session); l != nil && l.Live() {
			view.SessionBusy = true
		}
		if code := agent.AdmitTurn(view); code != "" {
			return refused(code)
		}
		t = m.addTurn(f.Session, f.Turn, f.Trigger)
		t.RootTurnID = m.latest(s.RootSessionID).ID
	}
	if f.NativeID != "" {
		t.NativeID = f.NativeID
	}
	return m.step(t, agent.Change{Step: agent.StepBegin})
}

func (m *Model) settleChild(f agent.TurnSettled) agent.Applied {
	t := m.turn(f.Session, f.Turn)
	if t == nil {
		return m.violate(agent.CodeUnknownOwner, "terminal of turn %q, which is none of session %s", f.Turn, f.Session)
	}
	if f.Outcome == "" {
		return m.violate(agent.CodeInvalid, "turn %q settled without an outcome", f.Turn)
	}
	if t.IsRoot() {
		m.violate(agent.CodeRootSettlesByGate, "terminal of root turn %q", f.Turn)
	}
	return m.step(t, agent.Change{Step: agent.StepEnd, Outcome: f.Outcome, Err: f.Err})
}

// lose ends everything that a dead process held (decisions.md 9).
func (m *Model) lose(f agent.SessionLost) agent.Applied {
	verdict := agent.VerdictUnchanged
	for _, t := range m.turns {
		s := m.session(t.SessionID)
		if t.Live() && s.RootSessionID == f.Session {
			m.step(t, agent.Change{Step: agent.StepLose, Err: f.Err})
			verdict = agent.VerdictApplied
		}
	}
	root := m.latest(f.Session)
	for _, r := range m.runs { // also those of root turns that settled before, by a cancel
		if r.session == f.Session && r.Phase != agent.ProviderEnded {
			reserved := r.Phase == agent.ProviderReserved
			m.endOf(r, agent.OutcomeInterrupted)
			verdict = agent.VerdictApplied
			if r.turn != root.ID || !root.Live() {
				continue
			}
			if !reserved || root.retained == "" {
				root.retained, root.retainedErr = agent.OutcomeInterrupted, f.Err
			}
		}
	}
	if root == nil || !root.Live() {
		return agent.Applied{Verdict: verdict}
	}
	if root.retained == "" {
		root.retained, root.retainedErr = agent.OutcomeInterrupted, f.Err
	}
	m.gate(root)
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: root.ID}
}

// step moves one turn, then whatever follows from it.
func (m *Model) step(t *turnRow, c agent.Change) agent.Applied {
	state, verdict, code := agent.NextTurn(agent.TurnState{Root: t.IsRoot(), Phase: t.Phase, Outcome: t.Outcome, Err: t.Error}, c)
	if verdict == agent.VerdictApplied {
		m.put(t, state)
		if !t.IsRoot() {
			m.gate(m.turnByID(t.RootTurnID))
		}
	}
	return agent.Applied{Verdict: verdict, Code: code, Turn: t.ID}
}

// put writes a turn's state; a turn that settles closes what it left open.
func (m *Model) put(t *turnRow, s agent.TurnState) {
	t.Phase, t.Outcome, t.Error = s.Phase, s.Outcome, s.Err
	now := m.clock.Now()
	if t.Phase == agent.PhaseRunning && t.StartedAt == nil {
		t.StartedAt = &now
	}
	if t.Live() {
		return
	}
	t.SettledAt = &now
	m.closeMessages(t.ID)
	m.supersede(t.ID)
}

// gate asks the rule what a root turn must be and writes the difference.
func (m *Model) gate(t *turnRow) {
	view := m.gateView(t)
	d := agent.Gate(view)
	if d.Phase == t.Phase && d.Outcome == t.Outcome {
		return
	}
	if d.Phase == agent.PhaseSettled {
		err := t.retainedErr
		m.put(t, agent.Settle(agent.TurnState{Root: true, Phase: t.Phase}, d.Outcome, err))
		return
	}
	m.put(t, agent.TurnState{Root: true, Phase: d.Phase})
}

func (m *Model) gateView(t *turnRow) agent.GateView {
	v := agent.GateView{Phase: t.Phase, Outcome: t.Outcome, Retained: t.retained, Cancel: t.cancel}
	for _, r := range m.runs {
		if r.turn == t.ID && r.Phase != agent.ProviderEnded {
			v.LiveProvider++
			if r.Phase == agent.ProviderReserved {
				v.Reserved++
			}
		}
	}
	for _, c := range m.turns {
		if c.RootTurnID == t.ID && !c.IsRoot() && c.Live() {
			v.LiveChildren = true
		}
	}
	for _, i := range m.asks {
		if i.TurnID == t.ID && i.Status.Open() {
			v.OwnPrompts++
		}
	}
	return v
}

// admitView reads what the fence decides on; parent is the turn that delegates, if any.
func (m *Model) admitView(root agent.SessionID, parent *turnRow) agent.AdmitView {
	v := agent.AdmitView{RootExists: m.session(root) != nil, SessionGone: m.gone[root]}
	if parent != nil {
		v.ParentClosed = parent.closed
		v.SessionGone = v.SessionGone || m.gone[parent.SessionID]
	}
	if t := m.latest(root); t != nil {
		v.RootOpen, v.RootClosed = t.Live(), t.closed
		v.UnaskedBarred = t.Outcome == agent.OutcomeCanceled
		if parent != nil && parent.RootTurnID != t.ID {
			v.RootOpen = false // a parent of an older root turn has settled with it
		}
	}
	return v
}

func (m *Model) run(session agent.SessionID, turn agent.TurnID, key agent.ProviderTurnID) *runRow {
	for _, r := range m.runs {
		if r.session == session && r.ID == key && (turn == "" || r.turn == turn) {
			return r
		}
	}
	return nil
}

func (m *Model) addTurn(session agent.SessionID, id agent.TurnID, trigger agent.Trigger) *turnRow {
	if id == "" {
		id = m.mint.Turn()
	}
	t := &turnRow{}
	t.ID, t.SessionID, t.RootTurnID, t.Trigger = id, session, id, trigger
	t.Phase, t.CreatedAt = agent.PhaseSubmitted, m.clock.Now()
	m.turns = append(m.turns, t)
	return t
}
