package store

import (
	"context"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// refusal is a statement by hand and the name of the constraint that must stop it.
type refusal struct{ name, want, sql string }

// Storage itself refuses what the rules never do. Each row is a statement by hand against a
// sound database, and the name of the constraint that must stop it.
func TestStorageRefuses(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	nested := tr.below(kid, "nested")
	gone := tr.child("gone")
	_, err := w.Delete(background(t), w.ws, gone.session)
	w.must(err)
	done := w.begin()
	done.provider("p")
	doneKid := done.child("kid")
	done.ends(doneKid, agent.OutcomeCompleted)
	done.providerEnds("p", agent.OutcomeCompleted)
	tr.verdict(agent.InteractionAsked{Interaction: question(kid, "q")}, agent.VerdictApplied, "")

	session := `INSERT INTO sessions (id, workspace, workspace_id, kind, root, parent, parent_id, parent_turn_id, root_id, root_turn_id, provider, created_at, updated_at) `
	turn := `INSERT INTO turns (pk, id, session, session_id, root_turn, root_turn_id, is_root, cause, phase, outcome, created_at, settled_at) `
	of := func(id agent.SessionID) string { return `(SELECT pk FROM sessions WHERE id = '` + string(id) + `')` }
	turnOf := func(id agent.TurnID) string { return `(SELECT pk FROM turns WHERE id = '` + string(id) + `')` }
	newTurn := func(session agent.SessionID, root agent.TurnID, phase, outcome, settled string) string {
		return turn + `SELECT 900, 'new', pk, id, ` + turnOf(root) + `, '` + string(root) + `', 0, 'guidance', '` + phase + `', '` + outcome + `', 1, ` + settled +
			` FROM sessions WHERE id = '` + string(session) + `'`
	}
	for _, c := range []refusal{
		{"settled without outcome", "turns_settled_has_outcome", `UPDATE turns SET phase = 'settled', settled_at = 1 WHERE id = '` + string(kid.turn) + `'`},
		{"outcome without settled", "turns_settled_has_outcome", `UPDATE turns SET outcome = 'completed' WHERE id = '` + string(kid.turn) + `'`},
		{"settled without time", "turns_settled_has_time", `UPDATE turns SET phase = 'settled', outcome = 'completed' WHERE id = '` + string(kid.turn) + `'`},
		{"unknown phase", "turns_phase", `UPDATE turns SET phase = 'paused' WHERE id = '` + string(kid.turn) + `'`},
		{"unknown outcome", "turns_outcome", `UPDATE turns SET phase = 'settled', settled_at = 1, outcome = 'fine' WHERE id = '` + string(kid.turn) + `'`},
		{"error on a canceled turn", "turns_error_of_failure", `UPDATE turns SET phase = 'settled', settled_at = 1, outcome = 'canceled', error_code = 'timeout' WHERE id = '` + string(kid.turn) + `'`},
		{"a settled turn runs again", "turns_settled_is_final", `UPDATE turns SET phase = 'running', outcome = '', settled_at = 0 WHERE id = '` + string(done.turn) + `'`},
		{"another outcome of a settled turn", "turns_settled_is_final", `UPDATE turns SET outcome = 'failed' WHERE id = '` + string(doneKid.turn) + `'`},
		{"un-settled below a settled root", "turns_settled_is_final", `UPDATE turns SET phase = 'waiting', outcome = '', settled_at = 0 WHERE id = '` + string(doneKid.turn) + `'`},
		{"a root settles over a live child", "turns_root_settles_last", `UPDATE turns SET phase = 'settled', outcome = 'completed', settled_at = 1 WHERE id = '` + string(tr.turn) + `'`},
		{"a live turn below a settled root", "turns_nothing_below_settled", newTurn(doneKid.session, done.turn, "running", "", "0")},
		{"a settled turn below a settled root", "turns_nothing_below_settled", newTurn(doneKid.session, done.turn, "settled", "completed", "1")},
		{"two live turns of a child", "UNIQUE constraint failed: turns.root_turn, turns.session", newTurn(kid.session, tr.turn, "running", "", "0")},
		{"two live turns of a root", "UNIQUE constraint failed: turns.session", turn + `SELECT 900, 'new', pk, id, 900, 'new', 1, 'user', 'submitted', '', 1, 0 FROM sessions WHERE id = '` + string(tr.root) + `'`},
		{"a root turn of a child", "turns_root_of_root_session", turn + `SELECT 900, 'new', pk, id, 900, 'new', 1, 'user', 'submitted', '', 1, 0 FROM sessions WHERE id = '` + string(doneKid.session) + `'`},
		{"below a turn of another tree", "turns_root_turn_of_its_root", newTurn(doneKid.session, tr.turn, "running", "", "0")},
		{"below a child's turn", "turns_root_turn_is_root", newTurn(nested.session, kid.turn, "running", "", "0")},
		{"a turn without its root turn", "turns_root_turn_exists", turn + `SELECT 900, 'new', pk, id, 12345, 'nowhere', 0, 'guidance', 'running', '', 1, 0 FROM sessions WHERE id = '` + string(kid.session) + `'`},
		{"a turn that is its own root and is not", "turns_root_runs_under_itself", turn + `SELECT 900, 'new', pk, id, 900, 'other', 1, 'user', 'submitted', '', 1, 0 FROM sessions WHERE id = '` + string(done.root) + `'`},
		{"a turn of a deleted session", "turns_of_deleted_session", newTurn(gone.session, tr.turn, "running", "", "0")},
		{"a turn changes hands", "turns_owner_is_immutable", `UPDATE turns SET session = ` + of(nested.session) + ` WHERE id = '` + string(kid.turn) + `'`},
		{"a provider turn counted on a child", "turns_child_has_no_provider_turn", `UPDATE turns SET provider_live = 1 WHERE id = '` + string(kid.turn) + `'`},
		{"more reserved than live", "turns_counters", `UPDATE turns SET provider_reserved = 2 WHERE id = '` + string(tr.turn) + `'`},
		{"a child without parent", "sessions_child_has_whole_edge", session + `SELECT 'new', workspace, workspace_id, 'child', pk, NULL, '', '', '', '', 'demo', 1, 1 FROM sessions WHERE id = '` + string(tr.root) + `'`},
		{"a child without the turn that made it", "sessions_child_has_whole_edge", session + `SELECT 'new', workspace, workspace_id, 'child', pk, pk, id, '', id, 'x', 'demo', 1, 1 FROM sessions WHERE id = '` + string(tr.root) + `'`},
		{"a root with a parent", "sessions_root_has_no_parent", `INSERT INTO sessions (pk, id, workspace, workspace_id, kind, root, parent, provider, created_at, updated_at) SELECT 900, 'new', workspace, workspace_id, 'root', 900, pk, 'demo', 1, 1 FROM sessions WHERE id = '` + string(tr.root) + `'`},
		{"a changed parent", "sessions_edge_is_immutable", `UPDATE sessions SET parent = ` + of(tr.root) + ` WHERE id = '` + string(nested.session) + `'`},
		{"a changed creator turn", "sessions_edge_is_immutable", `UPDATE sessions SET parent_turn_id = 'x' WHERE id = '` + string(nested.session) + `'`},
		{"a child of a deleted session", "sessions_no_child_of_deleted", session + `SELECT 'new', workspace, workspace_id, 'child', root, pk, id, 't', root_id, 'x', 'demo', 1, 1 FROM sessions WHERE id = '` + string(gone.session) + `'`},
		{"a deleted session comes back", "sessions_tombstone_is_final", `UPDATE sessions SET deleted_at = 0 WHERE id = '` + string(gone.session) + `'`},
		{"a session row is removed", "sessions_are_never_removed", `DELETE FROM sessions WHERE id = '` + string(kid.session) + `'`},
		{"negative questions", "sessions_counters", `UPDATE sessions SET pending = -1 WHERE id = '` + string(kid.session) + `'`},
		{"its own ancestor", "session_closure_is_proper", `INSERT INTO session_closure VALUES (1, 1, 0)`},
		{"a changed ancestor", "session_closure_is_immutable", `UPDATE session_closure SET depth = 7`},
		{"a message of a deleted session", "messages_of_deleted_session", `INSERT INTO messages (id, session, session_id, turn, turn_id, seq, role, kind, status, created_at, updated_at) VALUES ('m', ` + of(gone.session) + `, 'x', 1, 'x', 1, 'user', 'text', 'completed', 1, 1)`},
		{"an operation of a deleted session", "operations_of_deleted_session", `INSERT INTO operations (id, workspace, root, session, session_id, turn, turn_id, root_turn_id, kind, status, due, created_at, updated_at) SELECT 'o', workspace, root, pk, id, 1, 'x', 'x', 'cancel', 'pending', 1, 1, 1 FROM sessions WHERE id = '` + string(gone.session) + `'`},
		{"a question of a settled turn", "interactions_of_settled_turn", `INSERT INTO interactions (session, session_id, root, turn, turn_id, request_id, kind, title, detail, options, status, owner, created_at, updated_at) SELECT session, session_id, session, pk, id, 'r', 'approval', '', '{}', '[]', 'pending', 'exact', 1, 1 FROM turns WHERE id = '` + string(done.turn) + `'`},
		{"an answer without words", "interactions_answer_is_kept", `UPDATE interactions SET status = 'answered'`},
		{"a provider turn of a settled root", "provider_turns_of_open_root", `INSERT INTO provider_turns (turn, turn_id, session, id, phase, created_at) SELECT pk, id, session, 'late', 'running', 1 FROM turns WHERE id = '` + string(done.turn) + `'`},
		{"a provider turn of a child", "provider_turns_of_root_turn", `INSERT INTO provider_turns (turn, turn_id, session, id, phase, created_at) SELECT pk, id, session, 'x', 'running', 1 FROM turns WHERE id = '` + string(kid.turn) + `'`},
		{"ended without outcome", "provider_turns_ended_has_outcome", `UPDATE provider_turns SET phase = 'ended' WHERE turn = ` + turnOf(tr.turn)},
		{"a second row of meta", "meta_has_one_row", `INSERT INTO meta (pk, epoch) VALUES (2, 'x')`},
		{"a session of no workspace", "FOREIGN KEY constraint failed", `INSERT INTO sessions (pk, id, workspace, workspace_id, kind, root, provider, created_at, updated_at) VALUES (900, 'new', 77, 'x', 'root', 900, 'demo', 1, 1)`},
		{"text where a number belongs", "cannot store TEXT value in INTEGER column", `UPDATE turns SET prompts = 'many'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.db.Checkpoint.ExecContext(context.Background(), c.sql)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
		})
	}
	t.Run("closed to new turns", func(t *testing.T) {
		idle := tr.child("idle")
		tr.ends(idle, agent.OutcomeCompleted)
		_, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
		w.must(err)
		_, err = w.db.Checkpoint.ExecContext(context.Background(), newTurn(idle.session, tr.turn, "running", "", "0"))
		if err == nil || !strings.Contains(err.Error(), "turns_nothing_below_closed") {
			t.Fatalf("got %v", err)
		}
	})
}

// A guard that disagrees with the rule is an error of the whole unit of work: here the rule
// is made to see no child, by hand.
func TestGateThatStorageContradictsIsAnError(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	_, err := w.write(background(t), func(x *tx) error {
		root, err := x.session(tr.root)
		if err != nil {
			return err
		}
		r, err := x.turn(root, tr.turn)
		if err != nil {
			return err
		}
		settleRow(r, agent.OutcomeCompleted, nil, x.now)
		return x.writeRootTurn(r)
	})
	if err == nil || !strings.Contains(err.Error(), errGateDisagrees.Error()) {
		t.Fatalf("got %v", err)
	}
	tr.is(agent.PhaseRunning, "")
	tr.childIs(kid, agent.PhaseSubmitted, "")
	tr.ends(kid, agent.OutcomeCompleted) // and nothing is left of it in memory
	tr.is(agent.PhaseRunning, "")
}
