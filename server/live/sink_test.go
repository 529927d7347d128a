package live_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
)

func TestTextIsShownAtOnceAndCommittedInChunks(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		r := w.adapter.runtime(0)
		r.message("m", in.Turn)
		for range 32 {
			_ = r.sink.Text(s.ID, in.Turn, "m", "ab")
		}
		if len(w.deltas) != 32 || w.deltas[31].Offset != 62 || facts[agent.TextAppended](w) != 1 {
			t.Errorf("%d deltas, %d chunks", len(w.deltas), facts[agent.TextAppended](w))
		}
		_ = r.sink.Text(s.ID, in.Turn, "m", "é")
		if facts[agent.TextAppended](w) != 1 {
			t.Error("a single piece was committed at once")
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if facts[agent.TextAppended](w) != 2 {
			t.Error("the last piece was not committed after 50 ms")
		}
		_ = r.sink.Text(s.ID, in.Turn, "m", "c")
		r.finish(in.Turn) // whatever comes next commits the text first
		want := strings.Repeat("ab", 32) + "éc"
		if got := w.View().MessagesOf(s.ID)[1].Content; got != want {
			t.Errorf("content is %q", got)
		}
		if d := w.deltas[len(w.deltas)-1]; d.Offset != int64(len(want)-1) {
			t.Errorf("the last delta is at %d", d.Offset)
		}
	})
}

func TestWholeTextReplacesThePieces(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		r := w.adapter.runtime(0)
		r.message("m", in.Turn)
		_ = r.sink.Text(s.ID, in.Turn, "m", "Hel")
		_, _ = r.sink.Apply(agent.MessagePut{Message: agent.Message{ID: "m", SessionID: s.ID, TurnID: in.Turn, Content: "Hello", Status: agent.MessageCompleted}})
		if facts[agent.TextAppended](w) != 0 || w.View().MessagesOf(s.ID)[1].Content != "Hello" {
			t.Errorf("%d chunks, %q", facts[agent.TextAppended](w), w.View().MessagesOf(s.ID)[1].Content)
		}
		if err := r.sink.Text(s.ID, in.Turn, "m", "late"); err != nil {
			t.Error(err)
		}
		if w.live.Diagnostics().Counts["late"] != 1 {
			t.Errorf("late text is not counted: %v", w.live.Diagnostics().Counts)
		}
	})
}

func TestCancelBoundary(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		r := w.adapter.runtime(0)
		_, _ = r.sink.Apply(agent.ChildStarted{Session: "child", Turn: "ct", Parent: s.ID, ParentTurn: in.Turn, Title: "Child"})
		r.message("before", in.Turn)
		c := w.PrepareCancel(in.Turn)
		var heard []agent.Evidence
		if err := w.live.Cancel(t.Context(), s.ID, c, func(e agent.Evidence) { heard = append(heard, e) }); err != nil {
			t.Fatal(err)
		}
		if a := r.message("after", in.Turn); a.Verdict != agent.VerdictLate {
			t.Errorf("root output after the stop: %+v", a)
		}
		_ = r.sink.Text(s.ID, in.Turn, "before", "tail")
		if a, _ := r.sink.Apply(agent.ChildStarted{Session: "c2", Turn: "t2", Parent: s.ID, ParentTurn: in.Turn}); a.Verdict != agent.VerdictRefused {
			t.Errorf("a child born after the stop: %+v", a)
		}
		// Words of a child that is known are history; a person's own message still arrives.
		if a, _ := r.sink.Apply(agent.MessagePut{Message: agent.Message{
			ID: "kid", SessionID: "child", TurnID: "ct", Role: agent.RoleAssistant, Kind: agent.MessageText, Content: "x", Status: agent.MessageCompleted,
		}}); a.Verdict == agent.VerdictRefused {
			t.Errorf("a child's words: %+v", a)
		}
		if a, _ := r.sink.Apply(agent.MessagePut{Message: agent.Message{ID: in.Message, SessionID: s.ID, TurnID: in.Turn, Status: agent.MessageCompleted}}); a.Verdict != agent.VerdictApplied {
			t.Errorf("the person's message: %+v", a)
		}
		w.CompleteCancel(c, heard)
		if a, _ := r.sink.Apply(agent.ProviderTurnStarted{Session: s.ID, Key: "unasked"}); a.Code != agent.CodeUnaskedAfterCancel {
			t.Errorf("work that nobody asked for: %+v", a)
		}
		if v := w.View(); v.Holder("tail").ID != "" {
			t.Errorf("the tail was kept\n%s", v)
		}

		in = w.started(s) // a person's next turn clears the boundary
		if a := r.message("new", in.Turn); a.Verdict != agent.VerdictApplied {
			t.Errorf("the next turn's output: %+v", a)
		}
	})
}

func TestBusyStorageIsTriedAgain(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		fails := 5
		w.Fail = func(agent.Fact) error {
			if fails--; fails >= 0 {
				return agent.Errorf(agent.CodeUnavailable, "busy")
			}
			return nil
		}
		began := time.Now()
		if a := w.adapter.runtime(0).message("m", in.Turn); a.Verdict != agent.VerdictApplied {
			t.Errorf("%+v after %v", a, time.Since(began))
		}
	})
}

func TestBrokenStorageClosesTheRuntimeAndTheLossIsStoredLater(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		var healthy atomic.Bool
		w.Fail = func(agent.Fact) error {
			if !healthy.Load() {
				return agent.Errorf(agent.CodeUnavailable, "busy")
			}
			return nil
		}
		r := w.adapter.runtime(0)
		if _, err := r.sink.Apply(agent.SessionDescribed{Session: s.ID, Title: "x"}); code(err) != agent.CodeUnavailable {
			t.Errorf("Apply = %v", err)
		}
		<-r.done // it was closed
		time.Sleep(10 * time.Second)
		healthy.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeInterrupted || turn.Error.Code != agent.CodeUnavailable {
			t.Errorf("turn is %+v", turn)
		}
	})
}

func TestOtherStorageErrorsAreNotTriedAgain(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		w.started(s)
		calls := 0
		w.Fail = func(f agent.Fact) error {
			if _, ok := f.(agent.SessionLost); ok {
				return nil
			}
			calls++
			return errors.New("disk full")
		}
		_, err := w.adapter.runtime(0).sink.Apply(agent.SessionDescribed{Session: s.ID})
		if err == nil || calls != 1 {
			t.Errorf("Apply = %v after %d calls", err, calls)
		}
	})
}
