package store

import (
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// What became of a stop can be read by who was not there: of the whole tree at its root, and
// at each child what is about it, stops of what is above it among them.
func TestOperationsOfATree(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	a, b := tr.child("a"), tr.child("b")
	stranger := w.begin()
	stranger.provider("q")
	_, _, err := w.PrepareCancel(background(t), stranger.root, stranger.turn, "test")
	w.must(err)

	tr.verdict(agent.InteractionAsked{Interaction: question(b, "q")}, agent.VerdictApplied, "")
	_, answer, err := w.PrepareAnswer(background(t), yes(b.session, b.turn, "q"))
	w.must(err)
	ofA, _, err := w.PrepareCancel(background(t), a.session, a.turn, "test")
	w.must(err)
	w.must(w.Hear(background(t), ofA.ID, []agent.Evidence{{SessionID: a.session, TurnID: a.turn, State: agent.TargetAcknowledged}}))
	_, err = w.CompleteCancel(background(t), ofA.ID, nil)
	w.must(err)
	all, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
	w.must(err)

	list := func(of agent.SessionID, f agent.OperationFilter) agent.OperationPage {
		t.Helper()
		p, err := w.Operations(background(t), w.ws, of, f)
		w.must(err)
		return p
	}
	ids := func(p agent.OperationPage) (out []agent.OperationID) {
		for _, o := range p.Items {
			out = append(out, o.ID)
		}
		return out
	}
	for _, c := range []struct {
		of   agent.SessionID
		kind agent.OperationKind
		want []agent.OperationID
	}{
		{tr.root, "", []agent.OperationID{all.ID, ofA.ID, answer.ID}},
		{tr.root, agent.OperationCancel, []agent.OperationID{all.ID, ofA.ID}},
		{a.session, "", []agent.OperationID{ofA.ID}}, // it had ended when all was stopped
		{b.session, "", []agent.OperationID{all.ID, answer.ID}},
		{b.session, agent.OperationGuide, nil},
	} {
		p := list(c.of, agent.OperationFilter{Kind: c.kind, Limit: 10})
		if got := ids(p); !slices.Equal(got, c.want) || p.Items == nil || p.NextCursor != "" {
			t.Errorf("of %s, kind %q: %v, want %v", c.of, c.kind, got, c.want)
		}
	}
	head, _, _, err := w.Head(background(t), w.ws)
	w.must(err)
	whole := list(tr.root, agent.OperationFilter{Limit: 10})
	if whole.Seq != head {
		t.Errorf("true at %d, the log is at %d", whole.Seq, head)
	}
	for _, o := range whole.Items {
		one, err := w.Operation(background(t), w.ws, o.ID)
		w.must(err)
		if text(one) != text(o) {
			t.Errorf("in the list %s\nalone       %s", text(o), text(one))
		}
	}
	if target := whole.Items[1].Targets; len(target) != 1 || target[0].State != agent.TargetCanceled || target[0].Evidence == "" {
		t.Errorf("evidence of the child's stop: %+v", target)
	}

	first := list(tr.root, agent.OperationFilter{Limit: 2})
	rest := list(tr.root, agent.OperationFilter{Limit: 2, Cursor: first.NextCursor})
	if got := append(ids(first), ids(rest)...); first.NextCursor == "" || rest.NextCursor != "" || !slices.Equal(got, ids(whole)) {
		t.Errorf("in pages: %v, want %v", got, ids(whole))
	}
	_, err = w.Operations(background(t), w.ws, tr.root, agent.OperationFilter{Cursor: "x", Limit: 2})
	w.refuses(err, agent.CodeInvalid)
	_, err = w.Operations(background(t), "nowhere", tr.root, agent.OperationFilter{Limit: 2})
	w.refuses(err, agent.CodeNotFound)
	_, err = w.Operations(background(t), w.ws, "nobody", agent.OperationFilter{Limit: 2})
	w.refuses(err, agent.CodeNotFound)
}
