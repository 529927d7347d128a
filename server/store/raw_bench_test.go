package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The yardsticks: the plain way to do the same thing with the same driver, on a schema with
// text keys, one transaction for each event. Nothing of the project is in them.

const rawSchema = `
CREATE TABLE sessions (id TEXT PRIMARY KEY, root_id TEXT NOT NULL, title TEXT NOT NULL, updated_at INTEGER NOT NULL, active INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_root ON sessions (root_id);
CREATE TABLE turns (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, root_turn_id TEXT NOT NULL, is_root INTEGER NOT NULL,
	phase TEXT NOT NULL, outcome TEXT, updated_at INTEGER NOT NULL);
CREATE INDEX turns_live ON turns (root_turn_id) WHERE phase <> 'settled' AND is_root = 0;
CREATE INDEX turns_session ON turns (session_id);
CREATE TABLE outbox (seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE targets (operation INTEGER NOT NULL, turn_id TEXT NOT NULL, session_id TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (operation, turn_id)) WITHOUT ROWID;
CREATE TABLE deltas (message_id TEXT NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (message_id, idx)) WITHOUT ROWID;`

var payload400 = strings.Repeat("x", 400)

type rawDB struct {
	testing.TB
	conn *sql.Conn
}

func openRaw(tb testing.TB, synchronous string) *rawDB {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "raw.db")
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")&_pragma=busy_timeout(5000)")
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := pool.Conn(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = conn.Close(), pool.Close() })
	r := &rawDB{TB: tb, conn: conn}
	r.exec(rawSchema)
	return r
}

func (r *rawDB) exec(q string, args ...any) {
	r.Helper()
	if _, err := r.conn.ExecContext(context.Background(), q, args...); err != nil {
		r.Fatal(err)
	}
}

func (r *rawDB) prepare(q string) *sql.Stmt {
	r.Helper()
	st, err := r.conn.PrepareContext(context.Background(), q)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = st.Close() })
	return st
}

// fill makes the reference fixture: roots with children, some of them active.
func (r *rawDB) fill(roots, children, active int) {
	r.Helper()
	r.exec("BEGIN")
	r.exec(`INSERT INTO sessions SELECT printf('ses_%04d', r.value), printf('ses_%04d', r.value), 'root', 0, ? FROM generate_roots r`, active)
	r.exec(fmt.Sprintf(`INSERT INTO sessions SELECT printf('ses_%%04d_%%05d', r.value, c.value), printf('ses_%%04d', r.value), 'child', 0, 0
		FROM generate_roots r, (WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < %d) SELECT value FROM n) c`, children-1))
	r.exec(`INSERT INTO turns SELECT 'trn' || substr(id, 4), id, 'trn' || substr(root_id, 4), id = root_id,
		CASE WHEN id = root_id THEN 'waiting' WHEN CAST(substr(id, 10) AS INTEGER) < ? THEN 'running' ELSE 'settled' END, NULL, 0 FROM sessions`, active)
	r.exec("COMMIT")
	r.exec("ANALYZE")
}

func (r *rawDB) roots(n int) {
	r.exec(fmt.Sprintf(`CREATE TEMP TABLE generate_roots AS
		WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < %d) SELECT value FROM n`, n-1))
}

// rawGate is one terminal of a child, in six statements.
type rawGate struct {
	*rawDB
	begin, commit, child, count, root, event, session *sql.Stmt
}

func newRawGate(r *rawDB) *rawGate {
	return &rawGate{
		rawDB: r, begin: r.prepare("BEGIN IMMEDIATE"), commit: r.prepare("COMMIT"),
		child:   r.prepare("UPDATE turns SET phase = ?, outcome = 'completed', updated_at = ? WHERE id = ?"),
		count:   r.prepare("SELECT count(*) FROM turns WHERE root_turn_id = ? AND phase <> 'settled' AND is_root = 0"),
		root:    r.prepare("UPDATE turns SET phase = 'waiting', updated_at = ? WHERE id = ?"),
		event:   r.prepare("INSERT INTO outbox (session_id, kind, data) VALUES (?, 'turn.updated', ?)"),
		session: r.prepare("UPDATE sessions SET active = ?, updated_at = ? WHERE id = ?"),
	}
}

func (g *rawGate) event1(i int) {
	ctx := context.Background()
	run := func(st *sql.Stmt, args ...any) {
		if _, err := st.ExecContext(ctx, args...); err != nil {
			g.Fatal(err)
		}
	}
	root, child := i%200, (i/200)%10
	session := fmt.Sprintf("ses_%04d", root)
	turn, rootTurn := fmt.Sprintf("trn_%04d_%05d", root, child), fmt.Sprintf("trn_%04d", root)
	phase := "settled"
	if (i/2000)%2 == 1 {
		phase = "running"
	}
	run(g.begin)
	run(g.child, phase, i, turn)
	var n int
	if err := g.count.QueryRowContext(ctx, rootTurn).Scan(&n); err != nil {
		g.Fatal(err)
	}
	run(g.root, i, rootTurn)
	run(g.event, session, payload400)
	run(g.event, session, payload400)
	run(g.session, n, i, session)
	run(g.commit)
}
