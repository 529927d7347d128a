package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func (w *world) cancels(session agent.SessionID, turn agent.TurnID) agent.Operation {
	w.Helper()
	op, settled, err := w.PrepareCancel(background(w), session, turn, "test")
	w.must(err)
	if settled {
		w.Fatalf("turn %s had settled", turn)
	}
	return op
}

func (w *world) deletes(session agent.SessionID) agent.Deleted {
	w.Helper()
	d, err := w.Delete(background(w), w.ws, session)
	w.must(err)
	return d
}

func (w *world) operation(id agent.OperationID) agent.Operation {
	w.Helper()
	op, err := w.Operation(background(w), w.ws, id)
	w.must(err)
	return op
}

// decoded are the entities of one kind of event.
func decoded[T any](w *world, events []agent.Event, kind agent.EventKind) []T {
	w.Helper()
	var out []T
	for _, e := range events {
		if e.Kind == kind {
			var v T
			w.must(json.Unmarshal(e.Data, &v))
			out = append(out, v)
		}
	}
	return out
}

func states(op agent.Operation) map[agent.TurnID]agent.TargetState {
	out := map[agent.TurnID]agent.TargetState{}
	for _, t := range op.Targets {
		out[t.TurnID] = t.State
	}
	return out
}

// Operations outlive what they were about. Were a key given twice, the cancel of a new turn
// would be taken for the one of a turn that is long gone.
func TestKeysOfDeletedTurnsAreNotGivenAgain(t *testing.T) {
	for name, remove := range map[string]func(tr *tree, kid child){
		"session": func(tr *tree, _ child) { tr.deletes(tr.root) },
		"child":   func(tr *tree, kid child) { tr.deletes(kid.session) },
		"workspace": func(tr *tree, _ child) {
			_, err := tr.DeleteWorkspace(background(t), tr.ws)
			tr.must(err)
			ws, err := tr.CreateWorkspace(background(t), "again", "/w")
			tr.must(err)
			tr.ws = ws.ID
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			old := w.begin()
			old.provider("p")
			kid := old.child("a")
			stop := old.cancels(kid.session, kid.turn)
			_, err := w.CompleteCancel(background(t), stop.ID, nil)
			w.must(err)
			remove(old, kid)
			turnKey, messageKey := w.w.turnKey, w.w.messageKey
			w.reopen()
			if w.w.turnKey != turnKey || w.w.messageKey != messageKey {
				t.Errorf("after the restart the newest keys are %d and %d, want %d and %d", w.w.turnKey, w.w.messageKey, turnKey, messageKey)
			}
			fresh := w.begin()
			fresh.provider("p")
			fresh.canceledAlone(stop)
		})
	}
}

// canceledAlone stops a tree by an operation of its own, not by that of another one.
func (t *tree) canceledAlone(other agent.Operation) {
	t.Helper()
	c := t.child("c")
	op := t.cancels(t.root, t.turn)
	if op.ID == other.ID || op.SessionID != t.root || op.Status != agent.OperationPending {
		t.Fatalf("the cancel of the new turn is %+v; the old one was %s", op, other.ID)
	}
	claimed, err := t.Claim(background(t), "w", time.Minute, 10)
	t.must(err)
	if len(claimed) != 1 || claimed[0].Operation.ID != op.ID || len(claimed[0].Operation.Targets) != 2 {
		t.Fatalf("claimed %+v", claimed)
	}
	_, err = t.CompleteCancel(background(t), op.ID, nil)
	t.must(err)
	t.is(agent.PhaseSettled, agent.OutcomeCanceled)
	t.childIs(c, agent.PhaseSettled, agent.OutcomeInterrupted)
	if s := t.session(); s.ActiveChildCount != 0 || s.PendingInteractionCount != 0 {
		t.Errorf("counters are %d and %d, want 0", s.ActiveChildCount, s.PendingInteractionCount)
	}
}

