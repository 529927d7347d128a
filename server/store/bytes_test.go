//go:build !race

// The figures are the same under the race detector, which would take minutes for them.

package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// meter counts bytes handed to write calls. When the log is copied depends on how fast the
// machine is; here it is copied after each checkpointEvery bytes of it, by the test, so that
// the count is the same on every machine.
type meter struct{ *world }

func newMeter(w *world) *meter {
	w.Helper()
	_, err := w.write(background(w), func(*tx) error { // where the writer's own fields may be set
		w.check.every, w.check.bound = 1<<40, 1<<40
		w.check.nextTry.Store(w.check.bound)
		return nil
	})
	w.must(err)
	return &meter{w}
}

// bytes is how many each of the steps wrote from one copy of the log to the next, that one
// included. They are as many as that takes, n at most.
func (m *meter) bytes(n int, step func(i int)) int64 {
	m.Helper()
	m.passive(m.db.Checkpoint)
	before := written()
	for i := range n {
		step(i)
		if written()-before >= checkpointEvery {
			m.passive(m.db.Checkpoint)
			return (written() - before) / int64(i+1)
		}
	}
	m.Fatalf("%d steps write only %d bytes", n, written()-before)
	return 0
}

// Bytes handed to write calls, log and copies included. The fixture is the one that the
// benchmarks use: 200 roots with 50 children each.
//
// How many rows a page has room for when they grow by their outcome depends on the length
// of a row to the byte, and moves the figure by 15 percent up and down: a column more or an
// identifier that is longer moves it either way. So some lengths are measured, and the least
// is held to the budget, which is what the work itself costs.
func TestBytesWritten(t *testing.T) {
	alone, shared := int64(math.MaxInt64), int64(math.MaxInt64)
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a, s := bytesOfTerminals(t, strings.Repeat("x", n))
			t.Logf("%d bytes for a terminal alone, %d in a transaction of 64", a, s)
			alone, shared = min(alone, a), min(shared, s)
		})
	}
	if alone > 22<<10 || shared > 14<<10 {
		t.Errorf("%d bytes for a terminal alone (22 KB are allowed), %d in a transaction of 64 (14 KB)", alone, shared)
	}
}

// bytesOfTerminals measures one length of identifiers.
func bytesOfTerminals(t *testing.T, prefix string) (alone, shared int64) {
	w := open(t, func(o *Options) { o.OnCommit, o.Mint = nil, agent.NewMinter(counter(prefix)) })
	var kids []child
	for range 200 {
		tr := w.begin()
		tr.provider("p")
		kids = append(kids, tr.crowd(50)[:10]...)
		tr.providerEnds("p", agent.OutcomeCompleted)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(kids), func(i, j int) { kids[i], kids[j] = kids[j], kids[i] })
	settle := func(c child) agent.TurnSettled {
		return agent.TurnSettled{Session: c.session, Turn: c.turn, Outcome: agent.OutcomeCompleted}
	}
	m := newMeter(w)
	alone = m.bytes(700, func(i int) { m.apply(settle(kids[i])) })
	shared = m.bytes(20, func(i int) {
		_, err := w.write(bg, func(x *tx) error { // 64 facts in one transaction
			for _, c := range kids[700+64*i : 700+64*i+64] {
				if _, err := x.apply(settle(c)); err != nil {
					return err
				}
			}
			return nil
		})
		w.must(err)
	}) / 64
	return alone, shared
}

// Streaming text costs its chunks, not its messages: in long ones and in short ones.
func TestBytesOfADelta(t *testing.T) {
	tr := open(t, func(o *Options) { o.OnCommit = nil }).begin()
	tr.provider("p")
	m := newMeter(tr.world)
	for _, deltas := range []int{256, 4096} {
		per := m.bytes(100*4096/deltas, func(i int) { tr.streams(deltas*1000+i, deltas, "twenty-five bytes of text") }) / int64(deltas)
		t.Logf("%d bytes for a delta of 25 in a message of %d", per, deltas)
		// A short message costs more: its beginning and its end are 15 pages of the log.
		if most := int64(300 + 200*256/deltas); per > most {
			t.Errorf("%d bytes written for a delta of 25 in a message of %d (%d are allowed)", per, deltas, most)
		}
	}
}
