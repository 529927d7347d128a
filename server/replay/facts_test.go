package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// facts is what a plain reading of each recording's lines gives, made without the
// adapter.
type facts struct {
	Roots []struct {
		Thread string     `json:"thread"`
		Turns  []factTurn `json:"turns"`
	} `json:"roots"`
	Children []struct {
		Thread   string     `json:"thread"`
		Edge     string     `json:"edge"`
		Parent   string     `json:"parentThreadId"`
		ToolCall string     `json:"parentToolCallId"`
		Turns    []factTurn `json:"turns"`
	} `json:"children"`
	ServerRequests []struct {
		Thread string `json:"threadId"`
		Turn   string `json:"turnId"`
	} `json:"serverRequests"`
}

type factTurn struct {
	Turn   string `json:"turn"`
	Status string `json:"status"`
}

// otherwise are recordings whose end differs from the plain facts, and the ruling why.
var otherwise = map[string]string{
	"h-v2-late-edge":             "an edge that comes after the root was stopped creates nothing (decisions.md 12)",
	"h-v1-orphan-interrupted":    "a child without an edge below a stopped root creates nothing (decisions.md 12)",
	"j3-v1-interrupt-then-start": "a message sent while the stop is open is refused, so the turn that Codex began with it is nobody's (decisions.md 3)",
	"s-v1-direct-child-input":    "a child's turn that a client started by itself has no open root turn to run under (decisions.md 2)",
	"w-v1-delete":                "the tree was deleted (decisions.md 26)",
	"w-v2-delete":                "the tree was deleted (decisions.md 26)",
}

// TestEndsAgreeWithTheFacts holds every recording against its facts: each child is there
// with its edge, each of its turns has the outcome that the wire told, and each question
// belongs to the turn that asked.
func TestEndsAgreeWithTheFacts(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "facts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]facts
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range codexSuite.recordings(t) {
		f, known := all[name]
		if _, differs := otherwise[name]; differs {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !known {
				t.Fatal("no facts are kept of it")
			}
			f.check(t, codexSuite.replay(t, name))
		})
	}
}

func (f facts) check(t *testing.T, end *End) {
	byThread := map[string]agent.Session{}
	for _, s := range end.Sessions {
		byThread[s.Handles.ThreadID] = s
	}
	turns := map[string]agent.Turn{} // by native id
	for _, u := range end.Turns {
		turns[u.NativeID] = u
		if u.ProviderTurn != nil {
			turns[u.ProviderTurn.NativeID] = u
		}
	}
	if want := len(f.Roots) + len(f.Children); len(end.Sessions) != want {
		t.Errorf("%d sessions, want %d", len(end.Sessions), want)
	}
	for _, c := range f.Children {
		s, parent := byThread[c.Thread], byThread[c.Parent]
		if s.ParentSessionID != parent.ID || parent.ID == "" || string(s.ParentToolCallID) != c.ToolCall || s.Kind != agent.KindChild {
			t.Errorf("child %s has the edge %+v", c.Thread, s.Relation)
		}
		for _, u := range c.Turns {
			checkOutcome(t, u, turns[u.Turn], turns[u.Turn].Outcome)
		}
	}
	for _, root := range f.Roots {
		for _, u := range root.Turns {
			// Of several provider turns under one root turn the last one is shown.
			if got, ok := turns[u.Turn]; ok {
				checkOutcome(t, u, got, got.ProviderTurn.Outcome)
			}
		}
	}
	if len(end.Interactions) != len(f.ServerRequests) {
		t.Errorf("%d questions, want %d", len(end.Interactions), len(f.ServerRequests))
		return
	}
	for n, q := range f.ServerRequests {
		i := end.Interactions[n]
		if i.SessionID != byThread[q.Thread].ID || i.ProviderTurnID != q.Turn || i.TurnID != turns[q.Turn].ID || i.Owner != agent.OwnerExact {
			t.Errorf("question %d belongs to %s %s", n, i.SessionID, i.TurnID)
		}
	}
}

func checkOutcome(t *testing.T, want factTurn, turn agent.Turn, got agent.Outcome) {
	ok := false
	switch want.Status {
	case "completed", "failed":
		ok = string(got) == want.Status
	case "interrupted": // canceled, where a person asked for it
		ok = got == agent.OutcomeInterrupted || got == agent.OutcomeCanceled
	case "inProgress": // it still ran when the process or the recording ended
		ok = got == agent.OutcomeInterrupted
	}
	if !ok || turn.Phase != agent.PhaseSettled {
		t.Errorf("turn %s was %s and is %s %s", want.Turn, want.Status, turn.Phase, got)
	}
}
