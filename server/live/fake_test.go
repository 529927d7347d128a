package live_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAdapter opens fakeRuntimes, unless open says otherwise.
type fakeAdapter struct {
	open func(ctx context.Context, p provider.OpenParams, s provider.Sink) (provider.Runtime, error)

	mu     sync.Mutex
	opened []*fakeRuntime
	params []provider.OpenParams
}

func (*fakeAdapter) Name() string                        { return "fake" }
func (*fakeAdapter) Probe(context.Context) provider.Info { return provider.Info{Name: "fake"} }

func (f *fakeAdapter) Open(ctx context.Context, p provider.OpenParams, s provider.Sink) (provider.Runtime, error) {
	f.mu.Lock()
	f.params = append(f.params, p)
	f.mu.Unlock()
	if f.open != nil {
		if rt, err := f.open(ctx, p, s); rt != nil || err != nil {
			return rt, err
		}
	}
	r := &fakeRuntime{sink: s, root: p.Root.ID, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, r)
	return r, nil
}

// runtime returns the n-th runtime that was opened, from 0.
func (f *fakeAdapter) runtime(n int) *fakeRuntime {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened[n]
}

func (f *fakeAdapter) opens() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.params)
}

// fakeRuntime begins a provider turn for each Start and then does what the test says.
type fakeRuntime struct {
	sink provider.Sink
	root agent.SessionID
	done chan struct{}
	once sync.Once

	onStart  func(ctx context.Context, in provider.Input) error
	onCancel func(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error
	onClose  func(ctx context.Context) error
	onGuide  func() error
	onAnswer func() error
	guided   []provider.Input
}

func (r *fakeRuntime) Start(ctx context.Context, in provider.Input) error {
	if r.onStart != nil {
		return r.onStart(ctx, in)
	}
	return r.begin(in)
}

func (r *fakeRuntime) begin(in provider.Input) error {
	a, err := r.sink.Apply(agent.ProviderTurnStarted{Session: r.root, Turn: in.Turn, Key: key(in.Turn)})
	if a.Verdict == agent.VerdictRefused {
		return agent.Errorf(a.Code, "refused")
	}
	return err
}

func key(turn agent.TurnID) agent.ProviderTurnID { return agent.ProviderTurnID("p-" + string(turn)) }

func (r *fakeRuntime) finish(turn agent.TurnID) {
	_, _ = r.sink.Apply(agent.ProviderTurnEnded{Session: r.root, Turn: turn, Key: key(turn), Outcome: agent.OutcomeCompleted})
}

func (r *fakeRuntime) Guide(_ context.Context, in provider.Input) error {
	if r.onGuide != nil {
		return r.onGuide()
	}
	r.guided = append(r.guided, in)
	return nil
}

func (r *fakeRuntime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	if r.onCancel != nil {
		return r.onCancel(ctx, c, heard)
	}
	for _, t := range c.Targets {
		heard(agent.Evidence{SessionID: t.Session, TurnID: t.Turn, State: agent.TargetCanceled})
	}
	return nil
}

func (r *fakeRuntime) Answer(context.Context, provider.Answer) error {
	if r.onAnswer != nil {
		return r.onAnswer()
	}
	return nil
}

func (r *fakeRuntime) Forget(context.Context, []agent.SessionID) {}
func (r *fakeRuntime) Done() <-chan struct{}                     { return r.done }
func (r *fakeRuntime) die()                                      { r.once.Do(func() { close(r.done) }) }

func (r *fakeRuntime) Close(ctx context.Context) error {
	if r.onClose != nil {
		return r.onClose(ctx)
	}
	r.die()
	return nil
}

// message reports a new streaming message of the root.
func (r *fakeRuntime) message(id agent.MessageID, turn agent.TurnID) agent.Applied {
	a, _ := r.sink.Apply(agent.MessagePut{Message: agent.Message{
		ID: id, SessionID: r.root, TurnID: turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming,
	}})
	return a
}

// world is one Live over a model and a fake adapter, in virtual time.
type world struct {
	*providertest.Model
	t       *testing.T
	live    *live.Live
	adapter *fakeAdapter
	deltas  []agent.Delta
}

// inBubble runs f in virtual time and closes everything afterwards.
func inBubble(t *testing.T, o live.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mint := providertest.Counter()
		w := &world{Model: providertest.NewModel(mint, provider.RealClock{}), t: t, adapter: &fakeAdapter{}}
		o.Mint, o.Recorder = mint, w.Model
		o.Logger = slog.New(slog.DiscardHandler)
		if o.Adapters == nil {
			o.Adapters = map[string]provider.Adapter{}
		}
		o.Adapters["fake"] = w.adapter
		o.Deltas = func(d agent.Delta) { w.deltas = append(w.deltas, d) }
		w.live = live.New(o)
		f(t, w)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.live.Close(ctx); err != nil {
			t.Error(err)
		}
		for _, v := range w.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
}

// root adds a root session of the fake provider.
func (w *world) root() agent.Session { return w.AddRoot(agent.Session{Provider: "fake"}) }

// started opens a root turn and gives it to the runtime.
func (w *world) started(s agent.Session) provider.Input {
	w.t.Helper()
	in := w.Submit(s.ID, "Go.")
	if err := w.live.Start(w.t.Context(), s, in); err != nil {
		w.t.Fatal(err)
	}
	return in
}

func (w *world) turn(id agent.TurnID) agent.Turn { return w.View().Turn(id) }

// facts counts the committed facts of one kind.
func facts[F agent.Fact](w *world) int {
	n := 0
	for _, r := range w.Records() {
		if _, ok := r.Fact.(F); ok {
			n++
		}
	}
	return n
}
