package api

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Another program holds the database: a request waits for it rather than fail.
func TestRequestWaitsForALockedDatabase(t *testing.T) {
	w := newWhole(t)
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(w.file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if _, err := lock.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, request("POST", "/v1/workspaces", `{"path":`+strconv.Quote(t.TempDir())+`}`))
		answered <- rec
	}()
	select {
	case rec := <-answered:
		t.Fatalf("answered %d %s in front of a locked database", rec.Code, rec.Body)
	case <-time.After(100 * time.Millisecond): // it waits; reads go on meanwhile
		w.call(200, "listWorkspaces", "/v1/workspaces", nil)
	}
	if _, err := lock.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if rec := <-answered; rec.Code != 201 {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
}

// Storage that stays busy is a 503 that says when to come back, in words of ours.
func TestBusyStorageSaysWhenToComeBack(t *testing.T) {
	f := newFixture(t)
	f.err = &agent.Error{Code: agent.CodeUnavailable, Message: "Storage is busy."}
	for _, r := range []struct{ method, path, body string }{{"GET", ses, ""}, {"POST", ses + "/messages", newMessage}, {"DELETE", ses, ""}} {
		w := f.do(request(r.method, r.path, r.body))
		if p := wantProblem(t, w, 503, "unavailable"); p.Detail != "Storage is busy." || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %+v, Retry-After %q", r.method, p, w.Header().Get("Retry-After"))
		}
	}
}
