package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Faults that a store of this kind has had before. L numbers are rows of the list of
// latent faults that the project keeps.

func question(c child, id string) agent.Interaction {
	return agent.Interaction{
		SessionID: c.session, TurnID: c.turn, RequestID: agent.RequestID(id), Kind: agent.InteractionApproval, Title: "run it?",
		Options: []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}, {ID: "no", Label: "No", Role: agent.RoleDeny}},
	}
}

// L1: a child that is born while a cancel is prepared is a target, or is refused. It never
// runs on under a canceled root.
func TestChildBornDuringCancelIsTargetOrRefused(t *testing.T) {
	for round := range 40 {
		w := open(t, onDisk(Memory))
		tr := w.begin()
		tr.provider("p")
		var wait sync.WaitGroup
		var op agent.Operation
		verdicts := make([]agent.Verdict, 4)
		wait.Go(func() {
			var err error
			op, _, err = w.PrepareCancel(background(t), tr.root, tr.turn, "test")
			if err != nil {
				t.Error(err)
			}
		})
		for i := range verdicts {
			wait.Go(func() {
				_, f := tr.start(fmt.Sprint(i), tr.root, tr.turn)
				a, err := w.Apply(background(t), f)
				if err != nil {
					t.Error(err)
				}
				verdicts[i] = a.Verdict
			})
		}
		wait.Wait()
		born := 0
		for _, v := range verdicts {
			if v == agent.VerdictApplied {
				born++
			}
		}
		if len(op.Targets) != born+1 {
			t.Fatalf("round %d: %d children were born, %d targets", round, born, len(op.Targets))
		}
		done, err := w.CompleteCancel(background(t), op.ID, nil)
		w.must(err)
		tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
		for _, target := range done.Targets {
			turn, err := w.Turn(background(t), w.ws, target.SessionID, target.TurnID)
			w.must(err)
			if turn.Live() {
				t.Fatalf("round %d: %s lives under a canceled root", round, target.SessionID)
			}
		}
		w.must(w.Close())
	}
}

// L2: the fence is for new turns of children that exist as much as for new children, during
// the cancel and after the root has settled.
func TestIdleChildCannotStartDuringOrAfterCancel(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.ends(kid, agent.OutcomeCompleted)
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
	w.must(err)
	again := agent.TurnStarted{Session: kid.session, Turn: "again", Trigger: agent.TriggerGuidance}
	tr.verdict(again, agent.VerdictRefused, agent.CodeTurnCanceling)
	_, late := tr.start("late", tr.root, tr.turn)
	tr.verdict(late, agent.VerdictRefused, agent.CodeTurnCanceling)
	_, err = w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	tr.verdict(again, agent.VerdictRefused, agent.CodeTurnSettled)
	tr.verdict(late, agent.VerdictRefused, agent.CodeTurnSettled)
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
}

// L2: the same for a cancel of one child: nothing starts again below it while it settles.
func TestNothingStartsBelowAChildThatIsBeingStopped(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	idle := tr.below(kid, "idle")
	tr.ends(idle, agent.OutcomeCompleted)
	other := tr.child("other")
	_, _, err := w.PrepareCancel(background(t), kid.session, kid.turn, "test")
	w.must(err)
	tr.verdict(agent.TurnStarted{Session: idle.session, Turn: "again"}, agent.VerdictRefused, agent.CodeTurnCanceling)
	_, late := tr.start("late", kid.session, kid.turn)
	tr.verdict(late, agent.VerdictRefused, agent.CodeTurnCanceling)
	_, deeper := tr.start("deeper", idle.session, idle.turn)
	tr.verdict(deeper, agent.VerdictRefused, agent.CodeTurnCanceling)
	tr.below(other, "fine")
}

// L3: order is the order of arrival. A clock that goes back changes nothing.
func TestClockGoingBackwardsDropsNothing(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	w.clock.advance(-time.Hour)
	tr.providerEnds("p", agent.OutcomeCompleted)
	tr.is(agent.PhaseWaiting, "")
	w.clock.advance(-time.Hour)
	if a := tr.ends(kid, agent.OutcomeCompleted); !a.RootSettled {
		t.Fatalf("the last child did not settle the root: %+v", a)
	}
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
	page, err := w.Events(background(t), w.ws, 0, 100)
	w.must(err)
	for i, e := range page.Items {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
	}
}

