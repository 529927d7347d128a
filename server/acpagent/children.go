package acpagent

import (
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// announce tells of a child on its parent's stream, before anything that names it. It
// grants nothing.
func (v *view) announce(s *session, n *node) {
	if n.announced || n.isRoot() {
		return
	}
	n.announced = true
	s.setParent(n.id, n.parent)
	a := n.about
	s.c.adopt(n.id, a.Handles.ThreadID, a.Handles.TaskID, a.Handles.AgentID)
	if v.flat {
		return // its card comes with its turn
	}
	u := &acp.SubagentUpdate{SessionID: n.id, Capabilities: acp.Ungranted()}
	if n.title != "" {
		u.Title = acp.Some(n.title)
	}
	if n.about.AgentType != "" {
		u.Description = acp.Some(n.about.AgentType)
	}
	if n.about.Cwd != "" {
		u.Cwd = acp.Some(n.about.Cwd)
	}
	s.c.say(n.parent, acp.UpdateSubagent, u)
}

// childState tells a child's state where it changed, then whether it can be stopped.
func (v *view) childState(s *session, n *node) {
	if state, known := stateOf(n); known && (state.State != n.state.State || n.turnTold != n.turn.ID && !state.State.Live()) {
		n.state, n.turnTold = state, n.turn.ID
		s.c.say(n.parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: n.id, State: acp.Some(state)})
		if s.c.version() == acp.V2 {
			s.c.say(n.id, acp.UpdateState, &state)
		}
	}
	can := n.state.State.Live() && n.turn != nil && n.turn.Live() && n.stoppable(v)
	switch {
	case can && !n.granted && !s.isSuspended():
		n.granted = true
		s.grant(n.id, true) // before it is told: the editor may use it at once
		s.c.say(n.parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: n.id, Capabilities: acp.Granted()})
	case !can && n.granted:
		n.granted = false
		s.grant(n.id, false)
		s.c.say(n.parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: n.id, Capabilities: acp.Revoked()})
	}
}

// stoppable reports whether the daemon can stop this child alone, now.
func (n *node) stoppable(v *view) bool {
	return v.root().about.Capabilities.ChildCancel || n.about.Capabilities.ChildCancel
}

// stateOf is the state of a child; false while its turn has not been seen running, which
// is no state of its own.
func stateOf(n *node) (acp.StateUpdate, bool) {
	t := n.turn
	switch {
	case t == nil, t.Phase == agent.PhaseSubmitted:
		return acp.StateUpdate{}, false
	case t.Live() && len(n.pending) > 0:
		return acp.StateUpdate{State: acp.StateRequires}, true
	case t.Live():
		return acp.StateUpdate{State: acp.StateRunning}, true
	}
	return endState(*t), true
}

// endState is how a turn ended. An end that nobody saw is unknown for a child: nothing may
// be invented.
func endState(t agent.Turn) acp.StateUpdate {
	switch t.Outcome {
	case agent.OutcomeCompleted:
		return acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn}
	case agent.OutcomeCanceled:
		return acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopCancelled}
	case agent.OutcomeFailed:
		return acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopError, Error: failure(t)}
	case agent.OutcomeInterrupted:
	}
	return acp.StateUpdate{State: acp.StateUnknown}
}

// failure is why a turn has no proper end.
func failure(t agent.Turn) *acp.RPCError {
	e := &acp.RPCError{Code: wire.CodeInternalError, Message: "the work was interrupted"}
	if t.Outcome == agent.OutcomeFailed {
		e.Message = "the work failed"
	}
	if t.Error != nil && t.Error.Message != "" {
		e.Message = t.Error.Message
	}
	return e
}

// rootState tells the root's state, which is version 2's alone: running from the beginning
// of a turn until the turn has settled, whatever the provider's own turn does.
func (v *view) rootState(s *session, n *node) {
	t := n.turn
	if s.c.version() != acp.V2 || t == nil {
		return
	}
	state := acp.StateUpdate{State: acp.StateRunning}
	switch {
	case t.Live() && len(n.pending) > 0:
		state.State = acp.StateRequires
	case t.Live():
	case n.concluded != t.ID:
		return // conclude comes when everything below has ended
	default:
		state = endState(*t)
		if state.State == acp.StateUnknown { // it takes the next prompt all the same
			state = acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopError, Error: failure(*t)}
		}
		state.Usage = tokens(t.Usage)
	}
	if state.State == n.state.State && n.turnTold == t.ID {
		return
	}
	n.state, n.turnTold = state, t.ID
	s.c.say(n.id, acp.UpdateState, &state)
}

// tokens is what a turn used, nil if nobody counted. It is the turn's own, never a sum over
// the tree.
func tokens(u agent.Usage) *acp.TokenUsage {
	if u == (agent.Usage{}) {
		return nil
	}
	return &acp.TokenUsage{
		TotalTokens: u.InputTokens + u.OutputTokens, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		ThoughtTokens: &u.ReasoningTokens, CachedReadTokens: &u.CachedInputTokens,
	}
}
