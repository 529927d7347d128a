package replay

// The second part of the table, see expect_claude_a_test.go. The recorded client's
// interrupt is a person's stop of the root turn with everything below it: that is what
// ours means, whatever the recorded one was set up to spare.
var claudeGtoI = map[string][]string{
	// The queued message was withdrawn with the turn that it was for.
	"g_interrupt_cancel_queued": {
		"root: user canceled (provider interrupted)",
		`said "Go [[root]]" completed`,
		`said "Queued follow-up" undelivered`,
		"root asked approval: allow, answered",
		"guide succeeded",
		"cancel succeeded: root canceled",
	},
	// The child had ended by itself and is no target.
	"g_interrupt_during_continuation": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"cancel succeeded: root canceled",
	},
	// The parent's tool result comes before the notice: the first of the two counts.
	"g_interrupt_foreground_child": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled",
	},
	// The root's own turn had completed; its root turn is canceled all the same. There is no
	// result, and what the child still says after its end is history.
	"g_interrupt_idle_root_background_child": {
		"root: user canceled (provider completed), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled",
	},
	// Recorded with an interrupt that spares children: the child's end is seen when the
	// recorded client stops it two seconds later, within the bound of our stop. The
	// continuation that follows is below a canceled root turn: dropped (decisions.md 3).
	"g_interrupt_idle_root_background_child_affordance": {
		"root: user canceled (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled",
	},
	// A stop in the gap. The recorded interrupt did not withdraw the notice, so that the
	// continuation runs all the same: nobody's (decisions.md 3).
	"g_interrupt_right_after_task_notification": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"cancel succeeded: root canceled",
	},
	"g_interrupt_root_active_background_child": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled",
	},
	// As above; between the ends of the two children Claude begins a turn, and it ends while
	// the stop is still open.
	"g_interrupt_root_active_background_child_affordance": {
		"root: user canceled (provider interrupted)",
		"a1 below root by toolu_root_a1: delegation canceled",
		"a2 below root by toolu_root_a2: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"a2 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled, a2 canceled",
	},
	"g_interrupt_root_streaming_plain": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"cancel succeeded: root canceled",
	},
	"g_interrupt_two_foreground_children_mid_stream": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		"a2 below root by toolu_root_a2: delegation canceled",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"a2 asked approval: allow, answered",
		"cancel succeeded: root canceled, a1 canceled, a2 canceled",
	},
	"g_interrupt_when_idle": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
	},
	// The recorded interrupt left the queued message where it was, so that it runs after the
	// stop. It was guidance of the canceled turn: its own turn is nobody's (decisions.md 2 and 3).
	"g_interrupt_with_queued_message": {
		"root: user canceled (provider interrupted)",
		`said "Go [[root]]" completed`,
		`said "Queued follow-up" undelivered`,
		"root asked approval: allow, answered",
		"guide succeeded",
		"cancel succeeded: root canceled",
	},
	// A person can stop neither what has ended nor what was never there. A command that runs
	// for long inside of a child's turn is no process.
	"h_stop_task_background_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		"a2 below root by toolu_root_a2: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"a2 asked approval: allow, answered",
		"cancel succeeded: a1 canceled",
		"cancel succeeded: a2 canceled",
	},
	"h_stop_task_by_tool_use_id": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: a1 canceled",
	},
	"h_stop_task_foreground_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: a1 canceled",
	},
	"h_stop_task_while_root_active": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"cancel succeeded: a1 canceled",
	},
	// The turn that Claude begins when a detached command ends is a root turn of its own
	// (decisions.md 3).
	"i_background_bash": {
		"root: user completed (provider completed), provider completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	// The interrupt finds no turn. The command ends when the recorded client hangs up.
	"i_background_bash_interrupt": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	// The command never ends by itself: it goes with the process.
	"i_background_bash_stdin_close": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	"i_background_bash_stop_task": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	// A child's command ends when all is settled, and wakes the child: another turn of that
	// very child, below a root turn of trigger provider (decisions.md 1 to 3).
	"i_child_background_bash": {
		"root: user completed (provider completed), provider completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed, guidance completed",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
		"process a1_b1 of a1 ended",
	},
	"i_long_foreground_bash": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
	},
	// Two events and the end of the watch: a root turn each.
	"i_monitor_tool": {
		"root: user completed (provider completed), provider completed (provider completed), " +
			"provider completed (provider completed), provider completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process m1 of root ended",
	},
}
