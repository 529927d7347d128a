package codex

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// cancel prepares a cancel of a turn and sends it off.
func (s *stage) cancel(turn agent.TurnID) (provider.Cancel, <-chan error) {
	c := s.PrepareCancel(turn)
	return c, s.goes(func(ctx context.Context) error { return s.rt.Cancel(ctx, c, s.Heard) })
}

func (s *stage) wantEvidence(turn agent.TurnID, want agent.TargetState) {
	s.t.Helper()
	if got := s.EvidenceOf(turn); got != want {
		s.t.Errorf("evidence of %s is %q, want %q", turn, got, want)
	}
}

func wait(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the call failed: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the call does not return")
	}
}

func TestCancelInterruptsTheRootFirstAndWaitsForItsAnswer(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	s.send(spawnV1(rootThread, "r1", "call_b", "T2")...) // its turn has not begun
	v := s.View()
	a, b := turnsOf(v, child(t, v, "T1").ID)[0], turnsOf(v, child(t, v, "T2").ID)[0]

	c, done := s.cancel(in.Turn)
	root := s.expectInterrupt(rootThread, "r1")
	s.quiet()
	s.answer(root, `{}`)
	s.wantEvidence(in.Turn, agent.TargetAcknowledged)
	first := s.expectInterrupt("T1", "c1")
	second := s.expectInterrupt("T2", "")
	s.answer(second, `{}`)
	s.answer(first, `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	s.wantEvidence(in.Turn, agent.TargetCanceled)
	s.send(started("T2", "d1", "r1"))
	s.answer(s.expectInterrupt("T2", "d1"), `{}`) // closed, and it began all the same
	s.send(completed("T1", "c1", "r1", "interrupted"))
	s.wantEvidence(a.ID, agent.TargetCanceled)
	s.wantEvidence(b.ID, agent.TargetAcknowledged)
	s.send(completed("T2", "d1", "r1", "completed")) // it won the race
	wait(t, done)
	s.wantEvidence(b.ID, agent.TargetAlreadyTerminal)
	s.CompleteCancel(c, s.Evidence())
	v = s.View()
	wantOutcome(t, v.RootTurn(), agent.OutcomeCanceled)
	wantOutcome(t, turnsOf(v, child(t, v, "T1").ID)[0], agent.OutcomeCanceled)
	wantOutcome(t, turnsOf(v, child(t, v, "T2").ID)[0], agent.OutcomeCompleted)
}

func TestInterruptBeforeTheTurnHasBegunGoesWithoutItsID(t *testing.T) {
	s := newStage(t)
	in := s.Submit(s.Root, "go")
	begun := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	start := s.expect(methodTurnStart)
	_, done := s.cancel(in.Turn)
	stop := s.expectInterrupt(rootThread, "")
	s.answer(start, turnAnswer("r1"))
	wait(t, begun)
	s.answer(stop, `{}`)
	s.send(started(rootThread, "r1", "r1"))
	s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	wait(t, done)
	s.wantEvidence(in.Turn, agent.TargetCanceled)
	s.quiet()
}

func TestRefusedInterruptIsRepeatedWithoutTheID(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	_, done := s.cancel(in.Turn)
	s.fail(s.expectInterrupt(rootThread, "r1"), "no active turn to interrupt")
	s.wantEvidence(in.Turn, "") // nothing is confirmed by a refusal
	s.answer(s.expectInterrupt(rootThread, ""), `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	wait(t, done)
	s.wantEvidence(in.Turn, agent.TargetCanceled)
}

func TestCancelOfOneChildLeavesTheRest(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	s.send(spawnV1(rootThread, "r1", "call_b", "T2")...)
	s.send(started("T2", "d1", "r1"))
	v := s.View()
	a := turnsOf(v, child(t, v, "T1").ID)[0]
	_, done := s.cancel(a.ID)
	s.answer(s.expectInterrupt("T1", "c1"), `{}`)
	s.send(completed("T1", "c1", "r1", "interrupted"))
	wait(t, done)
	s.quiet()
	v = s.View()
	wantOutcome(t, turnsOf(v, child(t, v, "T1").ID)[0], agent.OutcomeCanceled)
	if !turnsOf(v, child(t, v, "T2").ID)[0].IsRoot() && turnsOf(v, child(t, v, "T2").ID)[0].Phase != agent.PhaseRunning {
		t.Error("the other child was touched")
	}
	s.send(completed("T2", "d1", "r1", "completed"), completed(rootThread, "r1", "r1", "completed"))
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
}

func TestCancelWhenOnlyChildrenRun(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"), completed(rootThread, "r1", "r1", "completed"))
	c, done := s.cancel(in.Turn)
	stop := s.expectInterrupt("T1", "c1") // the root's own turn has ended: nothing to stop there
	s.wantEvidence(in.Turn, agent.TargetAlreadyTerminal)
	s.answer(stop, `{}`)
	s.send(completed("T1", "c1", "r1", "interrupted"))
	wait(t, done)
	s.CompleteCancel(c, s.Evidence())
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCanceled)
}

