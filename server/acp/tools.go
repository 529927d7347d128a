package acp

import "encoding/json"

// ToolCall is a tool call, or a patch of one: version 1 begins it with tool_call, which must
// have a title, and patches it with tool_call_update; version 2 has the latter alone.
type ToolCall struct {
	ToolCallID string             `json:"toolCallId"`
	Title      Opt[string]        `json:"title,omitzero"`
	Name       Opt[string]        `json:"name,omitzero"`
	Kind       Opt[string]        `json:"kind,omitzero"`
	Status     Opt[ToolStatus]    `json:"status,omitzero"`
	Content    Opt[[]ToolContent] `json:"content,omitzero"`
	Locations  Opt[[]Location]    `json:"locations,omitzero"`
	RawInput   json.RawMessage    `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage    `json:"rawOutput,omitempty"`
	Meta       Meta               `json:"_meta,omitempty"`
}

// Location is a file that a tool call works on.
type Location struct {
	Path string `json:"path"`
	Line *int   `json:"line,omitempty"`
}

// ToolStatus is where a tool call stands. The set is open in version 2.
type ToolStatus string

// The statuses that are known; paused and cancelled are version 2's.
const (
	ToolPending   ToolStatus = "pending"
	ToolRunning   ToolStatus = "in_progress"
	ToolPaused    ToolStatus = "paused"
	ToolCompleted ToolStatus = "completed"
	ToolFailed    ToolStatus = "failed"
	ToolCancelled ToolStatus = "cancelled"
)

// Kinds of tool call.
const (
	ToolRead    = "read"
	ToolEdit    = "edit"
	ToolDelete  = "delete"
	ToolMove    = "move"
	ToolSearch  = "search"
	ToolExecute = "execute"
	ToolThink   = "think"
	ToolFetch   = "fetch"
	ToolOther   = "other"
)

// ToolContent is what a tool call shows: content, diff, terminal or another. A diff is Path,
// OldText and NewText in version 1, Changes and Patch in version 2. One of another type
// keeps its JSON in Raw.
type ToolContent struct {
	Type       string        `json:"type"`
	Content    *ContentBlock `json:"content,omitempty"`
	Path       string        `json:"path,omitempty"`
	OldText    *string       `json:"oldText,omitempty"`
	NewText    *string       `json:"newText,omitempty"`
	Changes    []DiffChange  `json:"changes,omitempty"`
	Patch      *DiffPatch    `json:"patch,omitempty"`
	TerminalID string        `json:"terminalId,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// Types of what a tool call shows.
const (
	ToolContentBlock    = "content"
	ToolContentDiff     = "diff"
	ToolContentTerminal = "terminal"
)

// DiffChange is one file of a diff of version 2. OldPath is of a move or a copy.
type DiffChange struct {
	Operation string `json:"operation"` // add, delete, modify, move, copy
	Path      string `json:"path"`
	OldPath   string `json:"oldPath,omitempty"`
	FileType  string `json:"fileType,omitempty"`
}

// DiffPatch is the text of a diff of version 2. Format is git_patch or another.
type DiffPatch struct {
	Format string `json:"format"`
	Text   string `json:"text"`
}

// UnmarshalJSON never fails for what is an object.
func (c *ToolContent) UnmarshalJSON(b []byte) error {
	type plain ToolContent
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		p = plain{Type: tagOf("type", b)}
		if p.Type == "" {
			return err
		}
	}
	*c = ToolContent(p)
	c.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON writes what came as it came.
func (c ToolContent) MarshalJSON() ([]byte, error) {
	if c.Raw != nil {
		return c.Raw, nil
	}
	type plain ToolContent
	return json.Marshal(plain(c))
}

// ToolContentChunk adds to what a tool call shows.
type ToolContentChunk struct {
	ToolCallID string      `json:"toolCallId"`
	Content    ToolContent `json:"content"`
}

// TerminalUpdate is a patch of a terminal that the agent owns. Output is all of it.
type TerminalUpdate struct {
	TerminalID string              `json:"terminalId"`
	Command    Opt[string]         `json:"command,omitzero"`
	Cwd        Opt[string]         `json:"cwd,omitzero"`
	Output     Opt[TerminalOutput] `json:"output,omitzero"`
	ExitStatus Opt[ExitStatus]     `json:"exitStatus,omitzero"`
}

// TerminalOutput is bytes, as base64.
type TerminalOutput struct {
	Data []byte `json:"data"`
}

// TerminalChunk adds to the output of a terminal, as base64.
type TerminalChunk struct {
	TerminalID string `json:"terminalId"`
	Data       []byte `json:"data"`
}

// Plan is what an agent means to do, in version 1.
type Plan struct {
	Entries []PlanEntry `json:"entries"`
}

// PlanEntry is one step. Priority is high, medium or low; Status pending, in_progress,
// completed and, in version 2, cancelled.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// PlanUpdate is one of several plans, as it now is.
type PlanUpdate struct {
	Plan PlanContent `json:"plan"`
}

// PlanContent is items, a file or markdown.
type PlanContent struct {
	Type    string      `json:"type"`
	PlanID  string      `json:"planId"`
	Entries []PlanEntry `json:"entries,omitempty"` // of items
	URI     string      `json:"uri,omitempty"`     // of a file
	Content string      `json:"content,omitempty"` // of markdown
}

// PlanRemoved takes a plan away.
type PlanRemoved struct {
	PlanID string `json:"planId"`
}
