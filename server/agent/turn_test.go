package agent_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var phases = []agent.Phase{agent.PhaseSubmitted, agent.PhaseRunning, agent.PhaseWaiting, agent.PhaseSettling, agent.PhaseSettled}

// TestNextTurnTable is the whole life of a child turn: every phase and every step.
func TestNextTurnTable(t *testing.T) {
	const (
		sub, run, wait, closing, end = agent.PhaseSubmitted, agent.PhaseRunning, agent.PhaseWaiting, agent.PhaseSettling, agent.PhaseSettled
		app, same, late, no          = agent.VerdictApplied, agent.VerdictUnchanged, agent.VerdictLate, agent.VerdictRefused
	)
	type cell struct {
		to agent.Phase
		v  agent.Verdict
	}
	table := map[agent.Step]map[agent.Phase]cell{
		agent.StepBegin:  {sub: {run, app}, run: {run, same}, wait: {wait, same}, closing: {closing, same}, end: {end, late}},
		agent.StepPrompt: {sub: {wait, app}, run: {wait, app}, wait: {wait, same}, closing: {closing, no}, end: {end, no}},
		agent.StepResume: {sub: {sub, same}, run: {run, same}, wait: {run, app}, closing: {closing, same}, end: {end, same}},
		agent.StepClose:  {sub: {closing, app}, run: {closing, app}, wait: {closing, app}, closing: {closing, same}, end: {end, same}},
		agent.StepEnd:    {sub: {end, app}, run: {end, app}, wait: {end, app}, closing: {end, app}, end: {end, same}},
		agent.StepStop:   {sub: {end, app}, run: {end, app}, wait: {end, app}, closing: {end, app}, end: {end, same}},
		agent.StepLose:   {sub: {end, app}, run: {end, app}, wait: {end, app}, closing: {end, app}, end: {end, same}},
	}
	for _, step := range agent.Steps {
		for _, phase := range phases {
			want, ok := table[step][phase]
			if !ok {
				t.Fatalf("no row for %s in %s", step, phase)
			}
			state := agent.TurnState{Phase: phase}
			if phase == end {
				state.Outcome = agent.OutcomeCompleted
			}
			got, verdict, code := agent.NextTurn(state, agent.Change{Step: step, Outcome: agent.OutcomeCompleted})
			if got.Phase != want.to || verdict != want.v {
				t.Errorf("%s in %s: %s, %s; want %s, %s", step, phase, got.Phase, verdict, want.to, want.v)
			}
			if (verdict == no) != (code != "") {
				t.Errorf("%s in %s: %s with code %q", step, phase, verdict, code)
			}
			if (got.Phase == end) != (got.Outcome != "") {
				t.Errorf("%s in %s: phase %s with outcome %q", step, phase, got.Phase, got.Outcome)
			}
			again, verdict, _ := agent.NextTurn(got, agent.Change{Step: step, Outcome: agent.OutcomeCompleted})
			if again != got || verdict == app {
				t.Errorf("%s in %s, twice: %+v %s, once was %+v", step, phase, again, verdict, got)
			}
		}
	}
}

func TestTerminalsOfOneChild(t *testing.T) {
	boom := agent.Errorf(agent.CodeProviderRefused, "context window exceeded")
	for _, tt := range []struct {
		name  string
		from  agent.TurnState
		step  agent.Change
		want  agent.Outcome
		err   *agent.Error
		wantV agent.Verdict
	}{
		{
			"the provider confirms a stop",
			agent.TurnState{Phase: agent.PhaseSettling},
			agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeInterrupted, Err: boom},
			agent.OutcomeCanceled, nil, agent.VerdictApplied,
		},
		{
			"it completed before the stop reached it",
			agent.TurnState{Phase: agent.PhaseSettling},
			agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeCompleted},
			agent.OutcomeCompleted, nil, agent.VerdictApplied,
		},
		{
			"it failed before the stop reached it",
			agent.TurnState{Phase: agent.PhaseSettling},
			agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeFailed, Err: boom},
			agent.OutcomeFailed, boom, agent.VerdictApplied,
		},
		{
			"interrupted by the parent agent, nobody canceled",
			agent.TurnState{Phase: agent.PhaseRunning},
			agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeInterrupted},
			agent.OutcomeInterrupted, nil, agent.VerdictApplied,
		},
		{
			"a canceled turn keeps no transport error",
			agent.TurnState{Phase: agent.PhaseSettling, Err: boom},
			agent.Change{Step: agent.StepStop, Outcome: agent.OutcomeCanceled, Err: boom},
			agent.OutcomeCanceled, nil, agent.VerdictApplied,
		},
		{
			"failed after canceled is late",
			agent.TurnState{Phase: agent.PhaseSettled, Outcome: agent.OutcomeCanceled},
			agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeFailed, Err: boom},
			agent.OutcomeCanceled, nil, agent.VerdictLate,
		},
		{
			"lost with its process",
			agent.TurnState{Phase: agent.PhaseWaiting},
			agent.Change{Step: agent.StepLose, Err: boom},
			agent.OutcomeInterrupted, boom, agent.VerdictApplied,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, v, _ := agent.NextTurn(tt.from, tt.step)
			if got.Outcome != tt.want || got.Err != tt.err || v != tt.wantV {
				t.Errorf("got %s %v %s, want %s %v %s", got.Outcome, got.Err, v, tt.want, tt.err, tt.wantV)
			}
		})
	}
}

// A root turn has no terminal of its own: only the gate and a completed cancel end it.
func TestRootTurnEndsByGateAlone(t *testing.T) {
	for _, phase := range phases[:4] {
		for _, step := range []agent.Step{agent.StepEnd, agent.StepLose} {
			got, v, code := agent.NextTurn(agent.TurnState{Root: true, Phase: phase}, agent.Change{Step: step, Outcome: agent.OutcomeCompleted})
			if v != agent.VerdictRefused || code != agent.CodeRootSettlesByGate || got.Phase != phase {
				t.Errorf("%s on a root in %s: %s %s, %s", step, phase, v, code, got.Phase)
			}
		}
	}
}

func TestUnknownStepIsRefused(t *testing.T) {
	for _, phase := range phases {
		if _, v, code := agent.NextTurn(agent.TurnState{Phase: phase}, agent.Change{Step: "made up"}); v != agent.VerdictRefused || code != agent.CodeInvalid {
			t.Errorf("in %s: %s %s", phase, v, code)
		}
	}
}
