package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// Dialect is one model API.
type Dialect interface {
	// Route is the pattern under which the model is asked, as net/http writes it.
	Route() string
	// Base is the part of the base URL that follows the server's address.
	Base() string
	// Read understands a request; an error fails the test.
	Read(h http.Header, body []byte) (Asked, error)
	// Stream begins to answer. n counts all requests to this model, from 1.
	Stream(t testing.TB, w http.ResponseWriter, ask Asked, n int) Stream
}

// Asked is what a dialect understood of a request.
type Asked struct {
	Thread string        // of the agent that asks, as the program names it; may be empty for the root
	Name   func() string // names the agent of a thread that asks for the first time
	// Output is what the tool call with this id returned, nil when the request has none.
	Output func(callID string) []byte
	Parsed any // the dialect's own
}

// Stream is one reply on its way. What cannot be sent because the client has gone is
// noticed by the model.
type Stream interface {
	Begin()
	// Text sends one message. A piece that is yet to come is asked for, and may be held;
	// false means that there is none, because the client is gone.
	Text(pieces func(yield func(string) bool))
	Think(text string)
	// Call sends a tool call whose arguments are encoded already.
	Call(c ToolCall, args string)
	Status(code int, body string)
	Fail(code, message string)
	Complete()
}

// Object is a JSON object on its way out.
type Object map[string]any

// Events writes server-sent events whose name is repeated in their type field.
type Events struct {
	T testing.TB
	W http.ResponseWriter
}

// Open sends the head of the answer.
func (e Events) Open() {
	e.W.Header().Set("Content-Type", "text/event-stream")
	e.W.WriteHeader(http.StatusOK)
}

// Send sends one event. A client that has gone is noticed by the request's context.
func (e Events) Send(kind string, fields Object) {
	fields["type"] = kind
	data, err := json.Marshal(fields)
	if err != nil {
		e.T.Errorf("modeltest: event %s: %v", kind, err)
		return
	}
	_, _ = fmt.Fprintf(e.W, "event: %s\ndata: %s\n\n", kind, data)
	_ = http.NewResponseController(e.W).Flush()
}