// L4: the death of a provider ends every live turn of its tree in one commit, also when the
// root's own provider turn had ended before.
func TestLostProviderEndsTheWholeTree(t *testing.T) {
	gone := failed("the process ended")
	for _, ended := range []bool{false, true} {
		w := open(t)
		tr := w.begin()
		tr.provider("p")
		kid := tr.child("kid")
		nested := tr.below(kid, "nested")
		tr.verdict(agent.InteractionAsked{Interaction: question(nested, "q")}, agent.VerdictApplied, "")
		want := agent.OutcomeInterrupted
		if ended {
			tr.providerEnds("p", agent.OutcomeCompleted)
			want = agent.OutcomeCompleted // it was retained, and no provider turn ran
		}
		w.events()
		a := tr.verdict(agent.SessionLost{Session: tr.root, Err: gone}, agent.VerdictApplied, "")
		if !a.RootSettled {
			t.Fatal("the root did not settle")
		}
		tr.is(agent.PhaseSettled, want)
		for _, c := range []child{kid, nested} {
			tr.childIs(c, agent.PhaseSettled, agent.OutcomeInterrupted)
			if e := tr.childTurn(c).Error; e == nil || e.Message != gone.Message {
				t.Errorf("the reason is lost: %v", e)
			}
		}
		if n := tr.session().PendingInteractionCount; n != 0 {
			t.Errorf("%d questions of turns that have ended", n)
		}
		tr.verdict(agent.SessionLost{Session: tr.root, Err: gone}, agent.VerdictUnchanged, "")
		tr.settledInOneCommit(a)
	}
}

// settledInOneCommit checks that what OnCommit heard last is one stretch of numbers up to a.
func (t *tree) settledInOneCommit(a agent.Applied) {
	t.Helper()
	events := t.events()
	for i, e := range events {
		if e.Seq != a.Seq-int64(len(events)-1-i) {
			t.Fatalf("events are not one stretch: %v", kinds(events))
		}
	}
}

// L5: a child has as many turns as its provider gives it, each under the root turn that
// is open then.
func TestChildHasManyTurns(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.ends(kid, agent.OutcomeCompleted)
	second := child{kid.session, "second"}
	tr.verdict(agent.TurnStarted{Session: kid.session, Turn: second.turn, Trigger: agent.TriggerGuidance}, agent.VerdictApplied, "")
	tr.verdict(agent.TurnStarted{Session: kid.session, Turn: "third"}, agent.VerdictRefused, agent.CodeSessionBusy)
	tr.providerEnds("p", agent.OutcomeCompleted)
	tr.is(agent.PhaseWaiting, "")
	tr.ends(second, agent.OutcomeFailed)
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted) // a child's outcome never becomes the root's

	next, err := w.Submit(background(t), agent.NewMessage{Session: tr.root, ClientMessageID: "two", Text: "more"})
	w.must(err)
	later := child{kid.session, "later"}
	tr.verdict(agent.TurnStarted{Session: kid.session, Turn: later.turn}, agent.VerdictApplied, "")
	if got := tr.childTurn(later); got.RootTurnID != next.Turn.ID || got.Trigger != agent.TriggerGuidance {
		t.Errorf("it runs under %s by %s", got.RootTurnID, got.Trigger)
	}
	s, err := w.Session(background(t), w.ws, kid.session)
	w.must(err)
	if s.RootTurnID != tr.turn || s.ParentTurnID != tr.turn {
		t.Errorf("the creator edge moved: %+v", s.Relation)
	}
}

// L6 is the adapter's: a fact of a child that nobody registered is refused and never
// becomes the root's.
func TestFactOfUnknownOwnerIsRefused(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	m := agent.Message{ID: "m", SessionID: "nobody", TurnID: tr.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted}
	before := tr.session()
	for _, f := range []agent.Fact{
		agent.TurnSettled{Session: "nobody", Turn: kid.turn, Outcome: agent.OutcomeCompleted},
		agent.TurnSettled{Session: tr.root, Turn: kid.turn, Outcome: agent.OutcomeCompleted}, // another's turn
		agent.TurnSettled{Session: kid.session, Turn: tr.turn, Outcome: agent.OutcomeCompleted},
		agent.TurnStarted{Session: "nobody", Turn: "t"},
		agent.TurnStarted{Session: tr.root, Turn: "t"},
		agent.MessagePut{Message: m},
		agent.TextAppended{Session: "nobody", Turn: tr.turn, Message: "m", Text: "x"},
		agent.InteractionAsked{Interaction: question(child{"nobody", tr.turn}, "q")},
		agent.InteractionAsked{Interaction: question(child{kid.session, tr.turn}, "q")},
		agent.InteractionEnded{Session: kid.session, Turn: kid.turn, Request: "nothing", Step: agent.AskResolved},
		agent.UsageReported{Session: "nobody", Turn: tr.turn},
		agent.ProviderTurnStarted{Session: kid.session, Key: "x"},
		agent.ProviderTurnEnded{Session: tr.root, Turn: tr.turn, Key: "never", Outcome: agent.OutcomeCompleted},
		agent.SessionDescribed{Session: "nobody", Title: "x"},
		agent.SessionLost{Session: kid.session},
		agent.ChildStarted{Session: "c", Turn: "ct", Parent: "nobody", ParentTurn: tr.turn},
		agent.ChildStarted{Session: "c", Turn: "ct", Parent: kid.session, ParentTurn: tr.turn},
	} {
		tr.verdict(f, agent.VerdictRefused, agent.CodeUnknownOwner)
	}
	if after := tr.session(); text(after) != text(before) {
		t.Errorf("a refused fact left a trace: %s, then %s", text(before), text(after))
	}
}

