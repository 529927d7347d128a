package codex

import (
	"cmp"
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// IntentKind is what a line that was sent to the server meant to the person behind it.
type IntentKind string

// The kinds of intent.
const (
	IntentNone   IntentKind = ""
	IntentOpen   IntentKind = "open"   // a conversation is begun or resumed
	IntentWatch  IntentKind = "watch"  // the server is given cause to begin turns by itself
	IntentStart  IntentKind = "start"  // a message
	IntentSteer  IntentKind = "steer"  // a message into the turn that runs
	IntentCancel IntentKind = "cancel" // of a turn of a thread
	IntentAnswer IntentKind = "answer" // to a question of the server
	IntentDelete IntentKind = "delete" // of a thread with everything below it
)

// Intent is a line of the recorded client read as a person's command.
type Intent struct {
	Kind     IntentKind
	ThreadID string
	TurnID   string // of a cancel or steer; "" is whatever runs
	Text     string
	Model    string
	CallID   agent.CallID   // what the answered question is about
	Response agent.Response // of an answer
}

// Intent reads a line that was sent to the server.
func (p *Playback) Intent(at int, raw json.RawMessage) Intent {
	m := readMessage(raw)
	in := Intent{ThreadID: m.Params.ThreadID, TurnID: m.Params.TurnID}
	switch m.Method {
	case methodThreadStart, methodThreadResume:
		in.Kind, in.Model, in.ThreadID = IntentOpen, m.Params.Model, p.opened(at)
		if in.ThreadID == "" {
			return Intent{} // it was refused
		}
	case methodTurnStart, methodTurnSteer:
		in.Kind = IntentStart
		if m.Method == methodTurnSteer {
			in.Kind, in.TurnID = IntentSteer, m.Params.ExpectedTurnID
		}
		for _, part := range m.Params.Input {
			in.Text = cmp.Or(in.Text, part.Text)
		}
		if in.Text == "" {
			return Intent{}
		}
	case "thread/goal/set":
		in.Kind = IntentWatch
	case methodTurnInterrupt:
		in.Kind = IntentCancel
	case "thread/delete":
		in.Kind = IntentDelete
	case "":
		p.mu.Lock()
		defer p.mu.Unlock()
		return answerIntent(m, p.asked[string(m.ID)])
	default:
		return Intent{}
	}
	return in
}

// opened is the thread that a recorded call opened, "" if it opened none.
func (p *Playback) opened(at int) string {
	c := p.calls[at]
	if c == nil || c.answer == nil {
		return ""
	}
	var res threadResult
	if json.Unmarshal(readMessage(c.answer).Result, &res) != nil {
		return ""
	}
	return res.Thread.ID
}

// answerIntent reads an answer to a request of the server. An error is no answer of a
// person.
func answerIntent(m message, request json.RawMessage) Intent {
	if request == nil || len(m.Result) == 0 {
		return Intent{}
	}
	q := readMessage(request)
	var result struct {
		Decision json.RawMessage        `json:"decision"`
		Answers  map[string]inputAnswer `json:"answers"`
	}
	if json.Unmarshal(m.Result, &result) != nil {
		return Intent{}
	}
	in := Intent{
		Kind: IntentAnswer, ThreadID: q.Params.ThreadID, TurnID: q.Params.TurnID, CallID: agent.CallID(q.Params.ItemID),
	}
	if len(result.Decision) > 0 {
		in.Response.OptionID = optionOf(result.Decision).ID
		return in
	}
	in.Response.Answers = map[string]string{}
	for id, a := range result.Answers {
		if len(a.Answers) > 0 {
			in.Response.Answers[id] = a.Answers[0]
		}
	}
	return in
}
