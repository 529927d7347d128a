package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnyCommandLineCanBeAnAgent(t *testing.T) {
	dir := home(t, `
[providers.acp.mine]
title = "My agent"
command = ["/opt/mine/agent", "--acp", "--quiet"]
env = ["MINE_*"]
set = { MINE_HOME = "/srv", A = "b" }
mode = "ask"
version = 2

[providers.acp.gemini]
mode = "default"
`)
	c, err := Load(Input{Env: env("HOME", "/h"), Flags: map[string]string{"home": dir}})
	if err != nil {
		t.Fatal(err)
	}
	want := []AgentProgram{
		{Name: "gemini", Mode: "default"},
		{
			Name: "mine", Title: "My agent", Command: []string{"/opt/mine/agent", "--acp", "--quiet"},
			Env: []string{"MINE_*"}, Set: []string{"A=b", "MINE_HOME=/srv"}, Mode: "ask", Version: 2,
		},
	}
	if diff := cmp.Diff(want, c.Agents); diff != "" {
		t.Error(diff)
	}
	all := c.Settings()
	if got := all[len(all)-1]; got.Key != "providers.acp.mine" || got.Value != "/opt/mine/agent --acp --quiet" || got.Origin.Source != FromFile {
		t.Errorf("it is listed as %+v", got)
	}
}

func TestAgentsThatCannotBe(t *testing.T) {
	for content, want := range map[string]string{
		"[providers.acp.codex]\ncommand=[\"x\"]\n":               "taken",
		"[providers.acp.\"My Agent\"]\ncommand=[\"x\"]\n":        "small letters",
		"[providers.acp.x]\ncommand=[\"\"]\n":                    "first word",
		"[providers.acp.x]\ncommand=[\"x\"]\nversion=3\n":        "version",
		"[providers.acp.x]\ncommand=[\"x\"]\npermissions=\"\"\n": "unknown key",
	} {
		_, err := Load(Input{Env: env("HOME", "/h"), Flags: map[string]string{"home": home(t, content)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}