// L7: a storage that fails is an error with a code that says "again", never a verdict; and
// after it the same fact works.
func TestBusyStorageIsAnErrorThatHelps(t *testing.T) {
	s := newSpy(t)
	w := open(t, withDriver(s.name))
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	s.failing(func(q string) error {
		if strings.Contains(q, "INTO events") {
			return errors.New("interrupted by the test")
		}
		return nil
	})
	if _, err := w.Apply(background(t), agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: agent.OutcomeCompleted}); err == nil {
		t.Fatal("no error")
	}
	s.failing(nil)
	tr.childIs(kid, agent.PhaseSubmitted, "") // L20: state and event are one, or neither
	if a := tr.ends(kid, agent.OutcomeCompleted); a.Verdict != agent.VerdictApplied {
		t.Fatalf("got %+v", a)
	}
}

// L8: a cancel that failed does not make the turn uncancelable, and one that ended is told.
func TestTurnCanAlwaysBeCanceledAgain(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	first, settled, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	second, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "cli")
	w.must(err)
	if settled || second.ID != first.ID {
		t.Fatalf("an open cancel was opened again: %s, %s", first.ID, second.ID)
	}
	w.must(w.Retry(background(t), first.ID, failed("not now"), w.clock.now().Add(time.Second)))
	third, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	if third.ID != first.ID || third.Error == nil {
		t.Fatalf("got %+v", third)
	}
	done, err := w.CompleteCancel(background(t), first.ID, failed("nobody there"))
	w.must(err)
	if done.Status != agent.OperationFailed || done.Error == nil {
		t.Errorf("a cancel that was not delivered reads %s, %v", done.Status, done.Error)
	}
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled) // and it holds nothing for ever
	last, settled, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	if !settled || last.ID != first.ID {
		t.Errorf("a settled turn: %v, %s", settled, last.ID)
	}
}

// L8: an operation that was marked failed while its turn lives gets another attempt.
func TestFailedCancelOfALiveTurnGetsAnotherAttempt(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	w.bulk(func(exec func(string, ...any)) {
		exec("UPDATE operations SET status = 'failed', error_code = 'timeout'")
	})
	again, settled, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	if settled || again.ID != op.ID || again.Status != agent.OperationPending || again.Error != nil || len(again.Targets) != 2 {
		t.Fatalf("got %+v", again)
	}
	_, err = w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	tr.childIs(kid, agent.PhaseSettled, agent.OutcomeInterrupted)
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
}

// L9: an answer counts when the provider has taken it. A failed delivery opens the question
// again, with the reason, and another answer is possible.
func TestFailedAnswerOpensTheQuestionAgain(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.verdict(agent.InteractionAsked{Interaction: question(kid, "q")}, agent.VerdictApplied, "")
	yes := agent.NewAnswer{Session: kid.session, Turn: kid.turn, Request: "q", Response: agent.Response{OptionID: "yes"}, Client: "web"}
	i, op, err := w.PrepareAnswer(background(t), yes)
	w.must(err)
	if i.Status != agent.InteractionAnswering || op.Status != agent.OperationPending || i.AnsweredBy != "web" {
		t.Fatalf("got %+v, %+v", i, op)
	}
	tr.childIs(kid, agent.PhaseWaiting, "") // not answered yet
	op, err = w.CompleteAnswer(background(t), op.ID, failed("broken pipe"))
	w.must(err)
	i, err = w.Interaction(background(t), w.ws, kid.session, kid.turn, "q")
	w.must(err)
	if op.Status != agent.OperationFailed || i.Status != agent.InteractionPending || i.Error == nil || i.Response != nil || i.AnsweredBy != "" {
		t.Fatalf("got %+v, %+v", i, op)
	}
	no := yes
	no.Response, no.Client = agent.Response{OptionID: "no"}, "cli"
	i, op, err = w.PrepareAnswer(background(t), no)
	w.must(err)
	if i.Error != nil {
		t.Errorf("the old error is still shown: %v", i.Error)
	}
	_, err = w.CompleteAnswer(background(t), op.ID, nil)
	w.must(err)
	i, err = w.Interaction(background(t), w.ws, kid.session, kid.turn, "q")
	w.must(err)
	if i.Status != agent.InteractionAnswered || i.Response.OptionID != "no" || i.AnsweredBy != "cli" {
		t.Fatalf("got %+v", i)
	}
	tr.childIs(kid, agent.PhaseRunning, "")
}

