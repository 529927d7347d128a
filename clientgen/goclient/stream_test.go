package goclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/hub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "secret"

// memory is a log in memory behind the real hub and API.
type memory struct {
	api.Reader // nothing else is asked
	mu         sync.Mutex
	epoch      string
	oldest     int64
	events     []agent.Event
	hub        *hub.Hub
}

func (m *memory) Head(_ context.Context, ws agent.WorkspaceID) (int64, string, int64, error) {
	if ws != "ws_1" {
		return 0, "", 0, agent.Errorf(agent.CodeNotFound, "no such workspace")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.events)), m.epoch, m.oldest, nil
}

func (m *memory) Events(_ context.Context, _ agent.WorkspaceID, after int64, limit int) (agent.Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := min(after, int64(len(m.events)))
	to := min(from+int64(limit), int64(len(m.events)))
	return agent.Log{Items: m.events[from:to], Seq: int64(len(m.events)), Epoch: m.epoch, Oldest: m.oldest}, nil
}

func (m *memory) Workspaces(context.Context) ([]agent.Workspace, error) {
	return []agent.Workspace{{ID: "ws_1", Name: "one"}}, nil
}

func (m *memory) Workspace(_ context.Context, id agent.WorkspaceID) (agent.Workspace, error) {
	return agent.Workspace{}, agent.Errorf(agent.CodeNotFound, "workspace %s is not here", id)
}

func (m *memory) put(n int) {
	m.mu.Lock()
	events := make([]agent.Event, n)
	for i := range events {
		seq := int64(len(m.events) + 1)
		turn := agent.Turn{ID: agent.TurnID(fmt.Sprintf("trn_%d", seq)), Phase: agent.PhaseRunning, Trigger: agent.TriggerUser}
		data, err := json.Marshal(turn)
		if err != nil {
			panic(err)
		}
		events[i] = agent.Event{
			Seq: seq, Time: time.Unix(0, 0).UTC(), Kind: agent.TurnUpdated, SessionID: "ses_1", TurnID: turn.ID, Data: data,
			WorkspaceID: "ws_1", RootSessionID: "ses_1",
		}
		m.events = append(m.events, events[i])
	}
	m.mu.Unlock()
	m.hub.Publish(events)
}

// cutter is a listener whose connections can be cut without a word.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

type server struct {
	*memory
	*cutter
	api *api.API
	url string
}

func serve(t *testing.T) *server {
	t.Helper()
	m := &memory{epoch: "e1", oldest: 1}
	m.hub = hub.New(m, hub.Options{})
	a := api.New(http.NewServeMux(), api.Deps{Reader: m, Hub: m.hub, Token: token, Logger: slog.New(slog.DiscardHandler)})
	s := httptest.NewUnstartedServer(a.Handler())
	c := &cutter{Listener: s.Listener}
	s.Listener = c
	s.Start()
	t.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return &server{m, c, a, s.URL}
}

func (s *server) options() goclient.StreamOptions {
	return goclient.StreamOptions{
		Server: s.url, Workspace: "ws_1", Token: token, Client: "test", From: &goclient.Cursor{},
		MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
	}
}

func TestFollowsOverDroppedConnections(t *testing.T) {
	s := serve(t)
	const events = 500
	s.put(10)
	var lost, next int
	o := s.options()
	o.State = func(err error) {
		if err != nil {
			lost++
		}
	}
	for item, err := range goclient.Follow(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		next++
		if item.Seq != int64(next) || item.Kind != "turn.updated" || item.SessionID != "ses_1" {
			t.Fatalf("%d: %+v", next, item)
		}
		v, err := item.Value()
		turn, ok := v.(goclient.EventTurnUpdated)
		if err != nil || !ok || turn.Data.ID != fmt.Sprintf("trn_%d", next) || turn.Data.Phase != goclient.TurnPhaseRunning {
			t.Fatalf("%+v %v", v, err)
		}
		if next == events {
			break
		}
		if next%10 == 0 {
			s.cut()
			s.put(10)
		}
	}
	if lost == 0 {
		t.Error("no connection was lost: the test tests nothing")
	}
}

