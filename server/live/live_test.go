package live_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

func code(err error) agent.Code {
	var e *agent.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestStartOpensOnceAndKeepsTheRuntime(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		w.adapter.runtime(0).finish(in.Turn)
		in = w.started(s)
		w.adapter.runtime(0).finish(in.Turn)
		if w.adapter.opens() != 1 || w.turn(in.Turn).Outcome != agent.OutcomeCompleted {
			t.Errorf("%d opens, turn %+v", w.adapter.opens(), w.turn(in.Turn))
		}
	})
}

// A runtime can be opened to be watched: what the provider begins there by itself is a
// root turn of its own.
func TestWatchOpensWithoutAMessage(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		for range 2 {
			if err := w.live.Watch(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if w.adapter.opens() != 1 {
			t.Fatalf("%d opens", w.adapter.opens())
		}
		applied, err := w.adapter.runtime(0).sink.Apply(agent.ProviderTurnStarted{Session: s.ID, Key: "goal"})
		if err != nil || w.turn(applied.Turn).Trigger != agent.TriggerProvider || w.turn(applied.Turn).Phase != agent.PhaseRunning {
			t.Errorf("turn %+v, %v", w.turn(applied.Turn), err)
		}
	})
}

func TestWatchThatIsClosedWhileItOpens(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		w.adapter.open = func(ctx context.Context, _ provider.OpenParams, _ provider.Sink) (provider.Runtime, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := w.root()
		watched := make(chan error, 1)
		go func() { watched <- w.live.Watch(t.Context(), s) }()
		synctest.Wait()
		if err := w.live.CloseSession(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
		if err := <-watched; code(err) != agent.CodeDaemonStopping || w.live.Open(s.ID) {
			t.Errorf("Watch = %v, open %v", err, w.live.Open(s.ID))
		}
	})
}

func TestOpenFailureEndsTheTurnAsFailed(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) {
			return nil, agent.Errorf(agent.CodeProviderUnavailable, "not installed")
		}
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		if err := w.live.Start(t.Context(), s, in); code(err) != agent.CodeProviderUnavailable {
			t.Errorf("Start = %v", err)
		}
		turn := w.turn(in.Turn)
		if turn.Outcome != agent.OutcomeFailed || turn.Error == nil || turn.Error.Message != "not installed" {
			t.Errorf("turn is %+v", turn)
		}
		w.adapter.open = nil
		if in = w.started(s); w.turn(in.Turn).Phase != agent.PhaseRunning {
			t.Error("the next message does not work")
		}
	})
}

func TestUnknownProviderEndsTheTurnAsFailed(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.AddRoot(agent.Session{Provider: "nope"})
		in := w.Submit(s.ID, "Go.")
		if err := w.live.Start(t.Context(), s, in); code(err) != agent.CodeProviderUnavailable {
			t.Errorf("Start = %v", err)
		}
		if w.turn(in.Turn).Outcome != agent.OutcomeFailed {
			t.Errorf("turn is %+v", w.turn(in.Turn))
		}
	})
}

func TestRefusedStartIsEndedWhereTheAdapterLeftItOpen(t *testing.T) {
	for name, begins := range map[string]bool{"begun": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, live.Options{}, func(t *testing.T, w *world) {
				w.adapter.open = func(_ context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
					r := &fakeRuntime{sink: sink, root: p.Root.ID, done: make(chan struct{})}
					r.onStart = func(_ context.Context, in provider.Input) error {
						if begins {
							_ = r.begin(in)
						}
						return agent.Errorf(agent.CodeProviderRefused, "no credit")
					}
					return r, nil
				}
				s := w.root()
				in := w.Submit(s.ID, "Go.")
				_ = w.live.Start(t.Context(), s, in)
				if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeFailed || turn.Error.Message != "no credit" {
					t.Errorf("turn is %+v", turn)
				}
			})
		})
	}
}

