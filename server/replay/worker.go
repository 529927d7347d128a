package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// worker carries out durable operations in the recording's time: what the worker of
// package command does on the machine's clock, with the same calls in the same order.
type worker struct {
	engine *engine
	wait   []agent.Claimed // messages that must not overtake another

	mu     sync.Mutex
	lanes  map[agent.SessionID]int // messages on their way, by root
	failed error
}

const (
	lease      = 2 * time.Minute
	backoff    = 250 * time.Millisecond
	maxBackoff = 4 * time.Second
	atATime    = 64
)

func (w *worker) enter(root agent.SessionID) { w.count(root, 1) }
func (w *worker) leave(root agent.SessionID) { w.count(root, -1) }

func (w *worker) count(root agent.SessionID, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lanes[root] += change
}

func (w *worker) free(root agent.SessionID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanes[root] == 0
}

// round begins whatever is due and may begin, and reports whether there was anything.
// It is called when nothing moves.
func (w *worker) round() (bool, error) {
	e := w.engine
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed != nil {
		return false, failed
	}
	claimed, err := e.store.Claim(e.ctx, client, lease, atATime)
	if err != nil {
		return false, fmt.Errorf("claim operations: %w", err)
	}
	due := append(w.wait, claimed...)
	w.wait = nil
	began := false
	for _, c := range due {
		guide := c.Operation.Kind == agent.OperationGuide
		if guide && !w.free(c.Root.ID) {
			w.wait = append(w.wait, c)
			continue
		}
		began = true
		e.still.work(1)
		if guide {
			w.enter(c.Root.ID)
		}
		go func() {
			defer e.still.work(-1)
			if guide {
				defer w.leave(c.Root.ID)
			}
			if err := w.carryOut(c); err != nil {
				w.mu.Lock()
				w.failed = err
				w.mu.Unlock()
			}
		}()
		if err := e.still.wait(); err != nil { // one at a time: their order must not be chance
			return began, err
		}
	}
	return began, nil
}

func (w *worker) carryOut(c agent.Claimed) error {
	e := w.engine
	var err error
	switch c.Operation.Kind {
	case agent.OperationCancel:
		err = w.cancel(c)
	case agent.OperationAnswer:
		failure := agent.Errorf(agent.CodeInteractionGone, "the question is no longer open")
		if c.Interaction != nil {
			failure = coded((*runtimes)(e).Answer(e.ctx, c.Root.ID, *c.Interaction))
		}
		_, err = e.store.CompleteAnswer(e.ctx, c.Operation.ID, failure)
	case agent.OperationGuide:
		failure := agent.Errorf(agent.CodeNotFound, "the message is gone")
		if c.Message != nil {
			failure = coded((*runtimes)(e).Guide(e.ctx, c.Root.ID, *c.Message))
		}
		_, err = e.store.CompleteGuide(e.ctx, c.Operation.ID, failure)
	case agent.OperationDelete:
	}
	if err != nil {
		return fmt.Errorf("carry out %s %s: %w", c.Operation.Kind, c.Operation.ID, err)
	}
	return nil
}

// cancel asks for a stop and completes the operation: confirmed, with nobody to ask, or
// at its deadline with the evidence there is.
func (w *worker) cancel(c agent.Claimed) error {
	e := w.engine
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	left := time.Duration(0)
	if c.Operation.Deadline != nil {
		left = c.Operation.Deadline.Sub(e.clock.Now())
	}
	if left <= 0 {
		_, err := e.store.CompleteCancel(e.ctx, c.Operation.ID, c.Operation.Error)
		return err
	}
	inTime := e.clock.AfterFunc(left, func() {
		e.still.work(1) // until the call has taken note of it
		stop()
	})
	err := (*runtimes)(e).Cancel(ctx, c, func(heard agent.Evidence) {
		if err := e.store.Hear(e.ctx, c.Operation.ID, []agent.Evidence{heard}); err != nil {
			w.mu.Lock()
			w.failed = fmt.Errorf("store evidence: %w", err)
			w.mu.Unlock()
		}
	})
	if !inTime() {
		defer e.still.work(-1)
		_, err := e.store.CompleteCancel(e.ctx, c.Operation.ID, c.Operation.Error)
		return err
	}
	if err == nil || errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
		_, err := e.store.CompleteCancel(e.ctx, c.Operation.ID, coded(err))
		return err
	}
	again := min(backoff<<min(max(c.Operation.Attempts-1, 0), 10), maxBackoff, left)
	e.clock.AfterFunc(again, func() {}) // the driver looks for due operations after each timer
	return e.store.Retry(e.ctx, c.Operation.ID, coded(err), e.clock.Now().Add(again))
}

func coded(err error) *agent.Error {
	var e *agent.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	return agent.Errorf(agent.CodeInternal, "%v", err)
}
