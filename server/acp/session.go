package acp

import "encoding/json"

// NewSessionRequest begins a session. MCPServers is demanded by version 1.
type NewSessionRequest struct {
	Cwd                   string            `json:"cwd"`
	MCPServers            []json.RawMessage `json:"mcpServers"`
	AdditionalDirectories []string          `json:"additionalDirectories,omitempty"`
	Meta                  Meta              `json:"_meta,omitempty"`
}

// LoadSessionRequest takes up a session: session/load, session/resume and session/fork have
// the same members. ReplayFrom is version 2's, of resume alone.
type LoadSessionRequest struct {
	SessionID             string            `json:"sessionId"`
	Cwd                   string            `json:"cwd"`
	MCPServers            []json.RawMessage `json:"mcpServers"`
	AdditionalDirectories []string          `json:"additionalDirectories,omitempty"`
	ReplayFrom            *ReplayFrom       `json:"replayFrom,omitempty"`
	Meta                  Meta              `json:"_meta,omitempty"`
}

// ReplayFrom says from where a resume of version 2 repeats history.
type ReplayFrom struct {
	Type string `json:"type"`
}

// ReplayStart is all of it.
const ReplayStart = "start"

// SessionResponse answers new, load, resume and fork. SessionID is absent for load and
// resume; Modes is version 1's, AvailableCommands version 2's.
type SessionResponse struct {
	SessionID         string          `json:"sessionId,omitempty"`
	Modes             *ModeState      `json:"modes,omitempty"`
	ConfigOptions     []ConfigOption  `json:"configOptions,omitempty"`
	AvailableCommands json.RawMessage `json:"availableCommands,omitempty"`
	Meta              Meta            `json:"_meta,omitempty"`
}

// ModeState is which mode a session of version 1 is in, and could be.
type ModeState struct {
	CurrentModeID  string `json:"currentModeId"`
	AvailableModes []Mode `json:"availableModes"`
}

// Mode is one of them.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// ConfigOption is a choice that a session offers. Version 1 names it by ID, version 2 by
// ConfigID. The category tells what it is for: mode, model, thought_level.
type ConfigOption struct {
	ID           string          `json:"id,omitempty"`
	ConfigID     string          `json:"configId,omitempty"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Category     string          `json:"category,omitempty"`
	Type         string          `json:"type"` // select, boolean
	CurrentValue json.RawMessage `json:"currentValue"`
	Options      ConfigChoices   `json:"options,omitempty"` // of a select
}

// Key is the id, whichever version gave it.
func (o ConfigOption) Key() string {
	if o.ConfigID != "" {
		return o.ConfigID
	}
	return o.ID
}

// Current is the current value of a select, "" for another.
func (o ConfigOption) Current() string {
	var s string
	if json.Unmarshal(o.CurrentValue, &s) != nil {
		return ""
	}
	return s
}

// ConfigChoice is one value of a select, or a group of them. Version 1 names a group by
// Group, version 2 by GroupID.
type ConfigChoice struct {
	Value       string         `json:"value,omitempty"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Group       string         `json:"group,omitempty"`
	GroupID     string         `json:"groupId,omitempty"`
	Options     []ConfigChoice `json:"options,omitempty"`
}

// ConfigChoices are the values of a select, in groups or not.
type ConfigChoices []ConfigChoice

// Flat is every value, out of its group.
func (c ConfigChoices) Flat() []ConfigChoice {
	var out []ConfigChoice
	for _, o := range c {
		if len(o.Options) > 0 {
			out = append(out, o.Options...)
		} else if o.Value != "" {
			out = append(out, o)
		}
	}
	return out
}

// SetModeRequest sets the mode of a session of version 1.
type SetModeRequest struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

// SetConfigOptionRequest sets a [ConfigOption]. Version 1 gives Type only for booleans,
// version 2 always: id or boolean.
type SetConfigOptionRequest struct {
	SessionID string `json:"sessionId"`
	ConfigID  string `json:"configId"`
	Type      string `json:"type,omitempty"`
	Value     any    `json:"value"`
}

// SetConfigOptionResponse has all options as they now are.
type SetConfigOptionResponse struct {
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// SessionRef names a session: the parameters of session/cancel, close, delete and others.
type SessionRef struct {
	SessionID string `json:"sessionId"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// PromptRequest is a person's message.
type PromptRequest struct {
	SessionID string         `json:"sessionId"`
	Prompt    []ContentBlock `json:"prompt"`
	Meta      Meta           `json:"_meta,omitempty"`
}

// PromptResponse answers a prompt: in version 1 at the end of the turn, with why it ended;
// in version 2 at once, with the id that the message got.
type PromptResponse struct {
	StopReason StopReason  `json:"stopReason,omitempty"`
	Usage      *TokenUsage `json:"usage,omitempty"`
	MessageID  string      `json:"messageId,omitempty"`
	Meta       Meta        `json:"_meta,omitempty"`
}

// StopReason is why work ended. The set is open.
type StopReason string

// The reasons that are known. StopError is only of a state, never of a prompt.
const (
	StopEndTurn     StopReason = "end_turn"
	StopMaxTokens   StopReason = "max_tokens"
	StopMaxRequests StopReason = "max_turn_requests"
	StopRefusal     StopReason = "refusal"
	StopCancelled   StopReason = "cancelled"
	StopError       StopReason = "error"
)

// TokenUsage counts the tokens of a turn.
type TokenUsage struct {
	TotalTokens       int64  `json:"totalTokens"`
	InputTokens       int64  `json:"inputTokens"`
	OutputTokens      int64  `json:"outputTokens"`
	ThoughtTokens     *int64 `json:"thoughtTokens,omitempty"`
	CachedReadTokens  *int64 `json:"cachedReadTokens,omitempty"`
	CachedWriteTokens *int64 `json:"cachedWriteTokens,omitempty"`
}

// ListSessionsRequest asks for one page of the sessions that can be taken up.
type ListSessionsRequest struct {
	Cwd    string `json:"cwd,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// ListSessionsResponse is that page, roots only.
type ListSessionsResponse struct {
	Sessions   []SessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// SessionInfo is one of them. UpdatedAt is RFC 3339.
type SessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// RPCError is an error within a state.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}
