package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// item is one entry of a turn, and the message it became.
type item struct {
	message agent.MessageID // "" until there is something to show
	call    agent.CallID    // of a tool call
	tool    string          // of a tool call, its tool
	role    agent.Role
	kind    agent.MessageKind
	ended   bool // its message has an ended status
	at      int  // its place in the turn
}

// maxTools bounds the calls of an agent whose arguments are kept.
const maxTools = 64

// workWith is the turn that a line belongs to, nil if it is not to be shown. A line after
// the end of its turn is history; it opens nothing.
func (r *runtime) workWith(l *lane, f frame) *turn {
	h := f.head()
	if l.shut {
		r.Diagnose(provider.Refused, h.name(), "")
		return nil
	}
	u := r.workOf(l)
	switch {
	case u == nil:
		r.Diagnose(provider.Unrouted, h.name(), "no turn has begun")
		return nil
	case u.dropped:
		r.Diagnose(provider.Late, h.name(), "")
		return nil
	case u.ended:
		r.Diagnose(provider.Late, h.name(), "")
	}
	return u
}

// spoken handles a line of an agent: a block of the model, or results of tools.
func (r *runtime) spoken(f *messageFrame) {
	l := r.ownerOf(&f.header)
	if l == nil {
		r.hold(cmp.Or(f.ParentToolUseID, f.AgentID), f)
		return
	}
	if f.IsReplay && l.isRoot() {
		return // our own message, given back: command_lifecycle tells its fate
	}
	u := r.workWith(l, f)
	if u == nil {
		return
	}
	if f.assistant() {
		r.modelIs(l, f.Message.Model)
		for i := range f.Message.Content {
			r.modelBlock(u, f, &f.Message.Content[i])
		}
		r.messageUsage(u, &f.Message)
		return
	}
	if l.compacted && f.IsSynthetic {
		l.compacted = false
		r.Diagnose(provider.Ignored, f.name(), "the summary for the model")
		return
	}
	for i := range f.Message.Content {
		r.userBlock(u, f, &f.Message.Content[i])
	}
}

// modelBlock shows a whole block that a model has written.
func (r *runtime) modelBlock(u *turn, f *messageFrame, b *block) {
	m, shown := blockMessage(b, f.ToolUseMeta)
	id := u.nextBlock(f.Message.ID)
	switch {
	case !shown:
	case m.Kind == agent.MessageToolCall:
		r.toolUse(u, b, m)
	default:
		if f.Aborted {
			m.Status = agent.MessageInterrupted
		}
		if u.failure = f.apiError(); u.failure != nil {
			m.Status = agent.MessageFailed
		}
		if i := u.entry(id, m.Role, m.Kind); !i.ended {
			r.putItem(u, i, m)
		}
	}
}

// blockMessage is what a block of the model shows, without its ids; false if that is
// nothing. A call runs until its result comes.
func blockMessage(b *block, meta []toolUseMeta) (agent.Message, bool) {
	m := agent.Message{Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted}
	switch b.Type {
	case blockText:
		m.Content = b.Text
	case blockThinking:
		m.Kind, m.Content = agent.MessageThinking, b.Thinking
	case blockImage, blockDocument:
		m.Content = mediaText(b)
	case blockToolUse:
		call := describeCall(b.Name, b.Input)
		m.Role, m.Kind, m.Status = agent.RoleTool, agent.MessageToolCall, agent.MessageStreaming
		m.CallID, m.Name, m.Title, m.Input, m.Output = agent.CallID(b.ID), b.Name, call.title, call.input, call.output
		for _, t := range meta {
			if t.ID == b.ID && t.Server != "" && t.DisplayName != "" {
				m.Title = show.Title(t.Server + ": " + t.DisplayName)
			}
		}
		return m, b.ID != ""
	}
	return m, m.Content != ""
}

// toolUse shows a tool call. One of the Agent tool is the edge to a child: the call stays
// with its parent, and completes there.
func (r *runtime) toolUse(u *turn, b *block, m agent.Message) {
	i := u.entry(b.ID, m.Role, m.Kind)
	i.call, i.tool = m.CallID, b.Name
	if launchesAgent(b.Name) {
		if l := r.launch(u.lane, u, b.ID, namingOf(b.Input)); !l.shut {
			m.ChildSessionID = l.session
		}
	} else if len(u.lane.tools) < maxTools {
		if u.lane.tools == nil {
			u.lane.tools = map[string]json.RawMessage{}
		}
		u.lane.tools[b.ID] = b.Input
	}
	if u.ended {
		m.Status = agent.MessageInterrupted // nothing runs in a turn that has ended
	}
	if i.ended {
		m.Status = ""
	}
	r.putItem(u, i, m)
	r.releaseCall(b.ID)
}

// releaseCall handles what was held for a tool call that is no launch.
func (r *runtime) releaseCall(call string) {
	lines := r.early[call]
	delete(r.early, call)
	for _, f := range lines {
		r.route(f)
	}
}

