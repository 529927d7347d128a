package acpagent

import (
	"encoding/json"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// line is one message at the wire.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`

	raw  string
	note acp.SessionNotification // of session/update
}

// child is the patch of a child on its parent's stream, nil if the line is none.
func (l line) child(id string) *acp.SubagentUpdate {
	if u, ok := l.note.Update.Variant.(*acp.SubagentUpdate); ok && (id == "" || u.SessionID == id) {
		return u
	}
	return nil
}

// state is the state that the line tells of a child, "" if none.
func (l line) state(id string) acp.StateUpdate {
	if u := l.child(id); u != nil {
		return u.State.Or(acp.StateUpdate{})
	}
	return acp.StateUpdate{}
}

func isState(id agent.SessionID, state acp.SessionState, reason acp.StopReason) func(line) bool {
	return func(l line) bool {
		s := l.state(string(id))
		return s.State == state && s.StopReason == reason
	}
}

func isGrant(id agent.SessionID) func(line) bool {
	return func(l line) bool {
		u := l.child(string(id))
		if u == nil {
			return false
		}
		c, ok := u.Capabilities.Get()
		return ok && c.MayCancel()
	}
}

func isRevoked(id agent.SessionID) func(line) bool {
	return func(l line) bool {
		u := l.child(string(id))
		if u == nil {
			return false
		}
		c, ok := u.Capabilities.Get()
		return ok && c.Cancel.IsNull()
	}
}

func isAnnounced(id agent.SessionID) func(line) bool {
	return func(l line) bool {
		u := l.child(string(id))
		if u == nil {
			return false
		}
		c, ok := u.Capabilities.Get()
		return ok && !c.Cancel.Said()
	}
}

func isRequest(method string) func(line) bool {
	return func(l line) bool { return l.Method == method && l.ID != nil }
}

func isText(session, text string) func(line) bool {
	return func(l line) bool {
		m, ok := l.note.Update.Variant.(*acp.MessageChunk)
		return ok && l.note.SessionID == session && m.Content.Text == text
	}
}

func isWithdrawal(req line) func(line) bool {
	return func(l line) bool {
		return l.Method == "$/cancel_request" && strings.Contains(string(l.Params), `"requestId":`+string(req.ID))
	}
}
