package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// RawID is the id of a JSON-RPC request as the JSON text that was sent: 7 is
// "7", the string "a" is "\"a\"". Ids are opaque and answered byte for byte, so
// whatever a peer uses comes back to it unchanged. It can be a map key. The
// ids of the two directions are different name spaces: both sides may use 0.
// The zero value means "no id".
type RawID string

// IntID is the id with the given number.
func IntID(n int64) RawID { return RawID(strconv.FormatInt(n, 10)) }

// StringID is the id with the given string.
func StringID(s string) RawID {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return RawID(b)
}

// Int reports the id as an integer, if it is one.
func (id RawID) Int() (int64, bool) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	return n, err == nil
}

// MarshalJSON writes the id as it was received. Only strings, numbers and null
// are ids.
func (id RawID) MarshalJSON() ([]byte, error) {
	if !id.valid() {
		return nil, fmt.Errorf("wire: %q is no request id", string(id))
	}
	return []byte(id), nil
}

// UnmarshalJSON keeps the text of the id.
func (id *RawID) UnmarshalJSON(b []byte) error {
	if v := RawID(b); !v.valid() {
		return fmt.Errorf("wire: %.40s is no request id", b)
	}
	*id = RawID(b)
	return nil
}

func (id RawID) valid() bool {
	if id == "" || !json.Valid([]byte(id)) {
		return false
	}
	c := id[0]
	return c == '"' || c == 'n' || c == '-' || c >= '0' && c <= '9'
}

// nullID answers a line that named no request.
const nullID RawID = "null"

// Error codes of JSON-RPC 2.0, and of a request that was withdrawn.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
	CodeWithdrawn      = -32800
)

// Error is an error answer. It is what a peer said, not a failure to reach it.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("peer answered with error %d: %s", e.Code, e.Message)
}

// Kind tells the two frames a peer sends by itself apart. Answers are no
// frames: they belong to the call they answer, see [Answer].
type Kind uint8

// The kinds of frame.
const (
	KindRequest      Kind = iota + 1 // wants [Peer.Reply] or [Peer.ReplyError] with its ID
	KindNotification                 // wants nothing
)

// Frame is a request or notification of the peer. Its slices belong to the
// receiver and may be kept.
type Frame struct {
	Kind   Kind
	ID     RawID           // of a request; empty for a notification
	Method string          // never empty
	Params json.RawMessage // nil when absent
	Raw    json.RawMessage // the whole line
}

// Answer is the outcome of one call.
type Answer struct {
	ID     RawID           // the id the call was sent with
	Method string          // the method that was called
	Result json.RawMessage // nil if Err is set
	// Err is nil, an [*Error] from the peer, or a [*ClosedError] when the
	// conversation ended first.
	Err error
	Raw json.RawMessage // the whole line; nil when there was none
}

// Decode reports Err, or decodes the result into v (nil: ignore it).
func (a Answer) Decode(v any) error {
	if a.Err != nil {
		return a.Err
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, v); err != nil {
		return fmt.Errorf("wire: result of %s: %w", a.Method, err)
	}
	return nil
}

// envelope is any message on the wire, in either direction.
type envelope struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      RawID           `json:"id,omitempty"`
	Method  *string         `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

var errNoMessage = errors.New("neither a request, a notification nor an answer")

// decodeLine reads one line. The kind of fault is empty when err is nil.
func decodeLine(line []byte) (envelope, DiagnosticKind, error) {
	var e envelope
	switch trimmed := bytes.TrimLeft(line, " \t"); {
	case len(trimmed) > 0 && trimmed[0] == '[' && json.Valid(line):
		return e, DiagBatch, errors.New("batches are not supported")
	case !json.Valid(line):
		return e, DiagNotJSON, errors.New("not a JSON value")
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, DiagNotMessage, err
	}
	if e.Method == nil && (e.ID == "" || e.Result == nil && e.errorMember() == nil) {
		return e, DiagNotMessage, errNoMessage
	}
	if e.Method != nil && *e.Method == "" {
		return e, DiagNotMessage, errNoMessage
	}
	return e, "", nil
}

// errorMember is the error of an answer; null counts as absent, because some
// peers send both members always.
func (e envelope) errorMember() json.RawMessage {
	if len(e.Error) == 0 || bytes.Equal(e.Error, []byte("null")) {
		return nil
	}
	return e.Error
}

// answerError is the error of an answer, nil if it is a success. An error of
// unknown shape must still fail the call: it is kept as data.
func (e envelope) answerError() error {
	raw := e.errorMember()
	if raw == nil {
		return nil
	}
	var out Error
	if err := json.Unmarshal(raw, &out); err != nil {
		return &Error{Code: CodeInternalError, Message: "error answer of unknown shape", Data: raw}
	}
	return &out
}
