package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// noNulls walks an answer: a list or a field in it is never null.
func noNulls(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s is null", at)
	case map[string]any:
		for k, e := range v {
			noNulls(t, at+"."+k, e)
		}
	case []any:
		for i, e := range v {
			noNulls(t, fmt.Sprintf("%s[%d]", at, i), e)
		}
	}
}

func TestAnswers(t *testing.T) {
	str, yes := "T", true
	for _, c := range []struct {
		method, path, body string
		status             int
		asked              []any
		has                string
	}{
		{"GET", "/healthz", "", 200, nil, `{"status":"ok"}`},
		{"GET", "/readyz", "", 200, nil, `{"status":"ok"}`},
		{"GET", "/version", "", 200, nil, `"version":"test"`},
		{"GET", "/v1/providers", "", 200, nil, `"scenarios":[]`},
		{"GET", "/v1/workspaces", "", 200, nil, `{"items":[]}`},
		{"POST", "/v1/workspaces", `{"path":"/tmp","name":"n"}`, 201, []any{"n", "/tmp"}, `"path":"/tmp"`},
		{"GET", ws, "", 200, []any{agent.WorkspaceID("ws_1")}, `"id":"ws_1"`},
		{"PATCH", ws, `{"name":"n"}`, 200, []any{agent.WorkspaceID("ws_1"), "n"}, `"name":"n"`},
		{"DELETE", ws, "", 204, []any{agent.WorkspaceID("ws_1")}, ""},
		{
			"GET", ws + "/agent-sessions?q=a&provider=p&attention=waiting&cursor=c&limit=7", "", 200,
			[]any{agent.SessionFilter{Workspace: "ws_1", Query: "a", Provider: "p", Attention: "waiting", Cursor: "c", Limit: 7}},
			`"items":[]`,
		},
		{"GET", ws + "/agent-sessions", "", 200, []any{agent.SessionFilter{Workspace: "ws_1", Limit: 50}}, `"items":[]`},
		{
			"POST", ws + "/agent-sessions", `{"provider":"demo","title":"t","cwd":"/c","model":"m","permissionMode":"ask","scenario":"s","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`, 201,
			[]any{agent.NewSession{
				Workspace: "ws_1", Key: "k1", Provider: "demo", Title: "t", Cwd: "/c", Model: "m", PermissionMode: "ask", Scenario: "s",
				Message: &agent.NewMessage{Text: "a\n\nb", Client: "cli"},
			}},
			`"turn":{"id":"trn_1"`,
		},
		{"GET", ses, "", 200, []any{agent.SessionID("ses_1")}, `"childSessions":[]`},
		{"PATCH", ses, `{"title":"T","pinned":true}`, 200, []any{&str, &yes}, `"session":{`},
		{"PATCH", ses, `{}`, 200, []any{(*string)(nil), (*bool)(nil)}, `"session":{`},
		{"DELETE", ses, "", 204, []any{agent.SessionID("ses_1")}, ""},
		{"GET", ses + "/turns?cursor=c&limit=9", "", 200, []any{"c", 9}, `"items":[]`},
		{"GET", trn, "", 200, []any{agent.TurnID("trn_1")}, `"id":"trn_1"`},
		{"GET", trn + "/gate", "", 200, []any{agent.TurnID("trn_1")}, `"openChildren":[]`},
		{"POST", trn + "/cancel", "", 202, []any{agent.TurnID("trn_1"), "cli"}, `"targets":[]`},
		{"GET", ses + "/messages?before=9&limit=3", "", 200, []any{agent.MessageRange{Before: 9, Limit: 3}}, `"items":[]`},
		{"GET", ses + "/messages", "", 200, []any{agent.MessageRange{Limit: 100}}, `"hasBefore":false`},
		{"GET", ses + "/messages/msg_1", "", 200, []any{agent.MessageID("msg_1")}, `"id":"msg_1"`},
		{
			"POST", ses + "/messages", newMessage, 202,
			[]any{agent.NewMessage{Session: "ses_1", ClientMessageID: "c1", Text: "hello", Client: "cli"}},
			`"delivery":"guided"`,
		},
		{"GET", ses + "/interactions?status=pending", "", 200, []any{agent.InteractionPending}, `"options":[]`},
		{
			"POST", trn + "/interactions/req_1/response", `{"answers":{"q1":"yes"}}`, 202,
			[]any{agent.NewAnswer{Session: "ses_1", Turn: "trn_1", Request: "req_1", Client: "cli", Response: agent.Response{Answers: map[string]string{"q1": "yes"}}}},
			`"requestId":"req_1"`,
		},
		{"GET", ws + "/operations/op_1", "", 200, []any{agent.OperationID("op_1")}, `"targets":[]`},
		{"GET", ws + "/events?after=3&limit=5", "", 200, []any{int64(3), 5}, `"items":[]`},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(request(c.method, c.path, c.body, header(clientHeader, "cli"), header("Idempotency-Key", "k1")))
			if w.Code != c.status {
				t.Fatalf("answered %d %s", w.Code, w.Body)
			}
			if c.asked != nil {
				if d := cmp.Diff(c.asked, f.asked); d != "" {
					t.Errorf("asked (-want +got):\n%s", d)
				}
			}
			if c.has == "" {
				if w.Body.Len() > 0 {
					t.Errorf("an empty answer has a body: %s", w.Body)
				}
				return
			}
			if !strings.Contains(w.Body.String(), c.has) || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s %s, want %s in it", w.Header().Get("Content-Type"), w.Body, c.has)
			}
			var v any
			if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
				t.Fatal(err)
			}
			noNulls(t, "answer", v)
		})
	}
}

