package serial

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What was put off runs in the order in which it was put off, also what is put off by
// what was put off.
func TestLaterKeepsItsOrder(t *testing.T) {
	l := New(nil)
	var got []int
	note := func(n int) func() { return func() { got = append(got, n) } }
	l.Do(func() {
		l.Later(func() {
			note(1)()
			l.Do(func() { l.Later(note(4)) })
			note(2)()
		})
		l.Later(note(3))
	})
	if !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("order is %v", got)
	}
}

// Two goroutines never run what was put off at the same time.
func TestOneGoroutineDrains(t *testing.T) {
	l := New(nil)
	busy, seen := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l.Do(func() {
					l.Later(func() {
						busy++ // unguarded on purpose: the race detector would see two
						seen++
						busy--
					})
				})
			}
		})
	}
	wg.Wait()
	l.Do(func() {})
	if seen != 1600 || busy != 0 {
		t.Errorf("%d ran, want 1600", seen)
	}
}

// A panic leaves neither the lock nor the queue behind.
func TestPanicLeavesTheLoopUsable(t *testing.T) {
	l := New(nil)
	fail := func(f func()) {
		defer func() { _ = recover() }()
		l.Do(f)
	}
	fail(func() { panic("under the lock") })
	ran := false
	fail(func() {
		l.Later(func() { panic("afterwards") })
		l.Later(func() { ran = true })
	})
	l.Do(func() {})
	if !ran {
		t.Error("what was put off is lost")
	}
}

func TestAwait(t *testing.T) {
	parked := 0
	l := New(func(change int) { parked += change })
	w, cause := NewWaiter(), errors.New("x")
	l.Do(func() {
		l.Finish(w, cause)
		l.Finish(w, nil)
	})
	if err := l.Await(t.Context(), w); !errors.Is(err, cause) {
		t.Errorf("Await = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Await(ctx, NewWaiter()); !errors.Is(err, context.Canceled) || parked != 0 {
		t.Errorf("Await = %v, parked %d", err, parked)
	}
}
