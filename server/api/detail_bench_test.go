package api

// Reading a large tree (perf.md, rows 15 to 17): raw scans the same rows with database/sql
// and encodes them by hand, without any code of the project; impl is storage alone, http
// the whole answer over the loopback, http304 the same for a copy that is still true.

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/store"
)

func openStore(tb testing.TB, path string) *store.Store {
	tb.Helper()
	var n atomic.Int64
	st, err := store.Open(context.Background(), store.Options{
		Path: path, Synchronous: "normal", Logger: slog.New(slog.DiscardHandler), StallAfter: time.Hour * 1e5,
		Mint: agent.NewMinter(func() string { return fmt.Sprintf("m%08d", n.Add(1)) }),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// bigTree is a file with total sessions, one root of which has the given number of
// children, a few of them live; the rest are roots of fifty.
type bigTree struct {
	path string
	ws   agent.WorkspaceID
	root map[string]agent.SessionID // "1k", "10k"
}

var bigTrees = map[string]*bigTree{}

func tree(b *testing.B, db string) *bigTree {
	b.Helper()
	if t := bigTrees[db]; t != nil {
		return t
	}
	total := 32_000
	if db == "320k" {
		total = 320_000
	}
	if scratch == "" {
		var err error
		if scratch, err = os.MkdirTemp("", "turnkeeper-bench-*"); err != nil { //nolint:usetesting // outlives this benchmark
			b.Fatal(err)
		}
	}
	t := &bigTree{path: filepath.Join(scratch, db+".db"), root: map[string]agent.SessionID{}}
	t.seed(b)
	t.grow(b, total)
	bigTrees[db] = t
	return t
}

// scratch outlives one benchmark: each file is made once for all that read it. TestMain
// removes it.
var scratch string

// seed makes one root with one child through storage itself, so that every column is as
// it would be.
func (t *bigTree) seed(b *testing.B) {
	st := openStore(b, t.path)
	ctx := b.Context()
	w, err := st.CreateWorkspace(ctx, "bench", "/bench")
	if err != nil {
		b.Fatal(err)
	}
	t.ws = w.ID
	sub, err := st.CreateSession(ctx, agent.NewSession{
		Workspace: w.ID, Provider: "codex", Title: "Review the whole of the repository", Cwd: "/home/someone/src/project", Model: "gpt-5-codex",
		Capabilities: agent.Capabilities{Cancel: true, ChildCancel: true, Guide: true},
		Message:      &agent.NewMessage{ClientMessageID: "c1", Text: "Review everything", Client: "web"},
	})
	if err != nil {
		b.Fatal(err)
	}
	_, err = st.Apply(ctx, agent.ChildStarted{
		Session: "ses_child", Turn: "trn_child", Parent: sub.Session.ID, ParentTurn: sub.Turn.ID, Call: "call_1",
		Title: "Reviewer of the storage layer", Prompt: strings.Repeat("Look at one package. ", 5), AgentType: "reviewer",
		Model: "gpt-5-codex", Handles: agent.Handles{ThreadID: "0199-aaaa-bbbb-cccc"},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
}

// grow copies the seed's rows in bulk.
func (t *bigTree) grow(b *testing.B, total int) {
	db, err := sql.Open("sqlite", "file:"+t.path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-262144)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // read again below
	db.SetMaxOpenConns(1)
	g := &grower{b: b, db: db}
	g.scan("SELECT pk, latest_turn FROM sessions WHERE kind = 'root'", &g.root, &g.rootTurn)
	g.scan("SELECT pk, latest_turn FROM sessions WHERE kind = 'child'", &g.child, &g.childTurn)
	g.next = 1000
	g.exec("BEGIN")
	t.root["10k"] = g.add(10_000)
	t.root["1k"] = g.add(1_000)
	for left := total - 11_000; left > 0; left -= 51 {
		g.add(50)
	}
	g.exec("COMMIT")
	g.exec("ANALYZE")
	g.exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

type grower struct {
	b                                *testing.B
	db                               *sql.DB
	root, rootTurn, child, childTurn int64
	next                             int64
}

func (g *grower) exec(q string, args ...any) {
	if _, err := g.db.Exec(q, args...); err != nil {
		g.b.Fatalf("%s: %v", q, err)
	}
}

func (g *grower) scan(q string, into ...any) {
	if err := g.db.QueryRow(q).Scan(into...); err != nil {
		g.b.Fatalf("%s: %v", q, err)
	}
}

// copyRows copies one row of a table n times with some columns replaced; ?1 is the row's
// key, and x.v counts from ?2.
func (g *grower) copyRows(table string, from, first, n int64, replace map[string]string) {
	var names, values []string
	for _, name := range g.columns(table) {
		v := "r." + name
		if r, ok := replace[name]; ok {
			v = r
		}
		names, values = append(names, name), append(values, v)
	}
	g.exec(fmt.Sprintf("WITH RECURSIVE x(v) AS (SELECT %d UNION ALL SELECT v + 1 FROM x WHERE v < %d) INSERT INTO %s (%s) SELECT %s FROM x, %s r WHERE r.pk = %d",
		first, first+n-1, table, strings.Join(names, ","), strings.Join(values, ","), table, from))
}

func (g *grower) columns(table string) (names []string) {
	rows, err := g.db.Query("SELECT name FROM pragma_table_info('" + table + "')")
	if err != nil {
		g.b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			g.b.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		g.b.Fatal(err)
	}
	return names
}

// add makes one root with n children: ten live, the others settled.
func (g *grower) add(n int64) agent.SessionID {
	root, kids := g.next, g.next+1
	g.next += n + 1
	id := fmt.Sprintf("ses_b%d", root)
	turn := fmt.Sprintf("trn_b%d", root)
	g.copyRows("sessions", g.root, root, 1, map[string]string{
		"pk": "x.v", "root": "x.v", "id": "'ses_b' || x.v", "latest_turn": "x.v", "updated_at": "r.updated_at + x.v",
	})
	g.copyRows("turns", g.rootTurn, root, 1, map[string]string{
		"pk": "x.v", "session": "x.v", "root_turn": "x.v", "id": "'trn_b' || x.v", "session_id": "'ses_b' || x.v", "root_turn_id": "'trn_b' || x.v",
	})
	quote := func(s string) string { return "'" + s + "'" }
	g.copyRows("sessions", g.child, kids, n, map[string]string{
		"pk": "x.v", "root": strconv.FormatInt(root, 10), "parent": strconv.FormatInt(root, 10), "id": "'ses_b' || x.v", "latest_turn": "x.v",
		"parent_id": quote(id), "parent_turn_id": quote(turn), "root_id": quote(id), "root_turn_id": quote(turn),
	})
	live := fmt.Sprintf("x.v < %d", kids+10)
	g.copyRows("turns", g.childTurn, kids, n, map[string]string{
		"pk": "x.v", "session": "x.v", "root_turn": strconv.FormatInt(root, 10), "id": "'trn_b' || x.v", "session_id": "'ses_b' || x.v", "root_turn_id": quote(turn),
		"phase": "iif(" + live + ", 'running', 'settled')", "outcome": "iif(" + live + ", '', 'completed')", "settled_at": "iif(" + live + ", 0, r.created_at)",
	})
	return agent.SessionID(id)
}

func BenchmarkDetail(b *testing.B) {
	for _, kind := range []string{"raw", "impl", "http", "http304", "rawrow"} {
		for _, size := range []string{"1k", "10k"} {
			for _, db := range []string{"32k", "320k"} {
				b.Run(fmt.Sprintf("%s/%s/db=%s", kind, size, db), func(b *testing.B) { benchDetail(b, kind, size, db) })
			}
		}
	}
}

func benchDetail(b *testing.B, kind, size, db string) {
	t := tree(b, db)
	id := t.root[size]
	switch kind {
	case "raw":
		benchRaw(b, t.path, id, size)
	case "rawrow":
		benchRawRow(b, t.path)
	case "impl":
		st := openStore(b, t.path)
		defer st.Close() //nolint:errcheck // nothing was written
		for b.Loop() {
			d, err := st.Detail(b.Context(), t.ws, id)
			if err != nil || len(d.ChildSessions) != count(size) {
				b.Fatalf("%d sessions, %v", len(d.ChildSessions), err)
			}
		}
	default:
		benchHTTP(b, t, id, kind == "http304")
	}
}

func count(size string) int {
	if size == "10k" {
		return 10_000
	}
	return 1_000
}

func benchHTTP(b *testing.B, t *bigTree, id agent.SessionID, again bool) {
	st := openStore(b, t.path)
	defer st.Close() //nolint:errcheck // nothing was written
	a := New(http.NewServeMux(), Deps{Reader: st, Hub: hub.New(st, hub.Options{}), Token: secret, Logger: slog.New(slog.DiscardHandler)})
	s := httptest.NewServer(a.Handler())
	defer s.Close()
	ask := func(tag string) (int, string, int64) {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+"/v1/workspaces/"+string(t.ws)+"/agent-sessions/"+string(id), nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Accept-Encoding", "identity")
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		res, err := s.Client().Do(r)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode, res.Header.Get("ETag"), n
	}
	_, tag, size := ask("")
	want := http.StatusOK
	if again {
		want = http.StatusNotModified
	}
	for b.Loop() {
		sent := ""
		if again {
			sent = tag
		}
		status, newTag, _ := ask(sent)
		if status == http.StatusOK && again { // the half minute of a running tree is over
			tag = newTag
		} else if status != want {
			b.Fatalf("answered %d", status)
		}
	}
	if !again {
		b.ReportMetric(float64(size)/1e6, "MB")
	}
}
