package codextest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	var place Place
	t.Run("life", func(t *testing.T) {
		place = Home(t, Options{
			BaseURL: "http://127.0.0.1:1/v1", V2: true, Approval: "on-request", Sandbox: "read-only",
			MaxDepth: 3, MaxThreads: 2, Features: []string{"wake_on_agent_messages = true"}, Config: "thread_unload_delay_secs = 1",
		})
		if temporary(place.Home) {
			t.Errorf("home %s is temporary", place.Home)
		}
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

func TestTemporary(t *testing.T) {
	for path, want := range map[string]bool{"/tmp/x": true, "/tmp": true, "/tmpx": false, "/home/u": false} {
		if temporary(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// fatal records the message and ends the goroutine, as a test's Fatalf does.
type fatal struct {
	testing.TB
	msg string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.msg = format
	panic(f)
}

func TestBinary(t *testing.T) {
	t.Setenv(BinaryEnv, "")
	root := t.TempDir()
	t.Chdir(root)
	if err := os.WriteFile("go.mod", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := func() (msg string) {
		f := &fatal{TB: t}
		defer func() {
			if r := recover(); r == f {
				msg = f.msg
			}
		}()
		return "found " + Binary(f)
	}
	if msg := missing(); !strings.Contains(msg, "make providers") {
		t.Errorf("without one: %s", msg)
	}
	dir := filepath.Join(".cache", "providers", "node_modules", "@openai", "codex-linux-x64", "vendor", "x86_64", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "codex"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Binary(t); !strings.HasSuffix(got, filepath.Join(dir, "codex")) || !filepath.IsAbs(got) {
		t.Errorf("installed: %s", got)
	}
	t.Setenv(BinaryEnv, filepath.Join(root, "gone"))
	if msg := missing(); !strings.Contains(msg, "no executable") {
		t.Errorf("override to nothing: %s", msg)
	}
	t.Setenv(BinaryEnv, filepath.Join(root, dir, "codex"))
	if got := Binary(t); got != os.Getenv(BinaryEnv) {
		t.Errorf("override: %s", got)
	}
}
