package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Pauses of the worker's loop.
const (
	// lookAgain bounds how long the worker sleeps: a bell that was missed costs no more.
	lookAgain = 30 * time.Second
	// afterFailure is the pause when storage could not be asked.
	afterFailure = 500 * time.Millisecond
)

// Run claims operations and carries them out until ctx ends or Close is called; then it
// waits for those that are under way. Their leases stay: the next start takes them up.
func (s *Service) Run(ctx context.Context) {
	if !s.enter() {
		return
	}
	defer s.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	slots := make(chan struct{}, s.Parallel)
	done := make(chan struct{}, 1) // rings when a slot was freed
	defer func() {
		for range s.Parallel { // every slot back: nothing is under way
			slots <- struct{}{}
		}
	}()
	for ctx.Err() == nil {
		free := s.Parallel - len(slots)
		claimed, err := s.claim(ctx, free)
		for _, c := range claimed {
			if !s.underWay.add(c.Operation.ID) {
				continue // its lease ran out while it waits in its lane: it is still ours
			}
			slots <- struct{}{}
			s.carryOut(ctx, c, func() {
				s.underWay.remove(c.Operation.ID)
				<-slots
				ring(done)
			})
		}
		switch {
		case err != nil && ctx.Err() == nil:
			s.Logger.Error("operations could not be claimed", "error", err)
			s.sleep(ctx, afterFailure, nil)
		case free == 0:
			s.sleep(ctx, lookAgain, done)
		case len(claimed) < free:
			s.sleep(ctx, s.untilDue(ctx), nil)
		}
	}
}

func (s *Service) claim(ctx context.Context, free int) ([]agent.Claimed, error) {
	if free == 0 {
		return nil, nil
	}
	return s.Store.Claim(ctx, s.Worker, s.Lease, free)
}

// untilDue says how long nothing can be claimed.
func (s *Service) untilDue(ctx context.Context) time.Duration {
	due, ok, err := s.Store.NextDue(ctx)
	switch {
	case err != nil:
		return afterFailure
	case !ok:
		return lookAgain
	}
	return min(max(time.Until(due), 0), lookAgain)
}

// sleep waits for d, the bell, wake or the end. A due time that has passed still waits a
// moment, so that an operation somebody else holds does not make the worker spin.
func (s *Service) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.bell:
	case <-wake:
	case <-ctx.Done():
	}
}

// enter counts Run among what Close waits for.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Add(1)
	}
	return !s.closed
}

// operations is the set of those that are being carried out.
type operations struct {
	mu  sync.Mutex
	ids map[agent.OperationID]bool
}

// add reports whether the operation was not there yet.
func (o *operations) add(id agent.OperationID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[agent.OperationID]bool{}
	}
	there := o.ids[id]
	o.ids[id] = true
	return !there
}

func (o *operations) remove(id agent.OperationID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, id)
}

func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// carryOut carries out one operation in a goroutine of its own, a message in its
// root's lane; done is called when it is over.
func (s *Service) carryOut(ctx context.Context, c agent.Claimed, done func()) {
	work := func(f func(context.Context, agent.Claimed)) func() {
		return func() {
			defer done()
			if ctx.Err() == nil {
				f(ctx, c)
			}
		}
	}
	switch c.Operation.Kind {
	case agent.OperationCancel:
		go work(s.cancelTurn)()
	case agent.OperationAnswer:
		go work(s.deliverAnswer)()
	case agent.OperationGuide:
		if !s.lanes.do(c.Root.ID, work(s.deliverGuide)) {
			done()
		}
	case agent.OperationDelete:
		s.Logger.Error("a deletion is carried out by storage alone", "operation", c.Operation.ID)
		done()
	}
}

