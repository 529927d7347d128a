package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

// asTurnkeeper makes this test binary the program itself, for what the program starts.
const asTurnkeeper = "TURNKEEPER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asTurnkeeper) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// result is one run of the command line.
type result struct {
	code     int
	out, err string
}

// turnkeeper runs the command line on a directory, as a shell with nothing set would.
func turnkeeper(t *testing.T, home string, args ...string) result {
	t.Helper()
	return turnkeeperWith(t, map[string]string{"TURNKEEPER_HOME": home, "HOME": t.TempDir(), "PATH": os.Getenv("PATH")}, args...)
}

func turnkeeperWith(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &errOut, env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}
	code := a.run(t.Context(), args)
	http.DefaultClient.CloseIdleConnections()
	return result{code, out.String(), errOut.String()}
}

// serve runs a daemon on a directory until the test ends.
func serve(t *testing.T, home string) *daemon.Daemon {
	t.Helper()
	return serveWith(t, home, nil)
}

func serveWith(t *testing.T, home string, env map[string]string) *daemon.Daemon {
	t.Helper()
	c, err := config.Load(config.Input{
		Env:   func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Flags: map[string]string{"home": home, "listen": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(daemon.Options{Config: c, Version: build()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	select {
	case <-d.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("the daemon did not start: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the daemon did not become ready")
	}
	return d
}

func TestExitCodesAndTheOneLine(t *testing.T) {
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "config.toml"), []byte("colour = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		home string
		args []string
		code int
		says string
	}{
		{"no daemon", t.TempDir(), []string{"status"}, exitUnreachable, "turnkeeper serve"},
		{"no daemon to open", t.TempDir(), []string{"open", "--print"}, exitUnreachable, "turnkeeper serve"},
		{"unknown command", t.TempDir(), []string{"statsu"}, exitUsage, "statsu"},
		{"unknown flag", t.TempDir(), []string{"status", "--colour"}, exitUsage, "--colour"},
		{"an argument too many", t.TempDir(), []string{"version", "now"}, exitUsage, "--help"},
		{"unknown key", broken, []string{"status"}, exitUsage, "config.toml:1"},
		{"replay without a provider", t.TempDir(), []string{"replay", "x.jsonl"}, exitUsage, "--provider"},
		{"replay of nothing", t.TempDir(), []string{"replay", "--provider", "codex", "missing.jsonl"}, exitFailed, "missing.jsonl"},
		{"no token yet", t.TempDir(), []string{"token"}, exitFailed, "turnkeeper serve"},
		{"exposed", t.TempDir(), []string{"serve", "--listen", "0.0.0.0:0"}, exitFailed, "TURNKEEPER_TOKEN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := turnkeeper(t, tt.home, tt.args...)
			if r.code != tt.code || !strings.Contains(r.err, tt.says) {
				t.Errorf("exit %d: %q", r.code, r.err)
			}
			if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "turnkeeper: ") {
				t.Errorf("not one line: %q", r.err)
			}
		})
	}
}

func TestVersionAndDescription(t *testing.T) {
	var v struct{ Name, Version string }
	if r := turnkeeper(t, t.TempDir(), "version", "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &v) != nil || v.Name != "turnkeeper" {
		t.Errorf("version: %+v", r)
	}
	var doc struct{ OpenAPI string }
	if r := turnkeeper(t, t.TempDir(), "openapi"); r.code != 0 || json.Unmarshal([]byte(r.out), &doc) != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("openapi: exit %d, version %q", r.code, doc.OpenAPI)
	}
}

func TestTokenIsPrintedAndRotated(t *testing.T) {
	home := t.TempDir()
	first := turnkeeper(t, home, "token", "--rotate")
	if first.code != 0 {
		t.Fatal(first.err)
	}
	if again := turnkeeper(t, home, "token"); again.out != first.out {
		t.Errorf("printed %q after %q", again.out, first.out)
	}
	if second := turnkeeper(t, home, "token", "--rotate"); second.code != 0 || second.out == first.out {
		t.Errorf("rotating gave %+v", second)
	}
	env := map[string]string{"TURNKEEPER_HOME": home, "TURNKEEPER_TOKEN": "a-token-of-my-own-that-nobody-guesses"}
	if r := turnkeeperWith(t, env, "token", "--rotate"); r.code != exitFailed || !strings.Contains(r.err, "TURNKEEPER_TOKEN") {
		t.Errorf("rotating what the environment sets: %+v", r)
	}
}

func doctor(t *testing.T, home string) (report, int) {
	t.Helper()
	r := turnkeeper(t, home, "doctor", "--json", "--home", home)
	var rep report
	if err := json.Unmarshal([]byte(r.out), &rep); err != nil {
		t.Fatalf("%v in %+v", err, r)
	}
	return rep, r.code
}

func (r report) find(name string) check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return check{}
}

