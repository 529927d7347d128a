package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// patience is how long a test waits for something that must happen.
const patience = 30 * time.Second

// client speaks to one daemon, in this process or another.
type client struct {
	tb    testing.TB
	url   string
	token string
	home  string
	http  *http.Client
}

func newClient(tb testing.TB, l Listener, home string) *client {
	tb.Helper()
	token, err := ReadToken(filepath.Join(home, "token"))
	if err != nil {
		tb.Fatal(err)
	}
	c := &client{tb: tb, url: l.URL, token: token, home: home, http: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	tb.Cleanup(c.http.CloseIdleConnections)
	return c
}

// start runs a whole daemon in this process, on a free port, until the test ends.
func start(tb testing.TB, home string, adapters map[string]provider.Adapter) *client {
	tb.Helper()
	c, _ := startStoppable(tb, home, adapters)
	return c
}

// startStoppable also returns what ends the daemon and waits for it.
func startStoppable(tb testing.TB, home string, adapters map[string]provider.Adapter) (*client, func()) {
	tb.Helper()
	d, ended, cancel := run(tb, home, adapters)
	select {
	case <-d.Ready():
	case err := <-ended:
		cancel()
		tb.Fatalf("the daemon did not start: %v", err)
	case <-time.After(patience):
		cancel()
		tb.Fatal("the daemon did not become ready")
	}
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("the daemon ended with %v", err)
		}
	}
	tb.Cleanup(stop)
	return newClient(tb, d.Listener(), home), stop
}

func run(tb testing.TB, home string, adapters map[string]provider.Adapter) (*Daemon, <-chan error, context.CancelFunc) {
	tb.Helper()
	c, err := config.Load(config.Input{
		Env:   func(string) (string, bool) { return "", false },
		Flags: map[string]string{"home": home, "listen": "127.0.0.1:0", "log": "debug"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	d, err := New(Options{Config: c, Version: api.Version{Name: "turnkeeper", Version: "test"}, Adapters: adapters})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return d, ended, cancel
}

// do sends one request and decodes what came into out, if out is given.
func (c *client) do(method, path string, body, out any) (status int, problem string) {
	c.tb.Helper()
	status, problem, err := c.try(method, path, body, out)
	if err != nil {
		c.tb.Fatalf("%s %s: %v", method, path, err)
	}
	return status, problem
}

func (c *client) try(method, path string, body, out any) (status int, problem string, err error) {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, "", err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.url+path, in)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", err
	}
	if resp.StatusCode >= 300 {
		return resp.StatusCode, string(raw), nil
	}
	if out != nil {
		return resp.StatusCode, "", json.Unmarshal(raw, out)
	}
	return resp.StatusCode, "", nil
}

// must sends one request that has to succeed.
func (c *client) must(method, path string, body, out any) {
	c.tb.Helper()
	if status, problem := c.do(method, path, body, out); status >= 300 {
		c.tb.Fatalf("%s %s: %d %s", method, path, status, problem)
	}
}

// workspace makes a workspace on a directory of its own.
func (c *client) workspace() agent.Workspace {
	c.tb.Helper()
	var ws agent.Workspace
	c.must("POST", "/v1/workspaces", map[string]string{"name": "test", "path": c.tb.TempDir()}, &ws)
	return ws
}

// play begins a session of the demo provider with one scenario.
func (c *client) play(ws agent.Workspace, scenario string) agent.Session {
	c.tb.Helper()
	var created struct{ Session agent.Session }
	c.must("POST", "/v1/workspaces/"+string(ws.ID)+"/agent-sessions", map[string]any{
		"provider": "demo", "scenario": scenario,
		"message": map[string]any{"clientMessageId": "m1", "content": []map[string]string{{"type": "text", "text": "Go."}}},
	}, &created)
	return created.Session
}

func (c *client) detail(s agent.Session) agent.SessionDetail {
	c.tb.Helper()
	var d agent.SessionDetail
	c.must("GET", "/v1/workspaces/"+string(s.WorkspaceID)+"/agent-sessions/"+string(s.ID), nil, &d)
	return d
}

// log reads the whole log of a workspace.
func (c *client) log(ws agent.WorkspaceID) []agent.Event {
	c.tb.Helper()
	var all []agent.Event
	for after := int64(0); ; {
		var page agent.Log
		c.must("GET", fmt.Sprintf("/v1/workspaces/%s/events?after=%d", ws, after), nil, &page)
		all = append(all, page.Items...)
		if len(page.Items) == 0 {
			return all
		}
		after = page.Items[len(page.Items)-1].Seq
	}
}

// stream is one open socket after its hello.
type stream struct {
	conn  *websocket.Conn
	epoch string
	seq   int64
}

// follow opens the stream after a number.
func (c *client) follow(ctx context.Context, ws agent.WorkspaceID, after int64, epoch string) (*stream, error) {
	conn, resp, err := websocket.Dial(ctx, strings.Replace(c.url, "http", "ws", 1)+"/v1/workspaces/"+string(ws)+"/events/stream",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + c.token}}, HTTPClient: c.http})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(16 << 20)
	s := &stream{conn: conn}
	hello := map[string]any{"type": "hello", "v": 1, "after": after}
	if epoch != "" {
		hello["epoch"] = epoch
	}
	raw, err := json.Marshal(hello)
	if err != nil {
		return nil, err
	}
	if err := conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return nil, errors.Join(err, conn.CloseNow())
	}
	var ready struct {
		Type, Epoch, Mode string
		Seq               int64
	}
	if err := s.read(ctx, &ready); err != nil {
		return nil, errors.Join(err, conn.CloseNow())
	}
	if ready.Type != "ready" || ready.Mode != "replay" {
		return nil, errors.Join(fmt.Errorf("expected ready for a replay, got %+v", ready), conn.CloseNow())
	}
	s.epoch, s.seq = ready.Epoch, ready.Seq
	return s, nil
}

