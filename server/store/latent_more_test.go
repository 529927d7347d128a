package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// L13: the detail is one snapshot. While turns end, the answer's number and its content
// always agree: everything after the number makes what comes after.
func TestDetailIsOneSnapshot(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kids := make([]child, 60)
	for i := range kids {
		kids[i] = tr.child(fmt.Sprint(i))
	}
	ctx, stop := context.WithCancel(background(t))
	var wait sync.WaitGroup
	wait.Go(func() {
		defer stop()
		for _, k := range kids {
			tr.ends(k, agent.OutcomeCompleted)
		}
	})
	for ctx.Err() == nil {
		d, err := w.Detail(background(t), w.ws, tr.root)
		w.must(err)
		live := 0
		for _, c := range d.ChildSessions {
			if c.ActiveTurn != nil {
				live++
			}
		}
		log, err := w.Events(background(t), w.ws, 0, 1000)
		w.must(err)
		ended := 0
		for _, e := range log.Items {
			if e.Seq <= d.Seq && e.Kind == agent.TurnUpdated && e.SessionID != tr.root {
				ended++
			}
		}
		if live != len(kids)-ended || d.Session.ActiveChildCount != live {
			t.Fatalf("at %d: %d live of %d, %d ended, the root counts %d", d.Seq, live, len(kids), ended, d.Session.ActiveChildCount)
		}
	}
	wait.Wait()
}

// L14, L15: a root with 2,000 live children is read, stopped and deleted in time that
// follows its size, in a workspace with ten times as many sessions of others.
func TestTwoThousandChildren(t *testing.T) {
	const many = 2000
	w := open(t)
	for range 10 {
		other := w.begin()
		other.provider("p")
		other.crowd(many)
	}
	tr := w.begin()
	tr.provider("p")
	kids := tr.crowd(many)
	w.analyze(t)
	timed := func(what string, bound time.Duration, do func()) {
		start := time.Now()
		do()
		if took := time.Since(start); took > bound {
			t.Errorf("%s took %v", what, took)
		}
	}
	timed("detail", 5*time.Second, func() {
		d, err := w.Detail(background(t), w.ws, tr.root)
		w.must(err)
		if len(d.ChildSessions) != many || d.Session.ActiveChildCount != many {
			t.Fatalf("%d children, %d active", len(d.ChildSessions), d.Session.ActiveChildCount)
		}
	})
	timed("turns", time.Second, func() {
		_, err := w.Turns(background(t), w.ws, tr.root, "", 200)
		w.must(err)
	})
	timed("gate", 5*time.Second, func() {
		g, err := w.Gate(background(t), w.ws, tr.root, tr.turn)
		w.must(err)
		if len(g.OpenChildren) != many {
			t.Fatalf("%d open children", len(g.OpenChildren))
		}
	})
	timed("cancel", 10*time.Second, func() {
		op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
		w.must(err)
		done, err := w.CompleteCancel(background(t), op.ID, nil)
		w.must(err)
		if len(done.Targets) != many+1 || done.Status != agent.OperationUnconfirmed {
			t.Fatalf("%d targets, %s", len(done.Targets), done.Status)
		}
	})
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
	tr.childIs(kids[many-1], agent.PhaseSettled, agent.OutcomeInterrupted)
	timed("delete", 10*time.Second, func() {
		gone, err := w.Delete(background(t), w.ws, tr.root)
		w.must(err)
		if len(gone.Sessions) != many+1 || !gone.WasRoot {
			t.Fatalf("%d sessions", len(gone.Sessions))
		}
	})
}

