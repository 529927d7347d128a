package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// forest is the reference fixture: 200 roots of 50 children, whose terminals are the events.
type forest struct {
	*world
	trees []*tree
	kids  [][]child
	next  atomic.Int64
}

const (
	forestRoots    = 200
	forestChildren = 50
)

func plant(b *testing.B, sync string) *forest {
	b.Helper()
	f := &forest{world: open(b, synchronous(sync), func(o *Options) { o.OnCommit = nil })}
	for range forestRoots {
		t := f.begin()
		t.provider("p")
		f.trees = append(f.trees, t)
		f.kids = append(f.kids, t.crowd(forestChildren))
		t.providerEnds("p", agent.OutcomeCompleted)
	}
	f.analyze(b)
	return f
}

// warm reports that the next b.N children run, as any provider would have: it is not
// measured, and leaves the writer as it is in the middle of a day's work.
func (f *forest) warm(b *testing.B) {
	b.Helper()
	for i := range min(b.N, forestRoots*(forestChildren-1)) {
		c := f.kids[i%forestRoots][i/forestRoots]
		f.verdict(agent.TurnStarted{Session: c.session, Turn: c.turn, NativeID: "native"}, agent.VerdictApplied, "")
	}
}

// settle applies the terminal of the next child, 10,000 at most: the last child of each root
// is left, so that an event is one terminal and the gate that it does not open.
func (f *forest) settle(b *testing.B) {
	i := int(f.next.Add(1)) - 1
	root, kid := i%forestRoots, i/forestRoots
	if kid >= forestChildren-1 {
		b.Error("the forest is used up: at most 9,800 events")
		return
	}
	c := f.kids[root][kid]
	a, err := f.Apply(bg, agent.TurnSettled{Session: c.session, Turn: c.turn, Outcome: agent.OutcomeCompleted})
	if err != nil || a.Verdict != agent.VerdictApplied {
		b.Error(a, err)
	}
}

// produce runs b.N events from a number of goroutines.
func produce(b *testing.B, producers int, event func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	before := cpuTime()
	var wait sync.WaitGroup
	for range producers {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				event()
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-us/event")
}

// BenchmarkGate compares the plain six-statement transaction with a fact of a child's
// terminal, rows and gate and events included.
func BenchmarkGate(b *testing.B) {
	for _, producers := range []int{1, 64} {
		for _, sync := range []string{"normal", "full"} {
			name := fmt.Sprintf("producers=%d/%s", producers, sync)
			b.Run("impl/"+name, func(b *testing.B) {
				f := plant(b, sync)
				f.warm(b)
				produce(b, producers, func() { f.settle(b) })
			})
			if producers > 1 {
				continue // one connection: more producers change nothing for the yardstick
			}
			b.Run("raw/"+name, func(b *testing.B) {
				r := openRaw(b, sync)
				r.roots(forestRoots)
				r.fill(forestRoots, forestChildren, 10)
				g := newRawGate(r)
				i := 0
				produce(b, 1, func() { g.event1(i); i++ })
			})
		}
	}
}

// BenchmarkGateHistory shows that the gate does not feel what has been said before.
func BenchmarkGateHistory(b *testing.B) {
	for _, c := range []struct {
		name     string
		messages int
	}{{"0", 0}, {"100k", 100_000}, {"1M", 1_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			if b.N == 1 && c.messages > 0 {
				return // the run that only finds out b.N: not worth a million rows
			}
			f := plant(b, "normal")
			if c.messages > 0 {
				f.history(c.messages)
				f.analyze(b)
			}
			f.warm(b)
			produce(b, 1, func() { f.settle(b) })
		})
	}
}

// history gives every child of the forest an equal share of n old messages.
func (f *forest) history(n int) {
	f.bulk(func(exec func(string, ...any)) {
		exec(`INSERT INTO messages (id, session, session_id, turn, turn_id, seq, role, kind, status, body, created_at, updated_at)
			SELECT 'msg_' || t.pk || '_' || n.i, t.session, t.session_id, t.pk, t.id, 100000000 + t.pk * 100000 + n.i, 'assistant', 'text',
				'completed', '0123456789012345678901234567890123456789012345678901234567890123456789', 1, 1
			FROM turns t, `+numbers+` n WHERE t.is_root = 0`, n/(forestRoots*forestChildren))
	})
}

// BenchmarkGateActive shows that the gate does not feel how many children live: each
// operation is a terminal and another turn of the same child.
func BenchmarkGateActive(b *testing.B) {
	for _, c := range []struct {
		name   string
		active int
	}{{"10", 10}, {"1k", 1000}, {"10k", 10_000}} {
		b.Run(c.name, func(b *testing.B) {
			w := open(b, func(o *Options) { o.OnCommit = nil })
			t := w.begin()
			t.provider("p")
			kids := t.crowd(c.active)
			t.providerEnds("p", agent.OutcomeCompleted)
			w.analyze(b)
			b.ResetTimer()
			for i := range b.N {
				k := &kids[i%len(kids)]
				t.ends(*k, agent.OutcomeCompleted)
				k.turn = agent.TurnID(fmt.Sprintf("again-%d", i))
				t.verdict(agent.TurnStarted{Session: k.session, Turn: k.turn}, agent.VerdictApplied, "")
			}
			b.StopTimer()
		})
	}
}
