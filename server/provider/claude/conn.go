package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Transport is a running binary as the runtime needs it.
type Transport = runner.Transport

var (
	errNoAnswer = errors.New("claude: no answer within the bound")
	// errNotOpen: the request was answered before, or withdrawn, or never made.
	errNotOpen = errors.New("claude: the request is not open")
	// errNoObject refuses a request that is no JSON object. Nothing was written.
	errNoObject = errors.New("claude: a request must be an object with a subtype")
)

// refusedError is an error answer of the binary.
type refusedError struct {
	Message string
	Code    string // "" if it gave none
}

func (e *refusedError) Error() string { return "claude answered with an error: " + e.Message }

// connOptions says who hears what. Everything is called in the reading goroutine, one
// call after the other, but for the bounds of requests.
type connOptions struct {
	// handle gets every frame in the order of the wire but answers. Of the binary's
	// requests it gets those that a person can answer; the others are refused here.
	handle func(frame)
	// odd is told of lines that are not as they should be.
	odd func(kind provider.DiagnosticKind, method, detail string)
	// record sees every whole line, "in" or "out", in the order of the wire.
	record  func(dir string, line []byte)
	clock   provider.Clock
	maxLine int // bytes, 0 is wire's default
}

// conn is the conversation with one binary: lines in and out, and which request is
// answered by what. It knows nothing of turns. Only its methods write, and each of them
// writes one whole valid line or nothing: a malformed line ends the binary.
type conn struct {
	o   connOptions
	in  *wire.Reader
	out *wire.Writer

	recording sync.Mutex

	mu      sync.Mutex
	lastID  int64
	asked   map[string]*asking // our requests without an answer, by id
	open    map[string]bool    // the binary's requests that nobody has answered
	over    *wire.ClosedError
	closing chan struct{}
}

// asking is a request of ours.
type asking struct {
	number int64
	done   func(answer)
	stop   func() bool // ends its bound; nil without one
}

// answer is what became of a request of ours.
type answer struct {
	body responseBody
	// err is nil, a *refusedError, errNoAnswer, a *wire.ClosedError, or why the request
	// could not be written.
	err error
}

// decode reports the error, or reads the payload into v (nil: ignored).
func (a answer) decode(v any) error {
	if a.err != nil || v == nil || len(a.body.Response) == 0 {
		return a.err
	}
	if err := json.Unmarshal(a.body.Response, v); err != nil {
		return fmt.Errorf("claude: answer: %w", err)
	}
	return nil
}

// newConn makes a conversation over a transport, which stays the caller's. Nothing is read
// before run.
func newConn(link Transport, o connOptions) *conn {
	c := &conn{
		o: o, in: wire.NewReader(link, o.maxLine), out: wire.NewWriter(link, o.maxLine, wire.DefaultWriteTimeout),
		asked: map[string]*asking{}, open: map[string]bool{}, closing: make(chan struct{}),
	}
	c.out.Tap(func(line []byte) { c.recordLine("out", line) })
	return c
}

// run reads until the stream ends or close is called, and returns the reason: nil for a
// clean end. When it returns, every request of ours has had its answer, and nothing is
// handled any more.
func (c *conn) run() error {
	for !c.closed() {
		line, err := c.in.Next()
		if c.closed() {
			break
		}
		var long *wire.LineTooLongError
		var half *wire.HalfLineError
		switch {
		case err == nil:
			c.line(bytes.Clone(line))
		case errors.As(err, &long):
			c.o.odd(provider.Malformed, "", fmt.Sprintf("a line of %d bytes was left out", long.Size))
		case errors.As(err, &half):
			c.recordLine("in", half.Line)
			c.o.odd(provider.Malformed, "", fmt.Sprintf("the output ended inside a line after %d bytes", len(half.Line)))
		default:
			c.close(err)
		}
	}
	reason := c.failAsked()
	if errors.Is(reason, io.EOF) {
		return nil
	}
	return reason
}

// line is one line's turn.
func (c *conn) line(line []byte) {
	c.recordLine("in", line)
	f, err := decodeFrame(line)
	if err != nil {
		method := ""
		if f != nil {
			method = f.head().name()
		}
		c.o.odd(provider.Malformed, method, fmt.Sprintf("%d bytes", len(line)))
	}
	switch f := f.(type) {
	case nil:
	case *responseFrame:
		c.settle(f.Response)
	case *requestFrame:
		c.request(f)
	case *withdrawFrame:
		c.mu.Lock()
		delete(c.open, f.RequestID)
		c.mu.Unlock()
		c.o.handle(f)
	default:
		c.o.handle(f)
	}
}

// request takes a request of the binary. What nobody here can answer is refused at once:
// the binary would wait for ever.
func (c *conn) request(f *requestFrame) {
	if f.RequestID == "" {
		c.o.odd(provider.Malformed, typeRequest, "without an id")
		return
	}
	c.mu.Lock()
	c.open[f.RequestID] = true
	c.mu.Unlock()
	switch subtype := f.subtype(); subtype {
	case reqCanUseTool, reqElicit:
		c.o.handle(f)
	default:
		c.o.odd(provider.Refused, subtype, f.RequestID)
		// A failed write is met again by whoever writes next.
		_ = c.refuse(f.RequestID, "this client does not answer "+subtype)
	}
}

