package agent

import "time"

// Role is who speaks.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system"
)

// MessageKind is what a message holds.
type MessageKind string

const (
	MessageText     MessageKind = "text"
	MessageThinking MessageKind = "thinking"
	MessageToolCall MessageKind = "tool_call"
	MessageNotice   MessageKind = "notice"
)

// MessageStatus is where a message stands.
type MessageStatus string

const (
	MessagePending     MessageStatus = "pending"   // a person's text that no provider has taken yet
	MessageStreaming   MessageStatus = "streaming" // more is to come; tool calls: running
	MessageCompleted   MessageStatus = "completed"
	MessageFailed      MessageStatus = "failed"
	MessageInterrupted MessageStatus = "interrupted" // cut off; what had come is kept
	MessageUndelivered MessageStatus = "undelivered" // a person's text that never reached the agent
)

// Ended reports whether nothing more can come.
func (s MessageStatus) Ended() bool { return s != MessagePending && s != MessageStreaming }

// Message is one entry of a session's transcript. Messages stand in the order of
// Seq, the number of the event that created them.
type Message struct {
	ID        MessageID     `json:"id"`
	SessionID SessionID     `json:"agentSessionId"`
	TurnID    TurnID        `json:"turnId"`
	Seq       int64         `json:"seq" doc:"Sequence number of the event that created it; the order of the transcript"`
	Role      Role          `json:"role" enum:"user,assistant,tool,system"`
	Kind      MessageKind   `json:"kind" enum:"text,thinking,tool_call,notice"`
	Content   string        `json:"content" doc:"Text so far; empty for a tool call"`
	Status    MessageStatus `json:"status" enum:"pending,streaming,completed,failed,interrupted,undelivered"`

	// Of kind tool_call only.
	CallID         CallID    `json:"callId,omitempty"`
	Name           string    `json:"name,omitempty" doc:"Tool name as the provider gives it"`
	Title          string    `json:"title,omitempty" doc:"One line for people"`
	Input          string    `json:"input,omitempty" doc:"Arguments as text; JSON where the tool takes JSON"`
	Output         string    `json:"output,omitempty" doc:"Result as text, bounded; the middle is cut where it is long"`
	ChildSessionID SessionID `json:"childSessionId,omitempty" doc:"Session that this call created"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}
