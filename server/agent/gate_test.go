package agent_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/agent/orders"
)

// The words providers end things with; a child's is always one that no provider turn
// uses, so that a child's outcome which became the root's would show.
var vocabularies = []orders.Outcomes{
	{Provider: agent.OutcomeCompleted, Continuation: agent.OutcomeCompleted, Child: agent.OutcomeFailed},
	{Provider: agent.OutcomeFailed, Continuation: agent.OutcomeCompleted, Child: agent.OutcomeInterrupted},
	{Provider: agent.OutcomeCompleted, Continuation: agent.OutcomeFailed, Child: agent.OutcomeInterrupted},
}

// TestGateInEveryOrder holds the properties of the gate over every legal order of the
// whole alphabet: tens of thousands of millions of orders, as one walk of the graph of worlds.
func TestGateInEveryOrder(t *testing.T) {
	for _, said := range vocabularies {
		ends := map[agent.Outcome]int{}
		g := orders.Walk(orders.New(said), nil, func(from orders.World, e orders.Event, to orders.World, v agent.Verdict) {
			checkWorld(t, to)
			checkStep(t, from, e, to, v)
			if t.Failed() {
				t.FailNow()
			}
		})
		for w, next := range g.Worlds {
			if len(next) == 0 {
				checkEnd(t, w)
				ends[w.Outcome]++
			}
		}
		t.Logf("%d worlds, %d transitions, %.3g orders, ends %v", len(g.Worlds), g.Edges, g.Orders, ends)
		if g.Orders < 1e10 || len(ends) < 3 {
			t.Errorf("the walk is too small to mean anything: %v orders, ends %v", g.Orders, ends)
		}
	}
}

// checkWorld holds what must be true of every world.
func checkWorld(t *testing.T, w orders.World) {
	t.Helper()
	if (w.Phase == agent.PhaseSettled) != (w.Outcome != "") {
		t.Errorf("phase %s with outcome %q", w.Phase, w.Outcome)
	}
	if w.Phase == agent.PhaseSettled && w.View().LiveChildren {
		t.Errorf("settled above a live child: %+v", w)
	}
	if w.Settles > 1 {
		t.Errorf("settled %d times", w.Settles)
	}
	if (w.Held == agent.HeldByNothing) != (w.Phase == agent.PhaseSettled) {
		t.Errorf("phase %s held by %q", w.Phase, w.Held)
	}
	if w.Outcome == agent.OutcomeCanceled && w.Cancel != agent.CancelDone {
		t.Error("canceled, and nobody canceled it")
	}
	if d := agent.Gate(w.View()); d.Phase != w.Phase || d.Outcome != w.Outcome {
		t.Errorf("asked again, the gate says %+v of %+v", d, w)
	}
}

// checkStep holds what must be true of every transition.
func checkStep(t *testing.T, from orders.World, e orders.Event, to orders.World, v agent.Verdict) {
	t.Helper()
	if from.Phase == agent.PhaseSettled && (to.Phase != agent.PhaseSettled || to.Outcome != from.Outcome) {
		t.Errorf("%v moved a settled root from %s to %s %s", e, from.Outcome, to.Phase, to.Outcome)
	}
	for _, c := range orders.Children {
		was, is := from.Kids[c], to.Kids[c]
		if was.Phase == agent.PhaseSettled && was.Outcome != is.Outcome {
			t.Errorf("%v changed child %v from %s to %s", e, c, was.Outcome, is.Outcome)
		}
		if !was.Exists && is.Exists && (from.Phase == agent.PhaseSettled || from.Cancel != agent.CancelNone) {
			t.Errorf("%v made child %v below a root that is %s, cancel %q", e, c, from.Phase, from.Cancel)
		}
	}
	if e != orders.CancelPrepare && e != orders.StopAPrepare { // a second cancel is a second operation
		twice := to.Again(e)
		if isStart(e) { // starting twice is told apart by identity, which a world has not
			return
		}
		if twice != to {
			t.Errorf("%v twice is not %v once:\n%+v\n%+v", e, e, to, twice)
		}
	}
}

