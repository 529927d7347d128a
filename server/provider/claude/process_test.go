package claude

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// program is a script that stands in for the binary.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		binary string
		found  bool
		reason string
	}{
		"good":    {program(t, `echo "2.1.332 (Claude Code)"`), true, ""},
		"newer":   {program(t, `echo "3.0.0 (Claude Code)"`), true, ""},
		"unknown": {program(t, `echo "development"`), true, ""},
		"old":     {program(t, `echo "2.1.331 (Claude Code)"`), false, "Claude Code 2.1.331 is too old, 2.1.332 or newer is needed: npm install -g @anthropic-ai/claude-code, or claude update"},
		"broken":  {program(t, `exit 3`), false, "cannot be run: exit status 3"},
		"absent":  {filepath.Join(t.TempDir(), "claude"), false, "cannot be run"},
	} {
		info := New(Options{Binary: c.binary}).Probe(t.Context())
		if info.Found != c.found || !strings.Contains(info.Reason, c.reason) || c.found && (info.Version == "" || info.Reason != "") || info.Path != c.binary {
			t.Errorf("%s: %+v", name, info)
		}
		if len(info.Notes) == 0 || info.PermissionModes[0] != modeConfigured || !info.Capabilities.ConfirmsChildCancel {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

// Where no binary is found, a person reads what helps; the one that is named is taken
// before any other.
func TestFinding(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "PATH": t.TempDir()}
	a := New(Options{Getenv: func(k string) string { return env[k] }})
	info := a.Probe(t.Context())
	if _, err := os.Stat("/usr/local/bin/claude"); err != nil && (info.Found || !strings.Contains(info.Reason, "npm install -g @anthropic-ai/claude-code, or set TURNKEEPER_CLAUDE_BIN")) {
		t.Errorf("%+v", info)
	}
	put(t, filepath.Join(home, ".claude", "local", "claude"), "#!/bin/sh\necho 2.1.400\n")
	if err := os.Chmod(filepath.Join(home, ".claude", "local", "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if info := a.Probe(t.Context()); info.Version != "2.1.400" {
		t.Errorf("%+v", info)
	}
	env["TURNKEEPER_CLAUDE_BIN"] = program(t, "echo 2.1.500")
	if info := a.Probe(t.Context()); info.Version != "2.1.500" {
		t.Errorf("%+v", info)
	}
	env["TURNKEEPER_CLAUDE_BIN"] = "/nowhere/claude"
	if info := a.Probe(t.Context()); info.Found || !strings.HasPrefix(info.Reason, "Claude Code cannot be run: TURNKEEPER_CLAUDE_BIN") {
		t.Errorf("%+v", info)
	}
}

func TestVersionsAndCapabilities(t *testing.T) {
	if err := tooOld("2.1.332"); err != nil {
		t.Error(err)
	}
	if err := tooOld("1.0.0"); err == nil || err.Code != agent.CodeProviderUnavailable {
		t.Error(err)
	}
	if err := lacking(append([]string{"more"}, needed...)); err != nil {
		t.Error(err)
	}
	if err := lacking([]string{"interrupt_receipt_v1"}); err == nil || !strings.Contains(err.Message, "interrupt_cancel_queued_v1, msg_lifecycle_v1") {
		t.Error(err)
	}
}

func TestConnectRefusesWhatCannotStart(t *testing.T) {
	var p provider.OpenParams
	p.Root.PermissionMode = "yolo"
	if _, err := New(Options{Binary: "/nowhere"}).connect(t.Context(), p); !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) {
		t.Error(err)
	}
	p.Root.PermissionMode = ""
	if _, err := New(Options{Binary: "/nowhere"}).connect(t.Context(), p); !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) {
		t.Error(err)
	}
}

// A shell of the binary is a session and a process group of its own. However the binary
// ends, the shell ends with it: told to, or killed from outside. One that would wait for
// its shells when its input ends is not waited for.
func TestShellsEndWithTheBinary(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Log("processes are found by their environment on Linux only")
		return
	}
	const shell = `setsid sleep 600 3>"$ALIVE" & echo started; `
	for name, c := range map[string]struct {
		script string
		kill   bool
	}{
		"told":   {shell + "cat >/dev/null", false},
		"waits":  {shell + "wait", false},
		"killed": {shell + "wait", true},
	} {
		t.Run(name, func(t *testing.T) { shellEnds(t, c.script, c.kill) })
	}
}

func shellEnds(t *testing.T, script string, kill bool) {
	alive := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	var p provider.OpenParams
	p.Root.ID, p.Root.Cwd, p.Env = "ses_1", t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "ALIVE=" + alive}
	link, err := New(Options{Binary: program(t, script), Owner: "test", Grace: 10 * time.Millisecond}).connect(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(alive) // returns when the shell has opened its end
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	out := bufio.NewReader(link)
	if line, err := out.ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if kill {
		if err := syscall.Kill(link.(proc.Link).PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, _ = out.ReadByte() // the end of its output
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if err := link.Close(ctx); err != nil {
		t.Error(err)
	}
	_ = held.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // its last holder is gone
		t.Errorf("the shell is left: %v", err)
	}
	if how := link.Explain(); how == "" {
		t.Error("nobody knows how it ended")
	}
}
