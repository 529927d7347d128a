package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// told is an end in the words of the table.
func told(end *End) []string {
	name := map[agent.SessionID]string{}
	for _, s := range end.Sessions {
		name[s.ID] = "root"
		if !s.IsRoot() {
			name[s.ID] = cmp.Or(short(s.ParentToolCallID), s.Title)
		}
	}
	var out []string
	for _, s := range end.Sessions {
		who := name[s.ID]
		if !s.IsRoot() {
			who += " below " + name[s.ParentSessionID]
			if s.ParentToolCallID != "" {
				who += " by " + string(s.ParentToolCallID)
			}
		}
		var turns []string
		for _, t := range end.Turns {
			if t.SessionID == s.ID {
				turns = append(turns, toldTurn(t))
			}
		}
		out = append(out, who+": "+strings.Join(turns, ", ")+toldGrants(end, s))
	}
	for _, m := range end.Messages {
		if m.Role == agent.RoleUser && name[m.SessionID] == "root" {
			out = append(out, fmt.Sprintf("said %q %s", m.Content, m.Status))
		}
	}
	for _, i := range end.Interactions {
		line := fmt.Sprintf("%s asked %s: %s, %s", name[i.SessionID], i.Kind, toldAnswer(end.Sessions[0].Provider, i), i.Status)
		if i.Owner == agent.OwnerUnknown {
			line += ", owner unknown"
		}
		out = append(out, line)
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
	for _, p := range end.Processes {
		out = append(out, fmt.Sprintf("process %s of %s %s", short(p.CallID), name[p.SessionID], p.Status))
	}
	return out
}

// toldGrants says how often an agent has let a child be stopped alone, and whether it did
// so to the end.
func toldGrants(end *End, s agent.Session) string {
	given, last := 0, false
	for _, g := range end.Grants {
		if g.Session == s.ID {
			last = g.Given
			if g.Given {
				given++
			}
		}
	}
	switch {
	case given == 0:
		return ""
	case last:
		return fmt.Sprintf(" (granted %d times and still)", given)
	case given == 1:
		return " (granted once)"
	}
	return fmt.Sprintf(" (granted %d times)", given)
}

// short is the mock model's own name for what a call began.
func short(call agent.CallID) string {
	text := string(call)
	for _, prefix := range []string{"call_spawn_", "call_", "toolu_root_", "toolu_"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return rest
		}
	}
	return text
}

// toldAnswer is what a person answered: Codex names its options itself, those of Claude
// are named by what they do.
func toldAnswer(provider string, i agent.Interaction) string {
	if i.Response == nil {
		return "nothing"
	}
	var answers []string
	for _, id := range slices.Sorted(maps.Keys(i.Response.Answers)) {
		if provider == "codex" {
			answers = append(answers, id+"="+i.Response.Answers[id])
		} else {
			answers = append(answers, i.Response.Answers[id])
		}
	}
	option := i.Response.OptionID
	if at := slices.IndexFunc(i.Options, func(o agent.Option) bool { return o.ID == option }); at >= 0 && provider != "codex" {
		option = i.Options[at].Role
	}
	return strings.TrimSpace(option + i.Response.Action + " " + strings.Join(answers, " "))
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

func TestExpectedEnds(t *testing.T) {
	eachRecording(t, func(t *testing.T, s suite, name string) {
		for _, table := range s.expected {
			if want, ok := table[name]; ok {
				if diff := gocmp.Diff(want, told(s.replay(t, name)), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("another end (-want +got):\n%s", diff)
				}
				return
			}
		}
		t.Fatal("nobody has worked out what it must come to")
	})
	for _, s := range suites {
		names := s.recordings(t)
		for _, table := range s.expected {
			for name := range table {
				if !slices.Contains(names, name) {
					t.Errorf("there is no recording %s", name)
				}
			}
		}
	}
}
