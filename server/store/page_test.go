package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// canceled is a tree of n children that was stopped, and all that was told of it.
func canceled(w *world, n int) (*tree, []child, []agent.Event) {
	w.Helper()
	w.events()
	tr := w.begin()
	tr.provider("p")
	kids := tr.crowd(n)
	op, _, err := w.PrepareCancel(background(w), tr.root, tr.turn, "test")
	w.must(err)
	_, err = w.CompleteCancel(background(w), op.ID, nil)
	w.must(err)
	return tr, kids, w.events()
}

// after reads the log from a number on, so many at a time.
func (w *world) after(seq int64, limit int) []agent.Event {
	w.Helper()
	var all []agent.Event
	for {
		log, err := w.Events(background(w), w.ws, seq, limit)
		w.must(err)
		if len(log.Items) > limit {
			w.Fatalf("%d events where %d were asked for", len(log.Items), limit)
		}
		if len(log.Items) == 0 {
			return all
		}
		all = append(all, log.Items...)
		seq = log.Items[len(log.Items)-1].Seq
	}
}

// What a large tree does at once takes few rows, and is read as if each event had its own:
// from every number, in every portion, after a restart.
func TestEventsOfALargeTreeShareRows(t *testing.T) {
	w := open(t)
	w.begin()
	before := query[int64](w, "SELECT count(*) FROM events")
	_, _, heard := canceled(w, 300)
	w.begin()
	heard = append(heard, w.events()...)
	if rows := query[int64](w, "SELECT count(*) FROM events") - before; rows > 60 || len(heard) < 600 {
		t.Errorf("%d events take %d rows", len(heard), rows)
	}
	w.reopen()
	first := heard[0].Seq - 1
	for _, limit := range []int{31, 128, 1000} {
		if diff := cmp.Diff(heard, w.after(first, limit)); diff != "" {
			t.Errorf("%d at a time:\n%s", limit, diff)
		}
	}
	for i := 0; i < len(heard); i += 37 {
		log, err := w.Events(background(t), w.ws, heard[i].Seq, 5)
		w.must(err)
		if diff := cmp.Diff(heard[i+1:min(i+6, len(heard))], log.Items); diff != "" {
			t.Fatalf("after %d:\n%s", heard[i].Seq, diff)
		}
	}
}

// A deletion takes what was told of its sessions out of the shared rows, and nothing else;
// the numbers stay.
func TestDeletionErasesFromSharedRows(t *testing.T) {
	w := open(t)
	tr, kids, heard := canceled(w, 300)
	gone := map[agent.SessionID]bool{}
	for i := 0; i < len(kids); i += 97 {
		gone[kids[i].session] = true
		_, err := w.Delete(background(t), w.ws, kids[i].session)
		w.must(err)
	}
	read := w.after(heard[0].Seq-1, 100)[:len(heard)]
	for i, e := range read {
		want := heard[i]
		if gone[e.SessionID] {
			if e.Kind != agent.SessionDeleted || e.TurnID != "" || e.Seq != want.Seq || e.SessionID != want.SessionID || bytes.Contains(e.Data, []byte("trigger")) {
				t.Fatalf("of a deleted session the log tells %+v", e)
			}
			continue
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Fatalf("of a session that is there:\n%s", diff)
		}
	}
	_, err := w.Delete(background(t), w.ws, tr.root)
	w.must(err)
	for i, e := range w.after(heard[0].Seq-1, 100)[:len(heard)] {
		if e.Kind != agent.SessionDeleted || e.Seq != heard[i].Seq || e.RootSessionID != tr.root {
			t.Fatalf("of a deleted tree the log tells %+v", e)
		}
	}
	if left := query[int64](w, "SELECT count(*) FROM events WHERE span > 1 AND length(data) > 0"); left != 0 {
		t.Errorf("%d shared rows keep what was deleted", left)
	}
}

