package api

// The API over the real storage and the real commands: one life of a delegating session,
// every answer of which must be what the document says.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// quiet is a Live in which nothing runs: the test itself says what providers report.
type quiet struct{}

func (quiet) Start(context.Context, agent.Session, agent.Message) error { return nil }
func (quiet) Guide(context.Context, agent.SessionID, agent.Message) error {
	return agent.Errorf(agent.CodeProviderGone, "nothing runs")
}

func (quiet) Cancel(context.Context, agent.Claimed, func(agent.Evidence)) error {
	return agent.Errorf(agent.CodeProviderGone, "nothing runs")
}
func (quiet) Answer(context.Context, agent.SessionID, agent.Interaction) error { return nil }
func (quiet) StopProcess(context.Context, agent.SessionID, agent.SessionID, agent.ProcessID) error {
	return agent.Errorf(agent.CodeProviderGone, "nothing runs")
}

func (quiet) Forget(context.Context, agent.SessionID, []agent.SessionID) {}
func (quiet) CloseSession(context.Context, agent.SessionID) error        { return nil }

// whole is the API over a real storage.
type whole struct {
	*testing.T
	file string // of the database
	st   *store.Store
	api  *API
	h    http.Handler
	seen map[string]bool // operations that have answered
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	var n atomic.Int64
	var h *hub.Hub
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "whole.db")
	st, err := store.Open(t.Context(), store.Options{
		Path: file, Synchronous: "normal", Logger: log,
		Mint:     agent.NewMinter(func() string { return fmt.Sprintf("m%08d", n.Add(1)) }),
		OnCommit: func(events []agent.Event) { h.Publish(events) },
	})
	if err != nil {
		t.Fatal(err)
	}
	h = hub.New(st, hub.Options{})
	caps := agent.Capabilities{Cancel: true, ChildCancel: true, Guide: true}
	commands := command.New(command.Options{
		Store: st, Live: quiet{}, Logger: log,
		Card: func(context.Context, string) (agent.Capabilities, error) { return caps, nil },
	})
	a := New(http.NewServeMux(), Deps{
		Reader: st, Commands: commands, Hub: h, Token: secret, Logger: log, Version: Version{Name: "turnkeeper"},
		Providers: func(context.Context) []provider.Info { return []provider.Info{{Name: "demo"}} },
	})
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{a.Close(ctx), commands.Close(ctx), st.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return &whole{T: t, file: file, st: st, api: a, h: a.Handler(), seen: map[string]bool{}}
}

// call makes a request and checks its answer against the document.
func (w *whole) call(status int, op, path string, body any) map[string]any {
	w.Helper()
	method, item := w.operation(op)
	var text string
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		text = string(b)
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, request(method, path, text))
	if rec.Code != status {
		w.Fatalf("%s answered %d %s", op, rec.Code, rec.Body)
	}
	w.seen[op] = true
	res := item.Responses[strconv.Itoa(status)]
	kind := "application/json"
	if res == nil {
		res, kind = item.Responses["default"], problemType
	}
	if rec.Body.Len() == 0 {
		if len(res.Content) > 0 {
			w.Errorf("%s: an empty answer, where the document has one", op)
		}
		return nil
	}
	var v any
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		w.Fatalf("%s: %v", op, err)
	}
	w.valid(op, res.Content[kind].Schema, v)
	noNulls(w.T, op, v)
	m, _ := v.(map[string]any)
	return m
}

func (w *whole) operation(id string) (string, *huma.Operation) {
	w.Helper()
	for _, item := range w.api.huma.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PATCH": item.Patch, "DELETE": item.Delete} {
			if op != nil && op.OperationID == id {
				return method, op
			}
		}
	}
	w.Fatalf("no operation %s", id)
	return "", nil
}

func (w *whole) valid(what string, s *huma.Schema, v any) {
	w.Helper()
	var res huma.ValidateResult
	huma.Validate(w.api.huma.OpenAPI().Components.Schemas, s, huma.NewPathBuffer([]byte{}, 0), huma.ModeReadFromServer, v, &res)
	for _, err := range res.Errors {
		b, _ := json.Marshal(v)
		w.Errorf("%s is not what the document says: %v\n%.500s", what, err, b)
	}
}

func (w *whole) apply(facts ...agent.Fact) {
	w.Helper()
	for _, f := range facts {
		if got, err := w.st.Apply(w.Context(), f); err != nil || got.Verdict != agent.VerdictApplied {
			w.Fatalf("%T: %+v %v", f, got, err)
		}
	}
}

func text(s string) []map[string]string { return []map[string]string{{"type": "text", "text": s}} }

func id(t *testing.T, m map[string]any, keys ...string) string {
	t.Helper()
	for _, k := range keys[:len(keys)-1] {
		m, _ = m[k].(map[string]any)
	}
	s, _ := m[keys[len(keys)-1]].(string)
	if s == "" {
		t.Fatalf("no %v in %v", keys, m)
	}
	return s
}

