package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// expected is what each recording must come to, worked out by hand from what happens in
// it (its README and its list of facts) and from the rulings, not from a replay:
// sessions with their edge and their turns, questions, what a person said, stops.
var expected = map[string][]string{
	"a-plain": {
		"root: user completed (provider completed)",
		`said "Say hello" completed`,
	},
	"b-v1-spawn-wait": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	"b-v2-spawn-wait": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	"c-v1-two-children": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		"b below root by call_spawn_b: delegation completed",
		`said "Use two sub-agents" completed`,
	},
	"c-v2-two-children": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		"b below root by call_spawn_b: delegation completed",
		`said "Use two sub-agents" completed`,
	},
	// The root's own turn ends first; its canonical turn waits and keeps that outcome.
	"d-v1-root-first": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
	},
	"d-v2-root-first": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
	},
	// The third answer stops the child's turn; nobody tells the root, which still waits
	// when the recorder ends the process.
	"f-v1-child-approval": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent that runs commands" completed`,
		"a asked approval: accept, answered",
		"a asked approval: decline, answered",
		"a asked approval: cancel, answered",
	},
	"f-v2-child-approval": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent that runs commands" completed`,
		"a asked approval: accept, answered",
		"a asked approval: decline, answered",
		"a asked approval: cancel, answered",
	},
	// The root is stopped with both children; each confirms. The interrupts that follow
	// find nothing to stop.
	"g-v1-interrupt": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		"b below root by call_spawn_b: delegation canceled",
		`said "Use two sub-agents" completed`,
		"cancel succeeded: root canceled, a canceled, b canceled",
	},
	"g-v2-interrupt": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		"b below root by call_spawn_b: delegation canceled",
		`said "Use two sub-agents" completed`,
		"cancel succeeded: root canceled, a canceled, b canceled",
	},
	// Of five steers two name the turn that runs. The others are of no turn at all.
	"i-v2-steer": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		`said "Please also mention X" completed`,
		`said "And Y" completed`,
		"guide succeeded",
		"guide succeeded",
	},
	"i-v1-steer": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		`said "Please also mention X" completed`,
		`said "And Y" completed`,
		"guide succeeded",
		"guide succeeded",
	},
	// A second provider turn under the same root turn, while only the child runs.
	"j-v1-start-while-child": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
		`said "More guidance" completed`,
		"guide succeeded",
	},
	// The steer was accepted, and the interrupt lost it. The child ended by itself before
	// its stop was confirmed: that stands.
	"i2-v1-steer-then-interrupt": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		`said "pending guidance" undelivered`,
		`said "A later user turn" completed`,
		"guide succeeded",
		"cancel succeeded: root canceled, a already_terminal",
	},
	// A child that no edge names is stopped and creates nothing.
	"h-v1-orphan-interrupted": {
		"root: user canceled (provider interrupted)",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled",
	},
	// The second child's edge comes after the stop: it creates nothing either.
	"h-v2-late-edge": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use two sub-agents" completed`,
		"cancel succeeded: root canceled, a canceled",
	},
	// The recording ends before the child does: its stop is not confirmed.
	"h-v1-edge-then-interrupt-cut": {
		"root: user canceled (provider interrupted)",
		"13 below root by call_spawn_13: delegation interrupted",
		`said "<<r13>> go" completed`,
		"cancel unconfirmed: root canceled, 13 interrupted",
	},
	// The first interrupt comes before turn/started and is refused; it is repeated.
	"x-interrupt-early": {
		"root: user canceled (provider interrupted), user canceled (provider interrupted)",
		`said "One" completed`,
		`said "Two" completed`,
		"cancel succeeded: root canceled",
		"cancel succeeded: root canceled",
	},
	// The same child works again under the same root turn, and under a later one.
	"q-v1-child-again": {
		"root: user completed (provider completed), user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed, guidance completed, guidance completed",
		`said "Use one sub-agent twice" completed`,
		`said "Use it again" completed`,
	},
	"m2-v2-resume-and-reuse": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted, guidance completed",
		`said "Use one sub-agent" completed`,
		`said "Go on with the agent" completed`,
	},
	// A stopped child does not stop the root; a failed one does not fail it.
	"h3-v1-interrupt-at-edge": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: a canceled",
	},
	"k-v1-child-http500": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation failed",
		`said "Use one sub-agent" completed`,
	},
	"g4-v1-nested-cancel": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		"g below a by call_spawn_g: delegation canceled",
		`said "Use a nested sub-agent" completed`,
		"cancel succeeded: root canceled, a canceled, g canceled",
	},
	// The server wakes the root by itself: a root turn of its own.
	"d2-v2-root-first-wake": {
		"root: user completed (provider completed), provider completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
	},
	// The process is killed over a question.
	"m3-v1-kill-pending-approval": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
		"a asked approval: nothing, superseded",
	},
}

// told is an end in the words of the table.
func told(end *End) []string {
	name := map[agent.SessionID]string{}
	for _, s := range end.Sessions {
		name[s.ID] = "root"
		if !s.IsRoot() {
			name[s.ID] = strings.TrimPrefix(string(s.ParentToolCallID), "call_spawn_")
		}
	}
	var out []string
	for _, s := range end.Sessions {
		who := name[s.ID]
		if !s.IsRoot() {
			who += " below " + name[s.ParentSessionID] + " by " + string(s.ParentToolCallID)
		}
		var turns []string
		for _, t := range end.Turns {
			if t.SessionID == s.ID {
				turns = append(turns, toldTurn(t))
			}
		}
		out = append(out, who+": "+strings.Join(turns, ", "))
	}
	for _, m := range end.Messages {
		if m.Role == agent.RoleUser && name[m.SessionID] == "root" {
			out = append(out, fmt.Sprintf("said %q %s", m.Content, m.Status))
		}
	}
	for _, i := range end.Interactions {
		answer := "nothing"
		if i.Response != nil {
			answer = i.Response.OptionID
		}
		out = append(out, fmt.Sprintf("%s asked %s: %s, %s", name[i.SessionID], i.Kind, answer, i.Status))
	}
	for _, o := range end.Operations {
		if o.Kind == agent.OperationAnswer {
			continue
		}
		line := fmt.Sprintf("%s %s", o.Kind, o.Status)
		var targets []string
		for _, t := range o.Targets {
			targets = append(targets, name[t.SessionID]+" "+string(t.State))
		}
		if len(targets) > 0 {
			line += ": " + strings.Join(targets, ", ")
		}
		out = append(out, line)
	}
	return out
}

func toldTurn(t agent.Turn) string {
	text := string(t.Trigger) + " "
	if t.Phase != agent.PhaseSettled {
		return text + string(t.Phase)
	}
	text += string(t.Outcome)
	if t.ProviderTurn != nil {
		text += fmt.Sprintf(" (provider %s)", t.ProviderTurn.Outcome)
	}
	return text
}

func TestExpectedEnds(t *testing.T) {
	for _, name := range recordings(t) {
		want, ok := expected[name]
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			end := replay(t, name)
			if diff := cmp.Diff(want, told(end)); diff != "" {
				t.Errorf("another end (-want +got):\n%s", diff)
			}
		})
	}
	for name := range expected {
		if !slices.Contains(recordings(t), name) {
			t.Errorf("there is no recording %s", name)
		}
	}
}
