package daemon

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// plainTransactions is the yardstick of row 9, with nothing of this project in it: what an
// event costs when each is a transaction of its own over a plain schema (a child's turn, its
// root, the session, a message and two rows of an outbox), synchronous normal, and SQLite's
// own checkpoint at a thousand pages inside whichever commit meets it.
func plainTransactions(b *testing.B) func(data []byte) error {
	b.Helper()
	file, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "plain.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		b.Fatal(err)
	}
	file.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = file.Close() })
	const turns = 10_200
	for _, statement := range []string{
		"CREATE TABLE sessions (id TEXT PRIMARY KEY, state TEXT, seq INTEGER)",
		"CREATE TABLE turns (id TEXT PRIMARY KEY, session TEXT, root TEXT, phase TEXT, touched INTEGER)",
		"CREATE INDEX turns_live ON turns (root, phase)",
		"CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT, body BLOB)",
		"CREATE INDEX messages_session ON messages (session)",
		"CREATE TABLE outbox (id INTEGER PRIMARY KEY, session TEXT, data BLOB)",
		"WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 10200) INSERT INTO sessions SELECT 'session-' || i, hex(randomblob(120)), 0 FROM n",
		"INSERT INTO turns SELECT 'turn-' || substr(id, 9), id, 'turn-' || (1 + CAST(substr(id, 9) AS INTEGER) % 200), 'running', 0 FROM sessions",
	} {
		if _, err := file.ExecContext(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	var statements []*sql.Stmt
	for _, text := range []string{
		"UPDATE turns SET touched = touched + 1 WHERE id = 'turn-' || ?1 AND ?2 IS NOT NULL",
		"UPDATE turns SET touched = touched + 1 WHERE id = 'turn-' || (1 + ?1 % 200) AND ?2 IS NOT NULL",
		"UPDATE sessions SET seq = seq + 1 WHERE id = 'session-' || ?1 AND ?2 IS NOT NULL",
		"INSERT INTO messages (session, body) VALUES ('session-' || ?1, ?2)",
		"INSERT INTO outbox (session, data) VALUES ('session-' || ?1, ?2)",
		"INSERT INTO outbox (session, data) VALUES ('session-' || (1 + ?1 % 200), ?2)",
	} {
		st, err := file.PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = st.Close() })
		statements = append(statements, st)
	}
	random := rand.New(rand.NewPCG(1, 2))
	return func(data []byte) error {
		ctx := context.Background()
		tx, err := file.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing after a commit
		child := 1 + random.IntN(turns)
		for _, st := range statements {
			if _, err := tx.StmtContext(ctx, st).ExecContext(ctx, child, data); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
}
