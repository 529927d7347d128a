package command

import (
	"context"
	"time"
)

// Clock is time as operations see it: the machine's in the daemon, a recording's in a
// replay. It decides when a stop is given up and when it is tried again; waits for storage
// are always the machine's.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f after d, and returns what stops it.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// until returns a context that ends at a moment of the clock.
func (s *Service) until(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancelCause(ctx)
	stop := s.Clock.AfterFunc(deadline.Sub(s.Clock.Now()), func() { cancel(context.DeadlineExceeded) })
	return bounded, func() {
		stop()
		cancel(nil)
	}
}
