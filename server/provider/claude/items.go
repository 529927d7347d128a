package claude

import (
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
	NewTodos         []todo     `json:"newTodos"` // of TodoWrite
	Todo             *todoState `json:"task"`     // of TaskCreate
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

// readResult reads what a line says of one of its tool results. There is one such word on
// a line, so with several results only the metadata tells them apart.
func readResult(f *messageFrame, b *block) toolResult {
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

// resultMessage is what a result adds to the message of its call: how the call ended, and
// what is shown of the result, bounded. What the binary writes around it for the model is
// left out.
func resultMessage(f *messageFrame, b *block) agent.Message {
	r := readResult(f, b)
	m := agent.Message{Status: agent.MessageCompleted}
	switch {
	case r.rejected:
		m.Status = agent.MessageInterrupted
	case b.IsError:
		m.Status = agent.MessageFailed
	}
	text := strings.TrimSpace(textOf(b.Content))
	switch inner, failed := strings.CutPrefix(text, "<tool_use_error>"); {
	case failed:
		m.Output = show.Output(strings.TrimSuffix(inner, "</tool_use_error>"))
	case b.IsError:
		m.Output = show.Output(text)
	case r.async():
		m.Output = "The agent works in the background."
	case r.AgentID != "" && len(r.Content) > 0:
		m.Output = show.Output(reportOf(r.Content))
	case len(r.Patch) > 0 && r.FilePath != "":
		m.Output = show.Output(show.ChangedFile(r.FilePath, r.FilePath, hunksText(r.Patch)))
	case len(r.NewTodos) > 0: // the list is shown with the call
	default:
		m.Output = show.Output(text)
	}
	return m
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
	Status  string `json:"status"` // pending where there is none
}

// take follows the result of a call and says whether the list has changed.
func (l *todoList) take(r *toolResult) bool {
	at := func(id string) int {
		return slices.IndexFunc(l.items, func(t todoState) bool { return t.ID == id })
	}
	switch to := r.StatusChange.To; {
	case r.Todo != nil && r.Todo.ID != "" && r.Todo.Subject != "":
		n := at(r.Todo.ID)
		if n >= 0 && l.items[n] == *r.Todo {
			return false
		}
		if n < 0 {
			l.items, n = append(l.items, todoState{}), len(l.items)
		}
		l.items[n] = *r.Todo
		return true
	case r.TodoID != "" && to != "":
		n := at(r.TodoID)
		if n < 0 || l.items[n].Status == to {
			return false
		}
		if l.items[n].Status = to; to == "deleted" {
			l.items = slices.Delete(l.items, n, n+1)
		}
		return true
	}
	return false
}

// steps are the list as it is shown.
func (l *todoList) steps() []show.Step {
	var todos []todo
	for _, t := range l.items {
		todos = append(todos, todo{t.Subject, t.Status})
	}
	return todoSteps(todos)
}