func TestWholeLife(t *testing.T) {
	w := newWhole(t)
	for op, path := range map[string]string{"health": "/healthz", "ready": "/readyz", "version": "/version", "listProviders": "/v1/providers"} {
		w.call(200, op, path, nil)
	}
	w.call(201, "createLoginCode", "/v1/login-codes", nil)
	base := "/v1/workspaces/" + id(t, w.call(201, "createWorkspace", "/v1/workspaces", map[string]any{"path": t.TempDir()}), "id")
	w.call(200, "updateWorkspace", base, map[string]any{"name": "renamed"})
	w.call(200, "getWorkspace", base, nil)
	w.call(200, "listWorkspaces", "/v1/workspaces", nil)

	created := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{
		"provider": "demo", "title": "Review", "message": map[string]any{"clientMessageId": "c1", "content": text("Review it")},
	})
	root, turn := agent.SessionID(id(t, created, "session", "id")), agent.TurnID(id(t, created, "turn", "id"))
	rootPath := base + "/agent-sessions/" + string(root)
	childPath := base + "/agent-sessions/ses_kid"
	w.apply(
		agent.ProviderTurnStarted{Session: root, Turn: turn, Key: "p1", NativeID: "native"},
		agent.MessagePut{Message: agent.Message{ID: "msg_call", SessionID: root, TurnID: turn, Role: agent.RoleTool, Kind: agent.MessageToolCall, Status: agent.MessageStreaming, CallID: "call_1", Name: "spawn"}},
		agent.ChildStarted{Session: "ses_kid", Turn: "trn_kid", Parent: root, ParentTurn: turn, Call: "call_1", Title: "Kid", Handles: agent.Handles{ThreadID: "t1"}},
		agent.TurnStarted{Session: "ses_kid", Turn: "trn_kid", NativeID: "n1"},
		agent.MessagePut{Message: agent.Message{ID: "msg_kid", SessionID: "ses_kid", TurnID: "trn_kid", Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}},
		agent.TextAppended{Session: "ses_kid", Turn: "trn_kid", Message: "msg_kid", Text: "Looking"},
		agent.InteractionAsked{Interaction: agent.Interaction{
			SessionID: "ses_kid", TurnID: "trn_kid", RequestID: "req_1", Kind: agent.InteractionApproval, Title: "Run it?", Owner: agent.OwnerExact,
			Detail: agent.Detail{Command: "ls"}, Options: []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}},
		}},
		// One without a choice: its lists must be empty, not missing.
		agent.InteractionAsked{Interaction: agent.Interaction{
			SessionID: root, TurnID: turn, RequestID: "req_2", Kind: agent.InteractionQuestion, Title: "Which?", Owner: agent.OwnerUnknown,
			Detail: agent.Detail{Questions: []agent.Question{{ID: "q1", Text: "Which?"}}},
		}},
		agent.MessagePut{Message: agent.Message{ID: "msg_call", SessionID: root, TurnID: turn, Role: agent.RoleTool, Kind: agent.MessageToolCall, Status: agent.MessageCompleted, Output: "started"}},
		agent.ProcessSeen{Process: agent.Process{ID: "prc_1", SessionID: "ses_kid", TurnID: "trn_kid", Command: "serve", Status: agent.ProcessRunning, Stoppable: true}},
		agent.ProcessSeen{Process: agent.Process{ID: "prc_2", SessionID: "ses_kid", TurnID: "trn_kid", Command: "watch", Status: agent.ProcessRunning}},
		agent.ProcessSeen{Process: agent.Process{ID: "prc_2", SessionID: "ses_kid", TurnID: "trn_kid", Status: agent.ProcessEnded}},
		agent.UsageReported{Session: "ses_kid", Turn: "trn_kid", Usage: agent.Usage{InputTokens: 5}},
		agent.ProviderTurnEnded{Session: root, Turn: turn, Key: "p1", Outcome: agent.OutcomeCompleted},
	)
	detail := w.call(200, "getAgentSession", rootPath, nil)
	if kids, _ := detail["childSessions"].([]any); len(kids) != 1 {
		t.Errorf("children %v", detail["childSessions"])
	}
	gate := w.call(200, "getTurnGate", rootPath+"/turns/"+string(turn)+"/gate", nil)
	if gate["heldBy"] != "children" || gate["retainedOutcome"] != "completed" {
		t.Errorf("gate %v", gate)
	}
	w.call(200, "listAgentSessions", base+"/agent-sessions?q=review&attention=waiting", nil)
	w.call(200, "updateAgentSession", rootPath, map[string]any{"pinned": true})
	w.call(200, "listTurns", rootPath+"/turns", nil)
	w.call(200, "getTurn", childPath+"/turns/trn_kid", nil)
	w.call(200, "listMessages", rootPath+"/messages", nil)
	if m := w.call(200, "getMessage", childPath+"/messages/msg_kid", nil); m["content"] != "Looking" {
		t.Errorf("message %v", m)
	}
	if asked, _ := w.call(200, "listInteractions", rootPath+"/interactions", nil)["items"].([]any); len(asked) != 2 {
		t.Errorf("a root asks for its children too: %v", asked)
	}
	if run, _ := w.call(200, "listProcesses", rootPath+"/processes", nil)["items"].([]any); len(run) != 2 {
		t.Errorf("a root lists the processes of its children too: %v", run)
	}
	w.call(200, "stopProcess", childPath+"/processes/prc_1/stop", nil)
	w.call(404, "stopProcess", rootPath+"/processes/prc_1/stop", nil) // it is the child's
	answer := childPath + "/turns/trn_kid/interactions/req_1/response"
	w.call(422, "respondToInteraction", answer, map[string]any{"optionId": "maybe"})
	op := id(t, w.call(202, "respondToInteraction", answer, map[string]any{"optionId": "yes"}), "operation", "id")
	w.call(202, "respondToInteraction", answer, map[string]any{"optionId": "yes"}) // the same again
	if p := w.call(409, "respondToInteraction", answer, map[string]any{"text": "no", "action": "decline"}); p["code"] != "interaction_answered" {
		t.Errorf("another answer: %v", p)
	}
	w.call(200, "getOperation", base+"/operations/"+op, nil)
	if p := w.call(409, "sendMessage", rootPath+"/messages", map[string]any{"clientMessageId": "c2", "content": text("and this")}); p["code"] != "guidance_unsupported" {
		t.Errorf("a message while only children run: %v", p)
	}
	if p := w.call(409, "sendMessage", childPath+"/messages", map[string]any{"clientMessageId": "c3", "content": text("you there")}); p["code"] != "child_input_unsupported" {
		t.Errorf("a message to a child: %v", p)
	}
	w.call(202, "cancelTurn", rootPath+"/turns/"+string(turn)+"/cancel", nil)
	if asked, _ := w.call(200, "listOperations", rootPath+"/operations", nil)["items"].([]any); len(asked) < 2 {
		t.Errorf("a root lists what was asked of its children too: %v", asked)
	}
	if stops, _ := w.call(200, "listOperations", childPath+"/operations?kind=cancel", nil)["items"].([]any); len(stops) != 1 {
		t.Errorf("a child lists the stop of its root: %v", stops)
	}
	w.call(404, "getTurn", rootPath+"/turns/trn_none", nil)

	second := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{"provider": "demo"})
	secondPath := base + "/agent-sessions/" + id(t, second, "session", "id")
	sent := w.call(202, "sendMessage", secondPath+"/messages", map[string]any{"clientMessageId": "c9", "content": text("go")})
	again := w.call(202, "sendMessage", secondPath+"/messages", map[string]any{"clientMessageId": "c9", "content": text("go")})
	if id(t, sent, "turn", "id") != id(t, again, "turn", "id") {
		t.Error("the same message began two turns")
	}
	w.call(204, "deleteAgentSession", secondPath, nil)
	w.call(204, "deleteAgentSession", secondPath, nil)
	w.call(404, "getAgentSession", secondPath, nil)
	w.eventsAreWhatTheDocumentSays(base)
	w.call(204, "deleteWorkspace", base, nil)
	w.call(404, "getWorkspace", base, nil)
	w.everyOperationWasCalled()
}

