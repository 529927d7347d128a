package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

// editorRun is one run of turnkeeper acp with its streams.
type editorRun struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	code chan int
}

func startEditor(t *testing.T, home string, args ...string) *editorRun {
	t.Helper()
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	env := map[string]string{"TURNKEEPER_HOME": home, "HOME": t.TempDir(), "PATH": os.Getenv("PATH")}
	a := &app{in: fromEditor, out: toEditor, err: t.Output(), env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}
	e := &editorRun{t: t, in: in, out: bufio.NewScanner(out), code: make(chan int, 1)}
	go func() {
		e.code <- a.run(context.Background(), append([]string{"acp"}, args...))
		_ = toEditor.Close()
	}()
	return e
}

// ask sends one request and returns the next line that answers it.
func (e *editorRun) ask(id int, method string, params any) map[string]any {
	e.t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(raw, '\n')); err != nil {
		e.t.Fatal(err)
	}
	for e.out.Scan() {
		var l map[string]any
		if err := json.Unmarshal(e.out.Bytes(), &l); err != nil {
			e.t.Fatal(err)
		}
		if l["id"] == float64(id) && l["method"] == nil {
			return l
		}
	}
	e.t.Fatalf("%s was not answered", method)
	return nil
}

// leave closes the editor's side and returns the exit code.
func (e *editorRun) leave() int {
	e.t.Helper()
	_ = e.in.Close()
	go func() {
		for e.out.Scan() { //nolint:revive // what is left has no reader
		}
	}()
	select {
	case code := <-e.code:
		return code
	case <-time.After(30 * time.Second):
		e.t.Fatal("it did not end with its editor")
		return 0
	}
}

var hello = map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}

// An editor finds the running daemon and works in it with the provider that was asked for.
func TestEditorOnARunningDaemon(t *testing.T) {
	home := t.TempDir()
	serve(t, home)
	e := startEditor(t, home, "--provider", "demo")
	e.ask(1, "initialize", hello)
	made := e.ask(2, "session/new", map[string]any{"cwd": t.TempDir(), "mcpServers": []any{}})
	session := made["result"].(map[string]any)["sessionId"].(string)
	ended := e.ask(3, "session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": "hello"}}})
	if result, ok := ended["result"].(map[string]any); !ok || result["stopReason"] != "end_turn" {
		t.Errorf("the prompt ended with %v", ended)
	}
	if code := e.leave(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Without one a daemon is started, and stays when the editor has left.
func TestEditorStartsADaemon(t *testing.T) {
	home := t.TempDir()
	t.Setenv(asTurnkeeper, "1")
	t.Setenv("TURNKEEPER_LISTEN", "127.0.0.1:0")
	e := startEditor(t, home)
	if l := e.ask(1, "initialize", hello); l["result"] == nil {
		t.Fatalf("answered %v", l)
	}
	if code := e.leave(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c, err := config.Load(config.Input{Env: func(string) (string, bool) { return "", false }, Flags: map[string]string{"home": home}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := daemon.ReadListener(c.ListenerFile())
	if err != nil {
		t.Fatalf("the daemon left with its editor: %v", err)
	}
	second := startEditor(t, home) // the same daemon
	second.ask(1, "initialize", hello)
	second.leave()
	if now, err := daemon.ReadListener(c.ListenerFile()); err != nil || now.PID != l.PID {
		t.Errorf("another daemon: %+v, %v", now, err)
	}
	stopDaemon(t, l.PID, filepath.Join(c.ListenerFile()))
}

// stopDaemon ends a daemon that outlived what started it.
func stopDaemon(t *testing.T, pid int, listener string) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if _, err := os.Stat(listener); os.IsNotExist(err) {
			return
		}
	}
	t.Error("the daemon did not end")
}

// A daemon elsewhere that cannot be reached is not started here.
func TestEditorStartsNoDaemonElsewhere(t *testing.T) {
	r := turnkeeperWith(t, map[string]string{"TURNKEEPER_HOME": t.TempDir(), "TURNKEEPER_URL": "http://127.0.0.1:1", "TURNKEEPER_TOKEN": "a-token-that-is-long-enough-for-anyone"}, "acp")
	if r.code != exitUnreachable {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
