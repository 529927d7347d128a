package command_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// house is everything behind the API, with the real store and the demo provider.
type house struct {
	t       *testing.T
	store   *store.Store
	service *command.Service
	live    *live.Live
	ws      agent.WorkspaceID
	session agent.SessionID
	turn    agent.TurnID

	mu      sync.Mutex
	events  []agent.Event
	changed chan struct{}
}

// withHouse runs f in virtual time with a session that plays a scenario.
func withHouse(t *testing.T, scenario string, f func(t *testing.T, h *house)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, changed: make(chan struct{}, 1)}
		logger := slog.New(slog.DiscardHandler)
		mint := providertest.Counter()
		var err error
		h.store, err = store.Open(t.Context(), store.Options{Path: store.Memory, Mint: mint, Logger: logger, OnCommit: h.committed})
		if err != nil {
			t.Fatal(err)
		}
		h.live = live.New(live.Options{
			Adapters: map[string]provider.Adapter{demo.Name: demo.New(demo.Options{Speed: 1})},
			Recorder: h.store, Mint: mint, Logger: logger,
		})
		card := func(ctx context.Context, _ string) (agent.Capabilities, error) {
			return demo.New(demo.Options{Speed: 1}).Probe(ctx).Capabilities, nil
		}
		h.service = command.New(command.Options{Store: h.store, Live: live.Port{Live: h.live}, Card: card, Logger: logger})
		go h.service.Run(t.Context())
		h.open(dir, scenario)
		f(t, h)
		h.close()
	})
}

