package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

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
			for _, id := range slices.Sorted(maps.Keys(i.Response.Answers)) {
				answer += id + "=" + i.Response.Answers[id]
			}
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

// expected is what a recording must come to. Every one has an entry.
func expected(name string) ([]string, bool) {
	want, ok := expectedAtoH[name]
	if !ok {
		want, ok = expectedItoZ[name]
	}
	return want, ok
}

func TestExpectedEnds(t *testing.T) {
	names := recordings(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want, ok := expected(name)
			if !ok {
				t.Fatal("nobody has worked out what it must come to")
			}
			got := told(replay(t, name))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("another end (-want +got):\n%s", diff)
			}
		})
	}
	for _, table := range []map[string][]string{expectedAtoH, expectedItoZ} {
		for name := range table {
			if !slices.Contains(names, name) {
				t.Errorf("there is no recording %s", name)
			}
		}
	}
}
