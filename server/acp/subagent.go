package acp

import "encoding/json"

// SubagentUpdate is a patch of what a parent's stream says of one child: the first one is
// its announcement. The stream it is on is the parent, SessionID the child. Capabilities is
// replaced as a whole.
type SubagentUpdate struct {
	SessionID             string                    `json:"sessionId"`
	Title                 Opt[string]               `json:"title,omitzero"`
	Description           Opt[string]               `json:"description,omitzero"`
	Capabilities          Opt[SubagentCapabilities] `json:"capabilities,omitzero"`
	State                 Opt[StateUpdate]          `json:"state,omitzero"`
	Cwd                   Opt[string]               `json:"cwd,omitzero"`
	AdditionalDirectories Opt[[]string]             `json:"additionalDirectories,omitzero"`
	Meta                  Meta                      `json:"_meta,omitempty"`
}

// SubagentCapabilities is what a client may do with a child. Cancel is a grant only while
// it is an object.
type SubagentCapabilities struct {
	Cancel Opt[Empty] `json:"cancel,omitzero"`
	Meta   Meta       `json:"_meta,omitempty"`
}

// Granted are the capabilities of a child that may be cancelled.
func Granted() Opt[SubagentCapabilities] {
	return Some(SubagentCapabilities{Cancel: Some(Empty{})})
}

// Revoked takes the grant back.
func Revoked() Opt[SubagentCapabilities] {
	return Some(SubagentCapabilities{Cancel: Null[Empty]()})
}

// Ungranted are the capabilities of an announcement.
func Ungranted() Opt[SubagentCapabilities] { return Some(SubagentCapabilities{}) }

// MayCancel reports whether the capabilities grant a cancel.
func (c SubagentCapabilities) MayCancel() bool {
	_, ok := c.Cancel.Get()
	return ok
}

// SessionState is what a session does. The set is open.
type SessionState string

// The states that are known.
const (
	StateRunning  SessionState = "running"
	StateRequires SessionState = "requires_action"
	StateIdle     SessionState = "idle"
	StateUnknown  SessionState = "unknown"
)

// Live reports whether the session works, or waits for a person to go on working.
func (s SessionState) Live() bool { return s == StateRunning || s == StateRequires }

// StateUpdate is the state of a session: on its own stream in version 2, and within the
// [SubagentUpdate] of its parent in both. StopReason, Error and Usage belong to idle.
type StateUpdate struct {
	State      SessionState          `json:"state"`
	StopReason StopReason            `json:"stopReason,omitempty"`
	Error      *RPCError             `json:"error,omitempty"`
	Usage      *TokenUsage           `json:"usage,omitempty"`
	Background Opt[[]BackgroundWork] `json:"background,omitzero"` // version 2
	Meta       Meta                  `json:"_meta,omitempty"`
}

// BackgroundWork is work that goes on though its session is idle: a subagent, a terminal, a
// tool call or another.
type BackgroundWork struct {
	Type       string `json:"type"`
	SessionID  string `json:"sessionId,omitempty"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// BackgroundSubagent is the type of a child.
const BackgroundSubagent = "subagent"

// MetaOf reads members of a _meta that one agent is known to send; false where they are not
// there.
func MetaOf(m Meta, v any) bool { return len(m) > 0 && json.Unmarshal(m, v) == nil }