func isStart(e orders.Event) bool {
	switch e {
	case orders.ProviderStart, orders.ContinuationStart, orders.ChildAStart, orders.ChildBStart, orders.ChildCStart, orders.NestedStart:
		return true
	}
	return false
}

// checkEnd holds what must be true when nothing can happen any more.
func checkEnd(t *testing.T, w orders.World) {
	t.Helper()
	if w.Phase != agent.PhaseSettled {
		t.Errorf("nothing is left to happen and the root is %s, held by %s: %+v", w.Phase, w.Held, w)
	}
	for _, c := range orders.Children {
		if w.Kids[c].Live() {
			t.Errorf("child %v is left %s", c, w.Kids[c].Phase)
		}
	}
}

// TestOrderDoesNotMatter: with one provider turn, any children, and nobody stopping
// anything, every order ends with the provider's own outcome.
func TestOrderDoesNotMatter(t *testing.T) {
	without := orders.Only(
		orders.ProviderStart, orders.ProviderEnd, orders.ChildAStart, orders.ChildAEnd, orders.ChildBStart, orders.ChildBEnd,
		orders.ChildCStart, orders.ChildCEnd, orders.NestedStart, orders.NestedEnd, orders.DeleteB)
	for _, said := range vocabularies {
		g := orders.Walk(orders.New(said), without, func(orders.World, orders.Event, orders.World, agent.Verdict) {})
		for w, next := range g.Worlds {
			if len(next) == 0 && w.Outcome != said.Provider {
				t.Fatalf("the provider said %s, the root is %s: %+v", said.Provider, w.Outcome, w)
			}
		}
	}
}

// TestContinuationDecides: a continuation that started before the root settled decides
// when it ends last; one that starts after is refused.
func TestContinuationDecides(t *testing.T) {
	only := orders.Only(
		orders.ProviderStart, orders.ProviderEnd, orders.ContinuationStart, orders.ContinuationEnd,
		orders.ChildAStart, orders.ChildAEnd, orders.NestedStart, orders.NestedEnd)
	said := orders.Outcomes{Provider: agent.OutcomeCompleted, Continuation: agent.OutcomeFailed, Child: agent.OutcomeInterrupted}
	orders.Walk(orders.New(said), only, func(from orders.World, e orders.Event, to orders.World, v agent.Verdict) {
		switch {
		case e == orders.ContinuationStart && from.Phase == agent.PhaseSettled:
			if v != agent.VerdictRefused {
				t.Fatalf("a continuation after settlement is %s", v)
			}
		case e == orders.ContinuationEnd && from.Provider == orders.ProviderOver && from.Continuation == orders.ProviderLive:
			if to.Retained != agent.OutcomeFailed {
				t.Fatalf("the continuation ended failed and %s is kept", to.Retained)
			}
		}
	})
}

