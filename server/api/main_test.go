package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch) // "" removes nothing
		os.Exit(code)
	}))
}

const (
	secret = "secret-token"
	ws     = "/v1/workspaces/ws_1"
	ses    = ws + "/agent-sessions/ses_1"
	trn    = ses + "/turns/trn_1"
)

// fake is a storage and a command service that answer with as little as they can, or
// with err. What was asked is kept.
type fake struct {
	mu     sync.Mutex
	err    error
	panic  any
	asked  []any
	seq    int64
	epoch  string
	detail agent.SessionDetail
	counts agent.Counts
	events []agent.Event
	reads  int
	settle bool
}

func (f *fake) ask(v ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, v...)
	f.reads++
	if f.panic != nil {
		panic(f.panic)
	}
	return f.err
}

func (f *fake) Workspaces(context.Context) ([]agent.Workspace, error) { return nil, f.ask() }

func (f *fake) Workspace(_ context.Context, id agent.WorkspaceID) (agent.Workspace, error) {
	return agent.Workspace{ID: id}, f.ask(id)
}

func (f *fake) Detail(_ context.Context, _ agent.WorkspaceID, id agent.SessionID) (agent.SessionDetail, error) {
	err := f.ask(id)
	d := f.detail
	d.Session.ID, d.Seq, d.Epoch = id, f.seq, f.epoch
	return d, err
}

func (f *fake) List(_ context.Context, filter agent.SessionFilter) (agent.SessionPage, error) {
	return agent.SessionPage{}, f.ask(filter)
}

func (f *fake) Turns(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, cursor string, limit int) (agent.TurnPage, error) {
	return agent.TurnPage{}, f.ask(cursor, limit)
}

func (f *fake) Turn(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, turn agent.TurnID) (agent.Turn, error) {
	return agent.Turn{ID: turn}, f.ask(turn)
}

func (f *fake) Gate(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, turn agent.TurnID) (agent.GateReport, error) {
	return agent.GateReport{TurnID: turn}, f.ask(turn)
}

func (f *fake) Messages(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, r agent.MessageRange) (agent.MessagePage, error) {
	return agent.MessagePage{}, f.ask(r)
}

func (f *fake) Message(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, m agent.MessageID) (agent.Message, error) {
	return agent.Message{ID: m}, f.ask(m)
}

func (f *fake) Interactions(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, s agent.InteractionStatus) ([]agent.Interaction, error) {
	return []agent.Interaction{{Detail: agent.Detail{Questions: []agent.Question{{ID: "q"}}}}}, f.ask(s)
}

func (f *fake) Processes(context.Context, agent.WorkspaceID, agent.SessionID) ([]agent.Process, error) {
	return []agent.Process{{ID: "p_1", Status: agent.ProcessRunning}}, f.ask()
}

func (f *fake) StopProcess(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, id agent.ProcessID) (agent.Process, error) {
	return agent.Process{ID: id, Status: agent.ProcessEnded}, f.ask(id)
}

func (f *fake) Operations(_ context.Context, _ agent.WorkspaceID, id agent.SessionID, filter agent.OperationFilter) (agent.OperationPage, error) {
	return agent.OperationPage{Items: []agent.Operation{{ID: "op_1"}}}, f.ask(id, filter)
}

func (f *fake) Operation(_ context.Context, _ agent.WorkspaceID, op agent.OperationID) (agent.Operation, error) {
	return agent.Operation{ID: op}, f.ask(op)
}

func (f *fake) Events(_ context.Context, id agent.WorkspaceID, after int64, limit int) (agent.Log, error) {
	if id != "ws_1" {
		return agent.Log{}, agent.Errorf(agent.CodeNotFound, "no such workspace")
	}
	err := f.ask(after, limit)
	f.mu.Lock()
	defer f.mu.Unlock()
	from := min(after, int64(len(f.events)))
	to := min(from+int64(limit), int64(len(f.events)))
	return agent.Log{Items: f.events[from:to], Seq: int64(len(f.events)), Epoch: f.epoch, Oldest: 1}, err
}

