package acp

import "encoding/json"

// PermissionRequest asks the client whether something may be done. SessionID is the session
// that asks, a child as well. Version 1 has the ToolCall, version 2 Title, Description and
// Subject.
type PermissionRequest struct {
	SessionID   string             `json:"sessionId"`
	ToolCall    *ToolCall          `json:"toolCall,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Subject     *PermissionSubject `json:"subject,omitempty"`
	Options     []PermissionOption `json:"options"`
	Meta        Meta               `json:"_meta,omitempty"`
}

// PermissionSubject is what is asked about: tool_call, command or another.
type PermissionSubject struct {
	Type       string    `json:"type"`
	ToolCall   *ToolCall `json:"toolCall,omitempty"`
	Command    string    `json:"command,omitempty"`
	Cwd        string    `json:"cwd,omitempty"`
	ToolCallID string    `json:"toolCallId,omitempty"`
}

// Call is the tool call it is about, nil if none is named.
func (r *PermissionRequest) Call() *ToolCall {
	if r.Subject != nil && r.Subject.ToolCall != nil {
		return r.Subject.ToolCall
	}
	return r.ToolCall
}

// PermissionOption is one answer. Kind is one of the constants below or another.
type PermissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Kinds of answer.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// PermissionResponse is the answer.
type PermissionResponse struct {
	Outcome PermissionOutcome `json:"outcome"`
}

// PermissionOutcome is selected, with the option, or cancelled.
type PermissionOutcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

// Selected answers with an option.
func Selected(option string) PermissionResponse {
	return PermissionResponse{PermissionOutcome{Outcome: "selected", OptionID: option}}
}

// NotAsked is the answer to a request whose work was cancelled.
func NotAsked() PermissionResponse {
	return PermissionResponse{PermissionOutcome{Outcome: "cancelled"}}
}

// ElicitRequest asks a person for something: a form, or to visit an address. It belongs to a
// session, or to a request of the client before there is one.
type ElicitRequest struct {
	Message         string          `json:"message"`
	Mode            string          `json:"mode"` // form, url
	SessionID       string          `json:"sessionId,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	RequestID       json.RawMessage `json:"requestId,omitempty"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	ElicitationID   string          `json:"elicitationId,omitempty"`
	URL             string          `json:"url,omitempty"`
	Meta            Meta            `json:"_meta,omitempty"`
}

// ElicitResponse is the answer: accept, with the content of a form, decline or cancel.
type ElicitResponse struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// Elicited tells that the person has been at the address.
type Elicited struct {
	ElicitationID string `json:"elicitationId"`
}
