package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// toolInput are the arguments of the built-in tools in one, as far as they are shown.
type toolInput struct {
	Command      string     `json:"command"`     // Bash, Monitor
	Description  string     `json:"description"` // Bash, Agent, Monitor
	FilePath     string     `json:"file_path"`
	NotebookPath string     `json:"notebook_path"`
	OldString    string     `json:"old_string"` // Edit
	NewString    string     `json:"new_string"`
	Edits        []fileEdit `json:"edits"`      // MultiEdit
	Content      string     `json:"content"`    // Write
	NewSource    string     `json:"new_source"` // NotebookEdit
	Pattern      string     `json:"pattern"`    // Glob, Grep
	Query        string     `json:"query"`
	URL          string     `json:"url"`
	Prompt       string     `json:"prompt"` // Agent, WebFetch
	SubagentType string     `json:"subagent_type"`
	Name         string     `json:"name"`  // Agent
	Model        string     `json:"model"` // Agent
	To           string     `json:"to"`    // SendMessage
	Message      any        `json:"message"`
	Todos        []todo     `json:"todos"`   // TodoWrite
	Subject      string     `json:"subject"` // TaskCreate, TaskUpdate
	TaskID       string     `json:"taskId"`
	Status       string     `json:"status"`
	StopID       string     `json:"task_id"` // TaskStop
	Skill        string     `json:"skill"`
	Plan         string     `json:"plan"` // ExitPlanMode
	Questions    []question `json:"questions"`
}

type fileEdit struct {
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
}

type todo struct {
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
}

// question is one of AskUserQuestion.
type question struct {
	Question    string           `json:"question"`
	Header      string           `json:"header"`
	Options     []questionOption `json:"options"`
	MultiSelect bool             `json:"multiSelect"`
}

type questionOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Preview     string `json:"preview"`
}

// readInput reads the arguments of a call. A tool that is not built in may use the same
// names for something else: what does not fit stays empty.
func readInput(raw json.RawMessage) toolInput {
	var in toolInput
	_ = json.Unmarshal(raw, &in) // as far as it goes
	return in
}

// callText is how a tool call is shown before it has a result.
type callText struct {
	title  string
	input  string // bounded
	diff   string // of a call that changes files
	output string // of a call whose arguments are the result: to-do lists
}

// describeCall describes a call by its tool and arguments.
func describeCall(tool string, raw json.RawMessage) callText {
	in := readInput(raw)
	out := callText{input: show.Input(show.JSON(raw))}
	if out.input == "{}" {
		out.input = ""
	}
	switch tool {
	case "Bash", "PowerShell":
		out.title, out.input = show.Title(cmp.Or(in.Command, tool)), show.Input(in.Command)
	case "Monitor":
		out.title, out.input = show.Title("Monitor: "+cmp.Or(in.Description, in.Command)), show.Input(in.Command)
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		out.title, out.diff = changeText(tool, in)
		out.input = show.Input(out.diff)
	case toolAgent, toolTask:
		out.title, out.input = show.Title("Start agent: "+cmp.Or(in.Description, show.Title(in.Prompt))), show.Input(in.Prompt)
	case toolTodo:
		steps := todoSteps(in.Todos)
		out.title, out.output = show.PlanTitle(steps), show.PlanText("", steps)
	case toolAsk:
		if len(in.Questions) > 0 {
			out.title = show.Title("Ask: " + in.Questions[0].Question)
		}
	case toolExitPlan:
		out.title, out.input = "Present the plan", show.Input(cmp.Or(in.Plan, out.input))
	default:
		out.title = otherTitle(tool, in)
	}
	out.title = cmp.Or(out.title, show.Title(toolName(tool)))
	return out
}

// otherTitle is the title of a call that says little more than its tool.
func otherTitle(tool string, in toolInput) string {
	with := func(verb, what string) string {
		if what == "" {
			return ""
		}
		return show.Title(verb + " " + what)
	}
	switch tool {
	case "Read":
		return with("Read", base(in.FilePath))
	case "Glob":
		return with("Find", in.Pattern)
	case "Grep":
		return with("Search for", in.Pattern)
	case "WebFetch":
		return with("Fetch", in.URL)
	case "WebSearch":
		return with("Search the web for", in.Query)
	case "ToolSearch":
		return with("Look for tools:", in.Query)
	case "Skill":
		return with("Use the skill", in.Skill)
	case toolSendMessage:
		return with("Message to agent", in.To)
	case "TaskStop":
		return with("Stop", in.StopID)
	case "TaskCreate":
		return with("To-do:", in.Subject)
	case "TaskUpdate":
		return with("To-do #"+in.TaskID+":", cmp.Or(strings.ReplaceAll(in.Status, "_", " "), in.Subject))
	}
	return ""
}

// changeText is the title of a call that changes a file, and the change as a diff. Where it
// is in the file is not known before it is done, so its hunks have no numbers.
func changeText(tool string, in toolInput) (title, diff string) {
	file := cmp.Or(in.FilePath, in.NotebookPath)
	if file == "" {
		return "", ""
	}
	if tool == "Write" {
		return show.Bounded("Write "+base(file), show.TitleLength), show.NewFile(file, in.Content)
	}
	edits := in.Edits
	switch {
	case tool == "NotebookEdit":
		edits = []fileEdit{{NewString: in.NewSource}}
	case len(edits) == 0:
		edits = []fileEdit{{in.OldString, in.NewString}}
	}
	var hunks strings.Builder
	for _, e := range edits {
		hunks.WriteString("@@ @@\n" + marked("-", e.OldString) + marked("+", e.NewString))
	}
	return show.Bounded("Edit "+base(file), show.TitleLength), show.ChangedFile(file, file, hunks.String())
}

// marked puts a mark before every line.
func marked(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
}

func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(file, `\`, "/"))
}

func todoSteps(todos []todo) []show.Step {
	var out []show.Step
	for _, t := range todos {
		out = append(out, show.Step{Text: t.Content, Done: t.Status == "completed", Active: t.Status == "in_progress"})
	}
	return out
}

// toolName is a tool as people know it: of an MCP tool its server and its own name.
func toolName(tool string) string {
	rest, isMCP := strings.CutPrefix(tool, "mcp__")
	if server, name, ok := strings.Cut(rest, "__"); isMCP && ok {
		return fmt.Sprintf("%s: %s", server, name)
	}
	return tool
}
