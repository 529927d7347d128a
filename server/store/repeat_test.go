package store

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A repeated request has the answer of the first one, whatever has happened since.
func TestSameKeyGivesTheFirstTurnAndMessage(t *testing.T) {
	for _, message := range []*agent.NewMessage{{Text: "one"}, {Text: "one", ClientMessageID: "c1"}, nil} {
		w := open(t)
		n := agent.NewSession{Workspace: w.ws, Provider: "demo", Cwd: "/w", Capabilities: allCaps, Key: "k", Message: message}
		_, found, err := w.RepeatSession(background(t), n)
		w.must(err)
		if found {
			t.Fatal("found before it was made")
		}
		first, err := w.CreateSession(background(t), n)
		w.must(err)
		tr := &tree{world: w, root: first.Session.ID}
		if message != nil {
			tr.turn = first.Turn.ID
			tr.provider("p")
			tr.providerEnds("p", agent.OutcomeCompleted)
		}
		_, err = w.Submit(background(t), agent.NewMessage{Session: tr.root, ClientMessageID: "c2", Text: "two"})
		w.must(err)
		w.reopen()

		n.Capabilities = agent.Capabilities{} // the provider's card says something else today
		again, err := w.CreateSession(background(t), n)
		w.must(err)
		looked, found, err := w.RepeatSession(background(t), n)
		w.must(err)
		for how, got := range map[string]agent.Submitted{"created again": again, "looked up": looked} {
			switch {
			case !got.Repeated || got.Session.ID != first.Session.ID || !found:
				t.Errorf("%s: %+v", how, got)
			case message == nil:
				if got.Turn != nil || got.Message != nil {
					t.Errorf("%s without a message: turn %v, message %v", how, got.Turn, got.Message)
				}
			case got.Turn == nil || got.Turn.ID != first.Turn.ID || got.Message == nil || got.Message.ID != first.Message.ID || got.Delivery != first.Delivery:
				t.Errorf("%s: turn %v, message %v, want %s and %s", how, got.Turn, got.Message, first.Turn.ID, first.Message.ID)
			}
		}
		n.Title = "another"
		_, _, err = w.RepeatSession(background(t), n)
		w.refuses(err, agent.CodeConflict)
		_, err = w.CreateSession(background(t), n)
		w.refuses(err, agent.CodeConflict)
		n.Title = ""
		w.deletes(tr.root)
		_, _, err = w.RepeatSession(background(t), n)
		w.refuses(err, agent.CodeNotFound)
	}
}
