package acp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// Files are those of the workspace: nothing leads out of it, links and dots included.
func TestFilesStayInTheWorkspace(t *testing.T) {
	base := t.TempDir()
	cwd, outside := filepath.Join(base, "work"), filepath.Join(base, "outside")
	for _, dir := range []string{cwd, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(cwd, "a"), "1\n2\n3\n")
	put(filepath.Join(outside, "secret"), "secret")
	for name, target := range map[string]string{"link": outside, "file": filepath.Join(outside, "secret"), "inside": filepath.Join(cwd, "a")} {
		if err := os.Symlink(target, filepath.Join(cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		filepath.Join(outside, "secret"), filepath.Join(cwd, "..", "outside", "secret"), filepath.Join(cwd, "link", "secret"), filepath.Join(cwd, "file"), "a", "", "/etc/passwd",
	} {
		if got, err := readFile(cwd, &acp.ReadTextFileRequest{Path: path}); err == nil {
			t.Errorf("%q gave %v", path, got)
		}
		if err := writeFile(cwd, &acp.WriteTextFileRequest{Path: path, Content: "x"}); err == nil {
			t.Errorf("%q was written", path)
		}
	}
	if raw, _ := os.ReadFile(filepath.Join(outside, "secret")); string(raw) != "secret" {
		t.Fatal("a file outside was written")
	}
	if _, err := readFile("", &acp.ReadTextFileRequest{Path: "/etc/passwd"}); !errors.Is(err, errDenied) {
		t.Errorf("without a workspace: %v", err)
	}

	n := func(n int) *int { return &n }
	for want, q := range map[string]acp.ReadTextFileRequest{
		"1\n2\n3\n": {}, "2\n": {Line: n(2), Limit: n(1)}, "3\n": {Line: n(3)}, "1\n": {Limit: n(1)}, "": {Line: n(9)},
	} {
		q.Path = filepath.Join(cwd, "a")
		got, err := readFile(cwd, &q)
		if err != nil || got.(acp.ReadTextFileResponse).Content != want {
			t.Errorf("%+v gave %v %v", q, got, err)
		}
	}
	if err := writeFile(cwd, &acp.WriteTextFileRequest{Path: filepath.Join(cwd, "new", "b"), Content: "b"}); err != nil {
		t.Error(err)
	}
	if raw, err := os.ReadFile(filepath.Join(cwd, "new", "b")); string(raw) != "b" {
		t.Errorf("%q %v", raw, err)
	}
	if _, err := readFile(cwd, &acp.ReadTextFileRequest{Path: filepath.Join(cwd, "new")}); err == nil {
		t.Error("a directory was read")
	}
}

// wired is a stage in real time, with a workspace that is there.
func wired(t *testing.T) *stage {
	s := newStage(t, acp.V1)
	s.root.Cwd = t.TempDir()
	s.p.onTurn = turns(func(string) {})
	s.Sink = providertest.NewSink(t, s.root)
	s.open()
	t.Cleanup(s.close)
	return s
}

// asks sends a request of the agent and waits for the answer.
func (s *stage) asks(id, method string, params any) line {
	s.t.Helper()
	got := make(chan line, 1)
	s.p.mu.Lock()
	s.p.onHeard = func(m line) bool {
		if string(m.ID) == id && m.Method == "" {
			got <- m
			return true
		}
		return false
	}
	s.p.mu.Unlock()
	s.p.emit(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	select {
	case m := <-got:
		return m
	case <-time.After(20 * time.Second):
		s.t.Fatalf("%s was not answered", method)
		return line{}
	}
}

// params are those of a request.
type params map[string]any

// makes creates a terminal and returns its reference; nil if it was refused.
func (s *stage) makes(id string, q params) params {
	s.t.Helper()
	q["sessionId"] = rootSession
	m := s.asks(id, acp.MethodCreateTerminal, q)
	var made acp.CreateTerminalResponse
	if m.Error != nil || json.Unmarshal(m.Result, &made) != nil {
		return nil
	}
	return params{"sessionId": rootSession, "terminalId": made.TerminalID}
}

// exits waits for a terminal's command.
func (s *stage) exits(id string, ref params) (exit acp.ExitStatus) {
	s.t.Helper()
	if m := s.asks(id, acp.MethodWaitForTerminal, ref); json.Unmarshal(m.Result, &exit) != nil {
		s.t.Errorf("exit %s", m.Result)
	}
	return exit
}

// gave is what a terminal shows.
func (s *stage) gave(id string, ref params) (out acp.TerminalOutputResponse) {
	s.t.Helper()
	if m := s.asks(id, acp.MethodTerminalOutput, ref); m.Error == nil {
		if err := json.Unmarshal(m.Result, &out); err != nil {
			s.t.Error(err)
		}
	}
	return out
}

// A command runs in the workspace, with both of its outputs in one; of a long one the end
// is kept.
func TestTerminalsOfTheClient(t *testing.T) {
	s := wired(t)
	ref := s.makes("1", params{"command": "sh", "args": []string{"-c", `pwd; echo "$X" >&2; exit 3`}, "env": []params{{"name": "X", "value": "err"}}})
	if exit := s.exits("2", ref); exit.ExitCode == nil || *exit.ExitCode != 3 {
		t.Errorf("exit %+v", exit)
	}
	if out := s.gave("3", ref); out.Output != s.root.Cwd+"\nerr\n" || out.Truncated || out.ExitStatus == nil {
		t.Errorf("output %+v", out)
	}
	if m := s.asks("4", acp.MethodReleaseTerminal, ref); m.Error != nil {
		t.Errorf("release: %v", m.Error)
	}
	if m := s.asks("5", acp.MethodTerminalOutput, ref); m.Error == nil {
		t.Error("a terminal that was released still answers")
	}
	// One line is the shell's.
	ref = s.makes("6", params{"command": "echo 1; echo 2 | cat; printf 'x%.0s' $(seq 100)", "outputByteLimit": 10})
	s.exits("7", ref)
	if out := s.gave("8", ref); out.Output != "xxxxxxxxxx" || !out.Truncated {
		t.Errorf("output %+v", out)
	}
}

// A kill ends a command and lets whoever waits for it go; nobody else's session reaches it,
// and none runs outside of the workspace or longer than the runtime.
func TestTerminalsEnd(t *testing.T) {
	s := wired(t)
	ref := s.makes("1", params{"command": "sleep 600"})
	if m := s.asks("2", acp.MethodKillTerminal, ref); m.Error != nil {
		t.Errorf("kill: %v", m.Error)
	}
	if exit := s.exits("3", ref); exit.Signal == nil {
		t.Errorf("exit %+v", exit)
	}
	if m := s.asks("4", acp.MethodTerminalOutput, params{"sessionId": "other", "terminalId": ref["terminalId"]}); m.Error == nil {
		t.Error("a terminal of another session answers")
	}
	if s.makes("5", params{"command": "ls", "cwd": "/"}) != nil {
		t.Error("a command ran outside of the workspace")
	}
	s.makes("6", params{"command": "sleep 600"}) // ended with the runtime
}

// The text of an agent's own diff of what it reads and writes goes through these methods.
func TestFilesOverTheWire(t *testing.T) {
	s := wired(t)
	path := filepath.Join(s.root.Cwd, "a")
	if m := s.asks("1", acp.MethodWriteTextFile, map[string]any{"sessionId": rootSession, "path": path, "content": "hello"}); m.Error != nil {
		t.Errorf("write: %v", m.Error)
	}
	var got acp.ReadTextFileResponse
	if m := s.asks("2", acp.MethodReadTextFile, map[string]any{"sessionId": rootSession, "path": path}); json.Unmarshal(m.Result, &got) != nil || got.Content != "hello" {
		t.Errorf("read: %s %v", m.Result, m.Error)
	}
	if m := s.asks("3", acp.MethodReadTextFile, map[string]any{"sessionId": rootSession, "path": path + "x"}); m.Error == nil || m.Error.Code != acp.CodeResourceNotFound {
		t.Errorf("read: %+v", m.Error)
	}
	if m := s.asks("4", acp.MethodReadTextFile, map[string]any{"sessionId": rootSession, "path": "/etc/passwd"}); m.Error == nil || !strings.Contains(m.Error.Message, "outside of the workspace") {
		t.Errorf("read: %+v", m.Error)
	}
	if m := s.asks("5", acp.MethodReadTextFile, 7); m.Error == nil {
		t.Errorf("read: %+v", m)
	}
}

// A real process as an agent: found, started, spoken to and ended.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	a := New(Options{
		Agent: Agent{Name: "self", Command: os.Args[0], Env: []string{"ACP_TEST_AGENT=1"}},
		Getenv: func(name string) string {
			if name == "PATH" {
				return os.Getenv("PATH")
			}
			return ""
		},
	})
	if info := a.Probe(t.Context()); !info.Found || info.Path == "" {
		t.Fatalf("%+v", info)
	}
	sink := providertest.NewSink(t, agent.Session{Provider: "self", Cwd: dir})
	rt, err := a.Open(t.Context(), sink.OpenParams(), sink)
	if err != nil {
		t.Fatal(err)
	}
	in := sink.Submit(sink.Root, "Go.")
	if err := rt.Start(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	v := sink.Await(t, "the turn ends", func(v providertest.View) bool { return v.Turn(in.Turn).Phase == agent.PhaseSettled })
	if v.Holder("hello from a process").ID != sink.Root || v.Turn(in.Turn).Outcome != agent.OutcomeCompleted {
		t.Errorf("%s", v)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
	sink.Closed()
}
