package replay

// What each recording of Claude must come to, worked out by hand from what happens in it
// (its README and the numbered ordering facts kept with the recordings) and from the
// rulings, before any adapter replayed it: sessions with their edge and their turns,
// questions, what a person said, stops, processes. The rest of the table is in
// expect_claude_g_test.go and expect_claude_j_test.go.
var claudeAtoF = map[string][]string{
	"a_plain_turn": {
		"root: user completed (provider completed), user completed (provider completed)",
		`said "Say hello [[root]]" completed`,
		`said "And again" completed`,
	},
	// A replayed user line is no second message.
	"a_plain_turn_partial": {
		"root: user completed (provider completed)",
		`said "Say hello [[root]]" completed`,
	},
	"b_foreground_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The tool's former name (decisions.md 17); the first sign is a partial message without input.
	"b_foreground_task_alias_partial_nofwd": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"c_two_foreground": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a2 below root by toolu_root_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"d_background_no_forward": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The root waits for its child, and then for the continuation: one root turn (decisions.md 16).
	"d_background_then_continuation": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// No child lives at the result, but its notice waits: completion is held (decisions.md 16).
	"d_child_ends_during_last_root_message": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"d_child_ends_while_root_active": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The empty turn between decides nothing (decisions.md 16).
	"d_two_background_simultaneous": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a2 below root by toolu_root_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"d_two_background_staggered": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a2 below root by toolu_root_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The call at the fourth level is refused without a task: that child never ran.
	"e_depth_limit": {
		"root: user completed (provider completed)",
		"l1 below root by toolu_l1: delegation completed",
		"l2 below l1 by toolu_l2: delegation completed",
		"l3 below l2 by toolu_l3: delegation completed",
		"l4 below l3 by toolu_l4: delegation failed",
		`said "Go [[root]]" completed`,
	},
	// The grandchild outlives its parent, whose turn is over then; the root's is not.
	"e_nested_background": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a1_a2 below a1 by toolu_a1_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"e_nested_foreground": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a1_a2 below a1 by toolu_a1_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"e_nested_fwd_nested_tool_calls": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a1_a2 below a1 by toolu_a1_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The grandchild's own lines are missing; its edge and its end are not.
	"e_nested_no_forward": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a1_a2 below a1 by toolu_a1_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"e_nested_no_forward_nested_flag": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a1_a2 below a1 by toolu_a1_a2: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"f_child_permission_allow": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
	},
	"f_child_permission_deny": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		"a1 asked approval: deny, answered",
	},
	// That answer stops the child alone. It is no stop of ours, so it is not canceled.
	"f_child_permission_deny_interrupt": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation interrupted",
		`said "Go [[root]]" completed`,
		"a1 asked approval: abort, answered",
	},
	// The stop withdraws the question; the answer that follows finds none. What the root says
	// to the stop is a continuation of the same root turn (decisions.md 16).
	"f_permission_pending_background_then_stop_task": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: nothing, superseded",
		"cancel succeeded: a1 canceled",
	},
	"f_permission_pending_then_interrupt": {
		"root: user canceled (provider interrupted)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: nothing, superseded",
		"cancel succeeded: root canceled, a1 canceled",
	},
	"f_root_permission_while_background_child_runs": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
	},
	// Three questions at once, answered in another order; each belongs to who asked.
	"f_two_children_ask_concurrently": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		"a2 below root by toolu_root_a2: delegation completed",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"a1 asked approval: allow, answered",
		"a2 asked approval: allow, answered",
	},
}
