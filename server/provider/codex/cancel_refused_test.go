package codex

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Refusals that say nothing of the turn: it runs on, and no stop is confirmed by one.

const busyServer = "internal error: channel full"

// cancelFor is cancel with a bound.
func (s *stage) cancelFor(turn agent.TurnID, bound time.Duration) <-chan error {
	c := s.PrepareCancel(turn)
	return s.goes(func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, bound)
		defer stop()
		return s.rt.Cancel(ctx, c, s.Heard)
	})
}

// oneChild runs a root turn with one child, which is T1.
func (s *stage) oneChild() (root, one agent.TurnID) {
	s.t.Helper()
	in := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	v := s.View()
	return in.Turn, turnsOf(v, child(s.t, v, "T1").ID)[0].ID
}

func TestRefusedInterruptOfAChildIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		root, one := s.oneChild()
		done := s.cancelFor(root, 15*time.Second)
		s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
		s.send(completed(rootThread, "r1", "r1", "interrupted"))
		for _, pause := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second} {
			before := time.Now()
			s.fail(s.expectInterrupt("T1", "c1"), busyServer)
			if took := time.Since(before); took != pause {
				t.Errorf("asked after %v, want %v", took, pause)
			}
		}
		s.wantEvidence(one, "")
		last := s.Evidence()[len(s.Evidence())-1]
		if last.TurnID != one || last.Err == nil || last.Err.Code != agent.CodeProviderRefused {
			t.Errorf("the refusal is no evidence: %+v", last)
		}
		s.answer(s.expectInterrupt("T1", "c1"), `{}`)
		s.send(completed("T1", "c1", "r1", "interrupted"))
		wait(t, done)
		s.wantEvidence(one, agent.TargetCanceled)
		s.quiet()
		s.close()
	})
}

func TestRefusedInterruptOfTheRootIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		root, one := s.oneChild()
		done := s.cancelFor(root, 15*time.Second)
		s.fail(s.expectInterrupt(rootThread, "r1"), busyServer)
		s.answer(s.expectInterrupt("T1", "c1"), `{}`) // the children do not wait for it
		s.send(completed("T1", "c1", "r1", "interrupted"))
		s.wantEvidence(one, agent.TargetCanceled)
		s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
		s.send(completed(rootThread, "r1", "r1", "interrupted"))
		wait(t, done)
		s.wantEvidence(root, agent.TargetCanceled)
		s.close()
	})
}

func TestCancelOfATurnThatCannotBeStoppedLastsToItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		_, one := s.oneChild()
		began := time.Now()
		done := s.cancelFor(one, time.Second)
		for range 3 { // at 0, 250 and 750 ms
			s.fail(s.expectInterrupt("T1", "c1"), busyServer)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v it ended with %v", time.Since(began), err)
		}
		s.answer(s.expectInterrupt("T1", "c1"), `{}`) // once more, and no longer for the cancel
		time.Sleep(time.Minute)
		s.quiet()
		s.close()
	})
}

func TestChildrenOfACancelWhoseTimeIsUpAreStillInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		root, _ := s.oneChild()
		done := s.cancelFor(root, time.Second)
		s.expectInterrupt(rootThread, "r1")
		s.send(started("T2", "d1", "r1")) // nobody's, and it waits for the root's answer too
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the cancel ended with %v", err)
		}
		s.answer(s.expectInterrupt("T1", "c1"), `{}`)
		s.answer(s.expectInterrupt("T2", "d1"), `{}`)
		s.close()
	})
}

// The interrupt of what nobody waits for is repeated too, within a bound.
func TestRefusedInterruptOfAnOrphanIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		root, _ := s.oneChild()
		done := s.cancelFor(root, 15*time.Second)
		s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
		s.answer(s.expectInterrupt("T1", "c1"), `{}`)
		s.send(completed(rootThread, "r1", "r1", "interrupted"), completed("T1", "c1", "r1", "interrupted"))
		wait(t, done)
		s.send(started("T3", "e1", "r1"))
		for range looseTries + 1 {
			s.fail(s.expectInterrupt("T3", "e1"), busyServer)
		}
		time.Sleep(time.Minute)
		s.quiet()
		s.send(started("T4", "f1", "r1"))
		s.fail(s.expectInterrupt("T4", "f1"), busyServer)
		s.fail(s.expectInterrupt("T4", "f1"), "expected active turn id `f1` but found `f2`")
		time.Sleep(time.Minute)
		s.quiet() // it has ended
		s.close()
	})
}

func TestDeletedChildDoesNotHoldACancel(t *testing.T) {
	s := newStage(t)
	root, _ := s.oneChild()
	session := child(t, s.View(), "T1").ID
	_, done := s.cancel(root)
	s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
	s.answer(s.expectInterrupt("T1", "c1"), `{}`)
	s.rt.Forget(t.Context(), s.Delete(session))
	s.answer(s.expectInterrupt("T1", "c1"), `{}`)
	s.send(completed(rootThread, "r1", "r1", "interrupted"), completed("T1", "c1", "r1", "interrupted"))
	wait(t, done)
	s.wantEvidence(root, agent.TargetCanceled)
}

func TestChildDeletedBeforeItsInterruptDoesNotHoldACancel(t *testing.T) {
	s := newStage(t)
	root, _ := s.oneChild()
	session := child(t, s.View(), "T1").ID
	_, done := s.cancel(root)
	stop := s.expectInterrupt(rootThread, "r1")
	s.rt.Forget(t.Context(), s.Delete(session))
	s.answer(stop, `{}`)
	s.answer(s.expectInterrupt("T1", "c1"), `{}`) // once, though two wanted it
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	wait(t, done)
	s.quiet()
}