// One provider that hangs while it opens must not hold up another root, and a stop of
// its turn must end the opening (field report B050).
func TestCancelWhileOpening(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		hangs := w.root()
		w.adapter.open = func(ctx context.Context, p provider.OpenParams, _ provider.Sink) (provider.Runtime, error) {
			if p.Root.ID == hangs.ID {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		}
		in := w.Submit(hangs.ID, "Go.")
		result := make(chan error, 1)
		go func() { result <- w.live.Start(t.Context(), hangs, in) }()
		synctest.Wait()
		if !w.live.Open(hangs.ID) {
			t.Error("a session that opens does not count as open")
		}

		began := time.Now()
		other := w.root()
		w.started(other)
		if time.Since(began) != 0 {
			t.Errorf("another root waited %v", time.Since(began))
		}

		c := w.PrepareCancel(in.Turn)
		var heard []agent.Evidence
		if err := w.live.Cancel(t.Context(), hangs.ID, c, func(e agent.Evidence) { heard = append(heard, e) }); err != nil {
			t.Errorf("Cancel = %v", err)
		}
		if states := w.CompleteCancel(c, heard); states[0] != agent.TargetCanceled {
			t.Errorf("the root's target is %s", states[0])
		}
		if err := <-result; code(err) != agent.CodeTurnCanceling {
			t.Errorf("Start = %v", err)
		}
		if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeCanceled || turn.Error != nil {
			t.Errorf("turn is %+v", turn)
		}
		if time.Since(began) != 0 {
			t.Errorf("the stop took %v", time.Since(began))
		}
	})
}

// An adapter that does not even heed its context is left behind, and what it opens
// too late is closed.
func TestOpeningThatHeedsNothing(t *testing.T) {
	inBubble(t, live.Options{CloseTimeout: 5 * time.Second}, func(t *testing.T, w *world) {
		release := make(chan struct{})
		late := &fakeRuntime{done: make(chan struct{})}
		var opened atomic.Bool
		w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) {
			if opened.Swap(true) {
				return nil, nil
			}
			<-release
			return late, nil
		}
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		began := time.Now()
		if err := w.live.Start(t.Context(), s, in); code(err) != agent.CodeTimeout {
			t.Errorf("Start = %v", err)
		}
		if took := time.Since(began); took != 65*time.Second {
			t.Errorf("it was given up after %v", took)
		}
		in = w.started(s) // the session goes on
		close(release)
		<-late.done
		if w.turn(in.Turn).Phase != agent.PhaseRunning {
			t.Error("the late runtime disturbed the new one")
		}
	})
}

func TestCancelOfAStartThatHangsGoesToTheProviderFirst(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		var order []string
		w.adapter.open = func(_ context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
			r := &fakeRuntime{sink: sink, root: p.Root.ID, done: make(chan struct{})}
			r.onStart = func(ctx context.Context, in provider.Input) error {
				_ = r.begin(in)
				<-ctx.Done()
				order = append(order, "start given up")
				return ctx.Err()
			}
			r.onCancel = func(context.Context, provider.Cancel, func(agent.Evidence)) error {
				time.Sleep(time.Second)
				order = append(order, "provider stopped")
				return nil
			}
			return r, nil
		}
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		done := make(chan struct{})
		go func() { defer close(done); _ = w.live.Start(t.Context(), s, in) }()
		synctest.Wait()
		c := w.PrepareCancel(in.Turn)
		if err := w.live.Cancel(t.Context(), s.ID, c, func(agent.Evidence) {}); err != nil {
			t.Errorf("Cancel = %v", err)
		}
		<-done
		if len(order) != 2 || order[0] != "provider stopped" {
			t.Errorf("order was %v", order)
		}
	})
}

