package acpagent

import (
	"cmp"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// For an editor that did not ask for subagents a child is a tool call of its root: a card
// that runs while the child's turn does and shows what the child said last. The child's own
// tool calls are cards beside it, and its questions are the root's.

// name is what people call an agent.
func (n *node) name() string { return cmp.Or(n.title, n.about.AgentType, "Agent") }

// cardID names the card of one turn of a child.
func (n *node) cardID() string {
	if n.turn == nil {
		return n.id
	}
	return n.id + "/" + string(n.turn.ID)
}

// card brings a child's card up to date.
func (v *view) card(s *session, n *node) {
	t := n.turn
	if t == nil {
		return
	}
	status := acp.ToolRunning
	if !t.Live() {
		status = acp.ToolFailed
		if t.Outcome == agent.OutcomeCompleted {
			status = acp.ToolCompleted
		}
	}
	fresh := n.turnTold != t.ID
	now := acp.StateUpdate{State: acp.SessionState(status)}
	if !fresh && n.state.State == now.State && n.cardOutput == "" {
		return
	}
	call := acp.ToolCall{ToolCallID: n.cardID(), Status: acp.Some(status)}
	if fresh {
		call.Title, call.Kind = acp.Some(n.name()), acp.Some(acp.ToolThink)
		call.RawInput = rawInput(n.about.Prompt)
	}
	output := n.cardOutput
	if t.Error != nil && !t.Live() && output == "" {
		output = t.Error.Message
	}
	if output != "" {
		call.Content = acp.Some([]acp.ToolContent{block(output)})
	}
	n.state, n.turnTold, n.cardOutput = now, t.ID, ""
	kind := acp.UpdateToolCallUpdate
	if fresh {
		kind = acp.UpdateToolCall
	}
	s.c.say(v.root().id, kind, &call)
}

// cardText keeps what a child said last as what its card shows.
func (v *view) cardText(s *session, n *node, m agent.Message) {
	if m.Role != agent.RoleAssistant || m.Kind != agent.MessageText || !m.Status.Ended() || m.Content == "" {
		return
	}
	n.cardOutput = m.Content
	v.sync(s, n)
}
