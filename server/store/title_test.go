package store

import (
	"errors"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func (w *world) create(title string) agent.SessionID {
	w.Helper()
	out, err := w.CreateSession(background(w), agent.NewSession{Workspace: w.ws, Provider: "demo", Cwd: "/w", Title: title, Capabilities: allCaps})
	w.must(err)
	return out.Session.ID
}

func (w *world) says(root agent.SessionID, text string) agent.Submitted {
	w.Helper()
	out, err := w.Submit(background(w), agent.NewMessage{Session: root, ClientMessageID: text, Text: text})
	w.must(err)
	return out
}

// A first message names a conversation that has no name, and changes nothing else that a
// person chose.
func TestFirstMessageNamesAndKeepsThePin(t *testing.T) {
	w := open(t)
	yes, mine := true, "mine"
	plain, pinned, titled := w.create(""), w.create(""), w.create(mine)
	_, err := w.UpdateSession(background(t), w.ws, pinned, agent.SessionPatch{Pinned: &yes})
	w.must(err)
	for id, want := range map[agent.SessionID]agent.Session{
		plain: {Title: "hello"}, pinned: {Title: "hello", Pinned: true}, titled: {Title: mine},
	} {
		w.says(id, "hello\nworld")
		w.verdict(agent.SessionDescribed{Session: id, Title: "better"}, map[bool]agent.Verdict{true: agent.VerdictUnchanged, false: agent.VerdictApplied}[id == titled], "")
		if want.Title == "hello" {
			want.Title = "better" // the provider names it better than the first line does
		}
		got, err := w.Session(background(t), w.ws, id)
		w.must(err)
		if got.Title != want.Title || got.Pinned != want.Pinned {
			t.Errorf("title %q, pinned %v; want %q, %v", got.Title, got.Pinned, want.Title, want.Pinned)
		}
	}
}

// The list finds a conversation by the title it shows and by its first message, and no
// longer by a title that it had.
func TestSearchFindsTheTitleShownAndTheFirstMessage(t *testing.T) {
	w := open(t)
	id := w.create("Alpha ÄRGER")
	other := w.create("")
	finds := func(step string, want bool, words ...string) {
		t.Helper()
		for _, q := range words {
			p, err := w.List(background(t), agent.SessionFilter{Workspace: w.ws, Query: q, Limit: 10})
			w.must(err)
			found := false
			for _, s := range p.Items {
				found = found || s.ID == id
			}
			if found != want {
				t.Errorf("%s: %q is found: %v, want %v", step, q, found, want)
			}
		}
	}
	finds("created", true, "alpha", "ärger", "ALPHA")
	first := w.says(id, "Beta words")
	w.says(other, "nothing of it")
	finds("said", true, "alpha", "beta")
	title := "Gamma"
	_, err := w.UpdateSession(background(t), w.ws, id, agent.SessionPatch{Title: &title})
	w.must(err)
	finds("renamed", true, "gamma", "beta words")
	finds("renamed", false, "alpha")
	tr := &tree{world: w, root: id, turn: first.Turn.ID}
	tr.provider("p")
	tr.providerEnds("p", agent.OutcomeCompleted)
	w.says(id, "Delta")
	finds("said more", true, "beta")
	finds("said more", false, "delta", "beta words\ngamma")

	tr = &tree{world: w, root: other}
	id = other
	w.verdict(agent.SessionDescribed{Session: other, Title: "Zebra migration"}, agent.VerdictApplied, "")
	finds("named by the provider", true, "zebra", "nothing of it")
}

// The permission mode and the model are chosen before the first turn, and stay after it.
func TestChoicesOfTheBeginning(t *testing.T) {
	w := open(t)
	id := w.create("a session")
	mode, model, other := "ask", "small", "auto"
	got, err := w.UpdateSession(background(t), w.ws, id, agent.SessionPatch{PermissionMode: &mode, Model: &model})
	w.must(err)
	if got.PermissionMode != mode || got.Model != model {
		t.Errorf("chose %q and %q", got.PermissionMode, got.Model)
	}
	w.says(id, "hello")
	for name, p := range map[string]agent.SessionPatch{"mode": {PermissionMode: &other}, "model": {Model: &other}} {
		if _, err := w.UpdateSession(background(t), w.ws, id, p); !errors.Is(err, &agent.Error{Code: agent.CodeConflict}) {
			t.Errorf("%s after the first turn: %v", name, err)
		}
	}
	if got, err = w.UpdateSession(background(t), w.ws, id, agent.SessionPatch{PermissionMode: &mode}); err != nil || got.PermissionMode != mode {
		t.Errorf("the same again: %q, %v", got.PermissionMode, err)
	}
}
