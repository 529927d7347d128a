package claude

import (
	"encoding/json"
	"fmt"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// IntentKind is what a line that was sent to the binary meant to the person behind it.
type IntentKind string

// The kinds of intent.
const (
	IntentNone   IntentKind = ""
	IntentOpen   IntentKind = "open"   // the conversation is begun
	IntentWatch  IntentKind = "watch"  // it is resumed: the binary may speak unasked
	IntentStart  IntentKind = "start"  // a message, wherever it goes
	IntentCancel IntentKind = "cancel" // of the root turn, or of a child's
	IntentAnswer IntentKind = "answer" // to a question of the binary
	IntentStop   IntentKind = "stop"   // of one detached process
)

// Intent is a line of the recorded client read as a person's command.
type Intent struct {
	Kind     IntentKind
	Session  string // the conversation, or the task id of one of its agents
	Native   string // the control request that is answered, the process that is stopped
	Text     string
	Model    string
	CallID   agent.CallID // what the answered question is about
	Response agent.Response
}

// Intent reads a line that was sent to the binary. An interrupt is the stop of the root
// turn with everything below it, whatever the recorded client had set it up to spare.
func (p *Playback) Intent(at int, raw json.RawMessage) Intent {
	m := readSent(raw)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
	switch {
	case m.Type == typeUser && m.Message != nil && m.Message.Content != "":
		return Intent{Kind: IntentStart, Session: p.session, Text: m.Message.Content}
	case m.Type == typeResponse:
		return p.answer(m.Response)
	case m.Type != typeRequest:
		return Intent{}
	}
	switch m.Request.Subtype {
	case reqInitialize:
		return p.open()
	case reqInterrupt:
		return Intent{Kind: IntentCancel, Session: p.session}
	case reqStopTask:
		switch id := m.Request.TaskID; {
		case id == "":
		case p.detached[id]:
			return Intent{Kind: IntentStop, Session: p.session, Native: id}
		default:
			return Intent{Kind: IntentCancel, Session: id}
		}
	}
	return Intent{} // a setting, or a look: no command of a person's here
}

// open is the first handshake with a process; another one with the same means nothing.
func (p *Playback) open() Intent {
	process := p.tape.Process()
	if process == p.opened {
		return Intent{}
	}
	p.opened = process
	if process > 1 {
		return Intent{Kind: IntentWatch, Session: p.session}
	}
	return Intent{Kind: IntentOpen, Session: p.session, Model: p.model}
}

// answer reads an answer to a request of the binary. An error, or what is no answer to
// that question, is nobody's.
func (p *Playback) answer(body responseBody) Intent {
	q := p.question(body.RequestID)
	if q == nil || body.Subtype != resultSuccess {
		return Intent{}
	}
	var given struct {
		Behavior  string `json:"behavior"`
		Interrupt bool   `json:"interrupt"`
		Input     struct {
			Answers map[string]string `json:"answers"`
		} `json:"updatedInput"`
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(body.Response, &given) != nil {
		return Intent{}
	}
	in := Intent{Kind: IntentAnswer, Session: p.session, Native: q.id, CallID: q.call}
	if q.agentID != "" {
		in.Session = q.agentID
	}
	questions := q.interaction.Detail.Questions
	switch {
	case given.Action != "":
		in.Response.Action = given.Action
		in.Response.Answers = answersOf(questions, func(q agent.Question) (string, bool) {
			v, ok := given.Content[q.ID]
			return fmt.Sprint(v), ok
		})
	case given.Behavior == "allow" && q.interaction.Kind == agent.InteractionQuestion:
		in.Response.Answers = answersOf(questions, func(q agent.Question) (string, bool) {
			v, ok := given.Input.Answers[q.Text]
			return v, ok
		})
	case given.Behavior == "allow":
		in.Response.OptionID = q.optionOf(agent.RoleAllow)
	case given.Behavior == "deny" && given.Interrupt:
		in.Response.OptionID = q.optionOf(agent.RoleAbort)
	case given.Behavior == "deny":
		in.Response.OptionID = q.optionOf(agent.RoleDeny)
	default:
		return Intent{}
	}
	return in
}
