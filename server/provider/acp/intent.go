package acp

import (
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// IntentKind is what a line that was sent to the agent meant to the person behind it.
type IntentKind string

// The kinds of intent.
const (
	IntentNone   IntentKind = ""
	IntentOpen   IntentKind = "open"   // a conversation is begun, or taken up
	IntentStart  IntentKind = "start"  // a message, wherever it goes
	IntentCancel IntentKind = "cancel" // of the root turn, or of a child's
	IntentAnswer IntentKind = "answer" // to a question of the agent
	IntentReload IntentKind = "reload" // of a session that is open
)

// Intent is a line of the recorded client read as a person's command.
type Intent struct {
	Kind     IntentKind
	Session  string // the agent's name for the session
	Known    bool   // of an open: an earlier process had begun it
	Watch    bool   // of an open: this is the conversation that the process is for
	Native   string // the request that is answered
	Text     string
	CallID   agent.CallID // what the answered question is about
	Response agent.Response
}

// Intent reads a line that was sent to the agent. What a client must say by itself (an
// answer "cancelled" to the question of a session that it stops), what only a program says
// (a fork, a list, a batch), and what is forbidden are no commands of a person's. Closing a
// session is the end of a runtime and no stop.
func (p *Playback) Intent(at int, raw json.RawMessage) Intent {
	m := readMessage(raw)
	p.mu.Lock()
	defer p.mu.Unlock()
	session := m.Params.SessionID
	switch m.Method {
	case acp.MethodInitialize:
		process := p.tape.Process()
		if p.opened == process || p.root == "" {
			return Intent{}
		}
		p.opened = process
		return Intent{Kind: IntentOpen, Session: p.root, Known: p.known, Watch: true}
	case acp.MethodNewSession:
		if c := p.calls[at]; c != nil && c.session != "" && c.session != p.root {
			return Intent{Kind: IntentOpen, Session: c.session}
		}
	case acp.MethodLoadSession, acp.MethodResumeSession:
		if session == p.root && !p.opens(at) {
			return Intent{Kind: IntentReload, Session: session}
		}
	case acp.MethodPrompt:
		if text := acp.Words(m.Params.Prompt); text != "" {
			return Intent{Kind: IntentStart, Session: session, Text: text}
		}
	case acp.MethodCancel:
		return Intent{Kind: IntentCancel, Session: session}
	case "":
		return p.answer(m)
	}
	return Intent{}
}

// opens reports whether a call is the first of its process that sets a session up.
func (p *Playback) opens(at int) bool {
	for n, c := range p.calls {
		if n < at && c.process == p.calls[at].process && setsUp(c.method) {
			return false
		}
	}
	return true
}

// answer reads an answer to a request of the agent. An error is nobody's.
func (p *Playback) answer(m message) Intent {
	asked := p.asked[string(m.ID)]
	if asked == nil || len(m.Result) == 0 {
		return Intent{}
	}
	var question struct {
		Params acp.PermissionRequest `json:"params"`
	}
	var given struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if json.Unmarshal(asked, &question) != nil || json.Unmarshal(m.Result, &given) != nil || given.Outcome.OptionID == "" {
		return Intent{}
	}
	q := &question.Params
	return Intent{
		Kind: IntentAnswer, Session: q.SessionID, Native: string(m.ID), CallID: describePermission(q).Detail.CallID,
		Response: agent.Response{OptionID: given.Outcome.OptionID},
	}
}
