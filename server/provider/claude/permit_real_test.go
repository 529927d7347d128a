//go:build providers

package claude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// optionsOf are the ids of the options of a question.
func optionsOf(i agent.Interaction) []string {
	var out []string
	for _, o := range i.Options {
		out = append(out, o.ID)
	}
	return out
}

// What is always allowed is not asked again, and only that.
func TestRealAlwaysAllow(t *testing.T) {
	r := startReal(t, Script{"root": {
		{Bash("toolu_1", "touch one.txt")},
		{Bash("toolu_2", "touch one.txt")},
		{Bash("toolu_3", "mkdir two")},
		{Say("Done.")},
	}}, options{mode: modeAsk})
	r.Say("Go")
	first := r.Question(0)
	if got := optionsOf(first); !slices.Contains(got, "always") || !slices.Contains(got, "mode:acceptEdits") {
		t.Fatalf("offered: %v", got)
	}
	r.Answer(first, agent.Response{OptionID: "always"})
	second := r.Question(1)
	if second.Detail.Command != "mkdir two" {
		t.Errorf("asked again: %+v", second.Detail)
	}
	r.Answer(second, agent.Response{OptionID: "deny", Text: "not that one"})
	v := r.WantRoot(agent.OutcomeCompleted)
	for _, m := range v.Messages {
		if m.CallID == "toolu_3" && (m.Status != agent.MessageFailed || !strings.Contains(m.Output, "not that one")) {
			t.Errorf("the refused call: %+v", m)
		}
	}
}

// A mode that is chosen with an answer holds for the edits that follow.
func TestRealAcceptEdits(t *testing.T) {
	r := startReal(t, Script{"root": {
		{Write("toolu_1", "a.txt", "1\n")},
		{Write("toolu_2", "b.txt", "2\n")},
		{Say("Done.")},
	}}, options{mode: modeAsk})
	r.Say("Go")
	q := r.Question(0)
	if !strings.Contains(q.Detail.Diff, "+1") || !strings.HasPrefix(q.Title, "Write a.txt") {
		t.Errorf("%+v", q)
	}
	r.Answer(q, agent.Response{OptionID: "mode:acceptEdits"})
	r.WantRoot(agent.OutcomeCompleted)
	for _, name := range []string{"a.txt", "b.txt"} {
		if _, err := os.Stat(filepath.Join(r.Place.Work, name)); err != nil {
			t.Error(err)
		}
	}
}

// Plan mode ends with the person's word: no goes on planning, yes begins, in the mode that
// was chosen.
func TestRealPlanExit(t *testing.T) {
	for _, c := range []struct {
		option string
		asks   bool // for the edit that follows
	}{{"allow", true}, {"mode:acceptEdits", false}} {
		t.Run(c.option, func(t *testing.T) {
			r := startReal(t, Script{"root": {
				{Call("ExitPlanMode", map[string]any{}).As("toolu_1")},
				{Call("ExitPlanMode", map[string]any{}).As("toolu_2")},
				{Write("toolu_3", "a.txt", "1\n")},
				{Say("Done.")},
			}}, options{mode: "plan"})
			r.Say("Plan it")
			q := r.Question(0)
			if q.Kind != agent.InteractionPlan || q.Detail.Text == "" {
				t.Errorf("%+v", q)
			}
			r.Answer(q, agent.Response{OptionID: "deny", Text: "name it"})
			r.Answer(r.Question(1), agent.Response{OptionID: c.option})
			if c.asks {
				edit := r.Question(2)
				if edit.Kind != agent.InteractionApproval {
					t.Errorf("%+v", edit)
				}
				r.Answer(edit, agent.Response{OptionID: "allow"})
			}
			v := r.WantRoot(agent.OutcomeCompleted)
			if n := len(v.Interactions); n != 2 && !c.asks {
				t.Errorf("%d questions", n)
			}
			if !strings.Contains(fmt.Sprint(v.Messages), "name it") {
				t.Error("what the person wrote did not reach the agent")
			}
		})
	}
}
