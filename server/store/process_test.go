package store

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func process(c child, id string, s agent.ProcessStatus) agent.ProcessSeen {
	return agent.ProcessSeen{Process: agent.Process{
		ID: agent.ProcessID(id), SessionID: c.session, TurnID: c.turn, CallID: "call", Command: "serve", Cwd: "/w", Status: s, Stoppable: true,
	}}
}

// A process is listed for its session and for the root of its tree. It holds nothing open.
func TestProcessIsListedAndHoldsNothing(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.ends(kid, agent.OutcomeCompleted)
	tr.providerEnds("p", agent.OutcomeCompleted)
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
	w.events()                                                                    // drained
	tr.verdict(process(kid, "x", agent.ProcessRunning), agent.VerdictApplied, "") // its turn has settled long ago
	tr.verdict(process(kid, "x", agent.ProcessRunning), agent.VerdictUnchanged, "")
	tr.verdict(process(kid, "never", agent.ProcessEnded), agent.VerdictUnchanged, "")
	for _, session := range []agent.SessionID{tr.root, kid.session} {
		got, err := w.Processes(background(t), w.ws, session)
		w.must(err)
		if len(got) != 1 || got[0].Status != agent.ProcessRunning || got[0].Command != "serve" || got[0].TurnID != kid.turn || !got[0].Stoppable || got[0].EndedAt != nil {
			t.Errorf("processes of %s: %+v", session, got)
		}
	}
	tr.verdict(process(kid, "x", agent.ProcessEnded), agent.VerdictApplied, "")
	tr.verdict(process(kid, "x", agent.ProcessEnded), agent.VerdictUnchanged, "")
	tr.verdict(process(kid, "x", agent.ProcessRunning), agent.VerdictUnchanged, "") // never again
	got, err := w.Process(background(t), w.ws, kid.session, "x")
	w.must(err)
	if got.Status != agent.ProcessEnded || got.EndedAt == nil {
		t.Errorf("process %+v", got)
	}
	var told []agent.EventKind
	for _, e := range w.events() {
		told = append(told, e.Kind)
	}
	if !slices.Equal(told, []agent.EventKind{agent.ProcessUpdated, agent.ProcessUpdated}) {
		t.Errorf("events %q", told)
	}
	_, err = w.Process(background(t), w.ws, kid.session, "never")
	w.refuses(err, agent.CodeNotFound)
	_, err = w.Processes(background(t), w.ws, "nobody")
	w.refuses(err, agent.CodeNotFound)
}

// Processes go with their provider, at a restart too when no turn is open; and with their
// session.
func TestProcessesGoWithTheirProviderAndTheirSession(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid, other := tr.child("kid"), tr.child("other")
	for _, c := range []child{kid, other} {
		tr.verdict(process(c, "x", agent.ProcessRunning), agent.VerdictApplied, "")
		tr.ends(c, agent.OutcomeCompleted)
	}
	tr.providerEnds("p", agent.OutcomeCompleted)
	_, err := w.Delete(background(t), w.ws, other.session)
	w.must(err)
	w.reopen()
	w.must(w.Recover(background(t)))
	got, err := w.Processes(background(t), w.ws, tr.root)
	w.must(err)
	if len(got) != 1 || got[0].SessionID != kid.session || got[0].Status != agent.ProcessEnded {
		t.Errorf("processes %+v", got)
	}
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
}

// A file of each older schema opens, keeps what it holds, and a copy of it lies beside it.
func TestFilesOfOlderSchemasOpen(t *testing.T) {
	steps, err := filepath.Glob(filepath.Join("..", "..", "db", "migrations", "*.sql"))
	if err != nil || len(steps) < 2 {
		t.Fatalf("steps %q, %v", steps, err)
	}
	slices.Sort(steps)
	for version := 1; version < len(steps); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			path := pathIn(t)
			old, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			statements := []string{}
			for _, step := range steps[:version] {
				text, err := os.ReadFile(step)
				if err != nil {
					t.Fatal(err)
				}
				statements = append(statements, string(text))
			}
			statements = append(statements,
				`INSERT INTO workspaces (id, path, name, created_at) VALUES ('ws_old', '/old', 'Old', 1)`,
				fmt.Sprintf("PRAGMA user_version = %d", version), "PRAGMA application_id = 1414679376",
			)
			for _, s := range statements {
				if _, err := old.Exec(s); err != nil {
					t.Fatalf("%v in %.200s", err, s)
				}
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			w := open(t, onDisk(path))
			got, err := w.Workspace(background(t), "ws_old")
			w.must(err)
			if got.Name != "Old" {
				t.Errorf("workspace %+v", got)
			}
			if _, err := os.Stat(fmt.Sprintf("%s.schema-%d.bak", path, version)); err != nil {
				t.Errorf("no copy: %v", err)
			}
			tr := w.begin()
			tr.provider("p")
			kid := tr.child("kid")
			tr.verdict(process(kid, "x", agent.ProcessRunning), agent.VerdictApplied, "")
		})
	}
}