// L10: deleting the last child that runs has the gate asked.
func TestDeletingTheLastRunningChildSettlesTheRoot(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	nested := tr.below(kid, "nested")
	tr.verdict(agent.InteractionAsked{Interaction: question(nested, "q")}, agent.VerdictApplied, "")
	tr.providerEnds("p", agent.OutcomeFailed)
	tr.is(agent.PhaseWaiting, "")
	w.events()
	gone, err := w.Delete(background(t), w.ws, kid.session)
	w.must(err)
	if gone.WasRoot || !slices.Equal(gone.Sessions, []agent.SessionID{kid.session, nested.session}) {
		t.Errorf("got %+v", gone)
	}
	tr.is(agent.PhaseSettled, agent.OutcomeFailed)
	if s := tr.session(); s.PendingInteractionCount != 0 || s.ActiveChildCount != 0 {
		t.Errorf("the root still counts %d questions and %d children", s.PendingInteractionCount, s.ActiveChildCount)
	}
	if again, err := w.Delete(background(t), w.ws, kid.session); err != nil || again.Sessions != nil {
		t.Errorf("a second delete: %+v, %v", again, err) // field report 42
	}
}

// L11: a restart keeps an outcome that was retained.
func TestRestartKeepsRetainedOutcome(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.providerEnds("p", agent.OutcomeCompleted)
	running := w.begin()
	running.provider("p")
	fresh := w.begin() // submitted, no provider turn ever
	w.reopen()
	w.must(w.Recover(background(t)))
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
	tr.childIs(kid, agent.PhaseSettled, agent.OutcomeInterrupted)
	if e := tr.childTurn(kid).Error; e == nil || e.Code != agent.CodeDaemonRestart {
		t.Errorf("the child's error is %v", e)
	}
	running.is(agent.PhaseSettled, agent.OutcomeInterrupted)
	fresh.is(agent.PhaseSettled, agent.OutcomeInterrupted)
	m, err := w.Messages(background(t), w.ws, fresh.root, agent.MessageRange{Limit: 10})
	w.must(err)
	if m.Items[0].Status != agent.MessageUndelivered {
		t.Errorf("the person's message reads %s", m.Items[0].Status)
	}
	w.must(w.Recover(background(t))) // again: nothing to do
	running.is(agent.PhaseSettled, agent.OutcomeInterrupted)
}

// L12a: a daemon that dies between the two halves of a cancel finishes it after the restart.
func TestRestartFinishesACancel(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "web")
	w.must(err)
	claimed, err := w.Claim(background(t), "first", time.Minute, 10)
	w.must(err)
	if len(claimed) != 1 || !claimed[0].RootTarget {
		t.Fatalf("claimed %+v", claimed)
	}
	w.reopen()
	w.must(w.Recover(background(t)))
	tr.is(agent.PhaseSettling, "") // the cancel decides, not the loss
	tr.childIs(kid, agent.PhaseSettled, agent.OutcomeInterrupted)
	claimed, err = w.Claim(background(t), "second", time.Minute, 10)
	w.must(err)
	if len(claimed) != 1 || claimed[0].Operation.ID != op.ID || claimed[0].Operation.Attempts != 2 {
		t.Fatalf("claimed %+v", claimed)
	}
	done, err := w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	tr.is(agent.PhaseSettled, agent.OutcomeCanceled)
	if done.Status.Open() {
		t.Errorf("the operation reads %s", done.Status)
	}
}

// L12b: a daemon that dies while it delivers an answer leaves no question that nobody can
// answer, and starts.
func TestRestartDuringAnAnswer(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.verdict(agent.InteractionAsked{Interaction: question(kid, "q")}, agent.VerdictApplied, "")
	_, op, err := w.PrepareAnswer(background(t), agent.NewAnswer{Session: kid.session, Turn: kid.turn, Request: "q", Response: agent.Response{OptionID: "yes"}})
	w.must(err)
	_, err = w.Claim(background(t), "first", time.Minute, 10)
	w.must(err)
	w.reopen()
	w.must(w.Recover(background(t)))
	i, err := w.Interaction(background(t), w.ws, kid.session, kid.turn, "q")
	w.must(err)
	if i.Status != agent.InteractionSuperseded {
		t.Errorf("the question reads %s", i.Status)
	}
	claimed, err := w.Claim(background(t), "second", time.Minute, 10)
	w.must(err)
	if len(claimed) != 1 || claimed[0].Interaction == nil {
		t.Fatalf("claimed %+v", claimed)
	}
	done, err := w.CompleteAnswer(background(t), op.ID, agent.Errorf(agent.CodeProviderGone, "gone"))
	w.must(err)
	if done.Status != agent.OperationFailed {
		t.Errorf("the operation reads %s", done.Status)
	}
}
