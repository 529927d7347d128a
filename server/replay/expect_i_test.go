package replay

// The second half of the table, see expect_a_test.go.
var expectedItoZ = map[string][]string{
	"i-v1-steer": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		`said "Please also mention X" completed`,
		`said "And Y" completed`,
		"guide succeeded",
		"guide succeeded",
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
	// The interrupt finds nothing that runs, and does nothing to the turn that comes next.
	"i3-steer-mid-message": {
		"root: user completed (provider completed), user completed (provider completed)",
		`said "One" completed`,
		`said "stop, do this" completed`,
		`said "Two" completed`,
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
	"j-v2-start-while-child": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
		`said "More guidance" completed`,
		"guide succeeded",
	},
	// A turn/start while the root runs is a steer of that turn.
	"j2-v1-start-while-root": {
		"root: user completed (provider completed)",
		`said "One" completed`,
		`said "Two" completed`,
		"guide succeeded",
	},
	// The new question comes while the stop is open, and is refused; the turn that Codex
	// begins with it all the same is nobody's (decisions.md 3).
	"j3-v1-interrupt-then-start": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled, a already_terminal",
	},
	"k-v1-child-context": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation failed",
		`said "Use one sub-agent" completed`,
	},
	"k-v1-child-http500": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation failed",
		`said "Use one sub-agent" completed`,
	},
	"k-v2-child-drop": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation failed",
		`said "Use one sub-agent" completed`,
	},
	"k-v2-child-http400": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation failed",
		`said "Use one sub-agent" completed`,
	},
	"l-v1-early-child-events": {
		"root: user completed (provider completed)",
		"uma below root by call_spawn_uma: delegation completed",
		`said "Start one sub-agent" completed`,
	},
	"l-v2-early-child-events": {
		"root: user completed (provider completed)",
		"uma below root by call_spawn_uma: delegation completed",
		`said "Start one sub-agent" completed`,
	},
	"l4-v1-child-turn-before-edge-cut": {
		"root: user completed (provider completed)",
		"35 below root by call_spawn_35: delegation completed",
		`said "<<r35>> go" completed`,
	},
	// Killed in mid turn and resumed: what ran is interrupted, a later turn is another one.
	"m-v1-kill-resume": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
		`said "Go on" completed`,
	},
	"m-v2-kill-resume": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
		`said "Go on" completed`,
	},
	// After the resume the root uses its old child: a new turn of that very session.
	"m2-v1-resume-and-reuse": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted, guidance completed",
		`said "Use one sub-agent" completed`,
		`said "Go on with the agent" completed`,
	},
	"m2-v2-resume-and-reuse": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted, guidance completed",
		`said "Use one sub-agent" completed`,
		`said "Go on with the agent" completed`,
	},
	// The process is killed over a question.
	"m3-v1-kill-pending-approval": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
		"a asked approval: nothing, superseded",
	},
	// Of all that the client tries, one message and one interrupt mean something.
	"n-errors": {
		"root: user canceled (provider interrupted)",
		`said "hold" completed`,
		"cancel succeeded: root canceled",
	},
	// A child's question is refused by Codex itself, without a request on the wire.
	"o-v1-child-user-input": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		"root asked question: color=Blue, answered",
	},
	"o-v2-child-user-input": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		"root asked question: color=Blue, answered",
	},
	// However the process ends in mid turn, there are no words of farewell.
	"p-v1-eof": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
	},
	"p-v1-term": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
	},
	"p-v2-kill": {
		"root: user interrupted (provider interrupted)",
		"a below root by call_spawn_a: delegation interrupted",
		`said "Use one sub-agent" completed`,
	},
	// The same child works again under the same root turn, and under a later one.
	"q-v1-child-again": {
		"root: user completed (provider completed), user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed, guidance completed, guidance completed",
		`said "Use one sub-agent twice" completed`,
		`said "Use it again" completed`,
	},
	"q-v2-child-again": {
		"root: user completed (provider completed), user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed, guidance completed, guidance completed",
		`said "Use one sub-agent twice" completed`,
		`said "Use it again" completed`,
	},
	// The second spawn is refused: no child.
	"r-v1-limit": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use two sub-agents" completed`,
	},
	"r-v2-limit": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use two sub-agents" completed`,
	},
	"r2-v2-ephemeral-spawn-fails": {
		"root: user completed (provider completed)",
		`said "Start one sub-agent" completed`,
	},
	// A person addresses the root alone. A turn that the recorded client gave the child by
	// itself has no open root turn to run under (decisions.md 2).
	"s-v1-direct-child-input": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	"s-v2-direct-child-input": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	// A stop withdraws the questions of all that it stops: the answer to a's comes too late,
	// and so does the one to b's, whose own end outruns its stop in the recording.
	"t-v1-interrupt-pending-approval": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		"b below root by call_spawn_b: delegation completed",
		`said "Use two sub-agents" completed`,
		"a asked approval: nothing, superseded",
		"b asked approval: nothing, superseded",
		"cancel succeeded: a canceled",
		"cancel succeeded: root canceled, b already_terminal",
	},
	// The root agent itself stops its child and gives it another task.
	"u-v1-close-resume": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted, guidance completed",
		`said "Use one sub-agent" completed`,
	},
	"u-v2-interrupt-agent": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation interrupted, guidance completed",
		`said "Use one sub-agent" completed`,
	},
	// The root gives up waiting; its turn waits for the child all the same.
	"v-v1-wait-timeout": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	// The tree is gone (decisions.md 26).
	"w-v1-delete": {},
	"w-v2-delete": {},
	// The first interrupt comes before turn/started and is refused; it is repeated.
	"x-interrupt-early": {
		"root: user canceled (provider interrupted), user canceled (provider interrupted)",
		`said "One" completed`,
		`said "Two" completed`,
		"cancel succeeded: root canceled",
		"cancel succeeded: root canceled",
	},
	// Five interrupts are one stop.
	"x2-v1-double-interrupt": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled, a canceled",
	},
	// Unloaded threads have ended nothing.
	"y-v1-unload": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	// Nobody says anything: Codex works for a goal, turn after turn (decisions.md 3).
	"z-goal": {
		"root: provider completed (provider completed), provider completed (provider completed)",
	},
	// The goal's second turn begins while the first one's child still runs, so it belongs to
	// the same root turn; that is stopped, and the child ends by itself.
	"z2-v1-goal-cancel": {
		"root: provider canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation completed",
		"cancel succeeded: root canceled, a already_terminal",
	},
}
