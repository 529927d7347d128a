package acp

import (
	"encoding/json"
	"fmt"
)

// SessionNotification is the parameters of session/update. SessionID is whose stream it
// is on.
type SessionNotification struct {
	SessionID string `json:"sessionId"`
	Update    Update `json:"update"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// UpdateKind is the member sessionUpdate. The set is open.
type UpdateKind string

// The kinds that are known. One that only one version has is marked.
const (
	UpdateUserChunk      UpdateKind = "user_message_chunk"      // *MessageChunk
	UpdateAgentChunk     UpdateKind = "agent_message_chunk"     // *MessageChunk
	UpdateThoughtChunk   UpdateKind = "agent_thought_chunk"     // *MessageChunk
	UpdateUserMessage    UpdateKind = "user_message"            // *WholeMessage, 2
	UpdateAgentMessage   UpdateKind = "agent_message"           // *WholeMessage, 2
	UpdateAgentThought   UpdateKind = "agent_thought"           // *WholeMessage, 2
	UpdateToolCall       UpdateKind = "tool_call"               // *ToolCall, 1
	UpdateToolCallUpdate UpdateKind = "tool_call_update"        // *ToolCall
	UpdateToolContent    UpdateKind = "tool_call_content_chunk" // *ToolContentChunk, 2
	UpdateTerminal       UpdateKind = "terminal_update"         // *TerminalUpdate, 2
	UpdateTerminalChunk  UpdateKind = "terminal_output_chunk"   // *TerminalChunk, 2
	UpdatePlan           UpdateKind = "plan"                    // *Plan, 1
	UpdatePlanUpdate     UpdateKind = "plan_update"             // *PlanUpdate
	UpdatePlanRemoved    UpdateKind = "plan_removed"            // *PlanRemoved
	UpdateCommands       UpdateKind = "available_commands_update"
	UpdateMode           UpdateKind = "current_mode_update"  // *ModeUpdate, 1
	UpdateConfig         UpdateKind = "config_option_update" // *ConfigUpdate
	UpdateSessionInfo    UpdateKind = "session_info_update"  // *SessionInfoUpdate
	UpdateUsage          UpdateKind = "usage_update"         // *UsageUpdate
	UpdateNotice         UpdateKind = "notice"               // *Notice
	UpdateCompaction     UpdateKind = "compaction_update"
	UpdateState          UpdateKind = "state_update"          // *StateUpdate, 2
	UpdateSubagent       UpdateKind = "subagent_update"       // *SubagentUpdate
	UpdateMessage        UpdateKind = "session_message"       // *SessionMessage
	UpdateMessageChunk   UpdateKind = "session_message_chunk" // *MessageChunk
)

// variants makes the empty value of each kind that is understood.
var variants = map[UpdateKind]func() any{
	UpdateUserChunk:      func() any { return new(MessageChunk) },
	UpdateAgentChunk:     func() any { return new(MessageChunk) },
	UpdateThoughtChunk:   func() any { return new(MessageChunk) },
	UpdateMessageChunk:   func() any { return new(MessageChunk) },
	UpdateUserMessage:    func() any { return new(WholeMessage) },
	UpdateAgentMessage:   func() any { return new(WholeMessage) },
	UpdateAgentThought:   func() any { return new(WholeMessage) },
	UpdateToolCall:       func() any { return new(ToolCall) },
	UpdateToolCallUpdate: func() any { return new(ToolCall) },
	UpdateToolContent:    func() any { return new(ToolContentChunk) },
	UpdateTerminal:       func() any { return new(TerminalUpdate) },
	UpdateTerminalChunk:  func() any { return new(TerminalChunk) },
	UpdatePlan:           func() any { return new(Plan) },
	UpdatePlanUpdate:     func() any { return new(PlanUpdate) },
	UpdatePlanRemoved:    func() any { return new(PlanRemoved) },
	UpdateCommands:       func() any { return new(CommandsUpdate) },
	UpdateMode:           func() any { return new(ModeUpdate) },
	UpdateConfig:         func() any { return new(ConfigUpdate) },
	UpdateSessionInfo:    func() any { return new(SessionInfoUpdate) },
	UpdateUsage:          func() any { return new(UsageUpdate) },
	UpdateNotice:         func() any { return new(Notice) },
	UpdateState:          func() any { return new(StateUpdate) },
	UpdateSubagent:       func() any { return new(SubagentUpdate) },
	UpdateMessage:        func() any { return new(SessionMessage) },
}

// Update is one thing that happened in a session. Variant is the pointer that stands beside
// its kind above, nil where the kind is not known or its members are not what they should
// be; Raw is the whole object then and always.
type Update struct {
	Kind    UpdateKind
	Variant any
	Raw     json.RawMessage
	// Err says what was wrong with a kind that is known.
	Err error
}

// Say is an update to be sent.
func Say(kind UpdateKind, variant any) Update { return Update{Kind: kind, Variant: variant} }

// UnmarshalJSON fails for nothing that is JSON.
func (u *Update) UnmarshalJSON(b []byte) error {
	*u = Update{Kind: UpdateKind(tagOf("sessionUpdate", b)), Raw: append(json.RawMessage(nil), b...)}
	fresh, known := variants[u.Kind]
	if !known {
		return nil
	}
	v := fresh()
	if err := json.Unmarshal(b, v); err != nil {
		u.Err = fmt.Errorf("acp: update %s: %w", u.Kind, err)
		return nil
	}
	u.Variant = v
	return nil
}

// MarshalJSON writes the variant with its kind, or Raw where there is no variant.
func (u Update) MarshalJSON() ([]byte, error) {
	if u.Variant == nil {
		if u.Raw == nil {
			return nil, fmt.Errorf("acp: update %s is empty", u.Kind)
		}
		return u.Raw, nil
	}
	return tagged("sessionUpdate", string(u.Kind), u.Variant)
}

// MessageChunk is a piece of a message. Without MessageID (version 1 allows that) it goes
// on with the message of its kind that is open.
type MessageChunk struct {
	MessageID string       `json:"messageId,omitempty"`
	Content   ContentBlock `json:"content"`
	Meta      Meta         `json:"_meta,omitempty"`
}

// WholeMessage replaces the content of a message.
type WholeMessage struct {
	MessageID string              `json:"messageId"`
	Content   Opt[[]ContentBlock] `json:"content,omitzero"`
	Meta      Meta                `json:"_meta,omitempty"`
}

// CommandsUpdate is the commands that a person may type.
type CommandsUpdate struct {
	AvailableCommands json.RawMessage `json:"availableCommands"`
}

// ModeUpdate is the mode a session is in now.
type ModeUpdate struct {
	CurrentModeID string `json:"currentModeId"`
}

// ConfigUpdate is all options as they now are.
type ConfigUpdate struct {
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// SessionInfoUpdate is a patch of what a list shows.
type SessionInfoUpdate struct {
	Title     Opt[string] `json:"title,omitzero"`
	UpdatedAt Opt[string] `json:"updatedAt,omitzero"`
	Meta      Meta        `json:"_meta,omitempty"`
}

// UsageUpdate is how full the context is, and what the session has cost so far.
type UsageUpdate struct {
	Used int64 `json:"used"`
	Size int64 `json:"size"`
	Cost *Cost `json:"cost,omitempty"`
	Meta Meta  `json:"_meta,omitempty"`
}

// Cost is money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Notice is a remark of the agent for people. Severity is info, warning, error or another.
type Notice struct {
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// SessionMessage is a message between two sessions. It is on the streams of both: the
// sender's names RecipientMessageID, the recipient's SenderMessageID.
type SessionMessage struct {
	MessageID          string              `json:"messageId"`
	SenderSessionID    string              `json:"senderSessionId,omitempty"`
	RecipientSessionID string              `json:"recipientSessionId,omitempty"`
	SenderMessageID    string              `json:"senderMessageId,omitempty"`
	RecipientMessageID string              `json:"recipientMessageId,omitempty"`
	Content            Opt[[]ContentBlock] `json:"content,omitzero"`
	Meta               Meta                `json:"_meta,omitempty"`
}
