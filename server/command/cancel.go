package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// maxBackoff bounds the pause between two attempts of a cancel.
const maxBackoff = 4 * time.Second

// cancelTurn asks for the stop of an operation's targets and completes it: when all is
// confirmed, when nothing is there to be asked, or at its deadline with the evidence
// there is. An open cancel can therefore never hold a turn for ever. A request that
// could not be written is tried again until then, and is never a success.
func (s *Service) cancelTurn(ctx context.Context, c agent.Claimed) {
	deadline := s.Clock.Now().Add(s.CancelBound)
	if c.Operation.Deadline != nil {
		deadline = *c.Operation.Deadline
	}
	if !s.Clock.Now().Before(deadline) {
		s.complete(ctx, c, c.Operation.Error, s.Store.CompleteCancel)
		return
	}
	bounded, cancel := s.until(ctx, deadline)
	defer cancel()
	heard := &hearing{service: s, operation: c.Operation.ID}
	err := s.Live.Cancel(bounded, c, func(e agent.Evidence) { heard.hear(ctx, e) })
	heard.flush(ctx)
	switch {
	case err == nil:
		s.complete(ctx, c, nil, s.Store.CompleteCancel)
	case ctx.Err() != nil:
		// We are stopping: the next start completes it, with the evidence that is stored.
	case isCode(err, agent.CodeProviderGone): // nothing runs that could be stopped, or confirm it
		s.complete(ctx, c, nil, s.Store.CompleteCancel)
	case !s.Clock.Now().Before(deadline):
		s.complete(ctx, c, atTheBound(s, c, err), s.Store.CompleteCancel)
	default:
		s.retryCancel(ctx, c, s.coded("cancel", c, err), deadline)
	}
}

// atTheBound is what to say of a cancel whose time is up: nothing of its own when the
// provider was only silent, for the targets tell that; else why it could not be asked.
func atTheBound(s *Service, c agent.Claimed, err error) *agent.Error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return c.Operation.Error
	}
	return s.coded("cancel", c, err)
}

// retryCancel puts the operation back, to be tried again after a pause that doubles, and
// at the deadline at the latest.
func (s *Service) retryCancel(ctx context.Context, c agent.Claimed, failure *agent.Error, deadline time.Time) {
	pause := s.Backoff << min(max(c.Operation.Attempts-1, 0), 10)
	at := s.Clock.Now().Add(min(pause, maxBackoff))
	if at.After(deadline) {
		at = deadline
	}
	_, err := insist(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.Retry(ctx, c.Operation.ID, failure, at)
	})
	if err != nil {
		s.Logger.Error("a cancel could not be put back", "operation", c.Operation.ID, "error", err)
	}
	s.Ring() // the worker may sleep past it
	s.Clock.AfterFunc(at.Sub(s.Clock.Now()), s.Ring)
}

func isCode(err error, code agent.Code) bool { return errors.Is(err, &agent.Error{Code: code}) }

// hearing stores evidence as it comes, and keeps what storage did not take yet.
type hearing struct {
	service   *Service
	operation agent.OperationID

	mu   sync.Mutex
	kept []agent.Evidence
}

// hear takes one piece of evidence. It is called from inside the adapter, so it tries
// storage once and does not wait for it.
func (h *hearing) hear(ctx context.Context, e agent.Evidence) {
	h.mu.Lock()
	h.kept = append(h.kept, e)
	all := h.kept
	h.kept = nil
	h.mu.Unlock()
	if err := h.service.Store.Hear(context.WithoutCancel(ctx), h.operation, all); err != nil {
		h.mu.Lock()
		h.kept = append(all, h.kept...)
		h.mu.Unlock()
	}
}

// flush stores what is left, before the operation completes.
func (h *hearing) flush(ctx context.Context) {
	h.mu.Lock()
	left := h.kept
	h.kept = nil
	h.mu.Unlock()
	if len(left) == 0 {
		return
	}
	_, err := insist(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.service.Store.Hear(ctx, h.operation, left)
	})
	if err != nil {
		h.service.Logger.Error("evidence of a cancel could not be stored", "operation", h.operation, "error", err)
	}
}
