package modeltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaceIsNotTemporary(t *testing.T) {
	var place Place
	t.Run("life", func(t *testing.T) {
		if place = NewPlace(t, "modeltest"); temporary(place.Home) {
			t.Errorf("home %s is temporary", place.Home)
		}
	})
	if _, err := os.Stat(place.Home); !os.IsNotExist(err) {
		t.Errorf("home is left: %v", err)
	}
}

// What a program started carries its home.
func TestProcessesOfAHome(t *testing.T) {
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sleep", "61")
	cmd.Env = []string{"HOME=" + home}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := ProcessesOf(t, home)
	if len(got) != 1 || got[0].PID != cmd.Process.Pid {
		t.Errorf("processes %+v", got)
	}
	Kill(t, home, "sleep 62")
	Kill(t, home, "sleep 61")
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if err := UntilGone(t.Context(), home, "sleep"); err != nil {
		t.Error(err)
	}
	if got := ProcessesOf(t, home); len(got) > 0 {
		t.Errorf("left %+v", got)
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

const binaryEnv = "TURNKEEPER_TEST_BIN"

func TestFindBinary(t *testing.T) {
	t.Setenv(binaryEnv, "")
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
		return "found " + FindBinary(f, binaryEnv, "@openai/codex*/vendor/*/bin/codex")
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
	if got := FindBinary(t, binaryEnv, "@openai/none", "@openai/codex*/vendor/*/bin/codex"); !strings.HasSuffix(got, filepath.Join(dir, "codex")) || !filepath.IsAbs(got) {
		t.Errorf("installed: %s", got)
	}
	t.Setenv(binaryEnv, filepath.Join(root, "gone"))
	if msg := missing(); !strings.Contains(msg, "no executable") {
		t.Errorf("override to nothing: %s", msg)
	}
	t.Setenv(binaryEnv, filepath.Join(root, dir, "codex"))
	if got := FindBinary(t, binaryEnv, "@openai/none", "@openai/codex*/vendor/*/bin/codex"); got != os.Getenv(binaryEnv) {
		t.Errorf("override: %s", got)
	}
}
