package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// request is one request of the editor until it is answered.
type request struct {
	c         *conn
	id        wire.RawID
	ctx       context.Context //nolint:containedctx // ends when the editor takes the request back
	cancel    context.CancelFunc
	answered  atomic.Bool
	withdrawn atomic.Bool
	// onWithdraw is what taking it back means besides: a prompt stops its turn.
	onWithdraw func()
}

var errBusy = &wire.Error{Code: wire.CodeInternalError, Message: "too many requests wait for their answers"}

// accept opens a request; false where there are too many, and it has been refused.
func (c *conn) accept(id wire.RawID) (*request, bool) {
	ctx, cancel := context.WithCancel(c.ctx)
	r := &request{c: c, id: id, ctx: ctx, cancel: cancel}
	c.mu.Lock()
	full := len(c.requests) >= maxRequests
	if !full {
		c.requests[id] = r
	}
	c.mu.Unlock()
	if full {
		r.fail(errBusy)
	}
	return r, !full
}

// run does the request in a goroutine of its own: the reader never waits.
func (r *request) run(do func(ctx context.Context) (any, error)) {
	r.c.work.Go(func() {
		result, err := do(r.ctx)
		switch {
		case err != nil:
			r.fail(err)
		case result != nil:
			r.reply(result)
		}
	})
}

// reply answers once; what comes after is dropped.
func (r *request) reply(result any) {
	if r.close() {
		r.written(r.c.peer.Reply(r.id, result))
	}
}

// fail answers with an error; one that the editor took back says so.
func (r *request) fail(err error) {
	if !r.close() {
		return
	}
	if r.withdrawn.Load() && errors.Is(err, context.Canceled) {
		err = &wire.Error{Code: wire.CodeWithdrawn, Message: "the request was cancelled"}
	}
	r.written(r.c.peer.Refuse(r.id, wireError(err)))
}

func (r *request) close() bool {
	if r.answered.Swap(true) {
		return false
	}
	r.cancel()
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.requests[r.id] == r {
		delete(r.c.requests, r.id)
	}
	return true
}

func (r *request) written(err error) {
	if err != nil && r.c.ctx.Err() == nil {
		r.c.log.Warn("an answer was not written", "request", r.id, "error", err)
	}
}

// withdraw is the editor taking one of its requests back.
func (c *conn) withdraw(params json.RawMessage) {
	var p wire.CancelParams
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	r := c.requests[p.RequestID]
	c.mu.Unlock()
	if r == nil {
		return
	}
	r.withdrawn.Store(true)
	if r.onWithdraw != nil {
		r.onWithdraw()
		return
	}
	r.cancel()
}

// Errors that the editor is told.
var (
	errChild         = &wire.Error{Code: wire.CodeInvalidRequest, Message: "a subagent's session takes nothing from a client but its cancel, while that is granted"}
	errUninitialized = &wire.Error{Code: wire.CodeInvalidRequest, Message: "initialize comes first"}
	errTwice         = &wire.Error{Code: wire.CodeInvalidRequest, Message: "the connection is initialized"}
)

func errParams(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func errNoSession(id string) *wire.Error {
	return &wire.Error{Code: acp.CodeResourceNotFound, Message: fmt.Sprintf("there is no session %q here", id)}
}

// wireError is any error as the protocol has it. The daemon's own words are for people; its
// code is for programs.
func wireError(err error) *wire.Error {
	var already *wire.Error
	if errors.As(err, &already) {
		return already
	}
	var known *agent.Error
	if !errors.As(err, &known) {
		return &wire.Error{Code: wire.CodeInternalError, Message: err.Error()}
	}
	e := &wire.Error{Code: wire.CodeInternalError, Message: known.Message}
	switch known.Code {
	case agent.CodeNotFound:
		e.Code = acp.CodeResourceNotFound
	case agent.CodeInvalid, agent.CodeConflict:
		e.Code = wire.CodeInvalidParams
	}
	if raw, err := json.Marshal(map[string]string{"code": string(known.Code)}); err == nil {
		e.Data = raw
	}
	return e
}

// decode reads parameters.
func decode[T any](f wire.Frame) (T, error) {
	var v T
	if len(f.Params) == 0 {
		return v, errParams("%s needs parameters", f.Method)
	}
	if err := json.Unmarshal(f.Params, &v); err != nil {
		return v, errParams("%s: %v", f.Method, err)
	}
	return v, nil
}

func checkCwd(cwd string) error {
	if !filepath.IsAbs(cwd) {
		return errParams("cwd %q is not an absolute path", cwd)
	}
	return nil
}
