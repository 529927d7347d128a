package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// together queues writes while the writer is busy, so that they are one batch, and returns
// their errors.
func (w *world) together(do ...func(*tx) error) []error {
	w.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := w.write(background(w), func(*tx) error { close(entered); <-leave; return nil })
		if err != nil {
			w.Error(err)
		}
	})
	<-entered
	errs := make([]error, len(do))
	for i, f := range do {
		x := &write{do: f, done: make(chan struct{})}
		w.queue <- x
		wait.Go(func() { <-x.done; errs[i] = x.err })
	}
	close(leave)
	wait.Wait()
	return errs
}

// One bad write of a batch is rolled back alone: the others are committed, numbers have no
// gap, and memory agrees with the rows.
func TestBadWriteOfABatchFailsAlone(t *testing.T) {
	for _, bad := range []struct {
		name string
		do   func(*tx, agent.Fact) error
	}{
		{"an error after it wrote", func(x *tx, f agent.Fact) error {
			if _, err := x.apply(f); err != nil {
				return err
			}
			return errors.New("on purpose")
		}},
		{"a statement that is refused", func(x *tx, f agent.Fact) error {
			if _, err := x.apply(f); err != nil {
				return err
			}
			_, err := x.s.w.conn.ExecContext(bg, "UPDATE turns SET phase = 'nowhere'")
			return err
		}},
		{"a panic", func(x *tx, f agent.Fact) error {
			if _, err := x.apply(f); err != nil {
				return err
			}
			panic("on purpose")
		}},
	} {
		t.Run(bad.name, func(t *testing.T) {
			w := open(t)
			tr := w.begin()
			tr.provider("p")
			kids := []child{tr.child("a"), tr.child("b"), tr.child("c")}
			seq, _, _, err := w.Head(background(t), w.ws)
			w.must(err)
			w.events()
			ends := func(c child) agent.Fact {
				return agent.TurnSettled{Session: c.session, Turn: c.turn, Outcome: agent.OutcomeCompleted}
			}
			good := func(c child) func(*tx) error {
				return func(x *tx) error { _, err := x.apply(ends(c)); return err }
			}
			errs := w.together(good(kids[0]), func(x *tx) error { return bad.do(x, ends(kids[1])) }, good(kids[2]))
			if errs[0] != nil || errs[1] == nil || errs[2] != nil {
				t.Fatalf("got %v", errs)
			}
			tr.childIs(kids[0], agent.PhaseSettled, agent.OutcomeCompleted)
			tr.childIs(kids[1], agent.PhaseSubmitted, "")
			tr.childIs(kids[2], agent.PhaseSettled, agent.OutcomeCompleted)
			if n := tr.session().ActiveChildCount; n != 1 {
				t.Errorf("the root counts %d live children", n)
			}
			events := w.events()
			for i, e := range events {
				if e.Seq != seq+int64(i)+1 {
					t.Errorf("event %d has number %d after %d", i, e.Seq, seq)
				}
			}
			if len(events) != 4 {
				t.Errorf("events %v", kinds(events))
			}
			tr.ends(kids[1], agent.OutcomeFailed)
			w.verify()
		})
	}
}

// OnCommit is called in commit order, before the callers are answered.
func TestOnCommitComesBeforeTheAnswer(t *testing.T) {
	w := open(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				out, err := w.CreateSession(background(t), agent.NewSession{Workspace: w.ws, Provider: "demo"})
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.ContainsFunc(w.heardSoFar(), func(e agent.Event) bool { return e.SessionID == out.Session.ID }) {
					t.Errorf("%s was answered before its event", out.Session.ID)
				}
			}
		})
	}
	wait.Wait()
	for i, e := range w.events() {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
	}
}

// A storage that is closed, full or locked says so in words a caller can act on.
func TestStorageErrorsHaveCodes(t *testing.T) {
	w := open(t)
	tr := w.begin()
	kid := tr.child("kid")
	t.Run("full", func(t *testing.T) {
		pages := query[int64](w, "PRAGMA page_count")
		_, err := w.db.Checkpoint.ExecContext(bg, "SELECT 1")
		w.must(err)
		_, err = w.w.conn.ExecContext(bg, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		w.must(err)
		big := agent.Message{ID: "big", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted, Content: strings.Repeat("x", 1<<20)}
		_, err = w.Apply(bg, agent.MessagePut{Message: big})
		w.refuses(err, agent.CodeUnavailable)
		_, err = w.w.conn.ExecContext(bg, "PRAGMA max_page_count = 1073741823")
		w.must(err)
		tr.verdict(agent.MessagePut{Message: big}, agent.VerdictApplied, "")
	})
	t.Run("locked", func(t *testing.T) {
		_, err := w.w.conn.ExecContext(bg, "PRAGMA busy_timeout = 1")
		w.must(err)
		_, err = w.db.Checkpoint.ExecContext(bg, "BEGIN IMMEDIATE")
		w.must(err)
		_, err = w.Apply(bg, agent.TurnStarted{Session: kid.session, Turn: kid.turn})
		w.refuses(err, agent.CodeUnavailable)
		_, err = w.db.Checkpoint.ExecContext(bg, "ROLLBACK")
		w.must(err)
		tr.verdict(agent.TurnStarted{Session: kid.session, Turn: kid.turn}, agent.VerdictApplied, "")
	})
	t.Run("closed", func(t *testing.T) {
		w.must(w.Close())
		w.must(w.Close())
		_, err := w.Apply(bg, agent.TurnStarted{Session: kid.session, Turn: kid.turn})
		w.refuses(err, agent.CodeDaemonStopping)
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if _, err := w.Apply(ctx, agent.TurnStarted{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Of an idle conversation the writer remembers nothing.
func TestIdleConversationsAreForgotten(t *testing.T) {
	w := open(t)
	for range 30 {
		tr := w.begin()
		tr.provider("p")
		a := tr.child("a")
		b := tr.below(a, "b")
		tr.ends(b, agent.OutcomeCompleted)
		tr.ends(a, agent.OutcomeCompleted)
		tr.providerEnds("p", agent.OutcomeCompleted)
		tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
	}
	_, err := w.write(background(t), func(*tx) error {
		if n := len(w.w.idents) + len(w.w.turns) + len(w.w.turnIDs) + len(w.w.streams); n != 0 {
			t.Errorf("%d rows are remembered: %v, %v, %v", n, w.w.idents, w.w.turnIDs, w.w.streams)
		}
		return nil
	})
	w.must(err)
	if n := len(w.activity.turns) + len(w.activity.trees); n != 0 {
		t.Errorf("%d signs of life are remembered", n)
	}
}
