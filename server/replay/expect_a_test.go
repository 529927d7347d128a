package replay

// What each recording must come to, worked out by hand from what happens in it (its README
// and its list of facts) and from the rulings, not from a replay: sessions with their edge
// and their turns, questions, what a person said, stops. The rest of the table is in
// expect_i_test.go.
var expectedAtoH = map[string][]string{
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
	// The spawn comes from inside of a code cell, which names its calls itself; the child's
	// turn begins before the edge.
	"b2-v1-code-mode-luna": {
		"root: user completed (provider completed)",
		"exec-755319ee-818f-4cbb-8f29-b9b459e5a233 below root by exec-755319ee-818f-4cbb-8f29-b9b459e5a233: delegation completed",
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
	// The server wakes the root by itself: a root turn of its own.
	"d2-v2-root-first-wake": {
		"root: user completed (provider completed), provider completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Start one sub-agent, do not wait" completed`,
	},
	// The root is stopped. The child ends by itself before its own stop is confirmed, and
	// that end stands.
	"d3-v1-root-interrupted-child-ends": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled, a already_terminal",
	},
	"d3-v2-root-interrupted-child-ends": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled, a already_terminal",
	},
	// The root's failure is kept while its child runs on, and is its outcome then.
	"d4-v1-root-fails": {
		"root: user failed (provider failed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent" completed`,
	},
	"e-v1-nested-deep": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		"g below a by call_spawn_g: delegation completed",
		`said "Use a nested sub-agent" completed`,
	},
	// By default a child is given no tool to spawn with: the wire has no word of a grandchild.
	"e-v1-nested-default": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use a nested sub-agent" completed`,
	},
	"e-v2-nested-default": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use a nested sub-agent" completed`,
	},
	"e2-v2-nested-sol": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		"g below a by call_spawn_g: delegation completed",
		`said "Use a nested sub-agent" completed`,
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
	"f2-v2-child-approval-sol": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent that runs a command" completed`,
		"a asked approval: accept, answered",
	},
	// An error is nobody's answer, and a decision that was not offered is refused: both
	// questions are over at the server without an answer of a person.
	"f3-v1-bad-answers": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent that runs commands" completed`,
		"a asked approval: nothing, superseded",
		"a asked approval: nothing, superseded",
	},
	"f4-v1-file-change": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		`said "Use one sub-agent that edits" completed`,
		"a asked approval: accept, answered",
		"a asked approval: decline, answered",
	},
	// Three questions at once, answered in another order; each belongs to who asked.
	"f5-v1-two-children-approvals": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation completed",
		"b below root by call_spawn_b: delegation completed",
		`said "Use two sub-agents that run commands" completed`,
		"root asked approval: decline, answered",
		"a asked approval: acceptForSession, answered",
		"b asked approval: accept, answered",
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
	// First the child alone is stopped, later the root, below which nothing runs then. The
	// shell that outlives both is no child.
	"g2-v1-background-process": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: a canceled",
		"cancel succeeded: root canceled",
		"process bg of a ended",
	},
	// The child's stop is confirmed before the root's interrupt is answered.
	"g3-v1-late-output": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled, a canceled",
	},
	"g4-v1-nested-cancel": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		"g below a by call_spawn_g: delegation canceled",
		`said "Use a nested sub-agent" completed`,
		"cancel succeeded: root canceled, a canceled, g canceled",
	},
	"g5-interrupt-mid-message": {
		"root: user canceled (provider interrupted)",
		`said "One" completed`,
		"cancel succeeded: root canceled",
	},
	// The recording ends before the child does: its stop is not confirmed.
	"h-v1-edge-then-interrupt-cut": {
		"root: user canceled (provider interrupted)",
		"13 below root by call_spawn_13: delegation interrupted",
		`said "<<r13>> go" completed`,
		"cancel unconfirmed: root canceled, 13 interrupted",
	},
	// A child that no edge names is stopped and creates nothing.
	"h-v1-orphan-interrupted": {
		"root: user canceled (provider interrupted)",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: root canceled",
	},
	// The spawn call was cut off, and no child came of it.
	"h-v1-spawn-abandoned-cut": {
		"root: user canceled (provider interrupted)",
		`said "<<r17>> go" completed`,
		"cancel succeeded: root canceled",
	},
	// The second child's edge comes after the stop: it creates nothing either.
	"h-v2-late-edge": {
		"root: user canceled (provider interrupted)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use two sub-agents" completed`,
		"cancel succeeded: root canceled, a canceled",
	},
	"h-v2-no-spawn-cut": {
		"root: user canceled (provider interrupted)",
		`said "<<r5>> go" completed`,
		"cancel succeeded: root canceled",
	},
	// A stopped child does not stop the root; a failed one does not fail it.
	"h3-v1-interrupt-at-edge": {
		"root: user completed (provider completed)",
		"a below root by call_spawn_a: delegation canceled",
		`said "Use one sub-agent" completed`,
		"cancel succeeded: a canceled",
	},
}