func TestCancelWithoutARuntimeSaysSo(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		c := w.PrepareCancel(in.Turn)
		if err := w.live.Cancel(t.Context(), s.ID, c, nil); code(err) != agent.CodeProviderGone {
			t.Errorf("Cancel = %v", err)
		}
		w.CompleteCancel(c, nil)
		// The start that lost the race opens nothing.
		if err := w.live.Start(t.Context(), s, in); code(err) != agent.CodeTurnSettled || w.adapter.opens() != 0 {
			t.Errorf("Start = %v after %d opens", err, w.adapter.opens())
		}
	})
}

func TestDeathIsReportedEvenIfTheAdapterIsSilent(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		w.adapter.runtime(0).die()
		synctest.Wait()
		turn := w.turn(in.Turn)
		if turn.Outcome != agent.OutcomeInterrupted || turn.Error.Code != agent.CodeProviderGone {
			t.Errorf("turn is %+v", turn)
		}
		if facts[agent.SessionLost](w) != 1 || w.live.Open(s.ID) {
			t.Errorf("%d losses, open %v", facts[agent.SessionLost](w), w.live.Open(s.ID))
		}
		if _, err := w.adapter.runtime(0).sink.Apply(agent.SessionDescribed{Session: s.ID}); err == nil {
			t.Error("a dead runtime may still report")
		}
		in = w.started(s) // it resumes with what storage remembers
		if w.adapter.opens() != 2 || len(w.adapter.params[1].ProviderTurns) != 1 || w.turn(in.Turn).Phase != agent.PhaseRunning {
			t.Errorf("resume: %+v", w.adapter.params[1].Remembered)
		}
	})
}

func TestDeathThatTheAdapterReportsIsReportedOnce(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		w.started(s)
		r := w.adapter.runtime(0)
		_, _ = r.sink.Apply(agent.SessionLost{Session: s.ID, Err: agent.Errorf(agent.CodeProviderGone, "exit 1")})
		r.die()
		synctest.Wait()
		if facts[agent.SessionLost](w) != 1 {
			t.Errorf("%d losses", facts[agent.SessionLost](w))
		}
	})
}

func TestPanicEndsTheRuntimeAlone(t *testing.T) {
	breaks := map[string]func(r *fakeRuntime, w *world, in provider.Input){
		"call": func(r *fakeRuntime, w *world, in provider.Input) {
			r.onCancel = func(context.Context, provider.Cancel, func(agent.Evidence)) error { panic("no") }
			if err := w.live.Cancel(w.t.Context(), r.root, provider.Cancel{Turn: in.Turn}, nil); code(err) != agent.CodeInternal {
				w.t.Errorf("Cancel = %v", err)
			}
		},
		"timer":     func(r *fakeRuntime, _ *world, _ provider.Input) { r.sink.Clock().AfterFunc(0, func() { panic("no") }) },
		"goroutine": func(r *fakeRuntime, _ *world, _ provider.Input) { provider.Go(r.sink, func() { panic("no") }) },
	}
	for name, breakIt := range breaks {
		t.Run(name, func(t *testing.T) {
			inBubble(t, live.Options{}, func(t *testing.T, w *world) {
				s, other := w.root(), w.root()
				in, calm := w.started(s), w.started(other)
				breakIt(w.adapter.runtime(0), w, in)
				synctest.Wait()
				if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeInterrupted || turn.Error.Code != agent.CodeInternal {
					t.Errorf("turn is %+v", turn)
				}
				if w.turn(calm.Turn).Phase != agent.PhaseRunning {
					t.Error("another root was touched")
				}
			})
		})
	}
}

func TestPanicWhileOpening(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) { panic("no") }
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		_ = w.live.Start(t.Context(), s, in)
		if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeFailed || turn.Error.Code != agent.CodeInternal {
			t.Errorf("turn is %+v", turn)
		}
	})
}

func TestGuideWaitsForTheStart(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) {
			time.Sleep(3 * time.Second)
			return nil, nil
		}
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		done := make(chan struct{})
		go func() { defer close(done); _ = w.live.Start(t.Context(), s, in) }()
		synctest.Wait()
		if err := w.live.Guide(t.Context(), s.ID, w.Guidance(s.ID, "And this.")); err != nil {
			t.Errorf("Guide = %v", err)
		}
		<-done
		if len(w.adapter.runtime(0).guided) != 1 {
			t.Error("the message did not arrive")
		}
	})
}

