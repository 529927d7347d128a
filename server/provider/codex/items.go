package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

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
	ended   bool // its message has an ended status
	part    int  // reasoning: the summary part that streams

	spawn bool // a spawn call: input is its prompt, child its thread once known
	input string
	child string
	diff  string // of a file change, for the person who must approve it

	output  show.Tail // of a running command
	shown   int64     // bytes of it when it was shown last
	shownAt time.Time // and when that was
	over    bool      // the server has said its last of it
	command bool      // it is a command
}

// end forgets what was kept for the item's end, and of a repeated end nothing is taken.
func (i *item) end() { i.over, i.output, i.diff = true, show.Tail{}, "" }

// outputEvery bounds how often the growing output of a command is committed.
const outputEvery = 2 * time.Second

// itemFrame handles a frame about an item: it belongs to the turn that the frame
// names, running or ended.
func (r *runtime) itemFrame(t *thread, f frame) {
	u := t.turns[f.TurnID]
	if u == nil && t.pending != nil {
		if t == r.root {
			r.root.paused = true // its turn's answer is on the way
			r.root.held = append([]frame{f}, r.root.held...)
			return
		}
		u = t.pending
	}
	if u == nil {
		r.Diagnose(provider.Unrouted, f.method, t.id)
		return
	}
	if u.dropped {
		r.Diagnose(provider.Late, f.method, t.id)
		return
	}
	if u.items == nil {
		u.items = map[string]*item{}
	}
	switch f.method {
	case "error":
		r.errorNotice(t, u, f)
		return
	case notePlan, noteDiff:
		r.turnNote(t, u, f)
		return
	}
	if f.method != "item/started" && f.method != "item/completed" {
		r.streamFrame(t, u, f)
		return
	}
	var p itemParams
	if err := json.Unmarshal(f.params, &p); err != nil || p.Item.ID == "" {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	r.putKind(t, u, &p.Item, f.method == "item/completed")
}

// putKind turns one item into what it means.
func (r *runtime) putKind(t *thread, u *turn, it *threadItem, done bool) {
	switch it.Type {
	case itemUserMessage:
		r.userMessage(t, u, it)
	case itemAgentMessage:
		r.prose(t, u, it, done, agent.MessageText, it.Text)
	case itemReasoning:
		r.prose(t, u, it, done, agent.MessageThinking, strings.Join(it.Summary, "\n\n"))
	case itemPlan:
		r.prose(t, u, it, done, agent.MessageText, it.Text)
	case itemCompaction:
		if done {
			r.notice(t, u, it.ID, "The context was compacted.")
		}
	case itemCollab:
		r.collabCall(t, u, it, done)
	case itemActivity:
		r.activity(t, u, it)
	default:
		r.toolCall(t, u, it, done)
	}
}

// entry finds an item's record or makes one.
func (u *turn) entry(id string, role agent.Role, kind agent.MessageKind) *item {
	i := u.items[id]
	if i == nil {
		i = &item{role: role, kind: kind}
		if kind == agent.MessageToolCall {
			i.call = agent.CallID(id)
		}
		u.items[id] = i
	}
	return i
}

// putItem creates an item's message or says more about it.
func (r *runtime) putItem(t *thread, u *turn, i *item, m agent.Message) {
	if i.message == "" {
		i.message = r.Mint.Message()
	}
	m.ID, m.SessionID, m.TurnID, m.Role, m.Kind, m.CallID = i.message, t.session, u.id, i.role, i.kind, i.call
	r.Apply(agent.MessagePut{Message: m})
	i.ended = i.ended || m.Status.Ended() && m.Status != ""
}

// prose handles text that may have streamed. A message appears with its first text,
// never empty.
func (r *runtime) prose(t *thread, u *turn, it *threadItem, done bool, kind agent.MessageKind, text string) {
	i := u.entry(it.ID, agent.RoleAssistant, kind)
	if !done || i.ended || (text == "" && i.message == "") {
		return
	}
	r.putItem(t, u, i, agent.Message{Content: text, Status: agent.MessageCompleted})
}

// streamFrame appends what streams.
func (r *runtime) streamFrame(t *thread, u *turn, f frame) {
	var p deltaParams
	if err := json.Unmarshal(f.params, &p); err != nil || f.ItemID == "" {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	switch f.method {
	case "item/commandExecution/outputDelta":
		r.commandOutput(t, u, f.ItemID, p.Delta)
	case "item/reasoning/summaryTextDelta":
		i := u.entry(f.ItemID, agent.RoleAssistant, agent.MessageThinking)
		if p.SummaryIndex > i.part {
			i.part = p.SummaryIndex
			p.Delta = "\n\n" + p.Delta
		}
		r.appendText(t, u, i, f, p.Delta)
	default:
		r.appendText(t, u, u.entry(f.ItemID, agent.RoleAssistant, agent.MessageText), f, p.Delta)
	}
}

func (r *runtime) appendText(t *thread, u *turn, i *item, f frame, text string) {
	if i.ended || u.ended {
		r.Diagnose(provider.Late, f.method, t.id)
		return
	}
	if i.message == "" {
		r.putItem(t, u, i, agent.Message{Status: agent.MessageStreaming})
	}
	r.Text(t.session, u.id, i.message, text)
}

// userMessage is the prompt of a child, or the proof that the root has taken a
// person's message. Which of several is told by our own id where the server gives it
// back, else by the text.
func (r *runtime) userMessage(t *thread, u *turn, it *threadItem) {
	if u.items[it.ID] != nil {
		return // its other half was seen
	}
	text := it.userText()
	i := u.entry(it.ID, agent.RoleUser, agent.MessageText)
	at := slices.IndexFunc(u.texts, func(x *userText) bool { return it.ClientID != "" && it.ClientID == string(x.message) })
	if at < 0 {
		at = slices.IndexFunc(u.texts, func(x *userText) bool { return x.text == text })
	}
	if at >= 0 {
		x := u.texts[at]
		i.message = x.message
		u.texts = slices.Delete(u.texts, at, at+1)
		r.putText(t, x, agent.MessageCompleted)
		return
	}
	if text == "" {
		return
	}
	if t == r.root { // nobody typed it: a goal, or a result handed to the agent
		i.role, i.kind = agent.RoleSystem, agent.MessageNotice
	}
	r.putItem(t, u, i, agent.Message{Content: text, Status: agent.MessageCompleted})
}

// notice is one line about the turn itself.
func (r *runtime) notice(t *thread, u *turn, id, text string) {
	i := u.entry(id, agent.RoleSystem, agent.MessageNotice)
	if !i.ended {
		r.putItem(t, u, i, agent.Message{Content: text, Status: agent.MessageCompleted})
	}
}

// errorNotice keeps the reason of a failure for the turn's end; one that will be
// retried is shown at once, because the turn may stand still for long.
func (r *runtime) errorNotice(t *thread, u *turn, f frame) {
	var p errorParams
	if err := json.Unmarshal(f.params, &p); err != nil {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	u.lastErr = &p.Error
	if p.WillRetry && !u.ended {
		r.putItem(t, u, &item{role: agent.RoleSystem, kind: agent.MessageNotice},
			agent.Message{Content: "Codex tries again: " + p.Error.asError().Message, Status: agent.MessageCompleted})
	}
}

// closeItems ends what a turn left open: the server sends nothing more for an item
// that an interrupt or a steer has cut off. A command that outlives its turn keeps its
// record, so that its late end still finds its message.
func (r *runtime) closeItems(t *thread, u *turn) {
	var open []*item
	for id, i := range u.items {
		switch {
		case i.message != "" && !i.ended:
			open = append(open, i)
		case i.message == "" && i.kind != agent.MessageToolCall:
			delete(u.items, id)
		}
	}
	slices.SortFunc(open, func(a, b *item) int { return strings.Compare(string(a.message), string(b.message)) })
	for _, i := range open {
		r.putItem(t, u, i, agent.Message{Status: agent.MessageInterrupted, Output: i.output.String()})
	}
}
