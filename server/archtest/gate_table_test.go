package archtest

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// gateCase is one line of the gate's table: the first whose condition holds decides.
type gateCase struct {
	when string
	is   func(agent.GateView) bool
	v    agent.GateView // an example of it, from which the line's result is read
}

var gateCases = []gateCase{
	{"the root turn is settled", func(v agent.GateView) bool { return v.Phase == agent.PhaseSettled }, agent.GateView{Phase: agent.PhaseSettled, Outcome: agent.OutcomeCompleted}},
	{"a cancel of it has completed", func(v agent.GateView) bool { return v.Cancel == agent.CancelDone }, agent.GateView{Phase: agent.PhaseSettling, Cancel: agent.CancelDone}},
	{"a cancel of it is open", func(v agent.GateView) bool { return v.Cancel == agent.CancelOpen }, agent.GateView{Phase: agent.PhaseSettling, Cancel: agent.CancelOpen}},
	{"a provider turn runs and the root itself has a question open", func(v agent.GateView) bool { return v.LiveProvider > v.Reserved && v.OwnPrompts > 0 }, agent.GateView{Phase: agent.PhaseRunning, LiveProvider: 1, OwnPrompts: 1}},
	{"a provider turn runs", func(v agent.GateView) bool { return v.LiveProvider > v.Reserved }, agent.GateView{Phase: agent.PhaseSubmitted, LiveProvider: 1}},
	{"a continuation is reserved and has not spoken", func(v agent.GateView) bool { return v.LiveProvider > 0 }, agent.GateView{Phase: agent.PhaseRunning, LiveProvider: 1, Reserved: 1}},
	{"no provider turn has ended yet", func(v agent.GateView) bool { return v.Retained == "" }, agent.GateView{Phase: agent.PhaseSubmitted}},
	{"an outcome is retained and a child lives, at any depth", func(v agent.GateView) bool { return v.LiveChildren }, agent.GateView{Phase: agent.PhaseRunning, Retained: agent.OutcomeCompleted, LiveChildren: true}},
	{"an outcome is retained and nothing lives below", func(agent.GateView) bool { return true }, agent.GateView{Phase: agent.PhaseWaiting, Retained: agent.OutcomeFailed}},
}

func gateTable() string {
	var rows [][]string
	for _, c := range gateCases {
		d := agent.Gate(c.v)
		held := string(d.Held)
		if held == "" {
			held = "-"
		}
		rows = append(rows, []string{c.when, gateResult(c, d), held})
	}
	return table("The gate of a root turn", "`Gate`; the first line that holds decides. Nothing else settles a root turn. A test walks every combination of the view against this table.",
		[]string{"when", "the root turn is", "held by"}, rows)
}

// gateResult puts the rule behind the example's outcome into words.
func gateResult(c gateCase, d agent.Decision) string {
	switch {
	case d.Phase != agent.PhaseSettled && d.Phase == c.v.Phase && d.Phase == agent.PhaseSubmitted:
		return "as it was"
	case d.Phase != agent.PhaseSettled:
		return string(d.Phase)
	case c.v.Phase == agent.PhaseSettled:
		return "settled, as it was"
	case d.Outcome == c.v.Retained:
		return "**settled** with the retained outcome"
	}
	return "**settled**: " + string(d.Outcome)
}

// The table would be worth nothing if some view fell under another line than it says.
func TestGateTableHoldsForEveryView(t *testing.T) {
	for v := range gateViews {
		d := agent.Gate(v)
		for i, c := range gateCases {
			if !c.is(v) {
				continue
			}
			if d.Held != agent.Gate(c.v).Held || (d.Phase == agent.PhaseSettled) != (agent.Gate(c.v).Phase == agent.PhaseSettled) {
				t.Fatalf("view %+v falls under line %d (%s), but Gate says %+v", v, i, c.when, d)
			}
			break
		}
	}
}

// gateViews yields every combination that differs in a decision.
func gateViews(yield func(agent.GateView) bool) {
	flags := []bool{false, true}
	for _, phase := range []agent.Phase{agent.PhaseSubmitted, agent.PhaseRunning, agent.PhaseWaiting, agent.PhaseSettling, agent.PhaseSettled} {
		for _, retained := range []agent.Outcome{"", agent.OutcomeCompleted, agent.OutcomeFailed, agent.OutcomeInterrupted} {
			for _, cancel := range []agent.CancelStage{agent.CancelNone, agent.CancelOpen, agent.CancelDone} {
				for live := range 3 {
					for reserved := range live + 1 {
						for prompts := range 2 {
							for _, children := range flags {
								v := agent.GateView{Phase: phase, LiveProvider: live, Reserved: reserved, Retained: retained, LiveChildren: children, OwnPrompts: prompts, Cancel: cancel}
								if !yield(v) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}
