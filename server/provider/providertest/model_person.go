package providertest

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// What a person does, as storage would record it.

// Submit opens a root turn with a pending user message, and returns what goes to the
// runtime's Start. It panics when the session has a live turn: a test would be wrong.
func (m *Model) Submit(root agent.SessionID, text string) provider.Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.latest(root); t != nil && t.Live() {
		panic("providertest: the root turn is still open")
	}
	t := m.addTurn(root, "", agent.TriggerUser)
	return m.addUserMessage(root, t.ID, text)
}

// Guidance adds a pending user message to the open root turn, and returns what goes to
// the runtime's Guide.
func (m *Model) Guidance(root agent.SessionID, text string) provider.Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.latest(root)
	if t == nil || !t.Live() {
		panic("providertest: no root turn is open")
	}
	return m.addUserMessage(root, t.ID, text)
}

func (m *Model) addUserMessage(root agent.SessionID, turn agent.TurnID, text string) provider.Input {
	msg := &agent.Message{
		ID: m.mint.Message(), SessionID: root, TurnID: turn, Role: agent.RoleUser, Kind: agent.MessageText,
		Content: text, Status: agent.MessagePending, CreatedAt: m.clock.Now(),
	}
	m.seq++
	msg.Seq = m.seq
	m.messages = append(m.messages, msg)
	m.bump()
	return provider.Input{Turn: turn, Message: msg.ID, Text: text}
}

// PrepareCancel chooses the targets of a cancel of turn and closes them: the turn
// itself and every live turn below it.
func (m *Model) PrepareCancel(turn agent.TurnID) provider.Cancel {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.turnByID(turn)
	c := provider.Cancel{Root: t.IsRoot(), Turn: t.RootTurnID}
	for _, x := range m.turns {
		if x.Live() && (x == t || (t.IsRoot() && x.RootTurnID == t.ID) || m.below(x.SessionID, t.SessionID)) {
			c.Targets = append(c.Targets, provider.CancelTarget{Session: x.SessionID, Turn: x.ID})
			x.closed = true
			if x.IsRoot() {
				x.cancel = agent.CancelOpen
				m.gate(x)
			} else {
				m.step(x, agent.Change{Step: agent.StepClose})
			}
		}
	}
	m.bump()
	return c
}

// CompleteCancel settles the targets with the evidence that was heard, and returns the
// state each target's row then reads, in the order of c.Targets.
func (m *Model) CompleteCancel(c provider.Cancel, heard []agent.Evidence) []agent.TargetState {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := make([]agent.TargetState, len(c.Targets))
	for i, target := range slices.Backward(c.Targets) { // children first, then the root
		t, strongest := m.turnByID(target.Turn), agent.TargetRequested
		for _, e := range heard {
			if e.TurnID == target.Turn && e.SessionID == target.Session {
				strongest = strongest.Stronger(e.State)
			}
		}
		outcome, state := agent.CancelOutcome(agent.CancelTarget{
			Root: t.IsRoot(), Settled: !t.Live(), Outcome: t.Outcome, Evidence: strongest,
		})
		states[i] = state
		if t.IsRoot() {
			t.cancel = agent.CancelDone
			m.gate(t)
		} else {
			m.step(t, agent.Change{Step: agent.StepStop, Outcome: outcome})
		}
	}
	m.bump()
	return states
}

// PrepareAnswer records an answer and returns what goes to the runtime's Answer.
func (m *Model) PrepareAnswer(i agent.Interaction, r agent.Response) (provider.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ask := m.askOf(i.SessionID, i.TurnID, i.RequestID)
	if err := agent.CheckAnswer(*ask, r); err != nil {
		return provider.Answer{}, err
	}
	if a := m.stepAsk(ask, agent.InteractionChange{Step: agent.AskAnswer, Response: r}); a.Code != "" {
		return provider.Answer{}, agent.Errorf(a.Code, "the question is %s", ask.Status)
	}
	m.bump()
	return provider.Answer{Interaction: *ask, Response: r}, nil
}

// CompleteAnswer ends an answer: taken by the provider, or failed.
func (m *Model) CompleteAnswer(a provider.Answer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := agent.AskDelivered
	if err != nil {
		step = agent.AskFailed
	}
	m.stepAsk(m.askOf(a.Interaction.SessionID, a.Interaction.TurnID, a.Interaction.RequestID), agent.InteractionChange{Step: step})
	m.bump()
}

// Delete tombstones a session and everything below it, and returns their ids.
func (m *Model) Delete(session agent.SessionID) []agent.SessionID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []agent.SessionID
	for _, s := range m.sessions {
		if s.ID == session || m.below(s.ID, session) {
			m.gone[s.ID] = true
			ids = append(ids, s.ID)
		}
	}
	touched := map[*turnRow]bool{}
	m.turns = slices.DeleteFunc(m.turns, func(t *turnRow) bool {
		if m.gone[t.SessionID] && !t.IsRoot() {
			touched[m.turnByID(t.RootTurnID)] = true
		}
		return m.gone[t.SessionID]
	})
	for t := range touched {
		if t != nil && !m.gone[t.SessionID] {
			m.gate(t)
		}
	}
	m.bump()
	return ids
}

// below reports whether session lies anywhere below ancestor.
func (m *Model) below(session, ancestor agent.SessionID) bool {
	for s := m.session(session); s != nil && s.ParentSessionID != ""; s = m.session(s.ParentSessionID) {
		if s.ParentSessionID == ancestor {
			return true
		}
	}
	return false
}
