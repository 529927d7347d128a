package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// BenchmarkCancelTree compares a whole cancel of a root with many live children with the
// plainest change of as many rows that could be called a cancel: one UPDATE of the turns and
// one INSERT of an outbox row for each, as large as ours, in one transaction. Ours has two
// transactions, the one that asks and the one that ends, each with as many events; targets,
// evidence, operation and gate are on top.
func BenchmarkCancelTree(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"1k", 1000}, {"10k", 10_000}} {
		b.Run("raw/"+c.name, func(b *testing.B) {
			r := openRaw(b, "normal")
			r.roots(1)
			r.fill(1, c.n, c.n)
			b.ResetTimer()
			var cpu time.Duration
			for range b.N {
				before := cpuTime()
				r.exec("BEGIN IMMEDIATE")
				r.exec("UPDATE turns SET phase = 'settled', outcome = 'canceled', updated_at = 1 WHERE root_turn_id = 'trn_0000' AND phase <> 'settled' AND is_root = 0")
				r.exec("INSERT INTO outbox (session_id, kind, data) SELECT session_id, 'turn.updated', ? FROM turns WHERE root_turn_id = 'trn_0000' AND is_root = 0", payloadTurn)
				r.exec("COMMIT")
				cpu += cpuTime() - before
				b.StopTimer()
				r.exec("UPDATE turns SET phase = 'running', outcome = NULL")
				r.exec("PRAGMA wal_checkpoint(RESTART)") // the log of the fixture is not the cancel's
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
		b.Run("impl/"+c.name, func(b *testing.B) {
			w := open(b, func(o *Options) { o.OnCommit = nil })
			var cpu time.Duration
			for range b.N {
				b.StopTimer()
				t := w.begin()
				t.provider("p")
				t.crowd(c.n)
				w.remembers(t)
				w.copies()
				b.StartTimer()
				before := cpuTime()
				op, _, err := w.PrepareCancel(bg, t.root, t.turn, "bench")
				w.must(err)
				done, err := w.CompleteCancel(bg, op.ID, nil)
				w.must(err)
				cpu += cpuTime() - before
				if len(done.Targets) != c.n+1 {
					b.Fatalf("%d targets", len(done.Targets))
				}
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// payloadTurn is as long as the event of a child's turn in the fixture: TestPayloadOfATurn.
var payloadTurn = strings.Repeat("x", 339)

// The yardstick writes as much as ours does for each child.
func TestPayloadOfATurn(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	tr.crowd(100)
	w.events()
	op, _, err := w.PrepareCancel(bg, tr.root, tr.turn, "test")
	w.must(err)
	_, err = w.CompleteCancel(bg, op.ID, nil)
	w.must(err)
	events, size := 0, 0
	for _, e := range w.events() {
		if e.Kind == agent.TurnUpdated && e.TurnID != tr.turn {
			events, size = events+1, size+len(e.Data)
		}
	}
	if events != 200 || size/events/8 != len(payloadTurn)/8 {
		t.Errorf("%d events of %d bytes each; the yardstick has %d", events, size/max(events, 1), len(payloadTurn))
	}
}

// BenchmarkDeltas compares text that streams in chunks of 32 deltas, from the message's
// beginning to its end, with a row and a transaction for each delta.
func BenchmarkDeltas(b *testing.B) {
	const delta = "twenty-five bytes of text"
	for _, n := range []int{256, 4096} {
		b.Run(fmt.Sprintf("rowtx/%d", n), func(b *testing.B) {
			r := openRaw(b, "normal")
			begin, commit := r.prepare("BEGIN IMMEDIATE"), r.prepare("COMMIT")
			insert := r.prepare("INSERT INTO deltas VALUES (?, ?, ?)")
			measureDeltas(b, n, func(i int) {
				id := fmt.Sprintf("msg_%08d", i)
				for d := range n {
					_, _ = begin.Exec()
					if _, err := insert.Exec(id, d, delta); err != nil {
						b.Fatal(err)
					}
					_, _ = commit.Exec()
				}
			})
		})
		b.Run(fmt.Sprintf("impl/%d", n), func(b *testing.B) {
			w := open(b, func(o *Options) { o.OnCommit = nil })
			t := w.begin()
			t.provider("p")
			measureDeltas(b, n, func(i int) { t.streams(i, n, delta) })
		})
	}
}

// streams says a message of n deltas, 32 at a time as the sink coalesces them.
func (t *tree) streams(i, n int, delta string) {
	const chunk = 32
	id := agent.MessageID(fmt.Sprintf("msg-%d", i))
	m := agent.Message{ID: id, SessionID: t.root, TurnID: t.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}
	t.verdict(agent.MessagePut{Message: m}, agent.VerdictApplied, "")
	text := ""
	for range chunk {
		text += delta
	}
	for k := range n / chunk {
		t.verdict(agent.TextAppended{Session: t.root, Turn: t.turn, Message: id, Offset: int64(k * len(text)), Text: text}, agent.VerdictApplied, "")
	}
	m.Status = agent.MessageCompleted
	t.verdict(agent.MessagePut{Message: m}, agent.VerdictApplied, "")
}

func measureDeltas(b *testing.B, n int, message func(int)) {
	for i := range 10 { // statements are compiled and pages are there, as in a day's work
		message(1_000_000 + i)
	}
	b.ResetTimer()
	cpu, bytes := cpuTime(), written()
	for i := range b.N {
		message(i)
	}
	b.StopTimer()
	deltas := float64(b.N * n)
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/1000/deltas, "cpu-us/delta")
	b.ReportMetric(float64(written()-bytes)/deltas, "written-B/delta")
}
