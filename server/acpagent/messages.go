package acpagent

import (
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// toldMessage is how much of a message the editor has.
type toldMessage struct {
	kind  acp.UpdateKind // of text
	sent  int            // bytes of its text
	ended bool
	tool  toldTool
}

// open lists the messages of an agent that were told and have not ended.
func (v *view) open(n *node) []agent.MessageID {
	var out []agent.MessageID
	for id, m := range n.messages {
		if !m.ended {
			out = append(out, id)
		}
	}
	return out
}

// message tells an entry of a transcript, or what is new of it.
func (v *view) message(s *session, m agent.Message) {
	n := v.nodes[string(m.SessionID)]
	if n == nil {
		return
	}
	t := n.messages[m.ID]
	if t == nil {
		if m.Seq <= n.base {
			return // the editor had it before it resumed
		}
		t = &toldMessage{}
		n.messages[m.ID] = t
		n.last = max(n.last, m.Seq)
	}
	switch {
	case v.flat && !n.isRoot() && m.Kind != agent.MessageToolCall:
		v.cardText(s, n, m)
	case m.Kind == agent.MessageToolCall:
		v.tool(s, n, t, m)
	case m.Role == agent.RoleUser:
		v.person(s, n, t, m)
	default:
		t.kind = v.kindOf(s, m)
		v.whole(s, n, t, m)
	}
	t.ended = m.Status.Ended()
}

// kindOf is what an entry is to the editor.
func (v *view) kindOf(s *session, m agent.Message) acp.UpdateKind {
	switch m.Kind {
	case agent.MessageThinking:
		return acp.UpdateThoughtChunk
	case agent.MessageNotice:
		if s.c.wantsNotices() && !v.quiet { // a notice is of the moment
			return acp.UpdateNotice
		}
	case agent.MessageText, agent.MessageToolCall:
	}
	return acp.UpdateAgentChunk
}

func (c *conn) wantsNotices() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notices
}

// whole tells what is new of a text that is known as a whole.
func (v *view) whole(s *session, n *node, t *toldMessage, m agent.Message) {
	if t.kind == acp.UpdateNotice {
		v.notice(s, n, t, m)
		return
	}
	if len(m.Content) <= t.sent {
		return
	}
	v.chunk(s, n, t, string(m.ID), m.Content[t.sent:])
}

// notice tells a remark once, when it is whole.
func (v *view) notice(s *session, n *node, t *toldMessage, m agent.Message) {
	if t.sent > 0 || !m.Status.Ended() || m.Content == "" {
		return
	}
	t.sent = len(m.Content)
	title, rest, _ := strings.Cut(strings.TrimSpace(m.Content), "\n")
	severity := "info"
	if m.Status == agent.MessageFailed {
		severity = "error"
	}
	s.c.say(v.stream(n), acp.UpdateNotice, &acp.Notice{Severity: severity, Title: title, Description: strings.TrimSpace(rest)})
}

// text tells a piece of a text that streams. Where the beginning was not told here (the
// editor resumed in the middle) it goes on from this piece.
func (v *view) text(s *session, n *node, id agent.MessageID, offset int64, text string) {
	t := n.messages[id]
	if t == nil || t.ended || t.kind == "" || t.kind == acp.UpdateNotice || v.flat && !n.isRoot() {
		return
	}
	over := t.sent - int(offset)
	if over < 0 || over >= len(text) {
		return // the committed message will fill the gap, or it is known
	}
	v.chunk(s, n, t, string(id), text[over:])
}

func (v *view) chunk(s *session, n *node, t *toldMessage, id, text string) {
	t.sent += len(text)
	s.c.say(v.stream(n), t.kind, &acp.MessageChunk{MessageID: id, Content: acp.Text(text)})
}

// person tells what was said to an agent: to the root by a person, elsewhere or in history
// (what this editor sent, it shows by itself in version 1), to a child by its parent.
func (v *view) person(s *session, n *node, t *toldMessage, m agent.Message) {
	if t.sent > 0 || m.Content == "" {
		return
	}
	t.sent = len(m.Content)
	if !n.isRoot() {
		v.task(s, n, m)
		return
	}
	if s.c.version() == acp.V1 && s.isOwn(m.ID) && !v.quiet {
		return
	}
	t.kind = acp.UpdateUserChunk
	s.c.say(n.id, acp.UpdateUserChunk, &acp.MessageChunk{MessageID: string(m.ID), Content: acp.Text(m.Content)})
}

// task tells a message of a parent to its child, on the streams of both.
func (v *view) task(s *session, n *node, m agent.Message) {
	msg := acp.SessionMessage{
		MessageID: string(m.ID), SenderSessionID: n.parent, RecipientSessionID: n.id,
		Content: acp.Some([]acp.ContentBlock{acp.Text(m.Content)}),
	}
	out, in := msg, msg
	out.RecipientMessageID = string(m.ID)
	in.SenderMessageID = string(m.ID)
	s.c.say(n.parent, acp.UpdateMessage, &out)
	s.c.say(n.id, acp.UpdateMessage, &in)
}
