package hub

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestFollowsFromAnyCursor(t *testing.T) {
	f := newFixture(Options{})
	f.put(session("a"), session("b"))
	s := f.subscribe(t, 1)
	defer s.Close()
	f.put(session("c"))
	if got := describe(drain(t, s)); got != "2 3" {
		t.Errorf("got %q, want 2 from the log and 3 after it", got)
	}
	f.put(session("d"), session("e"))
	if got := describe(drain(t, s)); got != "4 5" {
		t.Errorf("got %q, want the two new ones from the ring", got)
	}
	if n := f.Stats().PagesRead; n != 1 {
		t.Errorf("the log was read %d times; the ring had the rest", n)
	}
}

func TestEveryEventOnceInOrderOver100Reconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, reconnects = 3000, 100
		f := newFixture(Options{RingEvents: 64, BatchEvents: 16})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // a storage that commits in groups, with pauses
			defer close(done)
			r := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < events; {
				k := min(1+r.IntN(5), events-n)
				f.put(make([]agent.Event, k)...)
				n += k
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		}()
		r := rand.New(rand.NewPCG(3, 4))
		var cursor int64
		for range reconnects {
			s := f.subscribe(t, cursor)
			for range r.IntN(20) {
				wait, stop := context.WithTimeout(ctx, 100*time.Millisecond)
				b, err := s.Next(wait)
				stop()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				cursor = takeAll(t, b, cursor)
			}
			s.Close()
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		<-done
		s := f.subscribe(t, cursor)
		for _, e := range drain(t, s) {
			if e.Seq != cursor+1 {
				t.Fatalf("after %d came %d", cursor, e.Seq)
			}
			cursor = e.Seq
		}
		s.Close()
		cancel()
		if cursor != events {
			t.Errorf("came to %d of %d", cursor, events)
		}
	})
}

func takeAll(t *testing.T, b Batch, cursor int64) int64 {
	t.Helper()
	for _, raw := range b.Frames {
		e := decode(t, raw)
		if e.Seq != cursor+1 {
			t.Fatalf("after %d came %d", cursor, e.Seq)
		}
		cursor = e.Seq
	}
	return cursor
}

func TestFilterTakesARootWithEverythingBelow(t *testing.T) {
	f := newFixture(Options{})
	root, child := f.subscribe(t, 0, "ses_root"), f.subscribe(t, 0, "kid")
	defer root.Close()
	defer child.Close()
	f.put(agent.Event{SessionID: "ses_root", RootSessionID: "ses_root"}, session("kid"),
		agent.Event{SessionID: "other", RootSessionID: "other"})
	f.Delta(agent.Delta{WorkspaceID: ws, RootSessionID: "ses_root", SessionID: "kid", MessageID: "m", Text: "x"})
	f.Delta(agent.Delta{WorkspaceID: ws, RootSessionID: "other", SessionID: "other", MessageID: "n", Text: "x"})
	if got := describe(drain(t, root)); got != "1 2 m@0=x" {
		t.Errorf("root: %q", got)
	}
	if got := describe(drain(t, child)); got != "2 m@0=x" {
		t.Errorf("child: %q", got)
	}
	b, err := child.Poll(t.Context())
	if err != nil || b.Seq != 3 {
		t.Errorf("a filtered reader has come to %d (%v), want 3: what it does not want is no reason to stay behind", b.Seq, err)
	}
}

func TestNobodyFollowsNothingIsEncoded(t *testing.T) {
	f := newFixture(Options{})
	f.put(make([]agent.Event, 10)...)
	if st := f.Stats(); st.EventsEncoded != 0 || st.RingBytes != 0 {
		t.Errorf("encoded %d, %d bytes kept, for nobody", st.EventsEncoded, st.RingBytes)
	}
}

func TestOneEncodingForEveryBroadcast(t *testing.T) {
	f := newFixture(Options{})
	subs := make([]*Subscription, 100)
	for i := range subs {
		subs[i] = f.subscribe(t, 0)
		defer subs[i].Close()
	}
	const n = 20
	for i := range n {
		f.put(agent.Event{})
		f.Delta(agent.Delta{WorkspaceID: ws, MessageID: "m", Offset: int64(i), Text: "x"})
		var first []byte
		for k, s := range subs {
			b, err := s.Poll(t.Context())
			if err != nil || len(b.Frames) != 2 {
				t.Fatalf("%d frames, %v", len(b.Frames), err)
			}
			if k == 0 {
				first = b.Frames[0]
			} else if &first[0] != &b.Frames[0][0] {
				t.Fatal("two readers hold different bytes of one event")
			}
		}
	}
	if st := f.Stats(); st.EventsEncoded != n || st.DeltasEncoded != n {
		t.Errorf("%d events and %d deltas encoded for %d of each", st.EventsEncoded, st.DeltasEncoded, n)
	}
}

