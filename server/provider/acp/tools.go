package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// outputPause is how often a command's output is shown while it grows.
const outputPause = time.Second

// tool is a tool call as its patches have made it.
type tool struct {
	title, name, kind string
	status            acp.ToolStatus
	input, result     json.RawMessage
	content           []acp.ToolContent
	outputs           []*output // of its terminals
	put               time.Time // when it was shown last
}

// output is what a terminal has written.
type output struct {
	show.Tail
	call *item // the tool call that shows it
	turn *turn
}

// terminalMeta is how some agents of version 1 tell of the terminals of their commands.
type terminalMeta struct {
	Info *struct {
		ID string `json:"terminal_id"`
	} `json:"terminal_info"`
	Delta *struct {
		ID   string `json:"terminal_id"`
		Data string `json:"data"`
	} `json:"terminal_output_delta"`
	Output *struct {
		ID   string `json:"terminal_id"`
		Data string `json:"data"`
	} `json:"terminal_output"`
}

// toolCall handles a tool call or a patch of one. Its status says nothing of a question
// that is open about it.
func (r *runtime) toolCall(u *turn, c *acp.ToolCall) {
	if c.ToolCallID == "" {
		return
	}
	holder, i := u.lane.callOf(c.ToolCallID)
	if i == nil {
		r.endWriting(u)
		holder, i = u, u.entry("tool:"+c.ToolCallID, agent.RoleTool, agent.MessageToolCall)
		i.call, i.tool = agent.CallID(c.ToolCallID), &tool{status: acp.ToolPending}
	}
	t := i.tool
	before := t.status
	t.patch(c)
	loud := t.status != before || c.Content.Said() || c.Title.Said() || c.RawInput != nil || c.RawOutput != nil || i.message == ""
	r.terminalsOf(holder, i, c)
	if loud || r.Clock.Now().Sub(t.put) >= outputPause {
		r.putTool(holder, i, "")
	}
}

// callOf finds a tool call in the latest turns of a lane.
func (l *lane) callOf(id string) (*turn, *item) {
	for n := len(l.order) - 1; n >= 0; n-- {
		if i := l.order[n].items["tool:"+id]; i != nil {
			return l.order[n], i
		}
	}
	return nil, nil
}

// patch takes over what a line says; what it leaves out stays.
func (t *tool) patch(c *acp.ToolCall) {
	set := func(to *string, o acp.Opt[string]) {
		if o.Said() {
			*to = o.Or("")
		}
	}
	set(&t.title, c.Title)
	set(&t.name, c.Name)
	set(&t.kind, c.Kind)
	if s, ok := c.Status.Get(); ok {
		t.status = s
	}
	if c.Content.Said() {
		t.content = c.Content.Or(nil)
	}
	if c.RawInput != nil {
		t.input = c.RawInput
	}
	if c.RawOutput != nil {
		t.result = c.RawOutput
	}
}

// toolChunk adds to what a tool call shows.
func (r *runtime) toolChunk(u *turn, c *acp.ToolContentChunk) {
	holder, i := u.lane.callOf(c.ToolCallID)
	if i == nil {
		r.toolCall(u, &acp.ToolCall{ToolCallID: c.ToolCallID, Content: acp.Some([]acp.ToolContent{c.Content})})
		return
	}
	i.tool.content = append(i.tool.content, c.Content)
	r.putTool(holder, i, "")
}

// terminalsOf binds the terminals that a tool call names, and adds to their output what its
// line brings.
func (r *runtime) terminalsOf(u *turn, i *item, c *acp.ToolCall) {
	for _, part := range c.Content.Or(nil) {
		if part.TerminalID != "" {
			r.bindTerminal(u, i, part.TerminalID)
		}
	}
	var m terminalMeta
	if !acp.MetaOf(c.Meta, &m) {
		return
	}
	if m.Delta != nil {
		r.bindTerminal(u, i, m.Delta.ID).Add(m.Delta.Data)
	}
	if m.Output != nil {
		r.bindTerminal(u, i, m.Output.ID).Tail = tailOf(m.Output.Data)
	}
}

func tailOf(text string) (t show.Tail) {
	t.Add(text)
	return t
}

// bindTerminal notes which tool call shows a terminal.
func (r *runtime) bindTerminal(u *turn, i *item, id string) *output {
	o := r.outputOf(u.lane, id)
	if o.call == nil {
		o.call, o.turn = i, u
		i.tool.outputs = append(i.tool.outputs, o)
	}
	return o
}

// maxOutputs bounds the terminals of a lane that are kept.
const maxOutputs = 64

func (r *runtime) outputOf(l *lane, id string) *output {
	o := l.terminals[id]
	if o == nil {
		if l.terminals == nil || len(l.terminals) >= maxOutputs {
			l.terminals = map[string]*output{} // what is shown already is shown
		}
		o = &output{}
		l.terminals[id] = o
	}
	return o
}

