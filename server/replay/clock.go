package replay

import (
	"context"
	"slices"
	"sync"
	"time"
)

// epoch is where every recording's clock begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the recording's time. It moves only when the driver moves it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	serial int
	timers []*timer // in the order they fire
}

type timer struct {
	at     time.Time
	serial int
	f      func()
}

// Now implements provider.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements provider.Clock. The driver calls f, nothing else moving.
func (c *clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	t := &timer{at: c.now.Add(max(d, 0)), serial: c.serial, f: f}
	at, _ := slices.BinarySearchFunc(c.timers, t, func(a, b *timer) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return a.serial - b.serial
	})
	c.timers = slices.Insert(c.timers, at, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.timers, t); i >= 0 {
			c.timers = slices.Delete(c.timers, i, i+1)
			return true
		}
		return false
	}
}

// next takes the first timer that fires until then, and moves the clock to it. Without
// one it moves the clock to then and returns nil.
func (c *clock) next(then time.Time) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) > 0 && !c.timers[0].at.After(then) {
		t := c.timers[0]
		c.timers = c.timers[1:]
		if t.at.After(c.now) {
			c.now = t.at
		}
		return t.f
	}
	if then.After(c.now) {
		c.now = then
	}
	return nil
}

// pending is when the first timer fires.
func (c *clock) pending() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].at, true
}

// bounds is the clock as commands see it. When it cuts off a call, that counts as work
// until the call has taken note: else the replay could go on before it has.
type bounds struct {
	*clock
	still *still

	mu    sync.Mutex
	calls map[*bounded]bool
}

// bounded is a call that the clock may cut off.
type bounded struct {
	ctx context.Context //nolint:containedctx // of that call
	cut bool
}

// AfterFunc implements command.Clock.
func (b *bounds) AfterFunc(d time.Duration, f func()) func() bool {
	return b.clock.AfterFunc(d, func() {
		f()
		b.mu.Lock()
		defer b.mu.Unlock()
		for c := range b.calls {
			if c.ctx.Err() != nil && !c.cut {
				c.cut = true
				b.still.work(1)
			}
		}
	})
}

// call registers a call; the function that it returns ends that.
func (b *bounds) call(ctx context.Context) (done func()) {
	c := &bounded{ctx: ctx}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[c] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.calls, c)
		if c.cut {
			b.still.work(-1)
		}
	}
}