func (h *house) open(dir, scenario string) {
	h.t.Helper()
	if err := h.store.Recover(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	w, err := h.service.CreateWorkspace(h.t.Context(), "", dir)
	if err != nil {
		h.t.Fatal(err)
	}
	sub, err := h.service.CreateSession(h.t.Context(), agent.NewSession{
		Workspace: w.ID, Provider: demo.Name, Scenario: scenario, Message: &agent.NewMessage{Text: "Go.", Client: "test"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.ws, h.session, h.turn = w.ID, sub.Session.ID, sub.Turn.ID
}

func (h *house) close() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, err := range map[string]error{"service": h.service.Close(ctx), "live": h.live.Close(ctx)} {
		if err != nil {
			h.t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := h.store.Counts(ctx); err != nil || c.OpenBelowSettled != 0 {
		h.t.Errorf("%d turns live below a settled root (%v)", c.OpenBelowSettled, err)
	}
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *house) committed(events []agent.Event) {
	h.mu.Lock()
	h.events = append(h.events, events...)
	h.mu.Unlock()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// await waits until cond holds, looking after every commit.
func (h *house) await(what string, cond func() bool) {
	h.t.Helper()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	for !cond() {
		select {
		case <-h.changed:
		case <-limit.C:
			h.t.Fatalf("never happened: %s; gate %+v", what, h.gate())
		}
	}
}

func (h *house) gate() agent.GateReport {
	h.t.Helper()
	g, err := h.store.Gate(h.t.Context(), h.ws, h.session, h.turn)
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}

func (h *house) settles(want agent.Outcome) {
	h.t.Helper()
	h.await("the root settles", func() bool { return h.gate().Phase == agent.PhaseSettled })
	if got := h.gate().Outcome; got != want {
		h.t.Errorf("the root ended as %q, want %q", got, want)
	}
}

func (h *house) children() []agent.Session {
	h.t.Helper()
	d, err := h.store.Detail(h.t.Context(), h.ws, h.session)
	if err != nil {
		h.t.Fatal(err)
	}
	return d.ChildSessions
}

func (h *house) pending() []agent.Interaction {
	h.t.Helper()
	i, err := h.store.Interactions(h.t.Context(), h.ws, h.session, agent.InteractionPending)
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}

// ended waits for an operation's end and returns it.
func (h *house) ended(op agent.Operation) agent.Operation {
	h.t.Helper()
	h.await("the operation ends", func() bool {
		now, err := h.store.Operation(h.t.Context(), h.ws, op.ID)
		if err != nil {
			h.t.Fatal(err)
		}
		op = now
		return !op.Status.Open()
	})
	return op
}

// settledAt returns the number of the event by which a turn settled.
func (h *house) settledAt(turn agent.TurnID) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		var t agent.Turn
		if e.Kind == agent.TurnUpdated && e.TurnID == turn && json.Unmarshal(e.Data, &t) == nil && t.Phase == agent.PhaseSettled {
			return e.Seq
		}
	}
	h.t.Errorf("turn %s never settled", turn)
	return 0
}

func TestThreeReviewersEndToEnd(t *testing.T) {
	withHouse(t, "three-reviewers", func(t *testing.T, h *house) {
		h.await("the root waits for two agents", func() bool {
			g := h.gate()
			return g.HeldBy == agent.HeldByChildren && len(g.OpenChildren) == 2 && g.RetainedOutcome == agent.OutcomeCompleted
		})
		h.await("a child asks", func() bool { return len(h.pending()) == 1 })
		i := h.pending()[0]
		if i.SessionID == h.session {
			t.Error("the child's question is the root's")
		}
		_, op, err := h.service.Answer(t.Context(), h.ws, agent.NewAnswer{
			Session: i.SessionID, Turn: i.TurnID, Request: i.RequestID, Response: agent.Response{OptionID: "allow"}, Client: "test",
		})
		if err != nil {
			t.Fatal(err)
		}
		if op = h.ended(op); op.Status != agent.OperationSucceeded {
			t.Errorf("the answer's operation is %+v", op)
		}
		h.settles(agent.OutcomeCompleted)

		var last int64
		for _, c := range h.children() {
			if c.LatestTurn.Outcome != agent.OutcomeCompleted {
				t.Errorf("%s ended as %s", c.Title, c.LatestTurn.Outcome)
			}
			last = max(last, h.settledAt(c.LatestTurn.ID))
		}
		if root := h.settledAt(h.turn); root != last+1 {
			t.Errorf("the last child settled at %d, the root at %d: not one commit", last, root)
		}
		h.gapless()
	})
}

// gapless checks that the log has every number once, in order.
func (h *house) gapless() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range h.events {
		if e.Seq != int64(i+1) {
			h.t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
	}
}

func TestNeverCancelsEndToEnd(t *testing.T) {
	withHouse(t, "never-cancels", func(t *testing.T, h *house) {
		h.await("two agents run", func() bool { return len(h.children()) == 2 })
		op, settled, err := h.service.Cancel(t.Context(), h.ws, h.session, h.turn, "test")
		if err != nil || settled {
			t.Fatal(settled, err)
		}
		began := time.Now()
		if _, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "Wait."}); codeOf(err) != agent.CodeTurnCanceling {
			t.Errorf("a message during a stop: %v", err)
		}
		if op = h.ended(op); op.Status != agent.OperationUnconfirmed || len(op.Targets) != 3 {
			t.Errorf("the operation is %+v", op)
		}
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("it took %v", took)
		}
		h.settles(agent.OutcomeCanceled)
		for _, c := range h.children() {
			if c.LatestTurn.Outcome != agent.OutcomeInterrupted {
				t.Errorf("%s ended as %s", c.Title, c.LatestTurn.Outcome)
			}
		}
		// The next message works, although the old jobs never stopped.
		sub, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "root-first"})
		if err != nil || sub.Delivery != agent.DeliveryStarted {
			t.Fatal(sub.Delivery, err)
		}
		h.turn = sub.Turn.ID
		h.settles(agent.OutcomeCompleted)
	})
}

