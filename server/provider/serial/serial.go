// Package serial runs what happens to one runtime one thing at a time: frames of the
// provider, commands of people, timers. It owns the lock, the order of what is put off
// until the lock is free, and the calls that wait for the provider. It knows no provider,
// frame or fact, and imports nothing of ours.
package serial

import (
	"context"
	"sync"
)

// Loop is the lock of a runtime. What must not run under it, a write to a process or a
// call into the daemon, is put off with [Loop.Later] and runs afterwards, in exactly the
// order in which it was put off, whoever did so: a line that was decided first is written
// first.
type Loop struct {
	mu       sync.Mutex
	after    []func()
	draining bool
	park     func(change int)
}

// New returns a loop. park, if not nil, hears when a call begins (+1) and ceases (-1) to
// wait for the provider.
func New(park func(change int)) *Loop {
	if park == nil {
		park = func(int) {}
	}
	return &Loop{park: park}
}

// Do runs f under the lock and then what was put off, unless that is being done already.
// Within f it must not be called; within what was put off it may.
func (l *Loop) Do(f func()) {
	l.locked(f)
	l.drain()
}

func (l *Loop) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock() // a panic must not leave the lock behind: Close needs it
	f()
}

// drain runs what was put off. Only one goroutine does, so that the order holds; another
// leaves its share to it.
func (l *Loop) drain() {
	for first := true; ; first = false {
		g := l.next(first)
		if g == nil {
			return
		}
		l.run(g)
	}
}

// next takes the first of what was put off, nil if there is none, or another goroutine is
// at it.
func (l *Loop) next(first bool) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first && l.draining {
		return nil
	}
	l.draining = len(l.after) > 0
	if !l.draining {
		return nil
	}
	g := l.after[0]
	l.after = l.after[1:]
	return g
}

func (l *Loop) run(g func()) {
	over := false
	defer func() {
		if !over { // it panicked: whoever comes next goes on
			l.locked(func() { l.draining = false })
		}
	}()
	g()
	over = true
}

// Later puts f off until the lock is free. Called within Do.
func (l *Loop) Later(f func()) { l.after = append(l.after, f) }

// Waiter is one call of the daemon that waits for the provider.
type Waiter struct {
	done   chan struct{}
	err    error
	parked bool // somebody waits; guarded by the loop's lock
	over   bool
}

// NewWaiter returns a waiter that nobody has let go.
func NewWaiter() *Waiter { return &Waiter{done: make(chan struct{})} }

// Finish lets a waiter go, after everything put off before; the first call counts. Called
// within Do.
func (l *Loop) Finish(w *Waiter, err error) {
	l.Later(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.over {
			return
		}
		w.over, w.err = true, err
		if w.parked {
			l.park(-1)
		}
		close(w.done)
	})
}

// Await blocks until the waiter is let go or ctx ends. Called without the lock.
func (l *Loop) Await(ctx context.Context, w *Waiter) error {
	l.mu.Lock()
	if !w.over {
		w.parked = true
		l.park(1)
	}
	l.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.over {
		return w.err
	}
	w.over = true
	l.park(-1)
	return ctx.Err()
}
