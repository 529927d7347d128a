package claude

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// interruptMark begins the line that an interrupt leaves in a conversation.
const interruptMark = "[Request interrupted by user"

// rejectedMark begins the result of a call that an interrupt or a stop refused. Not every
// such result says so in its members.
const rejectedMark = "The user doesn't want to proceed with this tool use"

// isInterruptMark says whether a user line is only what an interrupt leaves.
func (f *messageFrame) isInterruptMark() bool {
	c := f.Message.Content
	return !f.assistant() && len(c) == 1 && c[0].Type == blockText && strings.HasPrefix(c[0].Text, interruptMark)
}

// messageOf is what a block of an assistant line shows; false if it shows nothing. Its ids,
// and its place, are the caller's. A tool call is running until its result comes.
func messageOf(b *block, meta []toolUseMeta) (agent.Message, bool) {
	m := agent.Message{Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted}
	switch b.Type {
	case blockText:
		m.Content = b.Text
	case blockThinking:
		m.Kind, m.Content = agent.MessageThinking, b.Thinking
	case blockRedacted:
		m.Kind, m.Content = agent.MessageThinking, "(This thought is not shown.)"
	case blockToolUse, "server_tool_use", "mcp_tool_use":
		call := describeCall(b.Name, b.Input)
		m.Role, m.Kind, m.Status = agent.RoleTool, agent.MessageToolCall, agent.MessageStreaming
		m.CallID, m.Name, m.Title, m.Input, m.Output = agent.CallID(b.ID), b.Name, call.title, call.input, call.output
		for _, t := range meta {
			if t.ID == b.ID && t.Server != "" && t.DisplayName != "" {
				m.Title = show.Title(t.Server + ": " + t.DisplayName)
			}
		}
		return m, b.ID != ""
	case blockImage, blockDocument:
		m.Content = mediaText(b)
	default:
		return agent.Message{}, false
	}
	return m, m.Content != ""
}

