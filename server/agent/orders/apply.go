package orders

import "github.com/turnkeeper/turnkeeper/server/agent"

// Apply returns the world after e, and what became of e. It is what storage must do with
// e, said with the rules alone: move what e is about, then let the gate look.
func (w World) Apply(e Event) (World, agent.Verdict) {
	w.Done |= 1 << e
	verdict := w.move(e)
	return w.gate(), verdict
}

// Again returns the world after e has been reported once more.
func (w World) Again(e Event) World {
	w.move(e)
	return w.gate()
}

func (w *World) move(e Event) agent.Verdict {
	switch e {
	case ProviderStart:
		return w.startProvider(&w.Provider)
	case ProviderEnd:
		return w.endProvider(&w.Provider, w.Said.Provider)
	case ContinuationStart:
		return w.startProvider(&w.Continuation)
	case ContinuationEnd:
		return w.endProvider(&w.Continuation, w.Said.Continuation)
	case ChildAStart, ChildBStart, ChildCStart, NestedStart:
		return w.startChild(childOf(e))
	case ChildAEnd, ChildBEnd, ChildCEnd, NestedEnd:
		return w.endChild(childOf(e))
	case CancelPrepare:
		return w.prepare(&w.Cancel, A, B, C, N)
	case CancelComplete:
		w.complete(&w.Cancel, A, B, C, N)
	case StopAPrepare:
		return w.prepare(&w.StopA, A, N)
	case StopAComplete:
		w.complete(&w.StopA, A, N)
	case DeleteB:
		w.Kids[B].Gone = true
	case Death, Restart:
		w.lose()
	}
	return agent.VerdictApplied
}

func childOf(e Event) Child {
	switch e {
	case ChildAStart, ChildAEnd:
		return A
	case ChildBStart, ChildBEnd:
		return B
	case ChildCStart, ChildCEnd:
		return C
	}
	return N
}

// closed reports whether a root cancel was prepared: nothing starts after that.
func (w *World) closed() bool { return w.Cancel != agent.CancelNone }

func (w *World) startProvider(p *ProviderState) agent.Verdict {
	if w.Phase == agent.PhaseSettled || w.closed() {
		*p = ProviderRefused
		return agent.VerdictRefused
	}
	*p, w.Retained = ProviderLive, "" // a later provider turn decides
	return agent.VerdictApplied
}

func (w *World) endProvider(p *ProviderState, o agent.Outcome) agent.Verdict {
	if *p != ProviderLive {
		return agent.VerdictLate
	}
	*p, w.Retained = ProviderOver, o
	if w.Phase == agent.PhaseSettled {
		return agent.VerdictLate
	}
	return agent.VerdictApplied
}

func (w *World) startChild(c Child) agent.Verdict {
	view := agent.AdmitView{
		RootExists: true, RootOpen: w.Phase != agent.PhaseSettled, RootClosed: w.closed(),
		ParentClosed: c == N && w.StopA != agent.CancelNone, SessionGone: c == N && !w.Kids[A].Exists,
	}
	if agent.AdmitChild(view) != "" {
		return agent.VerdictRefused
	}
	w.Kids[c] = ChildState{Exists: true, Phase: agent.PhaseSubmitted}
	return agent.VerdictApplied
}

func (w *World) endChild(c Child) agent.Verdict {
	if k := w.Kids[c]; !k.Exists || k.Gone {
		return agent.VerdictRefused
	}
	return w.step(c, agent.Change{Step: agent.StepEnd, Outcome: w.Said.Child})
}

func (w *World) step(c Child, change agent.Change) agent.Verdict {
	k := &w.Kids[c]
	next, verdict, _ := agent.NextTurn(agent.TurnState{Phase: k.Phase, Outcome: k.Outcome}, change)
	k.Phase, k.Outcome = next.Phase, next.Outcome
	return verdict
}

// Acknowledged is the only child whose stop the provider acknowledges, so that both ends
// of a target are met.
const Acknowledged = A

// prepare records the targets of a cancel.
func (w *World) prepare(stage *agent.CancelStage, kids ...Child) agent.Verdict {
	root := stage == &w.Cancel
	if root && w.Phase == agent.PhaseSettled || !root && !w.Kids[A].Live() {
		return agent.VerdictUnchanged
	}
	*stage = agent.CancelOpen
	for _, c := range kids {
		if w.Kids[c].Live() {
			w.Kids[c].Target = true
			w.step(c, agent.Change{Step: agent.StepClose})
		}
	}
	return agent.VerdictApplied
}

func (w *World) complete(stage *agent.CancelStage, kids ...Child) {
	*stage = agent.CancelDone
	for _, c := range kids {
		k := &w.Kids[c]
		if !k.Target || !k.Live() {
			continue
		}
		heard := agent.TargetRequested
		if c == Acknowledged {
			heard = agent.TargetAcknowledged
		}
		outcome, _ := agent.CancelOutcome(agent.CancelTarget{Evidence: heard})
		w.step(c, agent.Change{Step: agent.StepStop, Outcome: outcome})
	}
}

func (w *World) lose() {
	w.Lost = true
	for _, p := range []*ProviderState{&w.Provider, &w.Continuation} {
		if *p == ProviderLive {
			*p, w.Retained = ProviderOver, agent.OutcomeInterrupted
		}
	}
	if w.Retained == "" {
		w.Retained = agent.OutcomeInterrupted
	}
	for _, c := range Children {
		if w.Kids[c].Live() {
			w.step(c, agent.Change{Step: agent.StepLose})
		}
	}
}

// View is what the gate looks at.
func (w World) View() agent.GateView {
	v := agent.GateView{Phase: w.Phase, Outcome: w.Outcome, Retained: w.Retained, Cancel: w.Cancel}
	for _, p := range []ProviderState{w.Provider, w.Continuation} {
		if p == ProviderLive {
			v.LiveProvider++
		}
	}
	for _, c := range Children {
		v.LiveChildren = v.LiveChildren || w.Kids[c].Live()
	}
	return v
}

func (w World) gate() World {
	d := agent.Gate(w.View())
	if d.Phase == agent.PhaseSettled && w.Phase != agent.PhaseSettled {
		w.Settles++
	}
	w.Phase, w.Outcome, w.Held = d.Phase, d.Outcome, d.Held
	return w
}