// L16: only evidence makes a child canceled.
func TestOnlyEvidenceConfirmsAChild(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	heard, ended, silent, refused := tr.child("heard"), tr.child("ended"), tr.child("silent"), tr.child("refused")
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
	w.must(err)
	tr.childIs(silent, agent.PhaseSettling, "")
	w.must(w.Hear(background(t), op.ID, []agent.Evidence{
		{SessionID: tr.root, TurnID: tr.turn, State: agent.TargetAcknowledged},
		{SessionID: heard.session, TurnID: heard.turn, State: agent.TargetAcknowledged},
		{SessionID: refused.session, TurnID: refused.turn, Err: failed("no such task")},
		{SessionID: "stranger", TurnID: "x", State: agent.TargetCanceled},
	}))
	w.must(w.Hear(background(t), op.ID, []agent.Evidence{{SessionID: heard.session, TurnID: heard.turn, State: agent.TargetRequested}})) // never weaker
	tr.ends(ended, agent.OutcomeCompleted)                                                                                               // won the race
	done, err := w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	want := map[agent.SessionID]agent.TargetState{
		tr.root: agent.TargetCanceled, heard.session: agent.TargetCanceled, ended.session: agent.TargetAlreadyTerminal,
		silent.session: agent.TargetInterrupted, refused.session: agent.TargetInterrupted,
	}
	for _, target := range done.Targets {
		if target.State != want[target.SessionID] {
			t.Errorf("%s reads %s, want %s", target.SessionID, target.State, want[target.SessionID])
		}
	}
	if done.Status != agent.OperationUnconfirmed {
		t.Errorf("the operation reads %s", done.Status)
	}
	tr.childIs(heard, agent.PhaseSettled, agent.OutcomeCanceled)
	tr.childIs(ended, agent.PhaseSettled, agent.OutcomeCompleted)
	tr.childIs(silent, agent.PhaseSettled, agent.OutcomeInterrupted)
	w.must(w.Hear(background(t), op.ID, []agent.Evidence{{SessionID: silent.session, TurnID: silent.turn, State: agent.TargetCanceled}})) // too late
	stored, err := w.Operation(background(t), w.ws, op.ID)
	w.must(err)
	if text(stored) != text(done) {
		t.Errorf("late evidence changed the operation: %s", text(stored))
	}
}

// L17: what a canceled child says late is kept as its history; what a canceled root says
// late is not.
func TestLateTailOfACanceledTree(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	streaming := agent.Message{ID: "tail", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}
	tr.verdict(agent.MessagePut{Message: streaming}, agent.VerdictApplied, "")
	tr.verdict(agent.TextAppended{Session: kid.session, Turn: kid.turn, Message: "tail", Text: "half a sen"}, agent.VerdictApplied, "")
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
	w.must(err)
	_, err = w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	m, err := w.Message(background(t), w.ws, kid.session, "tail")
	w.must(err)
	if m.Status != agent.MessageInterrupted || m.Content != "half a sen" {
		t.Errorf("cut off: %+v", m)
	}
	whole := streaming
	whole.Status, whole.Content = agent.MessageCompleted, "half a sentence"
	tr.verdict(agent.MessagePut{Message: whole}, agent.VerdictLate, "")
	fresh := whole
	fresh.ID = "fresh"
	tr.verdict(agent.MessagePut{Message: fresh}, agent.VerdictLate, "")
	root := fresh
	root.ID, root.SessionID, root.TurnID = "root", tr.root, tr.turn
	tr.verdict(agent.MessagePut{Message: root}, agent.VerdictLate, "")
	page, err := w.Messages(background(t), w.ws, kid.session, agent.MessageRange{Limit: 10})
	w.must(err)
	if len(page.Items) != 2 || page.Items[0].Content != "half a sentence" || page.Items[0].Status != agent.MessageInterrupted {
		t.Errorf("the child's transcript: %s", text(page.Items))
	}
	_, err = w.Message(background(t), w.ws, tr.root, "root")
	w.refuses(err, agent.CodeNotFound)
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
	tr.verdict(agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: agent.OutcomeFailed}, agent.VerdictLate, "")
	tr.childIs(kid, agent.PhaseSettled, agent.OutcomeInterrupted)
}

// L20: the event and the change it tells of are one commit, in the order that a client
// relies on: the child, then what it left open, then the root, then the root session.
func TestEventsOfTheLastChild(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.verdict(agent.InteractionAsked{Interaction: question(kid, "q")}, agent.VerdictApplied, "")
	tr.verdict(agent.MessagePut{Message: agent.Message{
		ID: "m", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming,
	}}, agent.VerdictApplied, "")
	tr.providerEnds("p", agent.OutcomeCompleted)
	w.events()
	a := tr.ends(kid, agent.OutcomeCompleted)
	got := kinds(w.heardSoFar())
	want := []string{
		"turn.updated " + string(kid.session), "message.updated " + string(kid.session), "interaction.updated " + string(kid.session),
		"turn.updated " + string(tr.root), "message.updated " + string(tr.root), "session.updated " + string(kid.session), "session.updated " + string(tr.root),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	tr.settledInOneCommit(a)
	log, err := w.Events(background(t), w.ws, a.Seq-int64(len(want)), 100)
	w.must(err)
	if !slices.Equal(kinds(log.Items), want) {
		t.Errorf("the log has %v", kinds(log.Items))
	}
}

func (w *world) heardSoFar() []agent.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}