// userBlock shows a block of a user line: a tool's result, the prompt of a child, or what
// an interrupt leaves.
func (r *runtime) userBlock(u *turn, f *messageFrame, b *block) {
	m := agent.Message{Role: agent.RoleUser, Kind: agent.MessageText, Content: strings.TrimSpace(b.Text), Status: agent.MessageCompleted}
	switch {
	case b.Type == blockToolResult:
		r.toolResult(u, f, b)
		return
	case b.Type == blockImage, b.Type == blockDocument:
		m.Content = mediaText(b)
	case b.Type != blockText:
		r.Diagnose(provider.Ignored, f.name(), b.Type)
		return
	case m.Content == "":
		return
	case strings.HasPrefix(m.Content, interruptMark):
		m.Role, m.Kind, m.Content = agent.RoleSystem, agent.MessageNotice, "Interrupted."
	case u.lane.isRoot() || f.IsSynthetic: // nobody typed it
		m.Role, m.Kind = agent.RoleSystem, agent.MessageNotice
	}
	r.putNew(u, m)
}

// toolResult completes a tool call where it was made. What runs on in the background has
// its own end.
func (r *runtime) toolResult(u *turn, f *messageFrame, b *block) {
	l := u.lane
	holder := u
	for _, o := range l.order {
		if o.items[b.ToolUseID] != nil {
			holder = o
		}
	}
	result := readResult(f, b)
	r.resolveCall(l, b.ToolUseID)
	if i := holder.items[b.ToolUseID]; i != nil {
		m := resultMessage(f, b)
		if i.ended { // of a turn that has ended, or told before
			m.Status = ""
		}
		r.putItem(holder, i, m)
		if l.todos.take(&result) {
			r.showTodos(holder)
		}
	} else {
		r.Diagnose(provider.Unrouted, f.name(), "result of an unknown call")
	}
	if child := r.byCall[b.ToolUseID]; child != nil && child.parent == l {
		r.launchReturned(child, b, &result)
	}
	delete(l.tools, b.ToolUseID)
}

// showTodos shows an agent's to-do list as it stands: one entry of a turn, which changes in
// its place.
func (r *runtime) showTodos(u *turn) {
	steps := u.lane.todos.steps()
	i := u.entry("plan", agent.RoleTool, agent.MessageToolCall)
	i.call = "plan"
	r.putItem(u, i, agent.Message{
		Name: "plan", Title: show.PlanTitle(steps), Output: show.PlanText("", steps), Status: agent.MessageCompleted,
	})
}

// streamed handles a piece of a root message that is still being written.
func (r *runtime) streamed(f *streamFrame) {
	l := r.ownerOf(&f.header)
	if l == nil {
		r.hold(cmp.Or(f.ParentToolUseID, f.AgentID), f)
		return
	}
	u := r.workWith(l, f)
	if u == nil {
		return
	}
	e := &f.Event
	if e.Message != nil {
		u.writing = e.Message.ID
	}
	id := fmt.Sprintf("%s#%d", cmp.Or(f.MessageID, u.writing), e.Index)
	switch e.Type {
	case streamBlockStart:
		if b := &e.ContentBlock; b.Type == blockToolUse && launchesAgent(b.Name) && !u.ended {
			if m, ok := blockMessage(b, nil); ok {
				r.toolUse(u, b, m)
			}
		}
	case streamBlockDelta:
		i := u.entry(id, agent.RoleAssistant, agent.MessageText)
		text := e.Delta.Text
		if e.Delta.Thinking != "" {
			i.kind, text = agent.MessageThinking, e.Delta.Thinking
		}
		r.appendText(u, i, text)
	}
}

// nextBlock names the next block of a message: they come one a line, in order.
func (u *turn) nextBlock(message string) string {
	if u.said == nil {
		u.said = map[string]int{}
	}
	n := u.said[message]
	u.said[message] = n + 1
	return fmt.Sprintf("%s#%d", message, n)
}

// entry finds an item's record or makes one.
func (u *turn) entry(id string, role agent.Role, kind agent.MessageKind) *item {
	i := u.items[id]
	if i == nil {
		if u.items == nil {
			u.items = map[string]*item{}
		}
		i = &item{role: role, kind: kind, at: len(u.items)}
		u.items[id] = i
	}
	return i
}

// putItem creates an item's message or says more about it.
func (r *runtime) putItem(u *turn, i *item, m agent.Message) {
	if i.message == "" {
		i.message = r.Mint.Message()
	}
	m.ID, m.SessionID, m.TurnID, m.Role, m.Kind, m.CallID = i.message, u.lane.session, u.id, i.role, i.kind, i.call
	r.Apply(agent.MessagePut{Message: m})
	i.ended = i.ended || m.Status.Ended() && m.Status != ""
}

// putNew adds a message that nothing more is said of.
func (r *runtime) putNew(u *turn, m agent.Message) {
	m.ID, m.SessionID, m.TurnID = r.Mint.Message(), u.lane.session, u.id
	r.Apply(agent.MessagePut{Message: m})
}

func (r *runtime) appendText(u *turn, i *item, text string) {
	if text == "" || i.ended || u.ended {
		return
	}
	if i.message == "" {
		r.putItem(u, i, agent.Message{Status: agent.MessageStreaming})
	}
	r.Text(u.lane.session, u.id, i.message, text)
}

// closeItems ends what a turn left open: nothing more is said of a call that a stop has
// cut off, or of a text that was being written.
func (r *runtime) closeItems(u *turn) {
	clear(u.lane.tools)
	open := make([]*item, 0, len(u.items))
	for _, i := range u.items {
		if i.message != "" && !i.ended {
			open = append(open, i)
		}
	}
	sortItems(open)
	for _, i := range open {
		r.putItem(u, i, agent.Message{Status: agent.MessageInterrupted})
	}
}
