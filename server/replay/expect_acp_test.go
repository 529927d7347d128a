package replay

// What each recording of codex-acp must come to, worked out by hand from what happens in
// it (its README) and from the rulings, before any adapter replayed it: sessions with
// their edge, their turns and how often the agent let them be stopped alone, questions,
// what a person said, stops. Children have no tool call there; they go by their titles.
// The rest of the table is in expect_acp_others_test.go.
var acpCodex = map[string][]string{
	"a-plain.v1": {"root: user completed (provider completed)", `said "hi" completed`},
	"a-plain.v2": {"root: user completed (provider completed)", `said "hi" completed`},
	"b-child.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "please delegate" completed`,
	},
	"b-child.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "please delegate" completed`,
	},
	"b-child-bundled0166.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "please delegate" completed`,
	},
	"c-two.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation completed (granted once)",
		`said "two" completed`,
	},
	"c-two.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation completed (granted once)",
		`said "two" completed`,
	},
	// One child is stopped alone; the root gives it work again, with a fresh grant.
	"d-cancel.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled, guidance completed (granted 2 times)",
		"Beta below root: delegation completed (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	"d-cancel.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled, guidance completed (granted 2 times)",
		"Beta below root: delegation completed (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	"d-cancel-bundled0166.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled, guidance completed (granted 2 times)",
		"Beta below root: delegation completed (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	// The second stop joins the first; the third finds nothing.
	"d2-cancel-twice.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	// A child is stopped with what it has below itself, but not what stands beside it.
	"d3-nested.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		"Beta below root: delegation completed (granted once)",
		"Inner below Alpha: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled, Inner canceled",
	},
	// The outer child outlives the root's own turn.
	"d4-nested-inner.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Inner below Alpha: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Inner canceled",
	},
	"d5-cancel-in-tool.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	"d5-cancel-in-tool.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Alpha canceled",
	},
	"e-parent-cancel.v1": {
		"root: user canceled (provider interrupted)",
		"Alpha below root: delegation canceled (granted once)",
		"Beta below root: delegation canceled (granted once)",
		"Inner below Alpha: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: root canceled, Alpha canceled, Beta canceled, Inner canceled",
	},
	// The agent's own guardian decided; nobody was asked.
	"f0-perm-default-mode.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "go" completed`,
	},
	"f0-perm-default-mode.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "go" completed`,
	},
	"f-perm-answered.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "go" completed`,
		"Alpha asked approval: allow, answered",
	},
	"f-perm-answered.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		`said "go" completed`,
		"Alpha asked approval: allow, answered",
	},
	// The first question is withdrawn by the stop, and its late answer finds nothing open;
	// the one of the next turn is answered.
	"f2-perm-withdrawn-late-reply.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled, guidance completed (granted 2 times)",
		`said "go" completed`,
		"Alpha asked approval: nothing, superseded",
		"Alpha asked approval: allow, answered",
		"cancel succeeded: Alpha canceled",
	},
	// "cancelled" is what a client says by itself about whatever it stops.
	"f3-perm-cancelled-outcome.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"Alpha asked approval: nothing, superseded",
		"cancel succeeded: Alpha canceled",
	},
	"f3-perm-cancelled-outcome.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"Alpha asked approval: nothing, superseded",
		"cancel succeeded: Alpha canceled",
	},
	"f4-perm-parent-cancel.v1": {
		"root: user canceled (provider interrupted)",
		"Alpha below root: delegation canceled (granted once)",
		`said "go" completed`,
		"Alpha asked approval: nothing, superseded",
		"cancel succeeded: root canceled, Alpha canceled",
	},
	// The load takes Beta's grant, and what follows its answer gives another; the stop of
	// Beta ends the root turn, whose own part was over before.
	"g-load.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation canceled (granted 2 times)",
		`said "go" completed`,
		"cancel succeeded: Beta canceled",
	},
	"g-load.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation canceled (granted 2 times)",
		`said "go" completed`,
		"cancel succeeded: Beta canceled",
	},
	// A session that an earlier process began: its history opens nothing (decisions.md 20).
	"g2-load-fresh.v2": {
		"root: user completed (provider completed)",
		`said "go on" completed`,
	},
	// Two conversations in one process; nothing is ever said in the second. What is
	// forbidden, or about nobody, is no command.
	"h-ids.v1": {
		"root: user completed (provider completed)",
		"root: ",
		"Alpha below root: delegation completed (granted once)",
		`said "go" completed`,
	},
	// The prompt ends before both children. Beta is stopped with no prompt active, which
	// lets the root turn settle; then comes another one.
	"i-outlive.v1": {
		"root: user completed (provider completed), user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation canceled (granted once)",
		`said "go" completed`,
		`said "and now?" completed`,
		"cancel succeeded: Beta canceled",
	},
	// The root's own part was over when the whole was stopped.
	"i2-cancel-idle-parent.v2": {
		"root: user canceled (provider completed)",
		"Beta below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: root canceled, Beta canceled",
	},
	// To close a session is no stop of a person's: what it cut off is interrupted.
	"j-close.v1": {
		"root: user interrupted (provider interrupted)",
		"Alpha below root: delegation interrupted (granted once)",
		`said "go" completed`,
	},
	// The child is lost, which is no ending: its root turn stays open, takes the next message,
	// and settles when the agent ends. Without a grant the child cannot be stopped alone.
	"l-appserver-crash.v2": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation interrupted (granted once)",
		`said "go" completed`,
		`said "still there?" completed`,
		"guide succeeded",
	},
	"m-child-fails.v1": {
		"root: user completed (provider completed)",
		"Alpha below root: delegation failed (granted once)",
		"Beta below root: delegation failed (granted once)",
		`said "go" completed`,
	},
	// The fork is a session of the recorded client's alone, and its child another one.
	"n-fork.v2": {
		"root: user completed (provider completed)",
		"Beta below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Beta canceled",
	},
	// The session is another process's: it cannot be taken up.
	"o-foreign-process.v1": {"root: "},
	// A batch is refused as a whole.
	"p-batch.v2": {
		"root: user completed (provider completed)",
		"Beta below root: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: Beta canceled",
	},

	// Without opt-in there are no children, only tool calls. We always opt in: these are what
	// the agent said to another client, and what we would make of an agent without children.
	"a-plain.v1x": {"root: user completed (provider completed)", `said "hi" completed`},
	"b-child.v1x": {"root: user completed (provider completed)", `said "please delegate" completed`},
	"x1-no-optin-parent-cancel.v1x": {
		"root: user canceled (provider interrupted)",
		`said "go" completed`,
		"cancel succeeded: root canceled",
	},
}
