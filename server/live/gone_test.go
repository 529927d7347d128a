package live_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// A person sends the next message in the moment between the report of a death and the end
// of its runtime: it goes to a new runtime, and is not lost with the old one.
func TestMessageToADyingRuntimeGoesToTheNext(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		w.started(s)
		r := w.adapter.runtime(0)
		_, _ = r.sink.Apply(agent.SessionLost{Session: s.ID, Err: agent.Errorf(agent.CodeProviderGone, "exit 1")})
		r.onStart = func(context.Context, provider.Input) error {
			return agent.Errorf(agent.CodeProviderGone, "it has ended")
		}
		r.onClose = func(context.Context) error { <-r.done; return nil }
		in := w.Submit(s.ID, "Go on.")
		taken := make(chan error, 1)
		go func() { taken <- w.live.Start(t.Context(), s, in) }()
		synctest.Wait()
		if w.adapter.opens() != 1 {
			t.Error("a new runtime overtook the end of the old one")
		}
		r.die()
		if err := <-taken; err != nil || w.adapter.opens() != 2 || w.turn(in.Turn).Phase != agent.PhaseRunning {
			t.Errorf("Start = %v after %d opens, turn %+v", err, w.adapter.opens(), w.turn(in.Turn))
		}
	})
}

// A runtime that says it is gone, in whatever call, and does not end by itself is ended,
// even if it does not come back from that; the next message opens another.
func TestRuntimeThatSaysItIsGoneIsReplaced(t *testing.T) {
	gone := agent.Errorf(agent.CodeProviderGone, "it has ended")
	calls := map[string]func(r *fakeRuntime, w *world, s agent.Session, in provider.Input) error{
		"start": func(r *fakeRuntime, w *world, s agent.Session, _ provider.Input) error {
			r.onStart = func(_ context.Context, in provider.Input) error { _ = r.begin(in); return gone }
			r.finish(w.View().RootTurn().ID)
			return w.live.Start(w.t.Context(), s, w.Submit(s.ID, "Go on."))
		},
		"guide": func(r *fakeRuntime, w *world, s agent.Session, in provider.Input) error {
			r.onGuide = func() error { return gone }
			return w.live.Guide(w.t.Context(), s.ID, in)
		},
		"cancel": func(r *fakeRuntime, w *world, s agent.Session, in provider.Input) error {
			r.onCancel = func(context.Context, provider.Cancel, func(agent.Evidence)) error { return gone }
			return w.live.Cancel(w.t.Context(), s.ID, provider.Cancel{Turn: in.Turn}, nil)
		},
		"answer": func(r *fakeRuntime, w *world, s agent.Session, _ provider.Input) error {
			r.onAnswer = func() error { return gone }
			return w.live.Answer(w.t.Context(), s.ID, provider.Answer{})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			inBubble(t, live.Options{CloseTimeout: 5 * time.Second}, func(t *testing.T, w *world) {
				s := w.root()
				in := w.started(s)
				r := w.adapter.runtime(0)
				hung := make(chan struct{})
				r.onClose = func(context.Context) error { <-hung; return nil }
				began := time.Now()
				if err := call(r, w, s, in); code(err) != agent.CodeProviderGone {
					t.Errorf("the call ended with %v", err)
				}
				time.Sleep(7*time.Second - time.Since(began))
				turn := w.View().RootTurn()
				if turn.Outcome != agent.OutcomeInterrupted || turn.Error == nil || turn.Error.Message != "it has ended" {
					t.Errorf("turn is %+v", turn)
				}
				if in = w.started(s); w.adapter.opens() != 2 || w.turn(in.Turn).Phase != agent.PhaseRunning {
					t.Errorf("%d opens, turn %+v", w.adapter.opens(), w.turn(in.Turn))
				}
				close(hung)
			})
		})
	}
}

// Whoever comes while such a runtime is being closed is not given it either.
func TestMessageWaitsForTheEndOfAFailingRuntime(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		s := w.root()
		in := w.started(s)
		r := w.adapter.runtime(0)
		r.onAnswer = func() error { return agent.Errorf(agent.CodeProviderGone, "it has ended") }
		r.onClose = func(context.Context) error { time.Sleep(2 * time.Second); r.die(); return nil }
		r.finish(in.Turn)
		_, _ = r.sink.Apply(agent.SessionLost{Session: s.ID, Err: agent.Errorf(agent.CodeProviderGone, "exit 1")})
		_ = w.live.Answer(t.Context(), s.ID, provider.Answer{})
		began := time.Now()
		in = w.started(s)
		if took := time.Since(began); took != 2*time.Second || w.adapter.opens() != 2 || w.turn(in.Turn).Phase != agent.PhaseRunning {
			t.Errorf("after %v and %d opens the turn is %+v", took, w.adapter.opens(), w.turn(in.Turn))
		}
	})
}
