package daemon

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/config"
)

func plainHTTP(tb testing.TB) *http.Client {
	tb.Helper()
	c := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

func TestStartServeAndEnd(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	c, stop := startStoppable(t, home, nil)
	if m := mode(t, home); m != 0o700 {
		t.Errorf("the directory has mode %o", m)
	}
	if m := mode(t, filepath.Join(home, "token")); m != 0o600 {
		t.Errorf("the token has mode %o", m)
	}
	l, err := ReadListener(filepath.Join(home, "listener.json"))
	if err != nil || l.URL != c.url || l.PID != os.Getpid() {
		t.Errorf("the listener file says %+v, %v", l, err)
	}
	for _, path := range []string{"/healthz", "/readyz", "/version"} {
		c.must("GET", path, nil, nil)
	}
	stranger := *c
	stranger.token = "not-the-token-at-all"
	if status, _ := stranger.do("GET", "/v1/workspaces", nil, nil); status != http.StatusUnauthorized {
		t.Errorf("a wrong token gets %d", status)
	}
	stop()
	mustNotExist(t, filepath.Join(home, "listener.json"))
	if held, _, err := Locked(filepath.Join(home, "lock")); held || err != nil {
		t.Errorf("the lock is held after the end (%v)", err)
	}
	raw, err := os.ReadFile(filepath.Join(home, "log", "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), c.token) {
		t.Error("the log holds the token")
	}
}

func TestASecondDaemonIsRefusedByName(t *testing.T) {
	home := t.TempDir()
	start(t, home, nil)
	_, ended, cancel := run(t, home, nil)
	defer cancel()
	err := <-ended
	var e *StartError
	if !errors.As(err, &e) || e.Code != CodeRunning || e.PID != os.Getpid() || !strings.Contains(e.Message, home) {
		t.Errorf("got %v", err)
	}
}

func TestBeyondLoopbackNeedsATokenOfOnesOwn(t *testing.T) {
	c, err := config.Load(config.Input{
		Env:   func(string) (string, bool) { return "", false },
		Flags: map[string]string{"home": t.TempDir(), "listen": "0.0.0.0:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Config: c}); codeOf(err) != CodeExposed {
		t.Errorf("got %v", err)
	}
}

func TestSocketsAreToldToComeBack(t *testing.T) {
	c, stop := startStoppable(t, t.TempDir(), nil)
	s, err := c.follow(t.Context(), c.workspace().ID, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan websocket.StatusCode, 1)
	go func() {
		for {
			if _, _, err := s.conn.Read(t.Context()); err != nil {
				ended <- websocket.CloseStatus(err)
				return
			}
		}
	}()
	stop()
	if code := <-ended; code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d, want 1012", code)
	}
}

// The scenario that people see first, through the whole daemon.
func TestARootSettlesInTheCommitOfItsLastChild(t *testing.T) {
	t.Setenv("TURNKEEPER_DEMO_SPEED", "50")
	c := start(t, t.TempDir(), nil)
	ws := c.workspace()
	s := c.play(ws, "root-first")
	c.await(ws.ID, "the root turn's end", rootSettled)
	events := c.log(ws.ID)
	var child, root int64
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
		turn, ok := turnEvent(e)
		if !ok || turn.Live() {
			continue
		}
		if turn.IsRoot() {
			root = e.Seq
		} else {
			child = e.Seq
		}
	}
	if child == 0 || root <= child || !events[child-1].Time.Equal(events[root-1].Time) {
		t.Errorf("child settled at %d, root at %d: not one commit", child, root)
	}
	d := c.detail(s)
	if d.Session.ActiveTurn != nil || d.Session.LatestTurn.Outcome != agent.OutcomeCompleted || d.Session.ActiveChildCount != 0 {
		t.Errorf("the session ends as %+v", d.Session)
	}
}

// Twenty at once on one directory: one survives, and a kill -9 of it leaves no lock.
func TestTwentyStartsOneSurvives(t *testing.T) {
	home := t.TempDir()
	const starts = 20
	var mu sync.Mutex
	var survivors []*process
	var refused int
	var all sync.WaitGroup
	for range starts {
		p := spawn(t, roleDaemon, home)
		all.Go(func() {
			_, said := p.listener()
			mu.Lock()
			defer mu.Unlock()
			if said == "" {
				survivors = append(survivors, p)
			} else if strings.HasPrefix(said, string(CodeRunning)) {
				refused++
			} else {
				t.Errorf("a start said %q", said)
			}
		})
	}
	all.Wait()
	if len(survivors) != 1 || refused != starts-1 {
		t.Fatalf("%d survived and %d were refused", len(survivors), refused)
	}
	survivors[0].kill()
	next, c := spawnDaemon(t, home)
	c.must("GET", "/readyz", nil, nil)
	next.end(syscall.SIGTERM)
	mustNotExist(t, filepath.Join(home, "listener.json"))
}