func TestNotReady(t *testing.T) {
	f := newFixture(t, func(d *Deps) { d.Ready = func() error { return errNotYet } })
	if w := f.get("/healthz"); w.Code != 200 {
		t.Errorf("health: %d", w.Code)
	}
	wantProblem(t, f.get("/readyz"), 503, "not_ready")
	f = newFixture(t)
	f.api.close()
	wantProblem(t, f.get("/readyz"), 503, "daemon_stopping")
}

var errNotYet = agent.Errorf(agent.CodeUnavailable, "recovering")

func TestUnchangedDetailIs304(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := newFixture(t, func(d *Deps) { d.Now = func() time.Time { return now } })
	f.seq = 7
	tag := func() string {
		t.Helper()
		w := f.get(ses)
		if w.Code != 200 || w.Header().Get("ETag") == "" {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
		return w.Header().Get("ETag")
	}
	again := func(tag string) int {
		f.asked, f.reads = nil, 0
		w := f.do(request("GET", ses, "", header("If-None-Match", tag)))
		if w.Code == 304 && (w.Body.Len() > 0 || f.reads != 1 || len(f.asked) > 0 || w.Header().Get("ETag") == "") {
			t.Errorf("304 with %d bytes after %d reads, %v", w.Body.Len(), f.reads, f.asked)
		}
		return w.Code
	}
	first := tag()
	for _, same := range []string{first, "W/" + first, `"other", ` + first} {
		if got := again(same); got != 304 {
			t.Errorf("%s: %d", same, got)
		}
	}
	f.seq = 8
	if got := again(first); got != 200 {
		t.Errorf("after an event: %d", got)
	}
	f.epoch = "e2"
	f.seq = 7
	if got := again(first); got != 200 {
		t.Errorf("in another epoch: %d", got)
	}
	f.detail.Session.ActiveTurn = &agent.Turn{}
	running := tag()
	if got := again(running); got != 304 {
		t.Errorf("running: %d", got)
	}
	now = now.Add(time.Minute) // a silent agent may have become "stalled", which no event tells
	if got := again(running); got != 200 {
		t.Errorf("running, a minute later: %d", got)
	}
	f.err = agent.Errorf(agent.CodeNotFound, "gone")
	wantProblem(t, f.get(ses), 404, "not_found")
}

func TestEventsGiveTheBytesOfTheStream(t *testing.T) {
	f := newFixture(t)
	f.commit(f.hub, agent.Event{Kind: agent.SessionCreated, SessionID: "ses_1", Data: json.RawMessage(`{"id":"ses_1","title":"<&>"}`), Time: time.Unix(0, 0).UTC()})
	w := f.get(ws + "/events")
	const want = `{"items":[{"type":"event","seq":1,"time":"1970-01-01T00:00:00Z","kind":"session.created","agentSessionId":"ses_1","data":{"id":"ses_1","title":"<&>"}}],"seq":1,"epoch":"e1","oldest":1}`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMetrics(t *testing.T) {
	f := newFixture(t, func(d *Deps) { d.Diagnostics = func() map[string]uint64 { return map[string]uint64{"unrouted": 3} } })
	f.counts = agent.Counts{Sessions: 5, OpenBelowSettled: 0}
	f.get(ses)
	f.get("/v1/secret-path-of-a-user")
	local := func(r *http.Request) { r.RemoteAddr = "127.0.0.1:9"; noToken(r) }
	w := f.do(request("GET", "/metrics", "", local))
	for _, want := range []string{
		"turnkeeper_open_below_settled 0", "turnkeeper_sessions 5", `turnkeeper_provider_diagnostics_total{kind="unrouted"} 3`,
		`turnkeeper_http_requests_total{class="2xx",route="GET /v1/workspaces/{workspaceID}/agent-sessions/{agentSessionID}"} 1`,
		`turnkeeper_http_requests_total{class="4xx",route="page"} 1`, "go_goroutines",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in the metrics (%d)", want, w.Code)
		}
	}
	if strings.Contains(w.Body.String(), "secret-path") {
		t.Error("a client's words became a label")
	}
	remote := func(r *http.Request) { r.RemoteAddr = "10.0.0.1:9"; noToken(r) }
	wantProblem(t, f.do(request("GET", "/metrics", "", remote)), 401, "unauthorized")
	if w := f.do(request("GET", "/metrics", "", func(r *http.Request) { r.RemoteAddr = "10.0.0.1:9" })); w.Code != 200 {
		t.Errorf("with the token: %d", w.Code)
	}
	f.err = errNotYet
	if w := f.do(request("GET", "/metrics", "", local)); w.Code != 500 {
		t.Errorf("without storage: %d", w.Code)
	}
}

func TestDocumentIsServed(t *testing.T) {
	f := newFixture(t)
	w := f.do(request("GET", "/openapi.json", "", noToken))
	b, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), b) {
		t.Errorf("%d, %d bytes, the document has %d", w.Code, w.Body.Len(), len(b))
	}
}
