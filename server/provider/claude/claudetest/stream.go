package claudetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// What every reply is said to have used, in tokens. The numbers differ, so that a test
// sees which one it met.
const (
	InputTokens  = 100
	CacheWritten = 7
	CacheRead    = 40
	OutputTokens = 20
)

type object = modeltest.Object

// reply is what both ways of answering know.
type reply struct {
	id    string
	model string
	stop  string // why it ends
	at    int    // blocks sent so far
}

func (r *reply) message(content []object, stop any, output int) object {
	return object{
		"id": r.id, "type": "message", "role": "assistant", "model": r.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil,
		"usage": object{
			"input_tokens": InputTokens, "cache_creation_input_tokens": CacheWritten,
			"cache_read_input_tokens": CacheRead, "output_tokens": output, "service_tier": "standard",
		},
	}
}

func (r *reply) callID(c modeltest.ToolCall) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("toolu_%s_%d", r.id, r.at)
}

// refuse answers with an HTTP error. Without a body it is the error that the API gives.
// Whether it is tried again is the program's own setting, not the server's.
func (r *reply) refuse(w http.ResponseWriter, code int, body string) {
	if body == "" {
		body = errorBody(errorType(code), fmt.Sprintf("scripted %d", code))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

func errorBody(kind, message string) string {
	raw, _ := json.Marshal(object{"type": "error", "error": object{"type": kind, "message": message}})
	return string(raw)
}

func errorType(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "invalid_request_error"
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	default:
		return "api_error"
	}
}

// stream answers with server-sent events.
type stream struct {
	reply
	modeltest.Events
}

// Begin implements modeltest.Stream.
func (s *stream) Begin() {
	s.W.Header().Set("Request-Id", "req_"+s.id)
	s.Open()
	s.Send("message_start", object{"message": s.message([]object{}, nil, 1)})
	s.Send("ping", object{})
}

// block sends one block: its beginning, its pieces, its end.
func (s *stream) block(empty object, deltas func(send func(object))) {
	s.Send("content_block_start", object{"index": s.at, "content_block": empty})
	deltas(func(delta object) { s.Send("content_block_delta", object{"index": s.at, "delta": delta}) })
	s.Send("content_block_stop", object{"index": s.at})
	s.at++
}

// Text implements modeltest.Stream.
func (s *stream) Text(pieces func(yield func(string) bool)) {
	s.block(object{"type": "text", "text": ""}, func(send func(object)) {
		for piece := range pieces {
			send(object{"type": "text_delta", "text": piece})
		}
	})
}

// Think implements modeltest.Stream.
func (s *stream) Think(text string) {
	s.block(object{"type": "thinking", "thinking": "", "signature": ""}, func(send func(object)) {
		send(object{"type": "thinking_delta", "thinking": text})
		send(object{"type": "signature_delta", "signature": "c2ln"})
	})
}

// Call implements modeltest.Stream.
func (s *stream) Call(c modeltest.ToolCall, args string) {
	s.stop = "tool_use"
	s.block(object{"type": "tool_use", "id": s.callID(c), "name": c.Tool, "input": object{}}, func(send func(object)) {
		send(object{"type": "input_json_delta", "partial_json": args})
	})
}

// Status implements modeltest.Stream.
func (s *stream) Status(code int, body string) { s.refuse(s.W, code, body) }

// Fail implements modeltest.Stream.
func (s *stream) Fail(code, message string) {
	s.Send("error", object{"error": object{"type": code, "message": message}})
}

// Complete implements modeltest.Stream.
func (s *stream) Complete() {
	s.Send("message_delta", object{
		"delta": object{"stop_reason": s.stop, "stop_sequence": nil}, "usage": object{"output_tokens": OutputTokens},
	})
	s.Send("message_stop", object{})
}

// whole answers with one message, to a request that wants no stream.
type whole struct {
	reply
	t       testing.TB
	w       http.ResponseWriter
	content []object
}

// Begin implements modeltest.Stream: nothing can be sent yet.
func (a *whole) Begin() {}

// Text implements modeltest.Stream.
func (a *whole) Text(pieces func(yield func(string) bool)) {
	var text strings.Builder
	for piece := range pieces {
		text.WriteString(piece)
	}
	a.add(object{"type": "text", "text": text.String()})
}

// Think implements modeltest.Stream.
func (a *whole) Think(text string) {
	a.add(object{"type": "thinking", "thinking": text, "signature": "c2ln"})
}

// Call implements modeltest.Stream.
func (a *whole) Call(c modeltest.ToolCall, args string) {
	a.stop = "tool_use"
	a.add(object{"type": "tool_use", "id": a.callID(c), "name": c.Tool, "input": json.RawMessage(args)})
}

func (a *whole) add(b object) {
	a.content = append(a.content, b)
	a.at++
}

// Status implements modeltest.Stream.
func (a *whole) Status(code int, body string) { a.refuse(a.w, code, body) }

// Fail implements modeltest.Stream.
func (a *whole) Fail(code, message string) {
	a.refuse(a.w, http.StatusInternalServerError, errorBody(code, message))
}

// Complete implements modeltest.Stream.
func (a *whole) Complete() {
	raw, err := json.Marshal(a.message(a.content, a.stop, OutputTokens))
	if err != nil {
		a.t.Errorf("claudetest: message: %v", err)
		return
	}
	a.w.Header().Set("Content-Type", "application/json")
	_, _ = a.w.Write(raw)
}
