package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrParams refuses parameters that are neither an object nor an array, the
// only shapes JSON-RPC allows. Nothing was written.
var ErrParams = errors.New("wire: params must be an object or an array")

// Call sends a request and waits for its answer, which is decoded into result
// (nil: ignored). Errors: [*Error] for an error answer, [*ClosedError] when the
// conversation ended first, ctx.Err() when ctx ended first (the peer may still
// have done what was asked; its answer becomes a late_answer), [*WriteError],
// or an encoding error. Never call it from the reading goroutine.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	answer := make(chan Answer, 1)
	id, err := p.Go(method, params, func(a Answer) { answer <- a })
	if err != nil {
		return err
	}
	select {
	case a := <-answer:
		return a.Decode(result)
	case <-ctx.Done():
		p.forget(id)
		err = ctx.Err()
	case <-p.closing:
		err = p.Err()
	}
	select {
	case a := <-answer: // it was there all along; select only drew another case
		return a.Decode(result)
	default:
		return err
	}
}

// Go sends a request and returns its id at once. If it returns no error, done
// is called exactly once in the reading goroutine: at the answer's place in the
// wire order, or with a [*ClosedError] when the conversation ends. If it
// returns an error, done is never called.
//
// The answer can arrive before Go returns. Params nil leaves the member out.
func (p *Peer) Go(method string, params any, done func(Answer)) (RawID, error) {
	raw, err := encodeParams(method, params)
	if err != nil {
		return "", err
	}
	id, err := p.register(method, done)
	if err != nil {
		return "", err
	}
	err = p.out.Write(envelope{Version: p.opts.Version, ID: id, Method: &method, Params: raw})
	if err != nil && p.forget(id) {
		return "", err
	}
	// A failed write whose entry is gone was already reported through done,
	// because the conversation ended at the same moment.
	return id, nil
}

// register opens a call under a fresh id. Ids count from 1.
func (p *Peer) register(method string, done func(Answer)) (RawID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return "", p.closed
	}
	p.lastID++
	id := IntID(p.lastID)
	p.pending[id] = pendingCall{method: method, done: done}
	return id, nil
}

// forget gives a call up; false if its answer was already taken.
func (p *Peer) forget(id RawID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, found := p.pending[id]
	delete(p.pending, id)
	return found
}

// Notify sends a notification. Params nil leaves the member out. Errors:
// [*ClosedError], [*WriteError], or an encoding error.
func (p *Peer) Notify(method string, params any) error {
	raw, err := encodeParams(method, params)
	if err != nil {
		return err
	}
	return p.send(envelope{Method: &method, Params: raw})
}

// Reply answers a request of the other side. A nil result is sent as null.
// Whether the request is still open on the other side is the caller's to know.
// Errors: [*ClosedError], [*WriteError], or an encoding error.
func (p *Peer) Reply(id RawID, result any) error {
	raw, err := encode(result)
	if err != nil {
		return fmt.Errorf("wire: encode result: %w", err)
	}
	return p.answer(envelope{ID: id, Result: raw})
}

// ReplyError answers a request with an error. Errors: as Reply.
func (p *Peer) ReplyError(id RawID, code int, message string) error {
	return p.Refuse(id, &Error{Code: code, Message: message})
}

// Refuse is [Peer.ReplyError] with data. Errors: as Reply.
func (p *Peer) Refuse(id RawID, e *Error) error {
	raw, err := encode(e)
	if err != nil {
		return fmt.Errorf("wire: encode error: %w", err)
	}
	return p.answer(envelope{ID: id, Error: raw})
}

// CancelMethod is the notification by which either side takes a request of its own back.
const CancelMethod = "$/cancel_request"

// CancelParams names the request that is taken back, by the id its sender gave it.
type CancelParams struct {
	RequestID RawID `json:"requestId"`
}

// Withdraw tells the other side that a call of [Peer.Go] is not wanted any more. The call
// stays open: it is answered all the same, with a result if that was on its way. A request
// that the other side withdraws arrives as a notification, at its place among the others.
func (p *Peer) Withdraw(id RawID) error { return p.Notify(CancelMethod, CancelParams{id}) }

func (p *Peer) answer(e envelope) error {
	if !e.ID.valid() {
		return fmt.Errorf("wire: %q is no request id", string(e.ID))
	}
	return p.send(e)
}

func (p *Peer) send(e envelope) error {
	if err := p.Err(); err != nil {
		return err
	}
	e.Version = p.opts.Version
	return p.out.Write(e)
}

// encodeParams checks what JSON-RPC demands of a call before anything is sent.
func encodeParams(method string, params any) (json.RawMessage, error) {
	if method == "" {
		return nil, errors.New("wire: method is empty")
	}
	if params == nil {
		return nil, nil
	}
	raw, err := encode(params)
	if err != nil {
		return nil, fmt.Errorf("wire: encode params of %s: %w", method, err)
	}
	if c := raw[0]; c != '{' && c != '[' {
		return nil, ErrParams
	}
	return raw, nil
}

// encode is json.Marshal without the escapes that only web pages need.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
