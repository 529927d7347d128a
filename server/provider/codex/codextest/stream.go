package codextest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// errOver ends a reply early, as its script wants.
var errOver = errors.New("reply is over")

// stream is one reply on its way: server-sent events of the Responses API.
type stream struct {
	model *Model
	w     http.ResponseWriter
	ctx   context.Context //nolint:containedctx // the life of one request
	id    string          // response id
	step  int             // index of the step being played
	items int             // output items sent so far
	input []json.RawMessage
}

// object is a JSON object on its way out.
type object map[string]any

// event sends one event. A client that has gone is noticed by the context.
func (s *stream) event(kind string, fields object) {
	fields["type"] = kind
	data, err := json.Marshal(fields)
	if err != nil {
		s.model.t.Errorf("codextest: event %s: %v", kind, err)
		return
	}
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, data)
	_ = http.NewResponseController(s.w).Flush()
}

// begin opens the stream, before any gate: the agent sees a model that thinks.
func (s *stream) begin() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	s.event("response.created", object{"response": object{"id": s.id}})
}

// complete ends a reply that ran to its end. The usage is made up.
func (s *stream) complete() {
	s.event("response.completed", object{"response": object{
		"id": s.id,
		"usage": object{
			"input_tokens": 20, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": 30,
		},
	}})
}

// itemID names the item of the current step.
func (s *stream) itemID(prefix string) string { return fmt.Sprintf("%s_%s_%d", prefix, s.id, s.step) }

// item sends one output item: its beginning, whatever is between, its end.
func (s *stream) item(first, last object, between func(at object)) {
	s.event("response.output_item.added", object{"output_index": s.items, "item": first})
	if between != nil {
		between(object{"output_index": s.items, "item_id": first["id"]})
	}
	s.event("response.output_item.done", object{"output_index": s.items, "item": last})
	s.items++
}

func (g gateStep) play(s *stream) error {
	if err := s.model.pass(s.ctx, string(g)); err != nil {
		return errOver // the client is gone or the test is over
	}
	return nil
}

func (m sayStep) play(s *stream) error {
	message := func(content ...any) object {
		if content == nil {
			content = []any{}
		}
		return object{"type": "message", "role": "assistant", "id": s.itemID("msg"), "content": content}
	}
	text := object{"type": "output_text", "text": strings.Join(m.chunks, ""), "annotations": []any{}}
	s.item(message(), message(text), func(at object) {
		for _, chunk := range m.chunks {
			s.event("response.output_text.delta", object{
				"output_index": at["output_index"], "item_id": at["item_id"], "content_index": 0, "delta": chunk,
			})
		}
	})
	return nil
}

func (text thinkStep) play(s *stream) error {
	reasoning := func(summary ...any) object {
		if summary == nil {
			summary = []any{}
		}
		return object{"type": "reasoning", "id": s.itemID("rs"), "summary": summary}
	}
	s.item(reasoning(), reasoning(object{"type": "summary_text", "text": string(text)}), func(at object) {
		at["summary_index"] = 0
		s.event("response.reasoning_summary_part.added", at)
		at["delta"] = string(text)
		s.event("response.reasoning_summary_text.delta", at)
	})
	return nil
}

func (c ToolCall) play(s *stream) error {
	args, err := s.arguments(c.args)
	if err != nil {
		return err
	}
	id := c.id
	if id == "" {
		id = s.itemID("call")
	}
	call := func(arguments string) object {
		o := object{"type": "function_call", "id": s.itemID("fc"), "call_id": id, "name": c.tool, "arguments": arguments}
		if c.namespace != "" {
			o["namespace"] = c.namespace
		}
		return o
	}
	s.item(call(""), call(args), nil)
	return nil
}

// arguments encodes a call's arguments with their references resolved.
func (s *stream) arguments(args any) (string, error) {
	if args == nil {
		return "{}", nil
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	if tree, err = s.expand(tree); err != nil {
		return "", err
	}
	raw, err = json.Marshal(tree)
	return string(raw), err
}

func (st statusStep) play(s *stream) error {
	s.w.Header().Set("Content-Type", "application/json")
	s.w.WriteHeader(st.code)
	_, _ = io.WriteString(s.w, st.body)
	return errOver
}

func (f failStep) play(s *stream) error {
	s.event("response.failed", object{"response": object{
		"id": s.id, "status": "failed", "error": object{"code": f.code, "message": f.message},
	}})
	return errOver
}

func (dropStep) play(*stream) error {
	panic(http.ErrAbortHandler) // net/http's way to cut a connection
}