// terminalShown handles what version 2 tells of a terminal of the agent.
func (r *runtime) terminalShown(l *lane, v *acp.TerminalUpdate) {
	o := r.outputOf(l, v.TerminalID)
	if all, ok := v.Output.Get(); ok {
		o.Tail = tailOf(string(all.Data))
	}
	_, ended := v.ExitStatus.Get()
	r.terminalChanged(o, ended)
}

func (r *runtime) terminalGrew(l *lane, id, text string) {
	o := r.outputOf(l, id)
	o.Add(text)
	r.terminalChanged(o, false)
}

// terminalChanged shows the tool call of a terminal again, though not with every piece.
func (r *runtime) terminalChanged(o *output, now bool) {
	if o.call == nil || o.turn.dropped || o.turn.lane.shut {
		return
	}
	if now || r.Clock.Now().Sub(o.call.tool.put) >= outputPause {
		r.putTool(o.turn, o.call, "")
	}
}

// putTool shows a tool call as it stands; status outranks its own.
func (r *runtime) putTool(u *turn, i *item, status agent.MessageStatus) {
	t := i.tool
	t.put = r.Clock.Now()
	m := agent.Message{
		Name: cmp.Or(t.name, t.kind, "tool"), Title: show.Title(cmp.Or(t.title, t.name, t.kind, "Tool")),
		Input: show.Input(show.JSON(t.input)), Output: show.Output(t.output()), Status: cmp.Or(status, t.messageStatus()),
	}
	if m.Input == "{}" {
		m.Input = ""
	}
	r.putItem(u, i, m)
}

func (t *tool) messageStatus() agent.MessageStatus {
	switch t.status {
	case acp.ToolCompleted:
		return agent.MessageCompleted
	case acp.ToolFailed:
		return agent.MessageFailed
	case acp.ToolCancelled:
		return agent.MessageInterrupted
	case acp.ToolPending, acp.ToolRunning, acp.ToolPaused:
	}
	return agent.MessageStreaming
}

// output is what a tool call has to show: its terminals, its diffs, or else its result.
func (t *tool) output() string {
	var parts []string
	add := func(s string) {
		if s = strings.TrimRight(s, "\n"); s != "" {
			parts = append(parts, s)
		}
	}
	for _, o := range t.outputs {
		add(o.String())
	}
	diff := diffOf(t.content)
	add(diff)
	if len(parts) > 0 {
		return strings.Join(parts, "\n")
	}
	var plain string
	if json.Unmarshal(t.result, &plain) == nil && plain != "" {
		return plain
	}
	for _, c := range t.content {
		if c.Content != nil {
			add(unfenced(c.Content.Words()))
		}
	}
	if len(parts) == 0 {
		add(show.JSON(t.result))
	}
	return strings.Join(parts, "\n")
}

// unfenced is the text of a lone block of code that an agent has put around an output.
func unfenced(text string) string {
	rest, ok := strings.CutPrefix(text, "```console\n")
	if !ok {
		return text
	}
	return strings.TrimSuffix(strings.TrimSuffix(rest, "```"), "\n")
}

// diffOf is the diffs among what a tool call shows, in unified form.
func diffOf(content []acp.ToolContent) string {
	var b strings.Builder
	for _, c := range content {
		if c.Type != acp.ToolContentDiff {
			continue
		}
		switch {
		case c.Patch != nil:
			b.WriteString(c.Patch.Text)
			if !strings.HasSuffix(c.Patch.Text, "\n") {
				b.WriteByte('\n')
			}
		case c.NewText != nil:
			b.WriteString(textDiff(c.Path, c.OldText, *c.NewText))
		default:
			for _, f := range c.Changes {
				name := f.Path
				if f.OldPath != "" {
					name = f.OldPath + " → " + name
				}
				b.WriteString(f.Operation + " " + name + "\n")
			}
		}
	}
	return b.String()
}

// textDiff is one hunk between what the two texts have in common at both ends.
func textDiff(path string, before *string, after string) string {
	if before == nil {
		return show.NewFile(path, after)
	}
	a, b := strings.SplitAfter(*before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return show.ChangedFile(path, path, hunk(a, b, head, tail))
}

// around is how many lines are shown around a change.
const around = 3

// hunk writes the lines that differ with some around them.
func hunk(a, b []string, head, tail int) string {
	from, to := max(0, head-around), max(0, tail-around)
	var out strings.Builder
	line := func(mark, text string) {
		if text != "" {
			out.WriteString(mark + strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	lines := func(s []string) int {
		if len(s) > 0 && s[len(s)-1] == "" {
			return len(s) - 1
		}
		return len(s)
	}
	was, is := a[from:len(a)-to], b[from:len(b)-to]
	out.WriteString(hunkHead(from, lines(was), lines(is)))
	for _, s := range a[from:head] {
		line(" ", s)
	}
	for _, s := range a[head : len(a)-tail] {
		line("-", s)
	}
	for _, s := range b[head : len(b)-tail] {
		line("+", s)
	}
	for _, s := range a[len(a)-tail : len(a)-to] {
		line(" ", s)
	}
	return out.String()
}

func hunkHead(from, was, is int) string {
	at := func(n int) int {
		if n == 0 {
			return from
		}
		return from + 1
	}
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", at(was), was, at(is), is)
}
