package store

import (
	"database/sql"
	"fmt"
	"testing"
)

// bulk puts rows in by SQL where thousands are needed and how they came to be does not
// matter. It goes through the writer, so that the counters in memory stay true.
func (w *world) bulk(do func(exec func(query string, args ...any))) {
	w.Helper()
	_, err := w.write(background(w), func(t *tx) error {
		var failed error
		do(func(q string, args ...any) {
			if failed == nil {
				if _, err := w.w.conn.ExecContext(bg, q, args...); err != nil {
					failed = fmt.Errorf("%s: %w", q, err)
				}
			}
		})
		w.w.forget() // rows changed behind its back
		if failed != nil {
			return failed
		}
		var err error
		if w.w.sessionKey, err = t.q.MaxSessionKey(bg); err != nil {
			return err
		}
		if w.w.turnKey, err = t.q.MaxTurnKey(bg); err != nil {
			return err
		}
		w.w.messageKey, err = t.q.MaxMessageKey(bg)
		return err
	})
	w.must(err)
}

const numbers = `(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1) SELECT i FROM n)`

// crowd gives a tree n children with a live turn each, directly below the root, and
// returns them. Their ids are those of named(root, number).
func (t *tree) crowd(n int) []child {
	t.Helper()
	t.bulk(func(exec func(string, ...any)) {
		exec(`INSERT INTO sessions (id, workspace, workspace_id, kind, root, parent, parent_id, parent_turn_id, parent_call_id, root_id,
				root_turn_id, provider, title, created_at, updated_at)
			SELECT r.id || '.' || n.i, r.workspace, r.workspace_id, 'child', r.pk, r.pk, r.id, ?3, 'call', r.id, ?3, r.provider, 'child', 1, 1
			FROM sessions r, `+numbers+` n WHERE r.id = ?2`, n, string(t.root), string(t.turn))
		exec(`INSERT INTO turns (id, session, session_id, root_turn, root_turn_id, is_root, cause, phase, created_at, started_at)
			SELECT 'trn.' || s.id, s.pk, s.id, rt.pk, rt.id, 0, 'delegation', 'running', 1, 1
			FROM sessions s, turns rt WHERE s.root = rt.session AND s.pk <> s.root AND rt.id = ?1 AND s.latest_turn = 0`, string(t.turn))
		exec(`UPDATE sessions SET latest_turn = (SELECT t.pk FROM turns t WHERE t.session = sessions.pk)
			WHERE root = (SELECT pk FROM sessions WHERE id = ?1) AND kind = 'child' AND latest_turn = 0`, string(t.root))
	})
	out := make([]child, n)
	for i := range out {
		out[i] = named(t.root, fmt.Sprint(i))
	}
	return out
}

// remembers has the writer hold a whole tree, as it does when facts have built it.
func (w *world) remembers(t *tree) {
	w.Helper()
	_, err := w.write(background(w), func(x *tx) error {
		root, err := x.session(t.root)
		if err != nil {
			return err
		}
		r, err := x.turn(root, t.turn)
		if err != nil {
			return err
		}
		_, err = x.liveTargets(root, r)
		return err
	})
	w.must(err)
}

// copies has the log copied and started over: what a fixture wrote is not what is measured.
func (w *world) copies() {
	w.Helper()
	w.writing.Lock()
	defer w.writing.Unlock()
	w.check.copying.Lock()
	defer w.check.copying.Unlock()
	w.restart()
}

// query reads one value by SQL.
func query[T any](w *world, q string, args ...any) T {
	w.Helper()
	var v T
	if err := w.db.Readers.QueryRow(q, args...).Scan(&v); err != nil && err != sql.ErrNoRows {
		w.Fatalf("%s: %v", q, err)
	}
	return v
}

// analyze loads the planner's statistics, on every connection.
func (w *world) analyze(tb testing.TB) {
	tb.Helper()
	w.bulk(func(exec func(string, ...any)) { exec("ANALYZE") })
}