// A client that follows one nested session, or one operation, must hear of its end.
func TestDeletionTellsOfEverySessionAndOperation(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	a := w.child("a")
	n := w.below(a, "n")
	w.asks(n.session, n.turn, "q")
	_, answer, err := w.PrepareAnswer(background(t), agent.NewAnswer{Session: n.session, Turn: n.turn, Request: "q", Response: agent.Response{OptionID: "yes"}})
	w.must(err)
	stop := w.cancels(a.session, a.turn)
	w.must(w.Hear(background(t), stop.ID, []agent.Evidence{{SessionID: n.session, TurnID: n.turn, State: agent.TargetAcknowledged}}))
	w.events()

	d := w.deletes(a.session)
	events := w.events()
	want := []string{
		"operation.updated " + string(n.session), "operation.updated " + string(a.session),
		"session.deleted " + string(a.session), "session.deleted " + string(n.session),
		"turn.updated " + string(w.root), "session.updated " + string(w.root),
	}
	got := kinds(events)
	slices.Sort(got[:2]) // the order of the two is that of their making
	slices.Sort(want[:2])
	if !slices.Equal(got[:4], want[:4]) {
		t.Errorf("events are %q, want %q", got, want)
	}
	if !slices.Equal(d.Sessions, []agent.SessionID{a.session, n.session}) {
		t.Errorf("deleted %v", d.Sessions)
	}
	for _, o := range decoded[agent.Operation](w.world, events, agent.OperationUpdated) {
		if o.Status != agent.OperationFailed || o.Error == nil || o.Error.Code != agent.CodeSessionDeleted {
			t.Errorf("operation %s is told %s, %v", o.ID, o.Status, o.Error)
		}
		now := w.operation(o.ID)
		if now.Status != o.Status || !slices.Equal(now.Targets, o.Targets) {
			t.Errorf("operation %s is told %+v and reads %+v", o.ID, o, now)
		}
	}
	if got := states(w.operation(stop.ID)); got[n.turn] != agent.TargetAcknowledged || len(got) != 2 {
		t.Errorf("the cancel's targets read %v: what was heard must stay", got)
	}
	if o := w.operation(answer.ID); o.Status != agent.OperationFailed {
		t.Errorf("the answer is %s", o.Status)
	}
	if s := w.session(); s.ActiveChildCount != 0 || s.PendingInteractionCount != 0 {
		t.Errorf("counters of the root are %d and %d", s.ActiveChildCount, s.PendingInteractionCount)
	}
}

// A cancel goes on without a target that was deleted under it, and reports what is known.
func TestCancelOutlivesADeletedTarget(t *testing.T) {
	for _, c := range []struct {
		heard  agent.TargetState
		reads  agent.TargetState
		status agent.OperationStatus
	}{
		{"", agent.TargetInterrupted, agent.OperationUnconfirmed},
		{agent.TargetAcknowledged, agent.TargetCanceled, agent.OperationSucceeded},
	} {
		w := open(t).begin()
		w.provider("p")
		a, b := w.child("a"), w.child("b")
		op := w.cancels(w.root, w.turn)
		evidence := []agent.Evidence{
			{SessionID: w.root, TurnID: w.turn, State: agent.TargetCanceled}, {SessionID: a.session, TurnID: a.turn, State: agent.TargetCanceled},
		}
		if c.heard != "" {
			evidence = append(evidence, agent.Evidence{SessionID: b.session, TurnID: b.turn, State: c.heard})
		}
		w.must(w.Hear(background(t), op.ID, evidence))
		w.deletes(b.session)
		claimed, err := w.Claim(background(t), "w", time.Minute, 1)
		w.must(err)
		if len(claimed) != 1 || len(claimed[0].Operation.Targets) != 2 {
			t.Fatalf("claimed %+v: the deleted target is not to be asked", claimed)
		}
		done, err := w.CompleteCancel(background(t), op.ID, nil)
		w.must(err)
		if done.Status != c.status || states(done)[b.turn] != c.reads {
			t.Errorf("heard %q of the deleted: %s, %v", c.heard, done.Status, states(done))
		}
		w.is(agent.PhaseSettled, agent.OutcomeCanceled)
		w.childIs(a, agent.PhaseSettled, agent.OutcomeCanceled)
	}
}

