package store

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// unasked has the provider begin a turn that names no root turn.
func (t *tree) unasked(key agent.ProviderTurnID) agent.Applied {
	t.Helper()
	return t.apply(agent.ProviderTurnStarted{Session: t.root, Key: key})
}

// Work that nobody asked for is a root turn of its own, and from then on the one that the
// session shows (decisions.md 3).
func TestUnaskedProviderTurnIsARootTurn(t *testing.T) {
	w := open(t).begin()
	w.provider("asked")
	if a := w.unasked("continuation"); a.Verdict != agent.VerdictApplied || a.Turn != w.turn {
		t.Fatalf("under an open root turn: %+v, want it attached to %s", a, w.turn)
	}
	w.providerEnds("asked", agent.OutcomeCompleted)
	w.providerEnds("continuation", agent.OutcomeCompleted)
	w.is(agent.PhaseSettled, agent.OutcomeCompleted)

	first := w.turn
	a := w.unasked("goal")
	if a.Verdict != agent.VerdictApplied || a.Turn == first || a.Turn == "" {
		t.Fatalf("after it has settled: %+v", a)
	}
	s := w.session()
	if s.ActiveTurn == nil || s.ActiveTurn.ID != a.Turn || s.LatestTurn.ID != a.Turn || s.ActiveTurn.Trigger != agent.TriggerProvider {
		t.Errorf("the session shows %+v and %+v", s.ActiveTurn, s.LatestTurn)
	}
	if b := w.unasked("more"); b.Turn != a.Turn {
		t.Errorf("a second one ran under %q, want %q", b.Turn, a.Turn)
	}
	w.reopen() // the row says so as well
	if s := w.session(); s.ActiveTurn == nil || s.ActiveTurn.ID != a.Turn {
		t.Errorf("after a restart the session shows %+v", s.ActiveTurn)
	}
	w.turn = a.Turn
	w.providerEnds("goal", agent.OutcomeCompleted)
	w.is(agent.PhaseRunning, "")
	w.providerEnds("more", agent.OutcomeFailed)
	w.is(agent.PhaseSettled, agent.OutcomeFailed)
	w.turn = first
	w.is(agent.PhaseSettled, agent.OutcomeCompleted) // never opened again
}

// A person's stop bars what was not asked for, whichever turn was stopped, until the person
// asks for something.
func TestNothingUnaskedAfterACancel(t *testing.T) {
	for _, unasked := range []bool{false, true} {
		w := open(t).begin()
		w.provider("asked")
		if unasked {
			w.providerEnds("asked", agent.OutcomeCompleted)
			w.turn = w.unasked("goal").Turn
		}
		op := w.cancels(w.root, w.turn)
		if a := w.unasked("while it stops"); a.Verdict != agent.VerdictRefused || a.Code != agent.CodeTurnCanceling {
			t.Errorf("while it stops: %+v", a)
		}
		_, err := w.CompleteCancel(background(t), op.ID, nil)
		w.must(err)
		w.is(agent.PhaseSettled, agent.OutcomeCanceled)
		if a := w.unasked("after"); a.Verdict != agent.VerdictRefused || a.Code != agent.CodeUnaskedAfterCancel {
			t.Errorf("after the stop of an unasked turn (%v): %+v", unasked, a)
		}
		next := w.says(w.root, "go on")
		w.turn = next.Turn.ID
		w.provider("asked again")
		w.providerEnds("asked again", agent.OutcomeCompleted)
		if a := w.unasked("now it may"); a.Verdict != agent.VerdictApplied {
			t.Errorf("after a turn that was asked for: %+v", a)
		}
	}
}
