package api

// What one socket and one read may cost. None of these figures depends on how busy the
// machine is (perf.md, section 7).

import (
	"encoding/json"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestTwoGoroutinesForEachSocket(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
		const n = 50
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range n {
			_, r := rawClient(t, l)
			go func() { _, _ = io.Copy(io.Discard, r) }() // the one goroutine of the client
		}
		f.commit(f.hub, agent.Event{})
		synctest.Wait() // all wait: nobody is on his way in or out
		if got := runtime.NumGoroutine() - before - n; got > 2*n {
			buf := make([]byte, 1<<20)
			t.Errorf("%d goroutines for %d sockets\n%s", got, n, buf[:runtime.Stack(buf, true)])
		}
	})
}

// What is there at once goes out in few writes, whether it is read from the ring or from
// the log.
func TestWritesPerDelivery(t *testing.T) {
	const events = 20_000
	body := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	batch := func() []agent.Event {
		b := make([]agent.Event, 50)
		for i := range b {
			b[i] = agent.Event{Kind: agent.MessageUpdated, Data: body}
		}
		return b
	}
	for _, from := range []string{"ring", "log"} {
		t.Run(from, func(t *testing.T) {
			f := newFixture(t)
			if from == "log" {
				for range events / 50 {
					f.commit(f.hub, batch()...)
				}
			}
			c := dial(t, f.listen(t), helloFrom0)
			start := f.api.metrics.writes.Load()
			c.next()
			if from == "ring" {
				go func() {
					for range events / 50 {
						f.commit(f.hub, batch()...)
					}
				}()
			}
			for n := int64(1); n <= events; n++ {
				if e := c.next(); e.Seq != n {
					t.Fatalf("%d came after %d", e.Seq, n-1)
				}
			}
			per := float64(f.api.metrics.writes.Load()-start) / events
			t.Logf("%.3f writes for each delivery", per)
			if per > 0.2 {
				t.Errorf("%.3f writes for each delivery", per)
			}
		})
	}
}

// heap is what is reachable. Pools let go with the second collection, what has a finalizer after
// that has run, and on a busy machine that is later: so it collects until nothing more goes.
func heap() int64 {
	var m runtime.MemStats
	least := uint64(math.MaxUint64)
	for falling := 2; falling > 0; falling-- {
		runtime.GC()
		runtime.Gosched()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc+1024 < least {
			falling = 3
		}
		least = min(least, m.HeapAlloc)
	}
	return int64(least)
}

// Twenty clients that take nothing hold what they hold of one batch, however much comes,
// and all of it is let go with them.
func TestStalledClientsHoldABoundedHeap(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, l *pipes, _ func() *client) {
		const clients, events, each = 20, 20_000, 1000
		body := json.RawMessage(`"` + strings.Repeat("x", each) + `"`) // one array for all events
		f.events = make([]agent.Event, 0, 2*events)                    // the log's own growth is not measured
		f.commit(f.hub, agent.Event{Kind: agent.MessageUpdated, Data: body})
		first, _ := rawClient(t, l) // what comes once is there
		synctest.Wait()
		before := heap()
		conns := make([]interface{ Close() error }, clients)
		for i := range conns {
			conns[i], _ = rawClient(t, l)
		}
		for range events / 100 {
			batch := make([]agent.Event, 100)
			for i := range batch {
				batch[i] = agent.Event{Kind: agent.MessageUpdated, Data: body}
			}
			f.commit(f.hub, batch...)
			synctest.Wait() // everybody has taken what he takes
		}
		st := f.hub.Stats()
		held := (heap() - before - int64(st.RingBytes)) / clients
		t.Logf("%d bytes for each stalled client besides a ring of %d", held, st.RingBytes)
		if held > 512<<10 { // a batch of 256 KiB, the cork, the socket
			t.Errorf("a stalled client holds %d bytes of %d that came", held, events*each)
		}
		for _, c := range append(conns, first) {
			_ = c.Close()
		}
		synctest.Wait()
		if st := f.hub.Stats(); st.Subscriptions != 0 || st.RingBytes != 0 {
			t.Errorf("left when they have gone: %+v", st)
		}
		if left := heap() - before; left > 256<<10 {
			t.Errorf("%d bytes are left when they have gone", left)
		}
	})
}

// However many children, a detail asks storage once, and an unchanged one for a number
// alone; that storage reads a row for each is its own test.
func TestReadsOfADetail(t *testing.T) {
	for _, children := range []int{0, 1, 1000} {
		f := newFixture(t)
		f.detail = agent.SessionDetail{ChildSessions: make([]agent.Session, children)}
		w := f.get(ses)
		if f.reads != 1 || w.Code != 200 {
			t.Errorf("%d children: %d reads, %d", children, f.reads, w.Code)
		}
		var answer struct{ ChildSessions []agent.Session }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.ChildSessions) != children {
			t.Errorf("%d children answered, %v", len(answer.ChildSessions), err)
		}
		f.reads = 0
		if w := f.do(request("GET", ses, "", header("If-None-Match", w.Header().Get("ETag")))); w.Code != 304 || f.reads != 1 || len(f.asked) != 1 {
			t.Errorf("unchanged: %d, %d reads, asked %v", w.Code, f.reads, f.asked)
		}
	}
}