func TestDoctor(t *testing.T) {
	home := t.TempDir()
	// The default port may be taken on the machine that tests run on.
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("listen = \"127.0.0.1:0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rep, code := doctor(t, home)
	if code != 0 || !rep.OK {
		t.Errorf("on a new directory: exit %d, %+v", code, rep.Checks)
	}
	serve(t, home)
	rep, code = doctor(t, home)
	if code != 0 || !strings.Contains(rep.find("daemon").Detail, "answers") {
		t.Errorf("with a daemon: exit %d, %+v", code, rep.Checks)
	}
	for _, name := range []string{"directory", "token", "database", "settled turns", "turns", "demo"} {
		if c := rep.find(name); c.Status == checkFail || c.Status == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	raw, err := os.ReadFile(filepath.Join(home, "token"))
	if err != nil {
		t.Fatal(err)
	}
	out := turnkeeper(t, home, "doctor", "--json").out + turnkeeper(t, home, "doctor").out
	if strings.Contains(out, strings.TrimSpace(string(raw))) {
		t.Error("doctor prints the token")
	}
}

func TestDoctorFailsOnWhatIsWrong(t *testing.T) {
	tests := []struct {
		name, check string
		breakIt     func(t *testing.T, home string)
	}{
		{"token for all", "token", func(t *testing.T, home string) {
			if err := os.WriteFile(filepath.Join(home, "token"), []byte("abcdefghijklmnopqrstuvwxyz\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"damaged database", "database", func(t *testing.T, home string) {
			if err := os.WriteFile(filepath.Join(home, "turnkeeper.db"), bytes.Repeat([]byte("damage "), 4096), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"unknown key", "configuration", func(t *testing.T, home string) {
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("colour = 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			tt.breakIt(t, home)
			rep, code := doctor(t, home)
			if c := rep.find(tt.check); code != exitFailed || rep.OK || c.Status != checkFail || c.Help == "" {
				t.Errorf("exit %d, %+v", code, rep.Checks)
			}
		})
	}
}

func TestOpenSignsABrowserInOnce(t *testing.T) {
	home := t.TempDir()
	d := serve(t, home)
	r := turnkeeper(t, home, "open", "--print")
	url := strings.TrimSpace(r.out)
	if r.code != 0 || !strings.HasPrefix(url, d.Listener().URL+"/") {
		t.Fatalf("open: %+v", r)
	}
	browser := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(browser.CloseIdleConnections)
	for turn, want := range []bool{true, false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := len(resp.Cookies()) == 1 && resp.Cookies()[0].HttpOnly; got != want {
			t.Errorf("visit %d: %s with %d cookies", turn+1, resp.Status, len(resp.Cookies()))
		}
	}
}

func TestStatus(t *testing.T) {
	home := t.TempDir()
	d := serve(t, home)
	var s state
	r := turnkeeper(t, home, "status", "--json")
	if r.code != 0 || json.Unmarshal([]byte(r.out), &s) != nil || !s.Running || s.URL != d.Listener().URL || s.PID != os.Getpid() {
		t.Errorf("status: %+v", r)
	}
	if r := turnkeeper(t, home, "status"); r.code != 0 || !strings.Contains(r.out, "live turns") {
		t.Errorf("for people: %+v", r)
	}
}

// Conversations and the agents below them are two figures: one sum of both says nothing.
func TestStatusCountsSessionsAndAgents(t *testing.T) {
	figures := "turnkeeper_root_sessions 2\nturnkeeper_sessions 7\nturnkeeper_live_turns 3\n"
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write([]byte(figures))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name":"turnkeeper","version":"1","go":"go","api":1,"status":"ok"}`))
	}))
	t.Cleanup(fake.Close)
	env := map[string]string{"HOME": t.TempDir(), "TURNKEEPER_TOKEN": strings.Repeat("t", 32), "TURNKEEPER_URL": fake.URL}
	var s state
	r := turnkeeperWith(t, env, "status", "--json")
	if r.code != 0 || json.Unmarshal([]byte(r.out), &s) != nil || s.Sessions != 2 || s.Agents != 5 || s.LiveTurns != 3 {
		t.Errorf("for programs: %+v", r)
	}
	lines := strings.Split(turnkeeperWith(t, env, "status").out, "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { f := strings.Fields(l); return len(f) == 2 && f[0] == "sessions" && f[1] == "2" }) ||
		!slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "agents") && strings.HasSuffix(l, " 5") }) {
		t.Errorf("for people: %q", lines)
	}
}

func TestBrowserIsOpenedOnlyWhereThereIsADesktop(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{}, ""},
		{map[string]string{"BROWSER": "/opt/my-browser"}, "/opt/my-browser"},
	} {
		a := &app{env: func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }}
		if name, err := a.browserCommand(); name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v: %q, %v", tt.env, name, err)
		}
	}
}

// What a person must do about a provider is beside what was found of it.
func TestDoctorSaysWhetherAProviderHasAnAccount(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte("#!/bin/sh\necho codex-cli 0.171.0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home) // of the program: a provider sees this one's environment
	t.Setenv("CODEX_HOME", "")
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("CODEX_API_KEY", "")
	look := func() check {
		t.Helper()
		env := map[string]string{"TURNKEEPER_HOME": t.TempDir(), "TURNKEEPER_LISTEN": "127.0.0.1:0", "TURNKEEPER_CODEX_BIN": filepath.Join(bin, "codex")}
		var rep report
		r := turnkeeperWith(t, env, "doctor", "--json")
		if err := json.Unmarshal([]byte(r.out), &rep); err != nil || r.code != 0 {
			t.Fatalf("%v in %+v", err, r)
		}
		return rep.find("codex")
	}
	if c := look(); c.Status != checkWarn || !strings.Contains(c.Detail, "0.171.0") || !strings.Contains(c.Help, "codex login") {
		t.Errorf("without an account: %+v", c)
	}
	t.Setenv("OPENAI_API_KEY", "sk-hunter2")
	if c := look(); c.Status != checkOK || !strings.Contains(c.Detail, "OPENAI_API_KEY") || strings.Contains(c.Detail, "hunter2") {
		t.Errorf("with a key: %+v", c)
	}
}
