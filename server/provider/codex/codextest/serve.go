package codextest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// NewModel starts a model behind the Responses API that plays the script. It ends with
// the test.
func NewModel(t testing.TB, script modeltest.Script) *modeltest.Model {
	t.Helper()
	return modeltest.New(t, responses{}, script)
}

// responses is the Responses API.
type responses struct{}

func (responses) Route() string { return "POST /v1/responses" }
func (responses) Base() string  { return "/v1" }

// request is what matters of a request's body.
type request struct {
	CacheKey string            `json:"prompt_cache_key"`
	Input    []json.RawMessage `json:"input"`
}

// inputItem is what matters of one item of the conversation so far.
type inputItem struct {
	Type   string          `json:"type"`
	Role   string          `json:"role"`
	CallID string          `json:"call_id"`
	Output json.RawMessage `json:"output"`
}

func (responses) Read(h http.Header, raw []byte) (modeltest.Asked, error) {
	var body request
	if err := json.Unmarshal(raw, &body); err != nil {
		return modeltest.Asked{}, err
	}
	return modeltest.Asked{
		Thread: cmp.Or(h.Get("thread-id"), body.CacheKey), // not session-id: a child's is its root's
		Name:   func() string { return agentName(h, body.Input) },
		Output: func(callID string) []byte { return output(body.Input, callID) },
	}, nil
}

func (responses) Stream(t testing.TB, w http.ResponseWriter, _ modeltest.Asked, n int) modeltest.Stream {
	return &stream{Events: modeltest.Events{T: t, W: w}, id: fmt.Sprintf("resp_%d", n)}
}

// agentName names the agent of a thread by its first request. A sub-agent may
// have been given its parent's conversation, so its own mark is the last one;
// a root's first prompt comes before whatever it says to others.
func agentName(h http.Header, input []json.RawMessage) string {
	sub := h.Get("x-openai-subagent") != "" || h.Get("x-codex-parent-thread-id") != ""
	var marks []string
	for _, raw := range input {
		var item inputItem
		if json.Unmarshal(raw, &item) != nil || ofTheModel(item) {
			continue
		}
		if bytes.Contains(raw, []byte(titlePrompt)) {
			return "aside"
		}
		marks = append(marks, modeltest.Marks(raw)...)
	}
	switch {
	case len(marks) > 0 && sub:
		return marks[len(marks)-1]
	case len(marks) > 0:
		return marks[0]
	case sub:
		return "sub"
	default:
		return "root"
	}
}

// titlePrompt is in what clients of the app-server ask on a thread of its own, to name a
// session.
const titlePrompt = "generate a very short title for a conversation"

// ofTheModel tells items that the model or a tool produced.
func ofTheModel(item inputItem) bool {
	return item.Role == "assistant" || item.Type == "reasoning" ||
		strings.HasSuffix(item.Type, "_call") || strings.HasSuffix(item.Type, "_call_output")
}

// output is what a tool call returned: a string, or the text of a list of parts.
func output(input []json.RawMessage, callID string) []byte {
	for _, raw := range input {
		var item inputItem
		if json.Unmarshal(raw, &item) != nil || item.CallID != callID || len(item.Output) == 0 {
			continue
		}
		var text string
		if json.Unmarshal(item.Output, &text) == nil {
			return []byte(text)
		}
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(item.Output, &parts) != nil {
			return item.Output
		}
		for _, p := range parts {
			text += p.Text
		}
		return []byte(text)
	}
	return nil
}
