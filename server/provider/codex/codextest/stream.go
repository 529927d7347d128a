package codextest

import (
	"fmt"
	"io"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// stream is one reply on its way: server-sent events of the Responses API.
type stream struct {
	modeltest.Events
	id    string // response id
	items int    // output items sent so far
}

type object = modeltest.Object

// Begin implements modeltest.Stream.
func (s *stream) Begin() {
	s.Open()
	s.Send("response.created", object{"response": object{"id": s.id}})
}

// Complete implements modeltest.Stream. The usage is made up.
func (s *stream) Complete() {
	s.Send("response.completed", object{"response": object{
		"id": s.id,
		"usage": object{
			"input_tokens": 20, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": 30,
		},
	}})
}

// itemID names the item that is being sent.
func (s *stream) itemID(prefix string) string { return fmt.Sprintf("%s_%s_%d", prefix, s.id, s.items) }

// item sends one output item: its beginning, whatever is between, its end.
func (s *stream) item(first object, last func() object, between func(at object)) {
	s.Send("response.output_item.added", object{"output_index": s.items, "item": first})
	if between != nil {
		between(object{"output_index": s.items, "item_id": first["id"]})
	}
	s.Send("response.output_item.done", object{"output_index": s.items, "item": last()})
	s.items++
}

// Text implements modeltest.Stream.
func (s *stream) Text(pieces func(yield func(string) bool)) {
	message := func(content ...any) object {
		if content == nil {
			content = []any{}
		}
		return object{"type": "message", "role": "assistant", "id": s.itemID("msg"), "content": content}
	}
	var whole strings.Builder
	s.item(message(), func() object {
		return message(object{"type": "output_text", "text": whole.String(), "annotations": []any{}})
	}, func(at object) {
		for piece := range pieces {
			whole.WriteString(piece)
			s.Send("response.output_text.delta", object{
				"output_index": at["output_index"], "item_id": at["item_id"], "content_index": 0, "delta": piece,
			})
		}
	})
}

// Think implements modeltest.Stream: a reasoning summary.
func (s *stream) Think(text string) {
	reasoning := func(summary ...any) object {
		if summary == nil {
			summary = []any{}
		}
		return object{"type": "reasoning", "id": s.itemID("rs"), "summary": summary}
	}
	s.item(reasoning(), func() object { return reasoning(object{"type": "summary_text", "text": text}) }, func(at object) {
		at["summary_index"] = 0
		s.Send("response.reasoning_summary_part.added", at)
		at["delta"] = text
		s.Send("response.reasoning_summary_text.delta", at)
	})
}

// Call implements modeltest.Stream.
func (s *stream) Call(c modeltest.ToolCall, args string) {
	id := c.ID
	if id == "" {
		id = s.itemID("call")
	}
	call := func(arguments string) object {
		o := object{"type": "function_call", "id": s.itemID("fc"), "call_id": id, "name": c.Tool, "arguments": arguments}
		if c.Namespace != "" {
			o["namespace"] = c.Namespace
		}
		return o
	}
	s.item(call(""), func() object { return call(args) }, nil)
}

// Status implements modeltest.Stream.
func (s *stream) Status(code int, body string) {
	s.W.Header().Set("Content-Type", "application/json")
	s.W.WriteHeader(code)
	_, _ = io.WriteString(s.W, body)
}

// Fail implements modeltest.Stream.
func (s *stream) Fail(code, message string) {
	s.Send("response.failed", object{"response": object{
		"id": s.id, "status": "failed", "error": object{"code": code, "message": message},
	}})
}