// A stalled client is a number. What the hub keeps is the ring, whoever reads.
func TestStalledReaderCostsNothing(t *testing.T) {
	o := Options{RingBytes: 256 << 10, BatchBytes: 64 << 10}
	f := newFixture(o)
	stalled := f.subscribe(t, 0)
	defer stalled.Close()
	body := append(append([]byte(`"`), []byte(strings.Repeat("x", 1000))...), '"')
	const events = 20_000
	for range events / 100 {
		batch := make([]agent.Event, 100)
		for i := range batch {
			batch[i].Data = body // one array, shared: only the hub's own copies count
		}
		f.put(batch...)
		for range 10 {
			f.Delta(agent.Delta{WorkspaceID: ws, MessageID: "m", Offset: f.textEnd("m"), Text: strings.Repeat("y", 1000)})
		}
	}
	st := f.Stats()
	if st.RingBytes > o.RingBytes || st.TextBytes > 256<<10 {
		t.Errorf("ring %d bytes, texts %d", st.RingBytes, st.TextBytes)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, err := stalled.Poll(t.Context()) // it wakes, takes one batch, and stalls again in the middle of writing it
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("a stalled reader holds %d bytes (%d frames)", held, len(b.Frames))
	if held > 256<<10 {
		t.Errorf("a stalled reader holds %d bytes", held)
	}
	cursor := takeAll(t, b, 0)
	for cursor < events {
		b, err := stalled.Poll(t.Context())
		if err != nil || len(b.Frames) == 0 {
			t.Fatalf("stopped at %d: %v", cursor, err)
		}
		for _, raw := range b.Frames {
			if e := decode(t, raw); e.Type == "event" {
				if e.Seq != cursor+1 {
					t.Fatalf("after %d came %d", cursor, e.Seq)
				}
				cursor = e.Seq
			}
		}
	}
}

func (f fixture) textEnd(id agent.MessageID) int64 {
	s := f.space(ws)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.texts.byID[id]; t != nil {
		return t.end()
	}
	return 0
}

func TestCursorThatMeansNothing(t *testing.T) {
	after := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name string
		req  Request
		want Ready
		tell string
	}{
		{"newest", Request{}, Ready{"e1", 10, ModeSnapshot}, ""},
		{"replay", Request{After: after(7)}, Ready{"e1", 10, ModeReplay}, "8 9 10"},
		{"up to date", Request{After: after(10), Epoch: "e1"}, Ready{"e1", 10, ModeReplay}, ""},
		{"just kept", Request{After: after(4)}, Ready{"e1", 10, ModeReplay}, "5 6 7 8 9 10"},
		{"trimmed", Request{After: after(3)}, Ready{"e1", 10, ModeSnapshot}, "reset/retention"},
		{"other epoch", Request{After: after(7), Epoch: "e0"}, Ready{"e1", 10, ModeSnapshot}, "reset/epoch"},
		{"ahead", Request{After: after(11)}, Ready{"e1", 10, ModeSnapshot}, "reset/ahead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(Options{})
			f.put(make([]agent.Event, 10)...)
			f.trim(5)
			c.req.Workspace = ws
			s, ready, err := f.Subscribe(t.Context(), c.req)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if d := cmp.Diff(c.want, ready); d != "" {
				t.Error(d)
			}
			frames := drain(t, s)
			if got := describe(frames); got != c.tell {
				t.Errorf("told %q, want %q", got, c.tell)
			}
			f.put(agent.Event{})
			if got := describe(drain(t, s)); got != "11" {
				t.Errorf("then %q, want 11", got)
			}
		})
	}
}

func TestLaggingReaderBelowRetentionStartsOver(t *testing.T) {
	f := newFixture(Options{RingEvents: 4})
	s := f.subscribe(t, 0)
	defer s.Close()
	f.put(make([]agent.Event, 20)...)
	f.trim(10)
	frames := drain(t, s)
	if got := describe(frames); got != "reset/retention" || frames[0].Seq != 20 || frames[0].Epoch != "e1" {
		t.Fatalf("told %q at %d", got, frames[0].Seq)
	}
	f.put(agent.Event{})
	if got := describe(drain(t, s)); got != "21" {
		t.Errorf("then %q", got)
	}
	f.memLog.mu.Lock()
	f.epoch = "e2"
	f.memLog.mu.Unlock()
	f.put(make([]agent.Event, 9)...)
	if frames := drain(t, s); describe(frames) != "reset/epoch" || frames[0].Epoch != "e2" {
		t.Errorf("told %+v", frames)
	}
}

func TestUnknownAndDeletedWorkspace(t *testing.T) {
	f := newFixture(Options{})
	_, _, err := f.Subscribe(t.Context(), Request{Workspace: "ws_none"})
	if !errors.Is(err, &agent.Error{Code: agent.CodeNotFound}) {
		t.Errorf("unknown: %v", err)
	}
	s := f.subscribe(t, 0)
	defer s.Close()
	b, err := s.Poll(t.Context())
	if err != nil || b.Bell == nil {
		t.Fatalf("%+v %v", b, err)
	}
	f.Close(ws)
	<-b.Bell
	if _, err := s.Poll(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("deleted: %v", err)
	}
}

// What was committed but not yet published is read from the log by who subscribes then,
// and told to nobody twice when it is published.
func TestCommittedBeforePublished(t *testing.T) {
	f := newFixture(Options{})
	early := f.subscribe(t, 0)
	defer early.Close()
	e := f.commit(agent.Event{})
	late := f.subscribe(t, 0)
	defer late.Close()
	if got := describe(drain(t, late)); got != "1" {
		t.Errorf("late: %q", got)
	}
	f.Publish([]agent.Event{e})
	f.put(agent.Event{})
	if got := describe(drain(t, late)); got != "2" {
		t.Errorf("late: %q", got)
	}
	if got := describe(drain(t, early)); got != "1 2" {
		t.Errorf("early: %q", got)
	}
}

func TestFrameIsTheEvent(t *testing.T) {
	e := agent.Event{
		Seq: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Kind: agent.TurnUpdated,
		SessionID: "s\"é", TurnID: "t", Data: []byte(`{"a":1}`),
	}
	const want = `{"type":"event","seq":7,"time":"2026-01-02T03:04:05.0000006Z","kind":"turn.updated","agentSessionId":"s\"é","turnId":"t","data":{"a":1}}`
	if got := string(AppendEvent(nil, &e)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