// eventsAreWhatTheDocumentSays checks each event against the variant of its kind, and that
// the stream tells the same ones.
func (w *whole) eventsAreWhatTheDocumentSays(base string) {
	w.Helper()
	page := w.call(200, "listEvents", base+"/events?limit=1000", nil)
	items, _ := page["items"].([]any)
	s := httptest.NewServer(w.h)
	defer s.Close()
	c := &client{TB: w.T, conn: dialPath(w.T, s.URL+base)}
	c.send(helloFrom0)
	c.next()
	kinds := map[string]bool{}
	for i, v := range items {
		e := object(w.T, v)
		kind, _ := e["kind"].(string)
		kinds[kind] = true
		w.valid("event "+kind, w.api.huma.OpenAPI().Components.Schemas.Map()[variantName(agent.EventKind(kind))], v)
		noNulls(w.T, "event "+kind, v)
		if got := c.next(); got.Seq != int64(i+1) || got.Kind != kind {
			w.Errorf("the stream told %+v, the log %v", got, e)
		}
	}
	for kind := range entities {
		if !kinds[string(kind)] {
			w.Errorf("no %s in this life: the test does not show its shape", kind)
		}
	}
}

func (w *whole) everyOperationWasCalled() {
	w.Helper()
	for _, item := range w.api.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil && !w.seen[op.OperationID] && !strings.HasPrefix(op.OperationID, "stream") {
				w.Errorf("%s was never called", op.OperationID)
			}
		}
	}
}