func TestOrphansOfACanceledRootAreInterruptedAndCreateNothing(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(started("T1", "c1", "r1")) // before the cancel, still held
	_, done := s.cancel(in.Turn)
	root := s.expectInterrupt(rootThread, "r1")
	s.send(started("T2", "d1", "r1")) // while the root's answer is awaited
	s.quiet()
	s.answer(root, `{}`)
	first := s.expectInterrupt("T1", "c1")
	second := s.expectInterrupt("T2", "d1")
	s.answer(first, `{}`)
	s.answer(second, `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	s.send(started("T3", "e1", "r1")) // afterwards
	s.answer(s.expectInterrupt("T3", "e1"), `{}`)
	s.send(spawnV2(rootThread, "r1", "call_b", "T4")...) // a late edge
	s.answer(s.expectInterrupt("T4", ""), `{}`)
	s.send(started("T4", "f1", "r1"))
	s.answer(s.expectInterrupt("T4", "f1"), `{}`)
	s.send(said("T4", "f1", "m1", "nobody hears this")...)
	s.send(approval(3, "T4", "f1", "x"))
	s.expect("refusal")
	wait(t, done)
	if v := s.View(); len(v.Sessions) != 1 || len(v.Interactions) != 0 {
		t.Errorf("sessions %+v, interactions %+v", v.Sessions, v.Interactions)
	}
	s.quiet()
}

func TestServerTurnAfterCancelIsInterrupted(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	c, done := s.cancel(in.Turn)
	s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	wait(t, done)
	s.CompleteCancel(c, s.Evidence())
	s.send(started(rootThread, "r2", "r2"))
	s.answer(s.expectInterrupt(rootThread, "r2"), `{}`)
	s.send(said(rootThread, "r2", "m", "unwanted")...)
	s.send(completed(rootThread, "r2", "r2", "interrupted"))
	v := s.View()
	if turns := turnsOf(v, s.Root); len(turns) != 1 {
		t.Errorf("root turns: %+v", turns)
	}
	if got := say(v, s.Root); !slices.Equal(got, []string{"user text undelivered: go"}) {
		t.Errorf("the root says %q", got)
	}
	s.begin("again", "r3") // a person's turn opens the door
	s.send(completed(rootThread, "r3", "r3", "completed"))
	s.send(started(rootThread, "r4", "r4"), completed(rootThread, "r4", "r4", "completed"))
	turns := turnsOf(s.View(), s.Root)
	if len(turns) != 3 || turns[2].Trigger != agent.TriggerProvider {
		t.Errorf("root turns: %+v", turns)
	}
}

func TestUnansweredInterruptDoesNotHoldTheChildrenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		in := s.begin("go", "r1")
		s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
		s.send(started("T1", "c1", "r1"))
		c := s.PrepareCancel(in.Turn)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		done := s.goes(func(context.Context) error { return s.rt.Cancel(ctx, c, s.Heard) })
		s.expectInterrupt(rootThread, "r1")
		<-time.After(interruptBound)
		s.answer(s.expectInterrupt("T1", "c1"), `{}`)
		s.send(completed("T1", "c1", "r1", "interrupted"))
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cancel without confirmation ended with %v", err)
		}
		s.wantEvidence(in.Turn, "")
		s.close()
	})
}

func TestFailedWriteOfAnInterruptIsNoSuccess(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	c := s.PrepareCancel(in.Turn)
	s.srv.end("signal: killed")
	<-s.rt.Done()
	err := s.rt.Cancel(t.Context(), c, s.Heard)
	if !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) || len(s.Evidence()) != 0 {
		t.Errorf("cancel ended with %v, evidence %v", err, s.Evidence())
	}
}

func TestForgottenSessionIsInterruptedAndSilent(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"), approval(0, "T1", "c1", "x"))
	c := child(t, s.View(), "T1")
	s.rt.Forget(t.Context(), s.Delete(c.ID))
	s.expect("refusal")
	s.answer(s.expectInterrupt("T1", "c1"), `{}`)
	records := len(s.Records())
	s.send(said("T1", "c1", "m", "late words")...)
	s.send(completed("T1", "c1", "r1", "interrupted"))
	if n := len(s.Records()); n != records {
		t.Errorf("%d facts of a deleted session", n-records)
	}
}
