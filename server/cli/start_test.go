package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/daemon"
)

// A rotation takes effect on the daemon that runs, at once: the old token is nobody's, the
// new one opens the page.
func TestRotationReachesTheRunningDaemon(t *testing.T) {
	home := t.TempDir()
	d := serve(t, home)
	old := strings.TrimSpace(turnkeeper(t, home, "token").out)
	r := turnkeeper(t, home, "token", "--rotate")
	if r.code != 0 || strings.TrimSpace(r.out) == old || !strings.Contains(r.err, "turnkeeper open") || strings.Contains(r.err, "restart") {
		t.Fatalf("rotate: %+v", r)
	}
	status := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.Listener().URL+"/v1/workspaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		return resp.StatusCode
	}
	if got := status(old); got != http.StatusUnauthorized {
		t.Errorf("the old token is answered %d", got)
	}
	if got := status(strings.TrimSpace(r.out)); got != http.StatusOK {
		t.Errorf("the new token is answered %d", got)
	}
	if r := turnkeeper(t, home, "open", "--print"); r.code != 0 || !strings.HasPrefix(r.out, d.Listener().URL+"/login") {
		t.Errorf("open after a rotation: %+v", r)
	}
	if r := turnkeeper(t, home, "status"); r.code != 0 {
		t.Errorf("status after a rotation: %+v", r)
	}
	var told rotated
	if r := turnkeeper(t, home, "token", "--rotate", "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &told) != nil || !told.Running || !told.InEffect || r.err != "" {
		t.Errorf("for programs: %+v", r)
	}
}

// A daemon that was started with a token of its own does not follow the file, and the
// command says so instead of what it would advise a stranger.
func TestRotationOfADaemonWithATokenOfItsOwn(t *testing.T) {
	home := t.TempDir()
	serveWith(t, home, map[string]string{"TURNKEEPER_TOKEN": "a-token-of-my-own-that-nobody-guesses"})
	r := turnkeeper(t, home, "token", "--rotate")
	if r.code != exitFailed || strings.TrimSpace(r.out) == "" || !strings.Contains(r.err, "TURNKEEPER_TOKEN") {
		t.Errorf("rotate: %+v", r)
	}
	for _, command := range [][]string{{"open", "--print"}, {"serve", "--open"}} {
		r := turnkeeper(t, home, command...)
		if r.code == 0 || !strings.Contains(r.err, "TURNKEEPER_TOKEN") || strings.Contains(r.err, "sign in with") {
			t.Errorf("%v: %+v", command, r)
		}
	}
}

func TestShortTokenIsRefusedAtStart(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"TURNKEEPER_HOME": home, "TURNKEEPER_TOKEN": "sixteen-letters!"}
	if r := turnkeeperWith(t, env, "serve"); r.code != exitUsage || !strings.Contains(r.err, "at least 32") || strings.Contains(r.err, "sixteen") {
		t.Errorf("from the environment: %+v", r)
	}
	if err := errors.Join(os.Chmod(home, 0o700), os.WriteFile(filepath.Join(home, "token"), []byte("sixteen-letters!\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r := turnkeeper(t, home, "serve", "--listen", "127.0.0.1:0")
	if r.code != exitFailed || !strings.Contains(r.err, "at least 32") || !strings.Contains(r.err, "token --rotate") || strings.Contains(r.err, "sixteen") {
		t.Errorf("from the file: %+v", r)
	}
}

// A second start on the same directory shows the page that is there already; without --open
// it is refused, with the command that helps.
func TestSecondStart(t *testing.T) {
	home := t.TempDir()
	d := serve(t, home)
	r := turnkeeper(t, home, "serve", "--open", "--any-port")
	if r.code != 0 || r.err != "" || !strings.Contains(r.out, "runs already") || !strings.Contains(r.out, d.Listener().URL+"/login?code=") {
		t.Errorf("with --open: %+v", r)
	}
	var l daemon.Listener
	if r := turnkeeper(t, home, "serve", "--open", "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &l) != nil || l.URL != d.Listener().URL {
		t.Errorf("for programs: %+v", r)
	}
	r = turnkeeper(t, home, "serve")
	if r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "already_running") || !strings.Contains(r.err, "turnkeeper open --home "+home) {
		t.Errorf("without it: %+v", r)
	}
}

// A listener file without its daemon names a port that may be anybody's: nothing is sent
// there.
func TestLeftOverListenerFileIsNotFollowed(t *testing.T) {
	home := t.TempDir()
	var asked atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(stranger.Close)
	raw, err := json.Marshal(daemon.Listener{URL: stranger.URL, PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "listener.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	turnkeeper(t, home, "token", "--rotate")
	if r := turnkeeper(t, home, "status"); r.code != exitUnreachable || asked.Load() != 0 {
		t.Errorf("asked %d times: %+v", asked.Load(), r)
	}
}
