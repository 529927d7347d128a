package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/provider"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The index names every child of exactly one conversation, whatever lies beside it.
func TestIndexOfChildren(t *testing.T) {
	config := filepath.Join(t.TempDir(), "con[f]ig")
	session := "463e791b-0ee5-4360-8d6a-e41b86be9074"
	dir := filepath.Join(config, "projects", "-workspace", session, "subagents")
	put(t, filepath.Join(dir, "agent-a2.meta.json"), `{"agentType":"Explore","description":"Look","toolUseId":"toolu_2","parentAgentId":"a1","spawnDepth":2,"requestShape":"foreground","stoppedByUser":true}`)
	put(t, filepath.Join(dir, "agent-a1.meta.json"), `{"agentType":"general-purpose","description":"Long job","toolUseId":"toolu_1","spawnDepth":1,"requestShape":"background","name":"helper","new":[1]}`)
	put(t, filepath.Join(dir, "agent-a3.meta.json"), `{"toolUseId":"toolu_3","finished":true}`)
	put(t, filepath.Join(dir, "agent-a4.meta.json"), `{"toolUse`)
	put(t, filepath.Join(dir, "agent-a1.jsonl"), `{}`)
	put(t, filepath.Join(dir, "agent-.meta.json"), `{}`)
	put(t, filepath.Join(config, "projects", "-workspace", "other", "subagents", "agent-b1.meta.json"), `{"toolUseId":"toolu_9"}`)

	a := New(Options{})
	got, err := a.index(provider.OpenParams{Env: []string{"HOME=/nowhere", "CLAUDE_CONFIG_DIR=" + config}}, session)
	want := []indexed{
		{TaskID: "a1", AgentType: "general-purpose", Description: "Long job", ToolUseID: "toolu_1", Depth: 1, Shape: "background", Name: "helper"},
		{TaskID: "a2", AgentType: "Explore", Description: "Look", ToolUseID: "toolu_2", ParentID: "a1", Depth: 2, Shape: "foreground", Stopped: true},
		{TaskID: "a3", ToolUseID: "toolu_3", Finished: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err == nil || !strings.Contains(err.Error(), "agent-a4.meta.json") {
		t.Errorf("a torn file is not named: %v", err)
	}
	if !got[0].died() || got[1].died() || got[2].died() {
		t.Errorf("who died: %+v", got)
	}
	if got, err := a.index(provider.OpenParams{Env: []string{"HOME=" + t.TempDir()}}, session); got != nil || err != nil {
		t.Errorf("without a directory: %v, %v", got, err)
	}
	for _, bad := range []string{"", "..", ".", "../x", "a/b"} {
		if got, err := a.index(provider.OpenParams{Env: []string{"CLAUDE_CONFIG_DIR=" + config}}, bad); got != nil || err == nil {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestConfigDir(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=/home/x"}, "/home/x/.claude"},
		{[]string{"CLAUDE_CONFIG_DIR=/etc/c", "HOME=/home/x"}, "/etc/c"},
		{[]string{"CLAUDE_CONFIG_DIR=", "HOME=/home/x"}, "/home/x/.claude"},
	} {
		if got := configDir(c.env); got != c.want {
			t.Errorf("%v: %s", c.env, got)
		}
	}
}
