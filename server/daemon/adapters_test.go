package daemon

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/provider/acp"
)

func TestAgentsByName(t *testing.T) {
	ready := []acp.Agent{{Name: "gemini", Title: "Gemini", Command: "gemini", Args: []string{"--acp"}}}
	got := programs(ready, []config.AgentProgram{
		{Name: "gemini", Mode: "default"},
		{Name: "mine", Command: []string{"/opt/mine", "--acp"}, Set: []string{"A=b"}, Env: []string{"MINE_*"}, Version: 2},
		{Name: "codex-acp"},
		{Name: "nothing"},
	})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	if g := got[0]; g.Name != "gemini" || g.Mode != "default" || g.Command != "gemini" || len(g.Args) != 1 {
		t.Errorf("a part of a ready-made entry: %+v", g)
	}
	if g := got[1]; g.Command != "/opt/mine" || g.Args[0] != "--acp" || g.Env[0] != "A=b" || g.Inherits[0] != "MINE_*" || g.Version != 2 {
		t.Errorf("a command line: %+v", g)
	}
	if g := got[2]; g.Command != "codex-acp" || g.Mode == "" {
		t.Errorf("a known agent that is not found is offered when it is named: %+v", g)
	}
}
