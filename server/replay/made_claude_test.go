package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered is the lines of a recording, numbered from 1, as they are quoted.
type numbered map[int]string

// span is the lines from one to another.
func (n numbered) span(from, to int) (out []string) {
	for at := from; at <= to; at++ {
		out = append(out, n[at])
	}
	return out
}

func numberedLines(t *testing.T, name string) numbered {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(claudeSuite.dir(), name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := numbered{}
	for at, text := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		out[at+1] = text
	}
	return out
}

// join puts stretches of lines together.
func join(stretches ...[]string) (out []string) {
	for _, s := range stretches {
		out = append(out, s...)
	}
	return out
}

func swap(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// What the recordings do not show but Claude was seen to do, or may do: made of recorded
// lines in another order, or with another word in them.
func TestMadeRecordingsOfClaude(t *testing.T) {
	for _, c := range []struct {
		name, base string
		make       func(l numbered) []string
		want       []string
	}{
		{
			// The race is lost: that end stands, and the stop says so.
			"a child completes while it is stopped", "h_stop_task_by_tool_use_id",
			func(l numbered) []string {
				ends := swap(strings.Join(l.span(29, 30), "\n"), `"killed"`, `"completed"`, `"stopped"`, `"completed"`)
				return join(l.span(1, 28), []string{ends}, l.span(31, 32), l.span(35, 40))
			},
			[]string{
				"root: user completed (provider completed)",
				"a1 below root by toolu_root_a1: delegation completed",
				`said "Go [[root]]" completed`, "a1 asked approval: allow, answered",
				"cancel succeeded: a1 already_terminal",
			},
		},
		{
			// The interrupt is written the moment the launching call is read (fact 26): the child
			// still starts, and the same interrupt ends it.
			"a stop before the child has started", "g_interrupt_root_active_background_child",
			func(l numbered) []string {
				return join(l.span(1, 11), l.span(22, 22), l.span(12, 14), l.span(23, 30), l.span(43, 44))
			},
			[]string{
				"root: user canceled (provider interrupted)",
				"a1 below root by toolu_root_a1: delegation canceled",
				`said "Go [[root]]" completed`,
				"cancel succeeded: root canceled, a1 canceled",
			},
		},
		{
			// An agent's own background agent is not stopped with it: it is a target of its own
			// (decisions.md 13).
			"an outer agent is stopped with its own", "e_nested_background",
			func(l numbered) []string {
				ends := func(from, to int) string { // of a run, as stopped
					return swap(strings.Join(l.span(from, to), "\n"), `"status":"completed"`, `"status":"stopped"`)
				}
				stop := `{"t":2700,"dir":"out","msg":{"type":"control_request","request_id":"req_s","request":{"subtype":"stop_task","task_id":"acaca2da1647a3eea"}}}`
				answer := `{"t":2701,"dir":"in","msg":{"type":"control_response","response":{"subtype":"success","request_id":"req_s","response":{}}}}`
				return join(l.span(1, 21), []string{stop, ends(23, 24)}, l.span(25, 25), []string{answer, ends(37, 38)}, l.span(39, 39),
					l.span(29, 33), l.span(40, 45))
			},
			[]string{
				"root: user completed (provider completed)",
				"a1 below root by toolu_root_a1: delegation canceled",
				"a1_a2 below a1 by toolu_a1_a2: delegation canceled",
				`said "Go [[root]]" completed`,
				"cancel succeeded: a1 canceled, a1_a2 canceled",
			},
		},
		{
			// A workflow keeps the session busy (fact 30), and no turn of ours: it is a process.
			"a workflow outlives its turn", "i_background_bash",
			func(l numbered) []string {
				text := strings.Join(join(l.span(1, 21), l.span(23, 25), l.span(27, 32)), "\n")
				return []string{swap(text, "local_bash", "local_workflow")}
			},
			[]string{
				"root: user completed (provider completed), provider completed (provider completed)",
				`said "Go [[root]]" completed`, "root asked approval: allow, answered",
				"process b1 of root ended",
			},
		},
		{
			// The end of a child is told only by the level, or not at all: idle closes what is left.
			"the end of a child is not told", "d_background_then_continuation",
			func(l numbered) []string { return join(l.span(1, 24), l.span(28, 33)) },
			[]string{
				"root: user completed (provider completed)",
				"a1 below root by toolu_root_a1: delegation interrupted",
				`said "Go [[root]]" completed`,
			},
		},
		{
			// A notice about a task that nobody has heard of invents nothing.
			"a notice of an unknown task", "a_plain_turn",
			func(l numbered) []string {
				notice := `{"t":2960,"dir":"in","msg":{"type":"system","subtype":"task_notification","task_id":"a0000000000000000",` +
					`"status":"stopped","summary":"x","uuid":"00000000-0000-4000-8000-000000000000","session_id":"s"}}`
				return join(l.span(1, 9), []string{notice}, l.span(10, 24))
			},
			[]string{
				"root: user completed (provider completed), user completed (provider completed)",
				`said "Say hello [[root]]" completed`, `said "And again" completed`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Join(c.make(numberedLines(t, c.base)), "\n")
			end, err := Run(t.Context(), claudeSuite.provider, bytes.NewReader([]byte(text)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, told(end)); diff != "" {
				t.Errorf("another end (-want +got):\n%s", diff)
			}
			if left := stillOpen(end); len(left) > 0 {
				t.Error(fmt.Sprint("there is left ", left))
			}
		})
	}
}