// Rows are trimmed whole: what is kept is never less than it should be, and begins where a
// reader is told that it begins.
func TestSharedRowsAreTrimmedWhole(t *testing.T) {
	w := open(t, retaining(200))
	_, _, heard := canceled(w, 300)
	w.trimAll()
	seq, _, oldest, err := w.Head(background(t), w.ws)
	w.must(err)
	if kept := seq - oldest + 1; kept < 200 || kept > 200+mostInPage {
		t.Errorf("%d events are kept", kept)
	}
	for _, after := range []int64{0, oldest - 1} {
		if diff := cmp.Diff(heard[len(heard)-int(seq-oldest+1):], w.after(after, 1000)); diff != "" {
			t.Errorf("after %d:\n%s", after, diff)
		}
	}
}

// Whatever the entities of a page are, they are read as they were written; a page that was
// cut off or that says more than it has is an error.
func TestMembersOfAPage(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var all [][]byte
		var data, before []byte
		for range 1 + dice.IntN(5) {
			next := make([]byte, dice.IntN(40))
			for i := range next {
				next[i] = "ab"[dice.IntN(2)]
			}
			if dice.IntN(2) == 0 { // as turns are: the same but for a few bytes
				next = slices.Concat(before[:len(before)/2], next, before[len(before)/2:])
			}
			all, data, before = append(all, next), appendMember(data, before, next), next
		}
		rest, last := data, []byte(nil)
		for i, want := range all {
			got, left, ok := nextMember(rest, last)
			if !ok || !bytes.Equal(got, want) {
				t.Fatalf("member %d of %q is %q, %v", i, all, got, ok)
			}
			rest, last = left, got
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes are left of %q", len(rest), all)
		}
		for cut := range data { // nothing of this may panic
			rest, last := data[:cut], []byte(nil)
			for whole := true; whole && len(rest) > 0; {
				last, rest, whole = nextMember(rest, last)
			}
		}
	}
	w := open(t)
	canceled(w, 40)
	w.bulk(func(exec func(string, ...any)) { exec("UPDATE events SET data = substr(data, 1, 100) WHERE span > 1") })
	if _, err := w.Events(background(t), w.ws, 0, 1000); err == nil {
		t.Error("a page that was cut off is read without an error")
	}
}

// Evidence is remembered with the targets: what was heard of one is there after a restart
// and for a second piece of evidence alike.
func TestTargetsAreRememberedAsTheyAreStored(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kids := tr.crowd(20)
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
	w.must(err)
	stored := func() string {
		return query[string](w, "SELECT group_concat(turn_id || state || evidence, ' ') FROM (SELECT * FROM operation_targets ORDER BY turn)")
	}
	known := func() (s string) {
		_, err := w.write(background(t), func(x *tx) error {
			row, _, err := x.operation(op.ID)
			if err != nil {
				return err
			}
			targets, err := x.targets(row)
			for i, o := range targets {
				if i > 0 {
					s += " "
				}
				s += fmt.Sprint(o.TurnID, o.State, o.Evidence)
			}
			return err
		})
		w.must(err)
		return s
	}
	check := func(when string) {
		t.Helper()
		if got, want := known(), stored(); got != want {
			t.Errorf("%s the writer knows\n%s\nand the file has\n%s", when, got, want)
		}
	}
	check("after the beginning")
	var heard []agent.Evidence
	for _, k := range kids[:12] {
		heard = append(heard, agent.Evidence{SessionID: k.session, TurnID: k.turn, State: agent.TargetAcknowledged})
	}
	w.must(w.Hear(background(t), op.ID, heard))
	check("after much evidence")
	w.must(w.Hear(background(t), op.ID, []agent.Evidence{{SessionID: kids[3].session, TurnID: kids[3].turn, State: agent.TargetCanceled}}))
	check("after one piece")
	w.reopen()
	check("after a restart")
	_, err = w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	if len(w.w.targets) != 0 {
		t.Error("an operation that has ended is remembered")
	}
	check("after the end")
}