// CarryOut carries out one claimed operation and returns when it is over: what Run does for
// each, for a driver that brings its own order. A message waits in no lane here.
func (s *Service) CarryOut(ctx context.Context, c agent.Claimed) {
	switch c.Operation.Kind {
	case agent.OperationCancel:
		s.cancelTurn(ctx, c)
	case agent.OperationAnswer:
		s.deliverAnswer(ctx, c)
	case agent.OperationGuide:
		s.deliverGuide(ctx, c)
	case agent.OperationDelete: // storage alone does it
	}
}

// deliverAnswer hands a recorded answer to the agent. If that fails the question is
// open again, with the reason, and the person may answer again; it is not tried twice
// by itself, for the agent may have taken it.
func (s *Service) deliverAnswer(ctx context.Context, c agent.Claimed) {
	var failure *agent.Error
	// Only an answer that is on its way is delivered: the question may have been superseded
	// since, by a stop of its turn or by its end.
	if c.Interaction == nil || c.Interaction.Status != agent.InteractionAnswering {
		failure = agent.Errorf(agent.CodeInteractionGone, "the question is no longer open")
	} else {
		bounded, cancel := context.WithTimeout(ctx, s.AnswerBound)
		defer cancel()
		failure = s.coded("answer", c, s.Live.Answer(bounded, c.Root.ID, *c.Interaction))
	}
	if ctx.Err() != nil && failure != nil {
		return // we are stopping; the next start says what became of it
	}
	s.complete(ctx, c, failure, s.Store.CompleteAnswer)
}

// deliverGuide hands a message to the running agent, once. A second attempt of the same
// operation means that we died while it was on its way: the agent may have it, so it is
// not sent again.
func (s *Service) deliverGuide(ctx context.Context, c agent.Claimed) {
	var failure *agent.Error
	switch {
	case c.Message == nil:
		failure = agent.Errorf(agent.CodeNotFound, "the message is gone")
	case c.Operation.Attempts > 1:
		failure = agent.Errorf(agent.CodeDaemonRestart, "the daemon ended while the message was on its way; the agent may have it. Send it again if it does not")
	default:
		bounded, cancel := context.WithTimeout(ctx, s.GuideBound)
		defer cancel()
		failure = s.coded("guide", c, s.Live.Guide(bounded, c.Root.ID, *c.Message))
	}
	if ctx.Err() != nil && failure != nil {
		return
	}
	s.complete(ctx, c, failure, s.Store.CompleteGuide)
}

// complete writes an operation's end, again while storage is busy. It is not cut off by
// the end of the daemon: what was done must be written.
func (s *Service) complete(ctx context.Context, c agent.Claimed, failure *agent.Error, write func(context.Context, agent.OperationID, *agent.Error) (agent.Operation, error)) {
	_, err := insist(ctx, func(ctx context.Context) (agent.Operation, error) { return write(ctx, c.Operation.ID, failure) })
	if err != nil { // its lease runs out, and it is claimed again
		s.Logger.Error("the end of an operation could not be stored", "operation", c.Operation.ID, "kind", c.Operation.Kind, "error", err)
	}
}

// coded gives the error of a call into live a code, or is nil.
func (s *Service) coded(what string, c agent.Claimed, err error) *agent.Error {
	var e *agent.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return agent.Errorf(agent.CodeTimeout, "the provider did not take it in time")
	}
	s.Logger.Error("an operation failed", "what", what, "operation", c.Operation.ID, "error", err)
	return agent.Errorf(agent.CodeInternal, "it could not be delivered; the daemon's log has the details")
}

// How long storage is asked again.
const (
	insistFor   = 10 * time.Second
	insistPause = 20 * time.Millisecond
)

// insist calls f until storage is no longer busy, for at most insistFor.
func insist[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), insistFor)
	defer cancel()
	for pause := insistPause; ; pause = min(2*pause, time.Second) {
		v, err := f(ctx)
		if err == nil || !errors.Is(err, &agent.Error{Code: agent.CodeUnavailable}) {
			return v, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return v, err
		}
	}
}
