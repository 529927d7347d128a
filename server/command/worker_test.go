package command_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func guideOf(attempts int, text string) agent.Claimed {
	return agent.Claimed{
		Operation: agent.Operation{Kind: agent.OperationGuide, Attempts: attempts},
		Message:   &agent.Message{ID: "m", TurnID: "t", Content: text},
	}
}

func answerOf() agent.Claimed {
	return agent.Claimed{
		Operation:   agent.Operation{Kind: agent.OperationAnswer},
		Interaction: &agent.Interaction{RequestID: "r", Status: agent.InteractionAnswering},
	}
}

// A stop of the turn supersedes its questions: an answer recorded before it is not delivered
// to a turn that is being stopped.
func TestAnswerToAClosedQuestionIsNotDelivered(t *testing.T) {
	for _, status := range []agent.InteractionStatus{agent.InteractionSuperseded, agent.InteractionPending, agent.InteractionAnswered} {
		inBubble(t, func(t *testing.T, d *desk) {
			c := answerOf()
			c.Interaction.Status = status
			op := d.carry(c)
			if n := d.live.count("answer"); n != 0 || !d.ended(op) || op.failure == nil || op.failure.Code != agent.CodeInteractionGone {
				t.Errorf("%s: delivered %d times, op %+v", status, n, op)
			}
		})
	}
}

func TestCancelCompletesWhenConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(_ context.Context, heard func(agent.Evidence)) error {
			heard(agent.Evidence{TurnID: "t", State: agent.TargetAcknowledged})
			time.Sleep(time.Second)
			heard(agent.Evidence{TurnID: "t", State: agent.TargetCanceled})
			return nil
		}
		op := d.carry(cancelOf(15 * time.Second))
		if len(d.store.hears) != 1 || d.ended(op) {
			t.Errorf("heard %v, ended %v", d.store.hears, d.ended(op))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(d.store.hears) != 2 || !d.ended(op) || op.failure != nil {
			t.Errorf("heard %v, op %+v", d.store.hears, op)
		}
	})
}

func TestCancelOfASilentProviderEndsAtItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(ctx context.Context, _ func(agent.Evidence)) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		op := d.carry(cancelOf(15 * time.Second))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if !d.ended(op) || op.ended.Sub(began) != 15*time.Second || d.live.count("cancel") != 1 {
			t.Errorf("ended after %v, %d requests", op.ended.Sub(began), d.live.count("cancel"))
		}
	})
}

func TestCancelThatCannotBeWrittenIsTriedAgainAndNeverASuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		var at []time.Duration
		began := time.Now()
		d.live.cancel = func(context.Context, func(agent.Evidence)) error {
			at = append(at, time.Since(began))
			return errors.New("broken pipe")
		}
		op := d.carry(cancelOf(5 * time.Second))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := []time.Duration{0, 250 * time.Millisecond, 750 * time.Millisecond, 1750 * time.Millisecond, 3750 * time.Millisecond}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		if op.ended.Sub(began) != 5*time.Second || op.Operation.Status == agent.OperationSucceeded || op.failure == nil {
			t.Errorf("op ended after %v as %+v", op.ended.Sub(began), op)
		}
	})
}

func TestCancelSucceedsOnALaterAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(context.Context, func(agent.Evidence)) error {
			if d.live.count("cancel") < 3 {
				return errors.New("broken pipe")
			}
			return nil
		}
		op := d.carry(cancelOf(15 * time.Second))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !d.ended(op) || op.failure != nil || op.Operation.Attempts != 3 {
			t.Errorf("op %+v", op)
		}
	})
}

func TestCancelWithoutARuntimeCompletesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(context.Context, func(agent.Evidence)) error { return agent.Errorf(agent.CodeProviderGone, "gone") }
		began := time.Now()
		op := d.carry(cancelOf(15 * time.Second))
		if !d.ended(op) || op.ended != began || op.failure != nil {
			t.Errorf("op %+v", op)
		}
	})
}

func TestCancelWhoseTimeIsUpAsksNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		op := d.carry(cancelOf(-time.Minute))
		if !d.ended(op) || len(d.live.seen()) != 0 {
			t.Errorf("op %+v, calls %v", op, d.live.seen())
		}
	})
}

func TestEvidenceSurvivesABusyStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(_ context.Context, heard func(agent.Evidence)) error {
			d.store.busy = 4
			heard(agent.Evidence{TurnID: "t", State: agent.TargetAcknowledged})
			heard(agent.Evidence{TurnID: "t", State: agent.TargetCanceled})
			return nil
		}
		op := d.carry(cancelOf(15 * time.Second))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !d.ended(op) || len(d.store.hears) != 2 || d.store.hears[0].State != agent.TargetAcknowledged {
			t.Errorf("heard %v, op %+v", d.store.hears, op)
		}
	})
}

func TestStoppedWorkerLeavesItsCancelForTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.cancel = func(ctx context.Context, _ func(agent.Evidence)) error {
			<-ctx.Done()
			return ctx.Err()
		}
		op := d.carry(cancelOf(15 * time.Second))
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d.ended(op) || op.Operation.Status != agent.OperationRunning {
			t.Errorf("op %+v", op)
		}
	})
}

func TestAnswer(t *testing.T) {
	refused := agent.Errorf(agent.CodeProviderRefused, "not now")
	for name, c := range map[string]struct {
		live func(context.Context) error
		want agent.Code
	}{
		"taken":    {nil, ""},
		"refused":  {func(context.Context) error { return refused }, agent.CodeProviderRefused},
		"silent":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, agent.CodeTimeout},
		"internal": {func(context.Context) error { return errors.New("odd") }, agent.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *desk) {
				d.live.answer = c.live
				op := d.carry(answerOf())
				time.Sleep(time.Minute)
				synctest.Wait()
				var got agent.Code
				if op.failure != nil {
					got = op.failure.Code
				}
				if !d.ended(op) || got != c.want || d.live.count("answer") != 1 {
					t.Errorf("op %+v after %d deliveries", op, d.live.count("answer"))
				}
			})
		})
	}
}

func TestGuideIsDeliveredOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.guide = func(context.Context) error { return errors.New("broken pipe") }
		op := d.carry(guideOf(0, ""))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !d.ended(op) || op.failure == nil || d.live.count("guide") != 1 {
			t.Errorf("op %+v after %d deliveries", op, d.live.count("guide"))
		}
	})
}

func TestGuideOfADaemonThatDiedIsNotSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		op := d.carry(guideOf(1, "")) // claimed before, by a daemon that is gone
		if !d.ended(op) || op.failure.Code != agent.CodeDaemonRestart || d.live.count("guide") != 0 {
			t.Errorf("op %+v after %d deliveries", op, d.live.count("guide"))
		}
	})
}

func TestGuidesKeepTheirOrderAndWaitForTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.start = func(context.Context) error { time.Sleep(3 * time.Second); return nil }
		d.live.guide = func(context.Context) error { time.Sleep(time.Second); return nil }
		d.store.reply = agent.Submitted{Session: agent.Session{ID: "root"}, Message: &agent.Message{}, Delivery: agent.DeliveryStarted}
		if _, err := d.Send(t.Context(), "ws", agent.NewMessage{Session: "root", Text: "Go."}); err != nil {
			t.Fatal(err)
		}
		d.carry(guideOf(0, " one"))
		d.carry(guideOf(0, " two"))
		cancel := d.carry(cancelOf(15 * time.Second)) // does not wait in the lane
		answer := d.carry(answerOf())
		if !d.ended(cancel) || !d.ended(answer) {
			t.Error("a cancel or an answer waited for a message")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		calls := slices.DeleteFunc(d.live.seen(), func(c string) bool { return c == "cancel" || c == "answer" })
		if !slices.Equal(calls, []string{"start", "guide one", "guide two"}) {
			t.Errorf("order was %v", calls)
		}
	})
}

func TestOneRootDoesNotHoldUpAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.guide = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		d.carry(guideOf(0, ""))
		other := guideOf(0, " other")
		other.Root.ID = "other"
		d.carry(other)
		if d.live.count("guide other") != 1 {
			t.Error("another root's message waited")
		}
	})
}

// A lease that runs out while the operation waits in its lane must not deliver it twice.
func TestLeaseThatRunsOutInTheLane(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.live.start = func(context.Context) error { time.Sleep(5 * time.Minute); return nil }
		d.store.reply = agent.Submitted{Session: agent.Session{ID: "root"}, Message: &agent.Message{}, Delivery: agent.DeliveryStarted}
		if _, err := d.Send(t.Context(), "ws", agent.NewMessage{Session: "root", Text: "Go."}); err != nil {
			t.Fatal(err)
		}
		op := d.carry(guideOf(0, ""))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !d.ended(op) || op.failure != nil || d.live.count("guide") != 1 {
			t.Errorf("op %+v after %d deliveries", op, d.live.count("guide"))
		}
	})
}

func TestIdleWorkerHardlyAsks(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		before := d.store.claimed()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if asked := d.store.claimed() - before; asked > 21 {
			t.Errorf("asked %d times in ten idle minutes", asked)
		}
	})
}

func TestCompletionIsTriedAgainWhileStorageIsBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.store.busy = 3
		op := d.carry(answerOf())
		time.Sleep(time.Second)
		synctest.Wait()
		if !d.ended(op) {
			t.Errorf("op %+v", op)
		}
	})
}
