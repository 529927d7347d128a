package acp

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// item is one entry of a turn, and the message it became.
type item struct {
	message agent.MessageID // "" until there is something to show
	call    agent.CallID    // of a tool call
	role    agent.Role
	kind    agent.MessageKind
	status  agent.MessageStatus // told last
	ended   bool                // its message has an ended status
	at      int                 // its place in the turn
	child   *lane               // of a call that gave a child its work: it ends with that
	tool    *tool               // of a tool call
	late    string              // of what comes after the turn's end
}

// shown handles what an agent says in a session.
func (r *runtime) shown(l *lane, n *acp.SessionNotification) {
	switch v := n.Update.Variant.(type) {
	case *acp.ConfigUpdate:
		r.optionsAre(l, v.ConfigOptions)
		return
	case *acp.ModeUpdate:
		if l.isRoot() && r.offers.modes != nil {
			r.offers.modes.CurrentModeID = v.CurrentModeID
		}
		return
	case *acp.UsageUpdate:
		r.costIs(l, v)
		return
	case *acp.SessionInfoUpdate, *acp.CommandsUpdate, *acp.PlanRemoved:
		return
	case *acp.TerminalUpdate:
		r.terminalShown(l, v)
		return
	case *acp.TerminalChunk:
		r.terminalGrew(l, v.TerminalID, string(v.Data))
		return
	case nil:
		r.Diagnose(provider.Ignored, cmp.Or(string(n.Update.Kind), "update"), l.id)
		return
	}
	u := r.shownIn(l)
	if u == nil && !l.isRoot() && !l.shut {
		r.hold(l.id, string(n.Update.Kind), held{update: n}) // until its work begins
		return
	}
	if u == nil {
		r.Diagnose(provider.Unrouted, string(n.Update.Kind), "no turn has begun")
		return
	}
	switch {
	case u.dropped || l.shut:
		r.Diagnose(provider.Late, string(n.Update.Kind), l.id)
		return
	case u.ended:
		r.Diagnose(provider.Late, string(n.Update.Kind), l.id)
	case l.isRoot():
		r.delivered(u)
	}
	r.say(u, n.Update.Kind, n.Update.Variant)
}

// shownIn is the turn that a line belongs to.
func (r *runtime) shownIn(l *lane) *turn {
	u := r.workOf(l)
	if u != nil && u.reserved {
		r.speak(u) // an agent without states says so by its words
	}
	return u
}

// say shows one thing in a turn.
func (r *runtime) say(u *turn, kind acp.UpdateKind, variant any) {
	switch v := variant.(type) {
	case *acp.MessageChunk:
		r.chunk(u, kind, v)
	case *acp.WholeMessage:
		r.whole(u, kind, v)
	case *acp.ToolCall:
		r.toolCall(u, v)
	case *acp.ToolContentChunk:
		r.toolChunk(u, v)
	case *acp.Plan:
		r.plan(u, "plan", v.Entries, "")
	case *acp.PlanUpdate:
		r.plan(u, cmp.Or(v.Plan.PlanID, "plan"), v.Plan.Entries, cmp.Or(v.Plan.Content, v.Plan.URI))
	case *acp.Notice:
		text := v.Title
		if v.Description != "" {
			text += ": " + v.Description
		}
		r.putNew(u, agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Status: agent.MessageCompleted, Content: text})
	}
}

// voice is who speaks in a kind of update, and how.
type voice struct {
	role agent.Role
	kind agent.MessageKind
}

var voices = map[acp.UpdateKind]voice{
	acp.UpdateAgentChunk: {agent.RoleAssistant, agent.MessageText}, acp.UpdateAgentMessage: {agent.RoleAssistant, agent.MessageText},
	acp.UpdateThoughtChunk: {agent.RoleAssistant, agent.MessageThinking}, acp.UpdateAgentThought: {agent.RoleAssistant, agent.MessageThinking},
	acp.UpdateUserChunk: {agent.RoleUser, agent.MessageText}, acp.UpdateUserMessage: {agent.RoleUser, agent.MessageText},
}

// voiceOf is false where nothing is shown: the root's own messages are known.
func voiceOf(u *turn, kind acp.UpdateKind) (agent.Role, agent.MessageKind, bool) {
	v, ok := voices[kind]
	return v.role, v.kind, ok && (v.role != agent.RoleUser || !u.lane.isRoot())
}

// chunk adds to a message. The protocol has no end for one: it ends where the next begins,
// or its turn ends. A message that goes on after that is a further entry.
func (r *runtime) chunk(u *turn, kind acp.UpdateKind, c *acp.MessageChunk) {
	role, as, ok := voiceOf(u, kind)
	text := c.Content.Words()
	if !ok || text == "" {
		return
	}
	if u.ended {
		r.lateText(u, role, as, text)
		return
	}
	i := u.writing
	if i == nil || i.kind != as || i.role != role || c.MessageID != "" && !u.is(i, c.MessageID) {
		r.endWriting(u)
		i = u.entry(u.part(cmp.Or(c.MessageID, string(kind))), role, as)
		u.writing = i
	}
	if i.message == "" {
		r.putItem(u, i, agent.Message{Status: agent.MessageStreaming})
	}
	r.Text(u.lane.session, u.id, i.message, text)
}

// is reports whether an entry is the newest part of a message.
func (u *turn) is(i *item, message string) bool {
	return u.items[partID(message, u.parts[message])] == i
}

// part names the next entry of a message.
func (u *turn) part(message string) string {
	if u.parts == nil {
		u.parts = map[string]int{}
	}
	u.parts[message]++
	return partID(message, u.parts[message])
}

