package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/config"
	daemonpkg "github.com/turnkeeper/turnkeeper/server/daemon"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// world is one daemon with a fake provider, and a directory to work in.
type world struct {
	t        *testing.T
	fake     *fake
	adapters map[string]provider.Adapter
	url      string
	token    string
	dir      string
	http     *http.Client
	gates    *gates

	home, address string
	stop          func()
	mu            sync.Mutex
	conns         []net.Conn
}

// gates hold requests of the agents to the daemon until a test lets them pass.
type gates struct {
	base http.RoundTripper
	mu   sync.Mutex
	held map[string]*gate
}

// gate holds requests whose path has a part in it.
type gate struct {
	reached chan struct{} // a token for each request that is held
	open    chan struct{} // nil: it fails
}

func (g *gates) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	var hold *gate
	for part, one := range g.held {
		if strings.Contains(r.Method+" "+r.URL.Path, part) {
			hold = one
		}
	}
	g.mu.Unlock()
	if hold != nil && hold.open == nil {
		return nil, errors.New("the line is cut")
	}
	if hold != nil {
		select {
		case hold.reached <- struct{}{}:
		default:
		}
		select {
		case <-hold.open:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.base.RoundTrip(r)
}

// hold holds such requests from now on; what it returns lets them, and all after, pass.
func (w *world) hold(part string) (reached <-chan struct{}, pass func()) {
	g := &gate{reached: make(chan struct{}, 64), open: make(chan struct{})}
	w.gates.mu.Lock()
	defer w.gates.mu.Unlock()
	w.gates.held[part] = g
	return g.reached, func() {
		w.gates.mu.Lock()
		delete(w.gates.held, part)
		w.gates.mu.Unlock()
		close(g.open)
	}
}

// newWorld starts a whole daemon in this process, until the test ends.
func newWorld(t *testing.T, f *fake, more ...provider.Adapter) *world {
	t.Helper()
	w := &world{t: t, fake: f, adapters: map[string]provider.Adapter{"fake": f}, dir: t.TempDir(), home: t.TempDir(), address: "127.0.0.1:0"}
	for _, a := range more {
		w.adapters[a.Name()] = a
	}
	base := &http.Transport{DialContext: w.dial}
	w.gates = &gates{base: base, held: map[string]*gate{}}
	w.http = &http.Client{Transport: base, Timeout: patience}
	t.Cleanup(func() {
		base.CloseIdleConnections()
		w.stop()
	})
	w.start()
	return w
}

// start runs the daemon; after a stop it is found at the same address.
func (w *world) start() {
	w.t.Helper()
	flags := map[string]string{"home": w.home, "listen": w.address}
	c, err := config.Load(config.Input{Env: func(string) (string, bool) { return "", false }, Flags: flags})
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := daemonpkg.New(daemonpkg.Options{Config: c, Version: api.Version{Name: "turnkeeper", Version: "test"}, Adapters: w.adapters})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the daemon ended with %v", err)
		}
	})
	select {
	case <-d.Ready():
	case err := <-ended:
		ended <- nil
		w.t.Fatalf("the daemon did not start: %v", err)
	}
	w.url, w.address = d.Listener().URL, d.Listener().Address
	if w.token, err = daemonpkg.ReadToken(filepath.Join(w.home, "token")); err != nil {
		w.t.Fatal(err)
	}
}

// dial remembers connections, so that a test can cut them.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		w.conns = append(w.conns, c)
		w.mu.Unlock()
	}
	return c, err
}

// cut ends every connection to the daemon.
func (w *world) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// fail lets such requests fail until what it returns is called.
func (w *world) fail(part string) (mend func()) {
	w.gates.mu.Lock()
	defer w.gates.mu.Unlock()
	w.gates.held[part] = &gate{}
	return func() {
		w.gates.mu.Lock()
		defer w.gates.mu.Unlock()
		delete(w.gates.held, part)
	}
}

// web is a request as the web view makes it.
func (w *world) web(method, path string, body, out any) {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		in = strings.NewReader(string(raw))
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %s %s %v", method, path, resp.Status, raw, err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			w.t.Fatal(err)
		}
	}
}

// detail reads a session as the web view does.
func (w *world) detail(id string) agent.SessionDetail {
	w.t.Helper()
	var spaces list[agent.Workspace]
	w.web("GET", "/v1/workspaces", nil, &spaces)
	var d agent.SessionDetail
	w.web("GET", "/v1/workspaces/"+string(spaces.Items[0].ID)+"/agent-sessions/"+id, nil, &d)
	return d
}

// path is the address of a session in the API.
func (w *world) path(id string) string {
	return "/v1/workspaces/" + string(w.detail(id).Session.WorkspaceID) + "/agent-sessions/" + id
}