func TestIdleRuntimeClosesAndOneAtWorkDoesNot(t *testing.T) {
	inBubble(t, live.Options{IdleClose: 10 * time.Minute}, func(t *testing.T, w *world) {
		idle, works := w.root(), w.root()
		in := w.started(idle)
		busy := w.started(works)
		w.adapter.runtime(0).finish(in.Turn)
		time.Sleep(9 * time.Minute)
		if !w.live.Open(idle.ID) {
			t.Error("closed too early")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if w.live.Open(idle.ID) || !w.live.Open(works.ID) {
			t.Errorf("idle open %v, busy open %v", w.live.Open(idle.ID), w.live.Open(works.ID))
		}
		w.adapter.runtime(1).finish(busy.Turn)
		if w.turn(busy.Turn).Outcome != agent.OutcomeCompleted {
			t.Error("silence ended a turn")
		}
	})
}

// A server that an agent has left running is wanted: it would end with the runtime.
func TestRuntimeWithAProcessStaysOpen(t *testing.T) {
	inBubble(t, live.Options{IdleClose: 10 * time.Minute}, func(t *testing.T, w *world) {
		root := w.root()
		in := w.started(root)
		rt := w.adapter.runtime(0)
		process := func(id agent.ProcessID, status agent.ProcessStatus) {
			_, err := rt.sink.Apply(agent.ProcessSeen{Process: agent.Process{ID: id, SessionID: root.ID, TurnID: in.Turn, Command: "serve", Status: status}})
			if err != nil {
				t.Fatal(err)
			}
		}
		process("one", agent.ProcessRunning)
		process("two", agent.ProcessRunning)
		process("two", agent.ProcessRunning) // said again
		rt.finish(in.Turn)
		process("one", agent.ProcessEnded)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if !w.live.Open(root.ID) {
			t.Error("the process was ended with its idle session")
		}
		process("two", agent.ProcessEnded)
		process("two", agent.ProcessRunning) // an ended one never runs again
		time.Sleep(time.Hour)
		synctest.Wait()
		if w.live.Open(root.ID) {
			t.Error("the idle session stays open")
		}
	})
}

func TestCloseTellsWhatRan(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		if err := w.live.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if turn := w.turn(in.Turn); turn.Outcome != agent.OutcomeInterrupted || turn.Error.Code != agent.CodeDaemonStopping {
			t.Errorf("turn is %+v", turn)
		}
		if err := w.live.Start(t.Context(), s, in); code(err) != agent.CodeDaemonStopping {
			t.Errorf("Start after Close = %v", err)
		}
	})
}

func TestCloseIsNotHeldUpByAHungAdapter(t *testing.T) {
	inBubble(t, live.Options{CloseTimeout: 5 * time.Second}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		release := make(chan struct{})
		defer close(release)
		w.adapter.runtime(0).onClose = func(context.Context) error { <-release; return nil }
		began := time.Now()
		if err := w.live.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
		if w.turn(in.Turn).Phase != agent.PhaseSettled {
			t.Error("the turn was left open")
		}
	})
}

func TestCloseSessionWhileOpening(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		w.adapter.open = func(ctx context.Context, _ provider.OpenParams, _ provider.Sink) (provider.Runtime, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := w.root()
		in := w.Submit(s.ID, "Go.")
		done := make(chan struct{})
		go func() { defer close(done); _ = w.live.Start(t.Context(), s, in) }()
		synctest.Wait()
		if err := w.live.CloseSession(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
		<-done
		if w.turn(in.Turn).Outcome != agent.OutcomeInterrupted || w.live.Open(s.ID) {
			t.Errorf("turn is %+v", w.turn(in.Turn))
		}
	})
}