// settle gives an answer to the request that waits for it.
func (c *conn) settle(body responseBody) {
	c.mu.Lock()
	a := c.asked[body.RequestID]
	delete(c.asked, body.RequestID)
	c.mu.Unlock()
	if a == nil {
		c.o.odd(provider.Late, typeResponse, body.RequestID)
		return
	}
	out := answer{body: body}
	if body.Subtype != resultSuccess {
		out.err = &refusedError{Message: cmp.Or(body.Error, "no reason given"), Code: body.ErrorCode}
	}
	a.end(out)
}

func (a *asking) end(out answer) {
	if a.stop != nil {
		a.stop()
	}
	a.done(out)
}

// ask sends a request. done is called exactly once, with no lock held: at the answer's
// place in the order of the wire, after bound, when the conversation ends, or, before ask
// returns, with why nothing could be written. bound 0 is none.
func (c *conn) ask(request any, bound time.Duration, done func(answer)) {
	raw, err := objectOf(request)
	if err != nil {
		done(answer{err: err})
		return
	}
	c.mu.Lock()
	if c.over != nil {
		err := c.over
		c.mu.Unlock()
		done(answer{err: err})
		return
	}
	c.lastID++
	id, a := "tk-"+strconv.FormatInt(c.lastID, 10), &asking{number: c.lastID, done: done}
	c.asked[id] = a
	if bound > 0 {
		a.stop = c.o.clock.AfterFunc(bound, func() {
			if c.forget(id) {
				done(answer{err: errNoAnswer})
			}
		})
	}
	c.mu.Unlock()
	err = c.out.Write(outRequest{Type: typeRequest, RequestID: id, Request: raw})
	if err != nil && c.forget(id) {
		a.end(answer{err: err})
	}
}

// forget gives a request up; false if it has had its answer.
func (c *conn) forget(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.asked[id] != nil
	delete(c.asked, id)
	return found
}

// user sends a person's message. The binary tells its fate by the uuid.
func (c *conn) user(uuid, text string) error {
	if err := c.err(); err != nil {
		return err
	}
	return c.out.Write(newUserLine(uuid, text))
}

// reply answers a request of the binary, once. Errors: errNotOpen, and those of a write;
// after wire.ErrMessageTooLong the request is still open.
func (c *conn) reply(id string, payload any) error {
	return c.respond(id, outResponse{Subtype: resultSuccess, RequestID: id, Response: payload})
}

// refuse answers a request with an error. To the model it is a tool that failed.
func (c *conn) refuse(id, text string) error {
	return c.respond(id, outResponse{Subtype: "error", RequestID: id, Error: text})
}

func (c *conn) respond(id string, r outResponse) error {
	c.mu.Lock()
	over, open := c.over, c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	switch {
	case over != nil:
		return over
	case !open:
		return errNotOpen
	}
	err := c.out.Write(outAnswer{Type: typeResponse, Response: r})
	var broken *wire.WriteError
	if err != nil && !errors.As(err, &broken) { // nothing was written
		c.mu.Lock()
		c.open[id] = true
		c.mu.Unlock()
	}
	return err
}

// close ends the conversation for the given reason; the first one counts. It does not wait
// for run, and does not close the transport.
func (c *conn) close(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = &wire.ClosedError{Reason: cmp.Or(reason, io.ErrClosedPipe)}
		close(c.closing)
	}
}

// err is nil while the conversation lasts.
func (c *conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		return nil // not the typed nil
	}
	return c.over
}

func (c *conn) closed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// failAsked ends our requests, oldest first, and returns why the conversation ended.
func (c *conn) failAsked() error {
	c.mu.Lock()
	over, left := c.over, slices.Collect(maps.Values(c.asked))
	clear(c.asked)
	c.mu.Unlock()
	slices.SortFunc(left, func(a, b *asking) int { return cmp.Compare(a.number, b.number) })
	for _, a := range left {
		a.end(answer{err: over})
	}
	return over.Reason
}

func (c *conn) recordLine(dir string, line []byte) {
	if c.o.record == nil {
		return
	}
	c.recording.Lock()
	defer c.recording.Unlock()
	c.o.record(dir, line)
}

// The lines that this side writes.
type (
	outRequest struct {
		Type      string          `json:"type"`
		RequestID string          `json:"request_id"`
		Request   json.RawMessage `json:"request"`
	}
	outAnswer struct {
		Type     string      `json:"type"`
		Response outResponse `json:"response"`
	}
	outResponse struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Response  any    `json:"response,omitempty"`
		Error     string `json:"error,omitempty"`
	}
)

// objectOf encodes a request and checks that it is an object with a subtype.
func objectOf(request any) (json.RawMessage, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("claude: encode: %w", err)
	}
	var r struct {
		Subtype string `json:"subtype"`
	}
	if raw[0] != '{' || json.Unmarshal(raw, &r) != nil || r.Subtype == "" {
		return nil, errNoObject
	}
	return raw, nil
}
