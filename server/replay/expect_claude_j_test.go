package replay

// The last part of the table, see expect_claude_a_test.go.
var claudeJtoR = map[string][]string{
	// The message was taken and then withdrawn before it was read.
	"j_cancel_async_message": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Withdraw me" undelivered`,
		"guide succeeded",
	},
	"j_message_during_foreground_child": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Extra guidance for you" completed`,
		"guide succeeded",
	},
	// Guidance during the wait for a continuation stays below the same root turn, and runs
	// after it (spec, Claude mapping).
	"j_message_in_notification_gap": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Gap guidance" completed`,
		"guide succeeded",
	},
	"j_message_while_only_background_child_runs": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Extra guidance for you" completed`,
		"guide succeeded",
	},
	// Claude gives the message a turn of its own, and that runs below the open root turn.
	"j_message_while_root_streams_last_text": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Also do this" completed`,
		"guide succeeded",
	},
	"j_message_while_root_tool_runs": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Also do this" completed`,
		"guide succeeded",
	},
	// The urgent message cuts off the first provider turn once its command has ended; its own
	// is the last word. The first message had been read when that was cut off.
	"j_priority_now_while_tool_runs": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Urgent: stop and do this" completed`,
		"root asked approval: allow, answered",
		"guide succeeded",
	},
	"j_three_messages_burst": {
		"root: user completed (provider completed)",
		`said "First [[root]]" completed`,
		`said "Second" completed`,
		`said "Third" completed`,
		"guide succeeded",
		"guide succeeded",
	},
	// A failed child does not fail the root.
	"k_child_error_400_background": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation failed",
		`said "Go [[root]]" completed`,
	},
	"k_child_error_400_foreground": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation failed",
		`said "Go [[root]]" completed`,
	},
	"k_child_error_500_exhausted_foreground": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation failed",
		`said "Go [[root]]" completed`,
	},
	"k_child_error_500_retries": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The provider calls a child that ran into its turn limit completed.
	"k_child_max_turns": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The user turn failed while the child lived. The continuation is a later provider turn
	// of the same root turn, and the later one decides.
	"k_root_error_400_with_background_child": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// The call made a child before it was refused.
	"k_unknown_agent_type": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation failed",
		`said "Go [[root]]" completed`,
	},
	// A child has no such tool: nobody is asked.
	"l_ask_user_question_child": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"l_ask_user_question_child_named_tool": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"l_ask_user_question_root": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked question: Blue, answered",
	},
	// The second elicitation is the child's, but nothing on the wire says so (decisions.md 19).
	"l_mcp_elicitation_root_and_child": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"root asked elicitation: accept blue, answered, owner unknown",
		"a1 asked approval: allow, answered",
		"root asked elicitation: accept blue, answered, owner unknown",
	},
	// The process dies with the root's outcome retained: that stands, and the child is
	// interrupted (decisions.md 9). The notice after the resume is about a turn that has ended,
	// and the empty turn that follows it is nothing.
	"m_kill9_background_child_then_resume": {
		"root: user completed (provider completed), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation interrupted",
		`said "Go [[root]]" completed`,
		`said "What happened?" completed`,
		"a1 asked approval: allow, answered",
	},
	"m_kill9_foreground_child_then_resume": {
		"root: user interrupted (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation interrupted",
		`said "Go [[root]]" completed`,
		`said "What happened?" completed`,
		"a1 asked approval: allow, answered",
	},
	"m_kill9_then_resume_no_prompt": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation interrupted",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
	},
	// The second process runs the cut turn again by itself: work that nobody asked for
	// (decisions.md 3). The turn that was cut stays interrupted.
	"m_resume_interrupted_turn_env": {
		"root: user interrupted (provider interrupted), provider completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
	},
	// The stop comes within the bound of the wait for the first word.
	"n_continuation_hangs": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"cancel succeeded: root canceled",
	},
	// Hooks are the recorded client's own: they decide nothing here.
	"o_hooks_background_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
	},
	"o_hooks_foreground_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"o_subagentstop_hook_blocks": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// These tasks are items of a list, not agents.
	"o_task_tools_hooks": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
	},
	// What the recorded client answered to the second and third question is no answer of a
	// person; both are over when their tool calls fail.
	"p_duplicate_and_garbage_permission_answers": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"root asked approval: nothing, superseded",
		"root asked approval: nothing, superseded",
	},
	// The recorded client's own line kills the process, which has finished by then. The next
	// message finds none, and there is none to start.
	"p_malformed_json_line": {
		"root: user completed (provider completed), user failed (provider failed)",
		`said "Go [[root]]" completed`,
		`said "Still there?" undelivered`,
	},
	"p_unknown_messages": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
	},
	"p_user_message_bad_shape": {
		"root: user completed (provider completed), user failed (provider failed)",
		`said "Go [[root]]" completed`,
		`said "Still there?" undelivered`,
	},
	// The launch call completes when the child goes to the background; the child runs on.
	"q_background_tasks_control": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"q_disable_background_tasks_env": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// Three interrupts are one stop.
	"q_interrupt_three_times": {
		"root: user canceled (provider interrupted), user completed (provider completed)",
		`said "Go [[root]]" completed`,
		`said "Are you there?" completed`,
		"root asked approval: allow, answered",
		"cancel succeeded: root canceled",
	},
	"q_second_initialize": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation canceled",
		`said "Go [[root]]" completed`,
		"a1 asked approval: nothing, superseded",
		"cancel succeeded: a1 canceled",
	},
	// The second run is registered under the call that asked for it, and is the same child's
	// (decisions.md 17).
	"q_send_message_resumes_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed, guidance completed",
		`said "Go [[root]]" completed`,
	},
	"q_send_message_to_running_agent": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	"q_set_permission_mode_and_model": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
	},
	// Only late words of the child come before the end of the process.
	"q_sigterm_while_background_runs": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation interrupted",
		`said "Go [[root]]" completed`,
		"a1 asked approval: allow, answered",
	},
	"q_sigterm_with_background_bash": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	"q_stdin_close_bg_wait_ceiling": {
		"root: user completed (provider completed)",
		`said "Go [[root]]" completed`,
		"root asked approval: allow, answered",
		"process b1 of root ended",
	},
	"q_stdin_close_while_background_runs": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "Go [[root]]" completed`,
	},
	// A person's slash command is a turn like any other; the goal itself decides nothing.
	"r_goal_command": {
		"root: user completed (provider completed), user completed (provider completed), user completed (provider completed)",
		"a1 below root by toolu_root_a1: delegation completed",
		`said "/goal all jobs are done [[root]]" completed`,
		`said "/goal" completed`,
		`said "/goal clear" completed`,
	},
}
