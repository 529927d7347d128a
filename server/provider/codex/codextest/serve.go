package codextest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// maxRequest bounds a request body; a whole conversation is far below it.
const maxRequest = 64 << 20

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

// serve answers one request to the model.
func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := readBody(r)
	var body request
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		m.t.Errorf("codextest: request that cannot be read: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Not session-id: a child's is its root's.
	thread := cmp.Or(r.Header.Get("thread-id"), body.CacheKey)
	req, seq, reply := m.admit(Request{Thread: thread, Header: r.Header.Clone(), Body: raw},
		func() string { return agentName(r.Header, body.Input) })

	s := &stream{model: m, w: w, ctx: r.Context(), id: fmt.Sprintf("resp_%d", seq), input: body.Input}
	if !reply.wantsStatus() {
		s.begin()
	}
	for i, step := range reply {
		s.step = i
		err := step.play(s)
		switch {
		case errors.Is(err, errOver):
			return
		case r.Context().Err() != nil:
			return // Codex gave the request up, as it does on an interrupt
		case err != nil:
			m.t.Errorf("codextest: agent %s, request %d, step %d: %v", req.Agent, req.N, i+1, err)
			_ = failStep{"script_error", err.Error()}.play(s)
			return
		}
	}
	s.complete()
}

func readBody(r *http.Request) ([]byte, error) {
	var src io.Reader = http.MaxBytesReader(nil, r.Body, maxRequest)
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		zr, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		src = io.LimitReader(zr, maxRequest)
	default:
		return nil, fmt.Errorf("content encoding %q is not supported", enc)
	}
	return io.ReadAll(src)
}

var mark = regexp.MustCompile(`<<([A-Za-z0-9_.-]+)>>`)

// agentName names the agent of a thread by its first request. A sub-agent may
// have been given its parent's conversation, so its own mark is the last one;
// a root's first prompt comes before whatever it says to others.
func agentName(h http.Header, input []json.RawMessage) string {
	sub := h.Get("x-openai-subagent") != "" || h.Get("x-codex-parent-thread-id") != ""
	var marks [][][]byte
	for _, raw := range input {
		var item inputItem
		if json.Unmarshal(raw, &item) != nil || ofTheModel(item) {
			continue
		}
		marks = append(marks, mark.FindAllSubmatch(plain(raw), -1)...)
	}
	switch {
	case len(marks) > 0 && sub:
		return string(marks[len(marks)-1][1])
	case len(marks) > 0:
		return string(marks[0][1])
	case sub:
		return "sub"
	default:
		return "root"
	}
}

// ofTheModel tells items that the model or a tool produced.
func ofTheModel(item inputItem) bool {
	return item.Role == "assistant" || item.Type == "reasoning" ||
		strings.HasSuffix(item.Type, "_call") || strings.HasSuffix(item.Type, "_call_output")
}

// plain undoes the escapes some encoders use for angle brackets.
func plain(raw []byte) []byte {
	raw = bytes.ReplaceAll(raw, []byte(`\u003c`), []byte("<"))
	return bytes.ReplaceAll(raw, []byte(`\u003e`), []byte(">"))
}

var reference = regexp.MustCompile(`@\{(output|thread) ([^ }]+)(?: ([^ }]+))?\}`)

// expand replaces the references in all strings of v, a decoded JSON value.
func (s *stream) expand(v any) (any, error) {
	var err error
	switch x := v.(type) {
	case string:
		out := reference.ReplaceAllStringFunc(x, func(ref string) string {
			p := reference.FindStringSubmatch(ref)
			value, e := s.resolve(p[1], p[2], p[3])
			err = errors.Join(err, e)
			return value
		})
		return out, err
	case []any:
		for i := range x {
			if x[i], err = s.expand(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range x {
			if x[k], err = s.expand(x[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (s *stream) resolve(kind, name, field string) (string, error) {
	if kind == "thread" {
		if thread := s.model.Thread(name); thread != "" {
			return thread, nil
		}
		return "", fmt.Errorf("agent %s has no thread yet", name)
	}
	for _, raw := range s.input {
		var item inputItem
		if json.Unmarshal(raw, &item) != nil || item.CallID != name || len(item.Output) == 0 {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(outputText(item.Output), &object); err != nil {
			return "", fmt.Errorf("output of %s is no object: %.200s", name, item.Output)
		}
		if value, ok := object[field].(string); ok {
			return value, nil
		}
		return "", fmt.Errorf("output of %s has no text %q: %.200s", name, field, item.Output)
	}
	return "", fmt.Errorf("no output of %s in the request", name)
}

// outputText is the text of a tool's output: a string, or a list of parts.
func outputText(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
		return []byte(text)
	}
	return raw
}