// TestGateTable spells out each line of the rule, and those that a world above does not
// reach: reservations and questions of the root itself.
func TestGateTable(t *testing.T) {
	for _, tt := range []struct {
		name string
		view agent.GateView
		want agent.Decision
	}{
		{
			"settled stays, whatever lives",
			agent.GateView{Phase: agent.PhaseSettled, Outcome: agent.OutcomeFailed, LiveProvider: 1, Cancel: agent.CancelDone},
			agent.Decision{Phase: agent.PhaseSettled, Outcome: agent.OutcomeFailed},
		},
		{
			"a completed cancel outranks the kept outcome",
			agent.GateView{Phase: agent.PhaseSettling, Retained: agent.OutcomeCompleted, Cancel: agent.CancelDone},
			agent.Decision{Phase: agent.PhaseSettled, Outcome: agent.OutcomeCanceled},
		},
		{
			"an open cancel holds",
			agent.GateView{Phase: agent.PhaseRunning, Retained: agent.OutcomeCompleted, Cancel: agent.CancelOpen},
			agent.Decision{Phase: agent.PhaseSettling, Held: agent.HeldByCancel},
		},
		{
			"own question",
			agent.GateView{Phase: agent.PhaseRunning, LiveProvider: 1, OwnPrompts: 1},
			agent.Decision{Phase: agent.PhaseWaiting, Held: agent.HeldByPrompt},
		},
		{
			"running",
			agent.GateView{Phase: agent.PhaseWaiting, LiveProvider: 2, Retained: agent.OutcomeCompleted, LiveChildren: true},
			agent.Decision{Phase: agent.PhaseRunning, Held: agent.HeldByProvider},
		},
		{
			"only a reservation",
			agent.GateView{Phase: agent.PhaseRunning, LiveProvider: 1, Reserved: 1, Retained: agent.OutcomeCompleted},
			agent.Decision{Phase: agent.PhaseWaiting, Held: agent.HeldByContinuation},
		},
		{
			"a reservation beside a running turn",
			agent.GateView{Phase: agent.PhaseRunning, LiveProvider: 2, Reserved: 1},
			agent.Decision{Phase: agent.PhaseRunning, Held: agent.HeldByProvider},
		},
		{
			"nothing heard yet",
			agent.GateView{Phase: agent.PhaseSubmitted},
			agent.Decision{Phase: agent.PhaseSubmitted, Held: agent.HeldByProvider},
		},
		{
			"children alone never settle it",
			agent.GateView{Phase: agent.PhaseSubmitted, LiveChildren: true},
			agent.Decision{Phase: agent.PhaseSubmitted, Held: agent.HeldByProvider},
		},
		{
			"waiting for children",
			agent.GateView{Phase: agent.PhaseRunning, Retained: agent.OutcomeCompleted, LiveChildren: true},
			agent.Decision{Phase: agent.PhaseWaiting, Held: agent.HeldByChildren},
		},
		{
			"done",
			agent.GateView{Phase: agent.PhaseWaiting, Retained: agent.OutcomeInterrupted},
			agent.Decision{Phase: agent.PhaseSettled, Outcome: agent.OutcomeInterrupted},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := agent.Gate(tt.view); got != tt.want {
				t.Errorf("Gate(%+v) = %+v, want %+v", tt.view, got, tt.want)
			}
		})
	}
}

// FuzzGate: total and idempotent over anything a row could hold.
func FuzzGate(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(1), uint8(0), true, uint8(1), uint8(0))
	phases := []agent.Phase{agent.PhaseSubmitted, agent.PhaseRunning, agent.PhaseWaiting, agent.PhaseSettling}
	outcomes := []agent.Outcome{"", agent.OutcomeCompleted, agent.OutcomeFailed, agent.OutcomeCanceled, agent.OutcomeInterrupted}
	stages := []agent.CancelStage{agent.CancelNone, agent.CancelOpen, agent.CancelDone}
	f.Fuzz(func(t *testing.T, phase, retained, live, reserved uint8, children bool, prompts, cancel uint8) {
		v := agent.GateView{
			Phase: phases[int(phase)%len(phases)], Retained: outcomes[int(retained)%len(outcomes)], LiveProvider: int(live),
			Reserved: int(min(reserved, live)), LiveChildren: children, OwnPrompts: int(prompts), Cancel: stages[int(cancel)%len(stages)],
		}
		d := agent.Gate(v)
		if (d.Phase == agent.PhaseSettled) != (d.Outcome != "") || d.Phase == "" {
			t.Fatalf("Gate(%+v) = %+v", v, d)
		}
		if d.Phase == agent.PhaseSettled && d.Outcome != agent.OutcomeCanceled && (children || live > 0) {
			t.Fatalf("settled over live work: Gate(%+v) = %+v", v, d)
		}
		v.Phase, v.Outcome = d.Phase, d.Outcome
		if again := agent.Gate(v); again.Phase != d.Phase || again.Outcome != d.Outcome {
			t.Fatalf("not idempotent: %+v then %+v", d, again)
		}
	})
}