func TestCancelOneChildEndToEnd(t *testing.T) {
	withHouse(t, "root-first", func(t *testing.T, h *house) {
		h.await("the root waits for its child", func() bool { return h.gate().HeldBy == agent.HeldByChildren })
		c := h.children()[0]
		op, _, err := h.service.Cancel(t.Context(), h.ws, c.ID, c.ActiveTurn.ID, "test")
		if err != nil {
			t.Fatal(err)
		}
		if op = h.ended(op); op.Status != agent.OperationSucceeded {
			t.Errorf("the operation is %+v", op)
		}
		h.settles(agent.OutcomeCompleted) // from its own outcome, not as canceled
		if got := h.children()[0].LatestTurn.Outcome; got != agent.OutcomeCanceled {
			t.Errorf("the child ended as %s", got)
		}
	})
}

func TestGuideWhileOnlyAChildRunsEndToEnd(t *testing.T) {
	withHouse(t, "root-first", func(t *testing.T, h *house) {
		h.await("the root waits for its child", func() bool { return h.gate().HeldBy == agent.HeldByChildren })
		sub, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "And hurry.", Client: "test"})
		if err != nil || sub.Delivery != agent.DeliveryGuided || sub.Turn.ID != h.turn {
			t.Fatalf("%+v, %v", sub, err)
		}
		if op := h.ended(*sub.Operation); op.Status != agent.OperationSucceeded {
			t.Errorf("the operation is %+v", op)
		}
		h.settles(agent.OutcomeCompleted)
		page, err := h.store.Messages(t.Context(), h.ws, h.session, agent.MessageRange{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(page.Items, func(m agent.Message) bool { return m.ID == sub.Message.ID && m.Status == agent.MessageCompleted }) {
			t.Errorf("the message was not delivered: %+v", page.Items)
		}
	})
}

func TestDeathEndToEnd(t *testing.T) {
	withHouse(t, "death", func(t *testing.T, h *house) {
		h.settles(agent.OutcomeInterrupted)
		if got := h.children()[0].LatestTurn.Outcome; got != agent.OutcomeInterrupted {
			t.Errorf("the child ended as %s", got)
		}
		sub, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "root-first"})
		if err != nil {
			t.Fatal(err)
		}
		h.turn = sub.Turn.ID
		h.settles(agent.OutcomeCompleted)
	})
}

func TestDeleteEndToEnd(t *testing.T) {
	withHouse(t, "three-reviewers", func(t *testing.T, h *house) {
		h.await("three agents run", func() bool { return len(h.children()) == 3 })
		if err := h.service.DeleteSession(t.Context(), h.ws, h.session); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h.live.Open(h.session) {
			t.Error("its runtime is still open")
		}
		if err := h.service.DeleteSession(t.Context(), h.ws, h.session); err != nil {
			t.Errorf("a second deletion: %v", err)
		}
	})
}

func TestFiftyChildrenEndToEnd(t *testing.T) {
	withHouse(t, "fifty", func(t *testing.T, h *house) {
		h.settles(agent.OutcomeCompleted)
		children := h.children()
		if len(children) != 50 {
			t.Fatalf("%d children, want 50", len(children))
		}
		var last int64
		for _, c := range children {
			last = max(last, h.settledAt(c.LatestTurn.ID))
		}
		if root := h.settledAt(h.turn); root != last+1 {
			t.Errorf("the last child settled at %d, the root at %d", last, root)
		}
		h.gapless()
	})
}

// A runtime closes when it has nothing to do, and the session goes on after that with
// what storage remembers.
func TestIdleSessionResumesEndToEnd(t *testing.T) {
	withHouse(t, "root-first", func(t *testing.T, h *house) {
		h.settles(agent.OutcomeCompleted)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if h.live.Open(h.session) {
			t.Error("an idle runtime is still open")
		}
		sub, err := h.service.Send(t.Context(), h.ws, agent.NewMessage{Session: h.session, Text: "Again."})
		if err != nil {
			t.Fatal(err)
		}
		h.turn = sub.Turn.ID
		h.await("the root waits for its child", func() bool { return h.gate().HeldBy == agent.HeldByChildren })
		h.settles(agent.OutcomeCompleted)
		if len(h.children()) != 2 {
			t.Errorf("%d children, want 2", len(h.children()))
		}
		h.gapless()
	})
}