// textOf is the text of blocks; what is no text is named.
func textOf(content blocks) string {
	var parts []string
	for i := range content {
		b := &content[i]
		text := b.Text
		switch b.Type {
		case blockImage, blockDocument:
			text = mediaText(b)
		case "tool_reference":
			text = b.Name
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// mediaText names an image or a document: a transcript keeps text alone.
func mediaText(b *block) string {
	words := []string{b.Type}
	if b.Title != "" {
		words = append(words, b.Title)
	}
	if s := b.Source; s != nil {
		switch {
		case s.Type == "text":
			return s.Data
		case s.URL != "":
			words = append(words, s.URL)
		case s.Data != "":
			words = append(words, fmt.Sprintf("%s, %d bytes", s.MediaType, base64.StdEncoding.DecodedLen(len(s.Data))))
		default:
			words = append(words, s.MediaType)
		}
	}
	return "[" + strings.Join(words, ": ") + "]"
}

// toolResult is what a user line says of a tool's result besides its text.
type toolResult struct {
	Status           string     `json:"status"` // of an agent: completed, async_launched
	AgentID          string     `json:"agentId"`
	AgentType        string     `json:"agentType"`
	Model            string     `json:"resolvedModel"`
	Content          blocks     `json:"content"`          // of an agent: its report
	ResumedAgentID   string     `json:"resumedAgentId"`   // of SendMessage: the child that runs again
	BackgroundTaskID string     `json:"backgroundTaskId"` // of Bash: it goes on as this task
	Interrupted      bool       `json:"interrupted"`
	FilePath         string     `json:"filePath"`
	Patch            []hunk     `json:"structuredPatch"`
	Todo             *todoState `json:"task"` // of TaskCreate
	TodoID           string     `json:"taskId"`
	StatusChange     struct {
		To string `json:"to"`
	} `json:"statusChange"` // of TaskUpdate

	// rejected: an interrupt or a stop kept the tool from running, or ended it.
	rejected bool
	// denied: a person or a rule did not allow it.
	denied bool
}

type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// async says whether the call launched an agent that goes on in the background.
func (t *toolResult) async() bool { return t.Status == "async_launched" }

// resultOf reads what a line says of one of its tool results. There is one such word on a
// line, so with several results only the metadata tells them apart.
func (f *messageFrame) resultOf(b *block) toolResult {
	var out toolResult
	if raw := f.ToolUseResult; len(raw) > 0 && raw[0] == '{' {
		_ = json.Unmarshal(raw, &out) // every tool has its own; what does not fit stays empty
	}
	text := textOf(b.Content)
	out.rejected = out.Interrupted || b.IsError && (strings.HasPrefix(text, interruptMark) || strings.HasPrefix(text, rejectedMark))
	for _, m := range f.ToolResultMeta {
		if m.ID != b.ToolUseID {
			continue
		}
		switch m.NonExecutionKind {
		case "interrupted", "user-rejected":
			out.rejected = true
		}
		out.denied = m.Decision.Decision == "reject"
	}
	return out
}

// callEnd is how a tool call's message ends.
func callEnd(b *block, r *toolResult) agent.MessageStatus {
	switch {
	case r.rejected:
		return agent.MessageInterrupted
	case b.IsError:
		return agent.MessageFailed
	}
	return agent.MessageCompleted
}

// outputOf is the result of a call as it is shown, bounded. What the binary writes around
// it for the model is left out.
func outputOf(tool string, b *block, r *toolResult) string {
	text := strings.TrimSpace(textOf(b.Content))
	switch {
	case launchesAgent(tool) && r.async():
		return "The agent works in the background."
	case launchesAgent(tool) && r.Status == taskCompleted && len(r.Content) > 0:
		return show.Output(reportOf(r.Content))
	case len(r.Patch) > 0 && r.FilePath != "" && !b.IsError:
		return show.Output(show.ChangedFile(r.FilePath, r.FilePath, hunksText(r.Patch)))
	case tool == toolTodo && !b.IsError:
		return "" // the list is shown with the call
	}
	if inner, ok := strings.CutPrefix(text, "<tool_use_error>"); ok {
		text = strings.TrimSuffix(inner, "</tool_use_error>")
	}
	return show.Output(text)
}

// reportOf is the report of a child without the notes for the model that the binary puts
// before it.
func reportOf(content blocks) string {
	return textOf(slices.DeleteFunc(slices.Clone(content), func(b block) bool {
		return strings.HasPrefix(b.Text, "<tools-used-before-summary>")
	}))
}

func hunksText(patch []hunk) string {
	var b strings.Builder
	for _, h := range patch {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n%s\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines, strings.Join(h.Lines, "\n"))
	}
	return b.String()
}

// todoList is the to-do list that an agent keeps with TaskCreate and TaskUpdate. They have
// nothing to do with the tasks that are agents.
type todoList struct{ items []todoState }

type todoState struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	status  string
}

// take follows the result of a call and says whether the list has changed.
func (l *todoList) take(tool string, input json.RawMessage, r *toolResult) bool {
	switch tool {
	case "TaskCreate":
		if r.Todo == nil || r.Todo.ID == "" {
			return false
		}
		l.items = append(l.items, todoState{ID: r.Todo.ID, Subject: cmp.Or(r.Todo.Subject, readInput(input).Subject)})
		return true
	case "TaskUpdate":
		in := readInput(input)
		n := slices.IndexFunc(l.items, func(t todoState) bool { return t.ID == cmp.Or(r.TodoID, in.TaskID) })
		if n < 0 || r.StatusChange.To == "" && in.Subject == "" {
			return false
		}
		if r.StatusChange.To == "deleted" {
			l.items = slices.Delete(l.items, n, n+1)
			return true
		}
		l.items[n].status = cmp.Or(r.StatusChange.To, l.items[n].status)
		l.items[n].Subject = cmp.Or(in.Subject, l.items[n].Subject)
		return true
	}
	return false
}

// steps are the list as it is shown.
func (l *todoList) steps() []show.Step {
	var todos []todo
	for _, t := range l.items {
		todos = append(todos, todo{t.Subject, t.status})
	}
	return todoSteps(todos)
}