func (s *stream) read(ctx context.Context, out any) error {
	_, raw, err := s.conn.Read(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// frame is any frame of the server.
type frame struct {
	Type string `json:"type"`
	agent.Event
}

// event reads on to the next event and skips everything else.
func (s *stream) event(ctx context.Context) (agent.Event, error) {
	for {
		var f frame
		if err := s.read(ctx, &f); err != nil {
			return agent.Event{}, err
		}
		if f.Type == "event" {
			return f.Event, nil
		}
		if f.Type == "reset" {
			return agent.Event{}, errors.New("the stream was reset")
		}
	}
}

// await follows a workspace from its beginning until an event satisfies the condition.
func (c *client) await(ws agent.WorkspaceID, what string, is func(agent.Event) bool) agent.Event {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.follow(ctx, ws, 0, "")
	if err != nil {
		c.tb.Fatalf("waiting for %s: %v", what, err)
	}
	defer s.conn.CloseNow() //nolint:errcheck // it was read to the end
	for {
		e, err := s.event(ctx)
		if err != nil {
			c.tb.Fatalf("waiting for %s: %v", what, err)
		}
		if is(e) {
			return e
		}
	}
}

// turnEvent reads the turn that an event carries.
func turnEvent(e agent.Event) (agent.Turn, bool) {
	var t agent.Turn
	if e.Kind != agent.TurnCreated && e.Kind != agent.TurnUpdated {
		return t, false
	}
	return t, json.Unmarshal(e.Data, &t) == nil
}

// rootSettled is the condition that a root turn has settled.
func rootSettled(e agent.Event) bool {
	t, ok := turnEvent(e)
	return ok && t.IsRoot() && !t.Live()
}

func mustNotExist(tb testing.TB, path string) {
	tb.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		tb.Errorf("%s is still there (%v)", filepath.Base(path), err)
	}
}
