package live_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// A session that has nothing open leaves nothing behind, however its runtime ended.
func TestRegistryKeepsNoIdleSession(t *testing.T) {
	ends := map[string]func(w *world, s agent.Session, in provider.Input){
		"death": func(w *world, _ agent.Session, _ provider.Input) { w.adapter.runtime(0).die() },
		"close": func(w *world, s agent.Session, _ provider.Input) { _ = w.live.CloseSession(w.t.Context(), s.ID) },
		"idle": func(w *world, _ agent.Session, in provider.Input) {
			w.adapter.runtime(0).finish(in.Turn)
			time.Sleep(2 * time.Hour)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, live.Options{IdleClose: time.Hour}, func(t *testing.T, w *world) {
				s := w.root()
				in := w.started(s)
				if w.live.Actors() != 1 {
					t.Errorf("%d sessions while one runs", w.live.Actors())
				}
				end(w, s, in)
				synctest.Wait()
				if w.live.Actors() != 0 {
					t.Errorf("%d sessions are kept", w.live.Actors())
				}
				in = w.started(s)
				if w.adapter.opens() != 2 || w.turn(in.Turn).Phase != agent.PhaseRunning || w.live.Actors() != 1 {
					t.Errorf("%d opens, %d sessions, turn %+v", w.adapter.opens(), w.live.Actors(), w.turn(in.Turn))
				}
			})
		})
	}
	t.Run("refused opening", func(t *testing.T) {
		inBubble(t, live.Options{}, func(t *testing.T, w *world) {
			w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) {
				return nil, agent.Errorf(agent.CodeProviderUnavailable, "not installed")
			}
			for range 3 {
				s := w.root()
				_ = w.live.Start(t.Context(), s, w.Submit(s.ID, "Go."))
				_ = w.live.Watch(t.Context(), w.root())
			}
			if w.live.Actors() != 0 {
				t.Errorf("%d sessions are kept", w.live.Actors())
			}
		})
	})
}

// A call that waits for its turn keeps the session where the next call finds it.
func TestRegistryKeepsASessionThatIsWaitedFor(t *testing.T) {
	inBubble(t, live.Options{}, func(t *testing.T, w *world) {
		fails := true
		w.adapter.open = func(context.Context, provider.OpenParams, provider.Sink) (provider.Runtime, error) {
			time.Sleep(time.Second)
			if fails {
				fails = false
				return nil, agent.Errorf(agent.CodeProviderUnavailable, "not yet")
			}
			return nil, nil
		}
		s := w.root()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { _ = w.live.Watch(t.Context(), s) })
		}
		both.Wait()
		w.started(s)
		if w.adapter.opens() != 2 || w.live.OpenCount() != 1 {
			t.Errorf("%d openings, one of which failed; %d are open", w.adapter.opens(), w.live.OpenCount())
		}
	})
}

// Whoever comes while an actor is being dropped gets it or a new one: a root never has two
// runtimes at the same time, and none is forgotten. This runs in real time, for the races.
func TestRegistryNeverHasTwoRuntimesOfOneRoot(t *testing.T) {
	var open, most, tries atomic.Int32
	adapter := &fakeAdapter{}
	adapter.open = func(_ context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
		if tries.Add(1)%3 == 0 {
			return nil, agent.Errorf(agent.CodeProviderUnavailable, "not now")
		}
		n := open.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		r := &fakeRuntime{sink: sink, root: p.Root.ID, done: make(chan struct{})}
		var once sync.Once
		r.onClose = func(context.Context) error {
			once.Do(func() { open.Add(-1) })
			r.die()
			return nil
		}
		return r, nil
	}
	mint := providertest.Counter()
	model := providertest.NewModel(mint, provider.RealClock{})
	l := live.New(live.Options{Recorder: model, Adapters: map[string]provider.Adapter{"fake": adapter}, Mint: mint})
	s := model.AddRoot(agent.Session{Provider: "fake"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				switch i % 4 {
				case 0, 2:
					_ = l.Watch(t.Context(), s) // a close may end it
				case 1:
					_ = l.CloseSession(t.Context(), s.ID)
				case 3:
					_ = l.Guide(t.Context(), s.ID, provider.Input{})
				}
			}
		})
	}
	all.Wait()
	_ = l.CloseSession(t.Context(), s.ID)
	if most.Load() != 1 || open.Load() != 0 || l.Actors() != 0 || adapter.opens() < 2 {
		t.Errorf("%d runtimes at once, %d left, %d actors, %d opens", most.Load(), open.Load(), l.Actors(), adapter.opens())
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
