package providertest

import (
	"github.com/turnkeeper/turnkeeper/server/agent"
)

func (m *Model) putMessage(p agent.Message) agent.Applied {
	t := m.turn(p.SessionID, p.TurnID)
	if t == nil {
		return m.violate(agent.CodeUnknownOwner, "message %s of turn %q, which is none of session %s", p.ID, p.TurnID, p.SessionID)
	}
	known := m.message(p.ID)
	if known == nil {
		return m.addMessage(t, p)
	}
	if known.SessionID != p.SessionID || known.TurnID != p.TurnID {
		return m.violate(agent.CodeConflict, "message %s was given another owner", p.ID)
	}
	before := *known
	mergeMessage(known, p)
	if *known == before {
		return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: t.ID}
	}
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
}

// addMessage stores a new message; one that comes after its turn's end is history, and
// not even that on a canceled root (contract of storage).
func (m *Model) addMessage(t *turnRow, p agent.Message) agent.Applied {
	if p.Role == "" || p.Kind == "" || p.Status == "" {
		return m.violate(agent.CodeInvalid, "new message %s has no role, kind or status", p.ID)
	}
	applied := agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
	if !t.Live() {
		applied.Verdict = agent.VerdictLate
		if t.IsRoot() && t.Outcome == agent.OutcomeCanceled {
			return applied
		}
		if !p.Status.Ended() {
			p.Status = agent.MessageInterrupted
		}
	}
	m.seq++
	p.Seq, p.CreatedAt = m.seq, m.clock.Now()
	m.messages = append(m.messages, &p)
	return applied
}

func mergeMessage(known *agent.Message, p agent.Message) {
	take := func(mine *string, theirs string) {
		if theirs != "" {
			*mine = theirs
		}
	}
	take(&known.Content, p.Content)
	take(&known.Name, p.Name)
	take(&known.Title, p.Title)
	take(&known.Input, p.Input)
	take(&known.Output, p.Output)
	if p.CallID != "" {
		known.CallID = p.CallID
	}
	if p.ChildSessionID != "" {
		known.ChildSessionID = p.ChildSessionID
	}
	if p.Status != "" && !known.Status.Ended() {
		known.Status = p.Status
	}
}

func (m *Model) appendText(f agent.TextAppended) agent.Applied {
	t, msg := m.turn(f.Session, f.Turn), m.message(f.Message)
	switch {
	case t == nil:
		return m.violate(agent.CodeUnknownOwner, "text of turn %q, which is none of session %s", f.Turn, f.Session)
	case msg == nil && !t.Live():
		return agent.Applied{Verdict: agent.VerdictLate, Turn: t.ID}
	case msg == nil:
		return m.violate(agent.CodeUnknownOwner, "text of message %s, which was never put", f.Message)
	case msg.SessionID != f.Session || msg.TurnID != f.Turn:
		return m.violate(agent.CodeConflict, "text of message %s under another owner", f.Message)
	case msg.Status.Ended():
		return agent.Applied{Verdict: agent.VerdictLate, Turn: t.ID}
	}
	have := int64(len(msg.Content))
	if f.Offset > have {
		return m.violate(agent.CodeInvalid, "text of message %s at %d leaves a gap after %d", f.Message, f.Offset, have)
	}
	if f.Offset+int64(len(f.Text)) <= have {
		return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: t.ID}
	}
	msg.Content += f.Text[have-f.Offset:]
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
}

func (m *Model) ask(i agent.Interaction) agent.Applied {
	t := m.turn(i.SessionID, i.TurnID)
	switch {
	case t == nil:
		return m.violate(agent.CodeUnknownOwner, "question %s of turn %q, which is none of session %s", i.RequestID, i.TurnID, i.SessionID)
	case i.RequestID == "" || i.Kind == "":
		return m.violate(agent.CodeInvalid, "question %q has no id or kind", i.Title)
	case m.askOf(i.SessionID, i.TurnID, i.RequestID) != nil:
		return agent.Applied{Verdict: agent.VerdictUnchanged, Turn: t.ID}
	case !t.Live():
		return refused(agent.CodeTurnSettled)
	case t.closed:
		return refused(agent.CodeTurnCanceling)
	}
	i.Status, i.CreatedAt, i.Response = agent.InteractionPending, m.clock.Now(), nil
	m.asks = append(m.asks, &i)
	if t.IsRoot() {
		m.gate(t)
		return agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
	}
	m.step(t, agent.Change{Step: agent.StepPrompt})
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
}

func (m *Model) endAsk(f agent.InteractionEnded) agent.Applied {
	i := m.askOf(f.Session, f.Turn, f.Request)
	if i == nil {
		return m.violate(agent.CodeUnknownOwner, "question %s of turn %s ended and was never asked", f.Request, f.Turn)
	}
	return m.stepAsk(i, agent.InteractionChange{Step: f.Step})
}

// stepAsk moves one question, and its turn when it was the last that was open.
func (m *Model) stepAsk(i *agent.Interaction, c agent.InteractionChange) agent.Applied {
	s, verdict, code := agent.NextInteraction(agent.InteractionState{Status: i.Status, Response: i.Response}, c)
	i.Status, i.Response = s.Status, s.Response
	t := m.turnByID(i.TurnID)
	if verdict == agent.VerdictApplied && !i.Status.Open() && t.Live() {
		if t.IsRoot() {
			m.gate(t)
		} else if m.openAsks(t.ID) == 0 {
			m.step(t, agent.Change{Step: agent.StepResume})
		}
	}
	return agent.Applied{Verdict: verdict, Code: code, Turn: i.TurnID}
}

func (m *Model) openAsks(turn agent.TurnID) int {
	n := 0
	for _, i := range m.asks {
		if i.TurnID == turn && i.Status.Open() {
			n++
		}
	}
	return n
}

// closeMessages ends what a settled turn left streaming.
func (m *Model) closeMessages(turn agent.TurnID) {
	for _, msg := range m.messages {
		switch {
		case msg.TurnID != turn:
		case msg.Status == agent.MessageStreaming:
			msg.Status = agent.MessageInterrupted
		case msg.Status == agent.MessagePending:
			msg.Status = agent.MessageUndelivered
		}
	}
}

func (m *Model) supersede(turn agent.TurnID) {
	for _, i := range m.asks {
		if i.TurnID == turn && i.Status.Open() {
			i.Status = agent.InteractionSuperseded
		}
	}
}

func (m *Model) message(id agent.MessageID) *agent.Message {
	for _, msg := range m.messages {
		if msg.ID == id {
			return msg
		}
	}
	return nil
}

func (m *Model) askOf(session agent.SessionID, turn agent.TurnID, request agent.RequestID) *agent.Interaction {
	for _, i := range m.asks {
		if i.SessionID == session && i.TurnID == turn && i.RequestID == request {
			return i
		}
	}
	return nil
}
