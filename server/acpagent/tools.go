package acpagent

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// toldTool is what the editor has of a tool call. Of long texts only a sum is kept: a
// session has many calls.
type toldTool struct {
	begun         bool
	title         string
	input, output uint64
	status        acp.ToolStatus
}

// turnDiff names the entry that sums up what a turn has changed.
const turnDiff = "diff"

var seed = maphash.MakeSeed()

func sum(s string) uint64 { return maphash.String(seed, s) }

// callID names a tool call on its session's stream.
func callID(m agent.Message) string { return cmp.Or(string(m.CallID), string(m.ID)) }

// tool tells a tool call, or what is new of it. A plan is told as one.
func (v *view) tool(s *session, n *node, t *toldMessage, m agent.Message) {
	if entries := planOf(m); entries != nil {
		v.plan(s, n, m, entries)
		return
	}
	if m.Name == turnDiff {
		return // the calls that made the changes have shown them
	}
	now := toldTool{begun: true, title: cmp.Or(m.Title, m.Name, "Tool"), input: sum(m.Input), output: sum(m.Output), status: v.status(s, m.Status)}
	if now == t.tool {
		return
	}
	call := acp.ToolCall{ToolCallID: callID(m)}
	if v.flat && !n.isRoot() {
		now.title = n.name() + ": " + now.title
		call.ToolCallID = n.id + "/" + call.ToolCallID
	}
	before := t.tool
	t.tool = now
	if now.title != before.title {
		call.Title = acp.Some(now.title)
	}
	if now.status != before.status {
		call.Status = acp.Some(now.status)
	}
	if !before.begun {
		call.Kind = acp.Some(toolKind(m.Name))
	}
	if now.input != before.input && m.Input != "" {
		call.RawInput = rawInput(m.Input)
	}
	if now.input != before.input || now.output != before.output {
		content := s.content(n, m)
		call.Content = acp.Some(content.blocks)
		if len(content.files) > 0 {
			call.Locations = acp.Some(content.files)
		}
	}
	kind := acp.UpdateToolCallUpdate
	if !before.begun && s.c.version() == acp.V1 {
		kind = acp.UpdateToolCall
	}
	s.c.say(v.stream(n), kind, &call)
}

// status is where a tool call stands. Version 1 has no word for one that was cut off.
func (v *view) status(s *session, m agent.MessageStatus) acp.ToolStatus {
	switch m {
	case agent.MessagePending:
		return acp.ToolPending
	case agent.MessageStreaming:
		return acp.ToolRunning
	case agent.MessageCompleted:
		return acp.ToolCompleted
	case agent.MessageInterrupted:
		if s.c.version() == acp.V2 {
			return acp.ToolCancelled
		}
	case agent.MessageFailed, agent.MessageUndelivered:
	}
	return acp.ToolFailed
}

// shownContent is what a tool call shows, and the files it touches.
type shownContent struct {
	blocks []acp.ToolContent
	files  []acp.Location
}

// content is the change of a call that changes files, and else its result as text.
func (s *session) content(n *node, m agent.Message) shownContent {
	for _, text := range []string{m.Output, m.Input} {
		if changes := parseDiff(text, n.about.Cwd); len(changes) > 0 {
			return s.changes(changes)
		}
	}
	if m.Output == "" {
		return shownContent{blocks: []acp.ToolContent{}}
	}
	return shownContent{blocks: []acp.ToolContent{block(fenced(toolKind(m.Name), m.Output))}}
}

func block(text string) acp.ToolContent {
	content := acp.Text(text)
	return acp.ToolContent{Type: acp.ToolContentBlock, Content: &content}
}

// fenced keeps what a program printed from being read as Markdown, which editors do with
// text. The fence is longer than any in it.
func fenced(kind, text string) string {
	switch kind {
	case acp.ToolExecute, acp.ToolRead, acp.ToolSearch:
	default:
		return text
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// rawInput is the arguments as JSON: themselves where they are an object.
func rawInput(input string) json.RawMessage {
	if input == "" {
		return nil
	}
	if strings.HasPrefix(input, "{") && json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	raw, err := json.Marshal(map[string]string{"input": input})
	if err != nil {
		return nil
	}
	return raw
}

// kinds tells tools apart by a part of their names, which are the provider's own; the first
// that fits counts.
var kinds = []struct {
	part, kind string
}{
	{"websearch", acp.ToolFetch},
	{"web_search", acp.ToolFetch},
	{"fetch", acp.ToolFetch},
	{"spawn", acp.ToolThink},
	{"agent", acp.ToolThink},
	{"task", acp.ToolThink},
	{"think", acp.ToolThink},
	{"plan", acp.ToolThink},
	{"todo", acp.ToolThink},
	{"delete", acp.ToolDelete},
	{"remove", acp.ToolDelete},
	{"move", acp.ToolMove},
	{"rename", acp.ToolMove},
	{"edit", acp.ToolEdit},
	{"write", acp.ToolEdit},
	{"patch", acp.ToolEdit},
	{"filechange", acp.ToolEdit},
	{"diff", acp.ToolEdit},
	{"command", acp.ToolExecute},
	{"bash", acp.ToolExecute},
	{"shell", acp.ToolExecute},
	{"exec", acp.ToolExecute},
	{"terminal", acp.ToolExecute},
	{"grep", acp.ToolSearch},
	{"glob", acp.ToolSearch},
	{"search", acp.ToolSearch},
	{"find", acp.ToolSearch},
	{"read", acp.ToolRead},
	{"view", acp.ToolRead},
	{"list", acp.ToolRead},
}

func toolKind(name string) string {
	name = strings.ToLower(name)
	for _, k := range kinds {
		if strings.Contains(name, k.part) {
			return k.kind
		}
	}
	return acp.ToolOther
}

// plan tells the steps that an agent means to take, where they changed.
func (v *view) plan(s *session, n *node, m agent.Message, entries []acp.PlanEntry) {
	if n.planShown == m.Output {
		return
	}
	n.planShown = m.Output
	if s.c.version() == acp.V2 {
		s.c.say(n.id, acp.UpdatePlanUpdate, &acp.PlanUpdate{Plan: acp.PlanContent{Type: "items", PlanID: "plan", Entries: entries}})
		return
	}
	if v.flat && !n.isRoot() {
		return // the root's plan is the root's
	}
	s.c.say(n.id, acp.UpdatePlan, &acp.Plan{Entries: entries})
}

// marks are how the transcript shows a step, whichever provider made the plan.
var marks = map[string]string{"[x] ": "completed", "[>] ": "in_progress", "[ ] ": "pending"}

// planOf reads the steps of an entry that is a plan, nil if it is none.
func planOf(m agent.Message) []acp.PlanEntry {
	if !strings.HasPrefix(m.Title, "Plan: ") {
		return nil
	}
	var out []acp.PlanEntry
	for line := range strings.Lines(m.Output) {
		if status, ok := marks[line[:min(len(line), 4)]]; ok {
			out = append(out, acp.PlanEntry{Content: strings.TrimSpace(line[4:]), Priority: "medium", Status: status})
		}
	}
	return out
}