func (f *fake) Head(_ context.Context, id agent.WorkspaceID) (int64, string, int64, error) {
	if id != "ws_1" {
		return 0, "", 0, agent.Errorf(agent.CodeNotFound, "no such workspace")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return max(f.seq, int64(len(f.events))), f.epoch, 1, nil
}

func (f *fake) Counts(context.Context) (agent.Counts, error) { return f.counts, f.ask() }

func (f *fake) CreateWorkspace(_ context.Context, name, path string) (agent.Workspace, error) {
	return agent.Workspace{ID: "ws_1", Name: name, Path: path}, f.ask(name, path)
}

func (f *fake) RenameWorkspace(_ context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error) {
	return agent.Workspace{ID: id, Name: name}, f.ask(id, name)
}

func (f *fake) DeleteWorkspace(_ context.Context, id agent.WorkspaceID) error { return f.ask(id) }

func (f *fake) CreateSession(_ context.Context, s agent.NewSession) (agent.Submitted, error) {
	done := agent.Submitted{Session: agent.Session{ID: "ses_1", Provider: s.Provider}}
	if s.Message != nil {
		done.Turn = &agent.Turn{ID: "trn_1"}
	}
	return done, f.ask(s)
}

func (f *fake) UpdateSession(_ context.Context, _ agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error) {
	return agent.Session{ID: id}, f.ask(p.Title, p.Pinned)
}

func (f *fake) DeleteSession(_ context.Context, _ agent.WorkspaceID, id agent.SessionID) error {
	return f.ask(id)
}

func (f *fake) Send(_ context.Context, _ agent.WorkspaceID, m agent.NewMessage) (agent.Submitted, error) {
	return agent.Submitted{
		Turn: &agent.Turn{ID: "trn_1"}, Message: &agent.Message{ID: "msg_1"}, Delivery: agent.DeliveryGuided,
		Operation: &agent.Operation{ID: "op_1"},
	}, f.ask(m)
}

func (f *fake) Cancel(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, turn agent.TurnID, client string) (agent.Operation, bool, error) {
	return agent.Operation{ID: "op_1"}, f.settle, f.ask(turn, client)
}

func (f *fake) Answer(_ context.Context, _ agent.WorkspaceID, a agent.NewAnswer) (agent.Interaction, agent.Operation, error) {
	return agent.Interaction{RequestID: a.Request}, agent.Operation{ID: "op_1"}, f.ask(a)
}

// commit appends an event and publishes it.
func (f *fake) commit(h *hub.Hub, events ...agent.Event) {
	f.mu.Lock()
	for i := range events {
		e := &events[i]
		e.Seq, e.WorkspaceID = int64(len(f.events)+1), "ws_1"
		if e.Kind == "" {
			e.Kind, e.Data = agent.TurnUpdated, json.RawMessage(`{"id":"trn_1"}`)
		}
		f.events = append(f.events, *e)
	}
	f.mu.Unlock()
	h.Publish(events)
}

// fixture is an API over a fake.
type fixture struct {
	*fake
	api *API
	hub *hub.Hub
	h   http.Handler
	log *bytes.Buffer
}

func newFixture(t testing.TB, change ...func(*Deps)) *fixture {
	t.Helper()
	f := &fixture{fake: &fake{epoch: "e1"}, log: &bytes.Buffer{}}
	f.hub = hub.New(f.fake, hub.Options{})
	d := Deps{
		Reader: f.fake, Commands: f.fake, Hub: f.hub, Token: secret,
		Providers: func(context.Context) []provider.Info { return []provider.Info{{Name: "demo"}} },
		Version:   Version{Name: "turnkeeper", Version: "test"},
		Logger:    slog.New(slog.NewTextHandler(&lockedWriter{w: f.log}, nil)),
	}
	for _, c := range change {
		c(&d)
	}
	f.api = New(http.NewServeMux(), d)
	f.h = f.api.Handler()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := f.api.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// request makes one as the CLI would; change may spoil it.
func request(method, path, body string, change ...func(*http.Request)) *http.Request {
	var r *http.Request
	if body == "" {
		r = httptest.NewRequest(method, "http://localhost:4880"+path, nil)
	} else {
		r = httptest.NewRequest(method, "http://localhost:4880"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	for _, c := range change {
		c(r)
	}
	return r
}

func (f *fixture) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.h.ServeHTTP(w, r)
	return w
}

func (f *fixture) get(path string) *httptest.ResponseRecorder {
	return f.do(request(http.MethodGet, path, ""))
}

// wantProblem checks a refusal: its status, its code, and that it is a problem at all.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, status int, code string) Problem {
	t.Helper()
	var p Problem
	if ct := w.Header().Get("Content-Type"); ct != problemType {
		t.Errorf("content type %q", ct)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if w.Code != status || p.Status != status || p.Code != code {
		t.Errorf("answered %d, problem %+v; want %d %s", w.Code, p, status, code)
	}
	if p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
		t.Errorf("request id %q, header %q", p.RequestID, w.Header().Get("X-Request-Id"))
	}
	if p.Type != "urn:turnkeeper:error:"+code || p.Title == "" {
		t.Errorf("type %q title %q", p.Type, p.Title)
	}
	return p
}
