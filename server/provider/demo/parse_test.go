package demo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func TestParse(t *testing.T) {
	s, err := demo.Parse("x", `
# a comment
title A title
root
  say One line

    - and a list
      deeper
  tool shell go test ./...
    took 2s
    > ok
    > all
  ask approval Run?
    command rm -rf build
    allow Yes
      wait 1s
    deny No
  spawn helper times 3 late 1s
agent helper
  title Helper {n}
  type kind
  ignores cancel
  fail broken
after children reserved 30s
  say Done.
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &demo.Script{
		ID: "x", Title: "A title",
		Root: []demo.Step{
			demo.Say{Kind: agent.MessageText, Text: "One line\n\n- and a list\n  deeper"},
			demo.Tool{Name: "shell", Input: "go test ./...", Output: "ok\nall", Took: 2 * time.Second},
			demo.Ask{
				Kind: agent.InteractionApproval, Title: "Run?", Detail: agent.Detail{Command: "rm -rf build"},
				Choices: []demo.Choice{
					{Option: agent.Option{ID: "allow", Label: "Yes", Role: agent.RoleAllow}, Steps: []demo.Step{demo.Wait{For: time.Second}}},
					{Option: agent.Option{ID: "deny", Label: "No", Role: agent.RoleDeny}},
				},
			},
			demo.Spawn{Agent: "helper", Times: 3, Late: time.Second},
		},
		Agents: map[string]*demo.Agent{"helper": {
			Name: "helper", Title: "Helper {n}", Type: "kind", IgnoresCancel: true,
			Steps: []demo.Step{demo.End{Outcome: agent.OutcomeFailed, Reason: "broken"}},
		}},
		After: &demo.After{Reserved: 30 * time.Second, Steps: []demo.Step{demo.Say{Kind: agent.MessageText, Text: "Done."}}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestParseTellsEveryMistakeWithItsLine(t *testing.T) {
	_, err := demo.Parse("x", "root\n  sya hello\n  wait soon\n  spawn nobody\n  ask approval Well?\n")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`line 2: there is no step "sya"`, `line 3: "soon" is no duration`, `line 4: no agent is called "nobody"`, "line 5: ask offers no choice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestShownScenariosSayWhatTheyAre(t *testing.T) {
	info := demo.New(demo.Options{}).Probe(t.Context())
	if len(info.Scenarios) != 8 {
		t.Errorf("%d scenarios are shown, want 8", len(info.Scenarios))
	}
	for _, s := range info.Scenarios {
		if s.Title == "" || s.Description == "" {
			t.Errorf("scenario %s has no title or description", s.ID)
		}
	}
}

// Whatever is written, Parse answers with a script or with mistakes, and never panics.
func FuzzParse(f *testing.F) {
	for _, text := range conformance {
		f.Add(text)
	}
	f.Add("root\n  ask question\n    question\n      choice\n  spawn a times\n  spawn\n  resume\n  usage x\nagent\nafter\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := demo.Parse("x", text)
		if (s == nil) == (err == nil) {
			t.Errorf("script %v, error %v", s, err)
		}
	})
}
