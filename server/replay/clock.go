package replay

import (
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
