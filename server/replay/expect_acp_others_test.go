package replay

// The recordings of claude-agent-acp and of opencode, as expect_acp_test.go has those of
// codex-acp. Claude names the tool call that made a child.
var acpOthers = map[string][]string{
	// The prompt's answer comes after the child and the root's continuation.
	"cl-bg-child.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation completed (granted once)",
		`said "go" completed`,
	},
	// The second stop comes after the end. The grant is never taken back; it ends with the work.
	"cl-child-cancel.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation canceled (granted once)",
		"a2 below root by toolu_a2: delegation completed (granted once)",
		`said "go" completed`,
		"cancel succeeded: a1 canceled",
	},
	"cl-child-cancel.v2": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation canceled (granted once)",
		"a2 below root by toolu_a2: delegation completed (granted once)",
		`said "go" completed`,
		"cancel succeeded: a1 canceled",
	},
	// The late approval finds no open question.
	"cl-child-perm-withdrawn-late.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation canceled (granted once)",
		`said "go" completed`,
		"a1 asked approval: nothing, superseded",
		"cancel succeeded: a1 canceled",
	},
	"cl-child-perm.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation completed (granted once)",
		`said "go" completed`,
		"a1 asked approval: allow, answered",
	},
	"cl-fg-child.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation completed (granted once)",
		`said "go" completed`,
	},
	"cl-fg-child.v2": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation completed (granted once)",
		`said "go" completed`,
	},
	// The history says "running", and the answer is followed by an idle: both open nothing.
	"cl-load.v1": {"root: "},
	// The recorded stop of the root left the background child running until it was stopped
	// by itself 1.6 s later; ours is of both (decisions.md 14).
	"cl-parent-cancel.v2": {
		"root: user canceled (provider interrupted)",
		"a1 below root by toolu_a1: delegation canceled (granted once)",
		"a2 below root by toolu_a2: delegation canceled (granted once)",
		`said "go" completed`,
		"cancel succeeded: root canceled, a1 canceled, a2 canceled",
	},
	"cl-plain.v1": {"root: user completed (provider completed)", `said "hi" completed`},
	"cl-two.v1": {
		"root: user completed (provider completed)",
		"a1 below root by toolu_a1: delegation completed (granted once)",
		"a2 below root by toolu_a2: delegation completed (granted once)",
		`said "go" completed`,
	},

	// Without opt-in: a tool named Agent is a tool, and the child's question is the root's.
	"cl-bg-child.v1x": {"root: user completed (provider completed)", `said "go" completed`},
	"cl-fg-child.v1x": {"root: user completed (provider completed)", `said "go" completed`},
	"cl-child-perm.v1x": {
		"root: user completed (provider completed)",
		`said "go" completed`,
		"root asked approval: allow, answered",
	},

	// opencode has no children in this protocol: a tool named task is a tool.
	"oc-acp-child":        {"root: user completed (provider completed)", `said "go" completed`},
	"oc-acp-child-cancel": {"root: user completed (provider completed)", `said "go" completed`},
	"oc-acp-two":          {"root: user completed (provider completed)", `said "go" completed`},
	// The session is loaded again; then the child's, as if it were another root.
	"oc-acp-load": {"root: user completed (provider completed)", `said "go" completed`},
	"oc-acp-parent-cancel": {
		"root: user canceled (provider interrupted)",
		`said "go" completed`,
		"cancel succeeded: root canceled",
	},
	"oc-acp-root-perm": {
		"root: user completed (provider completed)",
		`said "go" completed`,
		"root asked approval: allow, answered",
	},
	// It is asked for version 2 and answers with 1.
	"oc-acp-v2": {"root: user completed (provider completed)", `said "go" completed`},
	// These are of opencode's HTTP interface: there is no conversation in this protocol.
	"oc-http-background":   {},
	"oc-http-child":        {},
	"oc-http-child-perm":   {},
	"oc-http-parent-abort": {},
}