func TestDeltasAndFilter(t *testing.T) {
	s := serve(t)
	o := s.options()
	o.Sessions = []string{"ses_1"}
	connected := make(chan struct{})
	o.State = func(error) { close(connected) }
	go func() {
		<-connected
		s.hub.Delta(agent.Delta{WorkspaceID: "ws_1", SessionID: "ses_1", MessageID: "m", Text: "héllo"})
	}()
	for item, err := range goclient.Follow(t.Context(), o) {
		if err != nil || item.Delta == nil || item.Delta.Text != "héllo" || item.Delta.MessageID != "m" {
			t.Errorf("%+v %v", item, err)
		}
		break
	}
}

func TestResetReadsASnapshot(t *testing.T) {
	s := serve(t)
	s.put(20)
	s.oldest = 10
	o := s.options() // a cursor of 0 is older than what is kept
	for _, err := range goclient.Follow(t.Context(), o) {
		if !errors.Is(err, goclient.ErrReset) {
			t.Errorf("without a snapshot: %v", err)
		}
	}
	var read int
	o.Snapshot = func(context.Context) (goclient.Cursor, error) {
		read++
		return goclient.Cursor{Seq: 18, Epoch: "e1"}, nil
	}
	var got []int64
	for item, err := range goclient.Follow(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, item.Seq); len(got) == 2 {
			break
		}
	}
	if read != 1 || got[0] != 19 || got[1] != 20 {
		t.Errorf("%d snapshots, then %v", read, got)
	}
	o.From = nil
	broken := errors.New("no disk")
	o.Snapshot = func(context.Context) (goclient.Cursor, error) { return goclient.Cursor{}, broken }
	for _, err := range goclient.Follow(t.Context(), o) {
		if !errors.Is(err, broken) {
			t.Errorf("a broken snapshot: %v", err)
		}
	}
}

func TestEndingsThatComingBackDoesNotHelp(t *testing.T) {
	s := serve(t)
	for want, change := range map[error]func(*goclient.StreamOptions){
		goclient.ErrUnauthorized:              func(o *goclient.StreamOptions) { o.Token = "wrong" },
		goclient.ErrNotFound:                  func(o *goclient.StreamOptions) { o.Workspace = "ws_none" },
		&goclient.StreamError{Code: 200}:      func(o *goclient.StreamOptions) { o.Server += "/nowhere" },
		error(&goclient.StreamError{Code: 0}): func(o *goclient.StreamOptions) { o.Server = ":" },
		error(context.Canceled):               nil,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		o := s.options()
		if change == nil {
			cancel()
		} else {
			change(&o)
		}
		var got error
		for _, err := range goclient.Follow(ctx, o) {
			got = err
		}
		cancel()
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// A daemon that restarts is waited for: 1012 and refused connections are no ending.
func TestWaitsForADaemonThatRestarts(t *testing.T) {
	s := serve(t)
	s.put(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := s.options()
	var lost int
	o.State = func(err error) {
		if err == nil {
			return
		}
		if lost++; lost == 3 { // the first is the close, the others are refused handshakes
			cancel()
		}
	}
	var last error
	for item, err := range goclient.Follow(ctx, o) {
		last = err
		if item.Seq == 1 {
			go func() { _ = s.api.Close(context.Background()) }()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}

func TestCallsHaveTypedErrors(t *testing.T) {
	s := serve(t)
	c, err := goclient.NewClientWithResponses(s.url, goclient.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	list, err := c.ListWorkspacesWithResponse(t.Context())
	if err != nil || list.JSON200 == nil || len(list.JSON200.Items) != 1 || list.JSON200.Items[0].Name != "one" {
		t.Errorf("%+v %v", list, err)
	}
	one, err := c.GetWorkspaceWithResponse(t.Context(), "ws_x")
	if err != nil || one.ApplicationProblemJSONDefault == nil {
		t.Fatalf("%+v %v", one, err)
	}
	if p := one.ApplicationProblemJSONDefault; p.Code != "not_found" || p.Status != 404 || !strings.Contains(*p.Detail, "ws_x") {
		t.Errorf("%+v", p)
	}
}