// What a deleted conversation said is neither stored nor served: not in its rows, not in the
// search, not in the log, whose numbers stay whole.
func TestNothingOfADeletedConversationIsKept(t *testing.T) {
	for name, remove := range map[string]func(w *world, tr *tree, kid child){
		"root":  func(w *world, tr *tree, _ child) { w.deletes(tr.root) },
		"child": func(w *world, _ *tree, kid child) { w.deletes(kid.session) },
		"child, then root": func(w *world, tr *tree, kid child) {
			w.deletes(kid.session)
			w.deletes(tr.root)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			other := w.begin()
			tr := w.begin()
			tr.provider("p")
			kid, f := tr.start("kid", tr.root, tr.turn)
			f.Title, f.Prompt = "kidsecret", "kidsecret"
			tr.verdict(f, agent.VerdictApplied, "")
			nested := tr.below(kid, "nested")
			say := func(session agent.SessionID, turn agent.TurnID, id agent.MessageID, s string) {
				w.verdict(agent.MessagePut{Message: agent.Message{
					ID: id, SessionID: session, TurnID: turn, Role: agent.RoleAssistant,
					Kind: agent.MessageText, Status: agent.MessageStreaming,
				}}, agent.VerdictApplied, "")
				w.verdict(agent.TextAppended{Session: session, Turn: turn, Message: id, Text: s}, agent.VerdictApplied, "")
				w.verdict(agent.MessagePut{Message: agent.Message{
					ID: id + "2", SessionID: session, TurnID: turn, Role: agent.RoleAssistant,
					Kind: agent.MessageText, Content: s, Status: agent.MessageCompleted,
				}}, agent.VerdictApplied, "")
			}
			say(kid.session, kid.turn, "mk", "kidsecret")
			say(nested.session, nested.turn, "mn", "kidsecret")
			w.verdict(agent.InteractionAsked{Interaction: agent.Interaction{
				SessionID: nested.session, TurnID: nested.turn, RequestID: "q",
				Kind: agent.InteractionApproval, Title: "kidsecret",
			}}, agent.VerdictApplied, "")
			title := "rootsecret"
			_, err := w.UpdateSession(background(t), w.ws, tr.root, agent.SessionPatch{Title: &title})
			w.must(err)
			say(tr.root, tr.turn, "mr", "rootsecret")
			say(other.root, other.turn, "mo", "othersecret")

			for id, first := range map[agent.SessionID]int64{tr.root: w.createdAt(tr.root), kid.session: w.createdAt(kid.session)} {
				if seq := query[int64](w, "SELECT seq FROM sessions WHERE id = ?", string(id)); seq != first {
					t.Errorf("%s was created by event %d, its row says %d", id, first, seq)
				}
			}
			remove(w, tr, kid)
			gone := []string{"kidsecret"}
			if name != "child" {
				gone = append(gone, "rootsecret", "do it")
				if w.deletes(other.root).WasRoot { // both trees said it; now nobody has
					gone = append(gone, "othersecret")
				}
			}
			for _, secret := range gone {
				w.holdsNothingOf(secret)
			}
			if name == "child" && !w.serves("rootsecret") {
				t.Error("the parent's own words are gone")
			}
		})
	}
}

// createdAt is the number of the event that created a session.
func (w *world) createdAt(id agent.SessionID) int64 {
	w.Helper()
	log, err := w.Events(background(w), w.ws, 0, maxLogPage)
	w.must(err)
	for _, e := range log.Items {
		if e.SessionID == id {
			return e.Seq
		}
	}
	return 0
}

// serves tells whether the log still gives a text to who asks; its numbers must be whole.
func (w *world) serves(secret string) bool {
	w.Helper()
	log, err := w.Events(background(w), w.ws, 0, maxLogPage)
	w.must(err)
	found := false
	for i, e := range log.Items {
		if e.Seq != int64(i+1) {
			w.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if !json.Valid(e.Data) {
			w.Errorf("event %d has data %q", e.Seq, e.Data)
		}
		found = found || strings.Contains(string(e.Data), secret)
	}
	return found
}

// holdsNothingOf looks into every column of every table.
func (w *world) holdsNothingOf(secret string) {
	w.Helper()
	if w.serves(secret) {
		w.Errorf("%q is still served", secret)
	}
	rows, err := w.db.Readers.Query(`SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`)
	w.must(err)
	var columns [][2]string
	for rows.Next() {
		var c [2]string
		w.must(rows.Scan(&c[0], &c[1]))
		columns = append(columns, c)
	}
	w.must(rows.Err())
	for _, c := range columns {
		q := fmt.Sprintf("SELECT count(*) FROM %s WHERE instr(CAST(%s AS TEXT), ?) > 0", c[0], c[1])
		if n := query[int64](w, q, secret); n != 0 {
			w.Errorf("%d rows of %s.%s hold %q", n, c[0], c[1], secret)
		}
	}
}

// The log of a deleted workspace goes wholly, also when the daemon ends before it has gone.
func TestLogOfADeletedWorkspaceGoes(t *testing.T) {
	w := open(t)
	for range 5 {
		tr := w.begin()
		tr.provider("p")
		tr.child("kid")
	}
	key := query[int64](w, "SELECT pk FROM workspaces")
	kept, err := w.CreateWorkspace(background(t), "kept", "/kept")
	w.must(err)
	old := w.ws
	w.ws = kept.ID
	w.begin()
	_, err = w.DeleteWorkspace(background(t), old)
	w.must(err)
	_, err = w.Events(background(t), old, 0, 10)
	w.refuses(err, agent.CodeNotFound)
	w.reopen() // Close waits for what was under way; the rest is taken up again
	left := func() int64 { return query[int64](w, "SELECT count(*) FROM events WHERE pk >> 40 = ?", key) }
	deadline := time.Now().Add(20 * time.Second)
	for left() != 0 && time.Now().Before(deadline) {
		_, err := w.write(background(t), func(*tx) error { return nil }) // behind what the trimmer has queued
		w.must(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d events are left", n)
	}
	if !w.serves("do it") {
		t.Error("another workspace lost its log")
	}
}
