package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// statements reads queries/*.sql: name → text.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no queries", err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(data), "-- name: ")[1:] {
			head, body, _ := strings.Cut(block, "\n")
			name, _, _ := strings.Cut(head, " ")
			var lines []string
			for line := range strings.Lines(body) {
				if !strings.HasPrefix(line, "--") {
					lines = append(lines, line)
				}
			}
			text, _, _ := strings.Cut(strings.Join(lines, ""), ";")
			out[name] = regexp.MustCompile(`sqlc\.embed\((\w+)\)`).ReplaceAllString(text, "$1.*")
		}
	}
	return out
}

// What the generator gets wrong on SQLite without saying so is refused here: see
// CONTRIBUTING.
func TestQueriesUseNamedParametersAndNoSlice(t *testing.T) {
	for name, text := range statements(t) {
		if strings.Contains(text, "sqlc.slice") {
			t.Errorf("%s uses sqlc.slice, which binds wrong values: use json_each", name)
		}
		if strings.Contains(text, "?") {
			t.Errorf("%s has a bare ?: name its parameters", name)
		}
		if regexp.MustCompile(`(?i)^\s*WITH\b`).MatchString(text) {
			t.Errorf("%s begins with a CTE", name)
		}
	}
}

// Statements that read a whole table, because that is what is asked for: the few rows of
// workspaces, and the counts of sessions for metrics.
var wholeTable = []string{"Workspaces", "WorkspaceKeys", "CountSessions", "CountRootSessions"}

// Inserts into a table that others refer to show scans of those: SQLite's code for a foreign
// key that is violated for a while. It is jumped over as long as none is, and none ever is.
var parents = []string{"InsertWorkspace", "InsertSession"}

// partial indexes hold only what lives or is open: reading one through is O(live).
var partial = regexp.MustCompile(`USING (COVERING )?INDEX (turns_live_below|turns_live_root|turns_provider_left|operations_due|messages_open|interactions_open|processes_running)\b`)

// small are derived tables of a statement: a list that was given, or a subquery with an index.
var small = regexp.MustCompile(`^SCAN (json_each|meta|j|x|k|CONSTANT ROW|\d+ CONSTANT ROWS?|\(subquery-\d+\))\b`)

// No statement scans a table, and none has SQLite build an index to get through: with the
// planner's statistics loaded, and without.
func TestPlansUseIndexes(t *testing.T) {
	w := open(t)
	for range 20 {
		tr := w.begin()
		tr.provider("p")
		kid := tr.crowd(40)[0]
		tr.below(kid, "nested")
		tr.verdict(agent.InteractionAsked{Interaction: question(kid, "q")}, agent.VerdictApplied, "")
		tr.verdict(agent.MessagePut{Message: agent.Message{
			ID: agent.MessageID("m" + tr.root), SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming,
		}}, agent.VerdictApplied, "")
		_, _, err := w.PrepareCancel(background(t), kid.session, kid.turn, "test")
		w.must(err)
	}
	for _, stage := range []string{"without statistics", "with statistics"} {
		if stage == "with statistics" {
			w.analyze(t)
		}
		t.Run(stage, func(t *testing.T) {
			for name, text := range statements(t) {
				for _, line := range plan(t, w, text) {
					if slices.Contains(wholeTable, name) || slices.Contains(parents, name) {
						continue
					}
					if strings.Contains(line, "AUTOMATIC") ||
						strings.HasPrefix(line, "SCAN") && !small.MatchString(line) && !partial.MatchString(line) {
						t.Errorf("%s: %s", name, line)
					}
				}
			}
		})
	}
}

// Pages come from their index in order: nothing is sorted to be cut off afterwards.
func TestPagesAreNotSorted(t *testing.T) {
	w := open(t)
	all := statements(t)
	for _, name := range []string{"ListRoots", "TurnsOfSession", "MessagesAfter", "MessagesBefore", "EventsBetween", "OldestEvent", "NewestEvent", "TreeBelowRoot", "DueOperations", "InteractionsOfTree"} {
		for _, line := range plan(t, w, all[name]) {
			if strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

var parameter = regexp.MustCompile(`@(\w+)`)

func plan(t *testing.T, w *world, text string) []string {
	t.Helper()
	var args []any
	seen := map[string]bool{}
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			args = append(args, sql.Named(m[1], 1))
		}
	}
	rows, err := w.db.Checkpoint.QueryContext(background(t), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
