package claudetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// Which agent asks: a sub-agent sends its own id, the root of a session none.
const (
	agentHeader   = "x-claude-code-agent-id"
	sessionHeader = "x-claude-code-session-id"
)

// NewModel starts a model behind the Messages API that plays the script. It ends with
// the test.
func NewModel(t testing.TB, script modeltest.Script) *modeltest.Model {
	t.Helper()
	return modeltest.New(t, messages{}, script)
}

// messages is the Messages API.
type messages struct{}

func (messages) Route() string { return "POST /v1/messages" }
func (messages) Base() string  { return "" }

// request is what matters of a request's body.
type request struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []message         `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // text, or a list of blocks
}

// block is what matters of one block of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func (messages) Read(h http.Header, raw []byte) (modeltest.Asked, error) {
	var body request
	if err := json.Unmarshal(raw, &body); err != nil {
		return modeltest.Asked{}, err
	}
	sub := h.Get(agentHeader) != ""
	if !sub && len(body.Tools) == 0 {
		// Claude asks for something on the side, such as whether a goal is met.
		return modeltest.Asked{Thread: "aside", Name: func() string { return "aside" }, Output: body.output, Parsed: body}, nil
	}
	return modeltest.Asked{
		Thread: cmp.Or(h.Get(agentHeader), h.Get(sessionHeader)), Name: func() string { return body.agentName(sub) }, Output: body.output, Parsed: body,
	}, nil
}

func (messages) Stream(t testing.TB, w http.ResponseWriter, ask modeltest.Asked, n int) modeltest.Stream {
	body := ask.Parsed.(request)
	r := reply{id: fmt.Sprintf("msg_%04d", n), model: body.Model, stop: "end_turn"}
	if body.Stream {
		return &stream{reply: r, Events: modeltest.Events{T: t, W: w}}
	}
	return &whole{reply: r, t: t, w: w}
}

// agentName names an agent by its first request: by the last mark of its prompt, since
// what comes before may be the parent's. What a root says to others is in later messages.
func (r request) agentName(sub bool) string {
	name := ""
	for _, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		for _, b := range m.blocks() {
			if marks := modeltest.Marks([]byte(b.Text)); len(marks) > 0 {
				name = marks[len(marks)-1]
			}
		}
		if name != "" && !sub {
			break
		}
	}
	if sub {
		return cmp.Or(name, "sub")
	}
	return cmp.Or(name, "root")
}

func (m message) blocks() []block {
	return blocks(m.Content)
}

func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list) // another shape has no blocks that matter
	return list
}

// output is the text of a tool's result.
func (r request) output(callID string) []byte {
	for _, m := range r.Messages {
		for _, b := range m.blocks() {
			if b.Type != "tool_result" || b.ToolUseID != callID {
				continue
			}
			var text []byte
			for _, part := range blocks(b.Content) {
				text = append(text, part.Text...)
			}
			return text
		}
	}
	return nil
}

// Said are the texts that the last message of a request holds: a prompt, results of
// tools, notices. It is what a test looks at to know what the agent was told.
func Said(r modeltest.Request) []string {
	var body request
	if json.Unmarshal(r.Body, &body) != nil || len(body.Messages) == 0 {
		return nil
	}
	var texts []string
	for _, b := range body.Messages[len(body.Messages)-1].blocks() {
		if b.Type == "tool_result" {
			for _, part := range blocks(b.Content) {
				texts = append(texts, part.Text)
			}
			continue
		}
		texts = append(texts, b.Text)
	}
	return texts
}