func partID(message string, n int) string { return fmt.Sprintf("%s/%d", message, n) }

// endWriting completes the text that was being written.
func (r *runtime) endWriting(u *turn) {
	if i := u.writing; i != nil {
		u.writing = nil
		if !i.ended {
			r.putItem(u, i, agent.Message{Status: agent.MessageCompleted})
		}
	}
}

// whole shows a message that comes in one piece, or replaces one that was being written.
func (r *runtime) whole(u *turn, kind acp.UpdateKind, m *acp.WholeMessage) {
	role, as, ok := voiceOf(u, kind)
	text := textOf(m.Content)
	if !ok || text == "" {
		return
	}
	if u.ended {
		r.lateText(u, role, as, text)
		return
	}
	i := u.writing
	if i == nil || !u.is(i, m.MessageID) {
		r.endWriting(u)
		if u.parts[m.MessageID] > 0 { // said again: it is the whole of what was said before
			i = u.items[partID(m.MessageID, 1)]
			if i != nil && i.ended {
				return
			}
		}
		i = u.entry(u.part(m.MessageID), role, as)
	}
	u.writing = nil
	r.putItem(u, i, agent.Message{Content: text, Status: agent.MessageCompleted})
}

// latePause is how long what is said after the end of a turn is collected.
const latePause = time.Second

// lateText keeps what an agent says after its turn has ended. It is history of that turn:
// it opens nothing, and storage may refuse it.
func (r *runtime) lateText(u *turn, role agent.Role, as agent.MessageKind, text string) {
	if u.rest != nil && (u.rest.kind != as || u.rest.role != role) {
		r.putRest(u)
	}
	if u.rest == nil {
		rest := &item{role: role, kind: as}
		u.rest = rest
		r.after(latePause, func() {
			if u.rest == rest {
				r.putRest(u)
			}
		})
	}
	u.rest.late += text
}

func (r *runtime) putRest(u *turn) {
	i := u.rest
	u.rest = nil
	r.putNew(u, agent.Message{Role: i.role, Kind: i.kind, Status: agent.MessageCompleted, Content: i.late})
}

// plan shows a plan as it stands: one entry of a turn, which changes in its place.
func (r *runtime) plan(u *turn, id string, entries []acp.PlanEntry, text string) {
	r.endWriting(u)
	steps := make([]show.Step, 0, len(entries))
	for _, e := range entries {
		steps = append(steps, show.Step{Text: e.Content, Done: e.Status == "completed", Active: e.Status == "in_progress"})
	}
	i := u.entry("plan:"+id, agent.RoleTool, agent.MessageToolCall)
	i.call = agent.CallID(id)
	m := agent.Message{Name: "plan", Title: show.PlanTitle(steps), Output: show.PlanText("", steps), Status: agent.MessageCompleted}
	if len(entries) == 0 {
		m.Title, m.Output = "Plan", show.Output(text)
	}
	r.putItem(u, i, m)
}

// costIs takes what the session has cost so far.
func (r *runtime) costIs(l *lane, v *acp.UsageUpdate) {
	if !l.isRoot() || v.Cost == nil || v.Cost.Currency != "USD" || v.Cost.Amount <= r.cost {
		return
	}
	r.cost = v.Cost.Amount
	if r.current != "" && len(r.open) > 0 {
		r.used(r.current, agent.Usage{})
	}
}

func micros(dollars float64) int64 { return int64(dollars*1e6 + 0.5) }

func usageOf(u *acp.TokenUsage) agent.Usage {
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return agent.Usage{
		InputTokens:       u.InputTokens + n(u.CachedReadTokens) + n(u.CachedWriteTokens),
		CachedInputTokens: n(u.CachedReadTokens), OutputTokens: u.OutputTokens, ReasoningTokens: n(u.ThoughtTokens),
	}
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
	if i.ended {
		m.Status = ""
	}
	if u.ended && m.Status == agent.MessageStreaming {
		m.Status = agent.MessageInterrupted // nothing runs in a turn that has ended
	}
	m.ID, m.SessionID, m.TurnID, m.Role, m.Kind, m.CallID = i.message, u.lane.session, u.id, i.role, i.kind, i.call
	r.Apply(agent.MessagePut{Message: m})
	if m.Status != "" {
		i.status = m.Status
		i.ended = m.Status.Ended()
	}
}

// putNew adds a message that nothing more is said of.
func (r *runtime) putNew(u *turn, m agent.Message) {
	if m.Content == "" {
		return
	}
	if !u.ended {
		r.endWriting(u)
	}
	m.ID, m.SessionID, m.TurnID = r.Mint.Message(), u.lane.session, u.id
	r.Apply(agent.MessagePut{Message: m})
}

// notice tells the person something in the root's latest turn.
func (r *runtime) notice(text string) {
	if u := r.workOf(r.root); u != nil {
		r.putNew(u, agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Status: agent.MessageCompleted, Content: text})
	}
}

// closeItems ends what a turn left open. What gave a child its work ends with that child.
func (r *runtime) closeItems(u *turn, outcome agent.Outcome) {
	var open []*item
	for _, i := range u.items {
		if i.message != "" && !i.ended && i.child == nil {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(a, b *item) int { return a.at - b.at })
	for _, i := range open {
		status := agent.MessageInterrupted
		if i.kind != agent.MessageToolCall && outcome == agent.OutcomeCompleted {
			status = agent.MessageCompleted
		}
		if i.tool != nil {
			r.putTool(u, i, status)
			continue
		}
		r.putItem(u, i, agent.Message{Status: status})
	}
	u.writing = nil
}
