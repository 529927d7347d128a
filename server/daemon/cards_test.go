package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
)

type probed struct {
	provider.Adapter
	info provider.Info
}

func (p probed) Probe(context.Context) provider.Info { return p.info }

// A session with a provider that cannot be used is refused with the reason, before
// anything is stored.
func TestCardRefusesWhatCannotBeUsed(t *testing.T) {
	able := agent.Capabilities{Cancel: true}
	c := newCards(map[string]provider.Adapter{
		"here":    probed{info: provider.Info{DisplayName: "Here", Found: true, Capabilities: able}},
		"missing": probed{info: provider.Info{DisplayName: "Missing", Reason: "it is not installed"}},
	})
	if got, err := c.capabilities(t.Context(), "here"); err != nil || got != able {
		t.Errorf("a usable provider: %+v, %v", got, err)
	}
	for name, want := range map[string]*agent.Error{
		"missing": agent.Errorf(agent.CodeProviderUnavailable, "Missing cannot be used: it is not installed"),
		"nobody":  agent.Errorf(agent.CodeInvalid, "there is no provider %q", "nobody"),
	} {
		_, err := c.capabilities(t.Context(), name)
		var got *agent.Error
		if !errors.As(err, &got) || got.Code != want.Code || got.Message != want.Message {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// A word that no provider knows is refused before a session exists, with what there is.
func TestCardRefusesAnUnknownChoice(t *testing.T) {
	c, err := config.Load(config.Input{
		Env:   func(string) (string, bool) { return "", false },
		Flags: map[string]string{"home": t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	known := newCards(adapters(c, "", slog.New(slog.DiscardHandler)))
	for _, tt := range []struct {
		n    agent.NewSession
		says string // "": accepted
	}{
		{agent.NewSession{Provider: "demo"}, ""},
		{agent.NewSession{Provider: "demo", Scenario: "three-reviewers"}, ""},
		{agent.NewSession{Provider: "demo", Scenario: "three-reviewer"}, "there are: plain, three-reviewers"},
		{agent.NewSession{Provider: "demo", PermissionMode: "ask"}, "no permission modes"},
		{agent.NewSession{Provider: "codex", PermissionMode: "ask"}, ""},
		{agent.NewSession{Provider: "codex", PermissionMode: "yolo"}, "there are: configured, read-only, ask, full-access"},
		{agent.NewSession{Provider: "codex", Scenario: "plain"}, "no scenarios"},
		{agent.NewSession{Provider: "nobody", Scenario: "plain"}, ""}, // capabilities has a word for that
	} {
		err := known.accept(tt.n)
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%+v: %v", tt.n, err)
		}
	}
	for _, id := range demo.BuiltIn() {
		if err := known.accept(agent.NewSession{Provider: "demo", Scenario: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Over the API too, and nothing is left of the session.
func TestUnknownScenarioIsRefusedAtCreation(t *testing.T) {
	c := start(t, t.TempDir(), map[string]provider.Adapter{"demo": demo.New(demo.Options{})})
	var ws agent.Workspace
	if status, problem := c.do("POST", "/v1/workspaces", map[string]any{"path": t.TempDir()}, &ws); status != 201 {
		t.Fatal(status, problem)
	}
	sessions := "/v1/workspaces/" + string(ws.ID) + "/agent-sessions"
	status, problem := c.do("POST", sessions, map[string]any{"provider": "demo", "scenario": "tree-reviewers"}, nil)
	if status != 400 || !strings.Contains(problem, `"invalid_request"`) || !strings.Contains(problem, "three-reviewers") {
		t.Errorf("answered %d %s", status, problem)
	}
	var page agent.SessionPage
	if status, problem := c.do("GET", sessions, nil, &page); status != 200 || len(page.Items) != 0 {
		t.Errorf("%d %s: %d sessions", status, problem, len(page.Items))
	}
}
