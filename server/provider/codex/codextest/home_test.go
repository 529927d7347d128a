package codextest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

func TestHome(t *testing.T) {
	var place modeltest.Place
	t.Run("life", func(t *testing.T) {
		place = Home(t, Options{
			BaseURL: "http://127.0.0.1:1/v1", V2: true, Approval: "on-request", Sandbox: "read-only",
			MaxDepth: 3, MaxThreads: 2, Features: []string{"wake_on_agent_messages = true"}, Config: "thread_unload_delay_secs = 1",
		})
		b, err := os.ReadFile(filepath.Join(place.Home, ".codex", "config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		top, tables, _ := strings.Cut(string(b), "[analytics]")
		for _, want := range []string{
			`approval_policy = "on-request"`, `sandbox_mode = "read-only"`, "agents.max_depth = 3",
			"thread_unload_delay_secs = 1",
		} {
			if !strings.Contains(top, want) {
				t.Errorf("top level lacks %s:\n%s", want, b)
			}
		}
		for _, want := range []string{"multi_agent_v2 = {enabled = true, max_concurrent_threads_per_session = 2}", "wake_on_agent_messages = true", `base_url = "http://127.0.0.1:1/v1"`} {
			if !strings.Contains(tables, want) {
				t.Errorf("tables lack %s:\n%s", want, b)
			}
		}
		if left, err := os.ReadDir(place.Work); err != nil || len(left) > 0 {
			t.Errorf("working directory: %v, %v", left, err)
		}
		if len(place.Env) != 4 || place.Env[0] != "HOME="+place.Home {
			t.Errorf("environment %q", place.Env)
		}
	})
	if _, err := os.Stat(place.Home); !os.IsNotExist(err) {
		t.Errorf("home is left: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	if toml := (Options{BaseURL: "u", MaxThreads: 2}).toml(); !strings.Contains(toml, "agents.max_threads = 2") {
		t.Errorf("version 1 is not bounded:\n%s", toml)
	}
	toml := Options{BaseURL: "u"}.toml()
	for _, want := range []string{`model = "mock-model"`, `approval_policy = "never"`, `sandbox_mode = "danger-full-access"`} {
		if !strings.Contains(toml, want) {
			t.Errorf("lacks %s:\n%s", want, toml)
		}
	}
	if strings.Contains(toml, "multi_agent") || strings.Contains(toml, "max_depth") {
		t.Errorf("too much:\n%s", toml)
	}
}
