package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func (w *world) list(f agent.SessionFilter) (ids []agent.SessionID, next string) {
	w.Helper()
	f.Workspace = w.ws
	if f.Limit == 0 {
		f.Limit = 100
	}
	page, err := w.List(background(w), f)
	w.must(err)
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids, page.NextCursor
}

// Pages of the list put together are the list: nothing twice, nothing missing, most recent
// first, roots only.
func TestListInPages(t *testing.T) {
	w := open(t)
	var want []agent.SessionID
	for i := range 11 {
		if i%3 == 0 {
			w.clock.advance(time.Second) // several have the same time
		}
		tr := w.begin()
		tr.provider("p")
		tr.child("kid")
		want = append([]agent.SessionID{tr.root}, want...)
	}
	var got []agent.SessionID
	for next, pages := "", 0; ; pages++ {
		ids, cursor := w.list(agent.SessionFilter{Cursor: next, Limit: 3})
		got = append(got, ids...)
		if next = cursor; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	_, err := w.List(background(t), agent.SessionFilter{Workspace: w.ws, Cursor: "nonsense", Limit: 3})
	w.refuses(err, agent.CodeInvalid)
	_, err = w.List(background(t), agent.SessionFilter{Workspace: "nowhere", Limit: 3})
	w.refuses(err, agent.CodeNotFound)
}

func TestListFilters(t *testing.T) {
	w := open(t)
	quiet := w.begin()
	quiet.provider("p")
	asks := w.begin()
	asks.provider("p")
	kid := asks.child("kid")
	asks.asks(kid.session, kid.turn, "q")
	broken := w.begin()
	broken.provider("p")
	broken.apply(agent.ProviderTurnEnded{Session: broken.root, Turn: broken.turn, Key: "p", Outcome: agent.OutcomeFailed, Err: failed("no")})
	other, err := w.CreateSession(background(t), agent.NewSession{Workspace: w.ws, Provider: "codex", Title: "Über die Brücke"})
	w.must(err)
	only := func(f agent.SessionFilter, want ...agent.SessionID) {
		t.Helper()
		got, _ := w.list(f)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", f, got, want)
		}
	}
	only(agent.SessionFilter{Attention: agent.AttentionWaiting}, asks.root)
	only(agent.SessionFilter{Attention: agent.AttentionFailed}, broken.root)
	only(agent.SessionFilter{Attention: agent.AttentionNone}, quiet.root, other.Session.ID)
	only(agent.SessionFilter{Provider: "codex"}, other.Session.ID)
	only(agent.SessionFilter{Query: "BRÜCKE"}, other.Session.ID)
	only(agent.SessionFilter{Query: "do IT"}, quiet.root, asks.root, broken.root)
	only(agent.SessionFilter{Query: "100%"})
	w.clock.advance(time.Hour)
	only(agent.SessionFilter{Attention: agent.AttentionStalled}, quiet.root)
}

func TestMessagesByKeyset(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	for i := range 9 {
		tr.verdict(agent.MessagePut{Message: agent.Message{
			ID: agent.MessageID(fmt.Sprint("m", i)), SessionID: tr.root, TurnID: tr.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted,
		}}, agent.VerdictApplied, "")
	}
	read := func(r agent.MessageRange) agent.MessagePage {
		p, err := w.Messages(background(t), w.ws, tr.root, r)
		w.must(err)
		if !slices.IsSortedFunc(p.Items, func(a, b agent.Message) int { return int(a.Seq - b.Seq) }) {
			t.Errorf("%+v is not in order", r)
		}
		return p
	}
	newest := read(agent.MessageRange{Limit: 4})
	if len(newest.Items) != 4 || !newest.HasBefore || newest.HasAfter || newest.Items[3].ID != "m8" {
		t.Errorf("the newest: %s", text(newest))
	}
	older := read(agent.MessageRange{Before: newest.Items[0].Seq, Limit: 100})
	if len(older.Items) != 6 || older.HasBefore || !older.HasAfter {
		t.Errorf("the older: %s", text(older))
	}
	after := read(agent.MessageRange{After: older.Items[5].Seq, Limit: 2})
	if len(after.Items) != 2 || !after.HasBefore || !after.HasAfter || after.Items[0].ID != newest.Items[0].ID {
		t.Errorf("after: %s", text(after))
	}
	none := read(agent.MessageRange{After: newest.Items[3].Seq, Limit: 2})
	if len(none.Items) != 0 || none.Items == nil || none.HasAfter || !none.HasBefore {
		t.Errorf("after the last: %s", text(none))
	}
	_, err := w.Message(background(t), w.ws, tr.root, "nothing")
	w.refuses(err, agent.CodeNotFound)
}

func TestTurnsInPages(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	tr.ends(kid, agent.OutcomeCompleted)
	want := []agent.TurnID{kid.turn}
	for i := range 6 {
		id := agent.TurnID(fmt.Sprint("t", i))
		tr.verdict(agent.TurnStarted{Session: kid.session, Turn: id}, agent.VerdictApplied, "")
		tr.ends(child{kid.session, id}, agent.OutcomeCompleted)
		want = append([]agent.TurnID{id}, want...)
	}
	var got []agent.TurnID
	for next := ""; ; {
		p, err := w.Turns(background(t), w.ws, kid.session, next, 2)
		w.must(err)
		for _, turn := range p.Items {
			got = append(got, turn.ID)
		}
		if next = p.NextCursor; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	_, err := w.Turn(background(t), w.ws, tr.root, kid.turn)
	w.refuses(err, agent.CodeNotFound) // another session's
	_, err = w.Turn(background(t), "nowhere", kid.session, kid.turn)
	w.refuses(err, agent.CodeNotFound)
}

// A detail of a child has what is below it, at every depth, and nothing beside it.
func TestDetailOfAChild(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	a := tr.child("a")
	tr.child("beside")
	b := tr.below(a, "b")
	c := tr.below(b, "c")
	for _, want := range []struct {
		of    agent.SessionID
		below []agent.SessionID
	}{
		{tr.root, []agent.SessionID{a.session, named(tr.root, "beside").session, b.session, c.session}},
		{a.session, []agent.SessionID{b.session, c.session}},
		{b.session, []agent.SessionID{c.session}},
		{c.session, nil},
	} {
		d, err := w.Detail(background(t), w.ws, want.of)
		w.must(err)
		var got []agent.SessionID
		for _, s := range d.ChildSessions {
			got = append(got, s.ID)
		}
		if !slices.Equal(got, want.below) || d.ChildSessions == nil {
			t.Errorf("below %s: %v, want %v", want.of, got, want.below)
		}
	}
}

// Why a turn is still open is computed from what the gate itself looks at.
func TestGateReport(t *testing.T) {
	w := open(t)
	tr := w.begin()
	report := func() agent.GateReport {
		g, err := w.Gate(background(t), w.ws, tr.root, tr.turn)
		w.must(err)
		return g
	}
	held := func(by agent.HeldBy) agent.GateReport {
		t.Helper()
		g := report()
		if g.HeldBy != by {
			t.Fatalf("held by %q, want %q", g.HeldBy, by)
		}
		return g
	}
	held(agent.HeldByProvider)
	tr.provider("p")
	tr.asks(tr.root, tr.turn, "own")
	held(agent.HeldByPrompt)
	tr.apply(agent.InteractionEnded{Session: tr.root, Turn: tr.turn, Request: "own", Step: agent.AskResolved})
	kid := tr.child("kid")
	busy := tr.child("busy")
	tr.verdict(agent.TurnStarted{Session: busy.session, Turn: busy.turn}, agent.VerdictApplied, "")
	tr.asks(busy.session, busy.turn, "q")
	tr.providerEnds("p", agent.OutcomeCompleted)
	w.clock.advance(time.Hour)
	g := held(agent.HeldByChildren)
	if g.RetainedOutcome != agent.OutcomeCompleted || len(g.OpenChildren) != 2 {
		t.Fatalf("got %s", text(g))
	}
	if c := g.OpenChildren[0]; c.SessionID != kid.session || c.WaitingFor != "start" || c.Title != "kid" || c.StalledSince == nil {
		t.Errorf("got %s", text(c))
	}
	if c := g.OpenChildren[1]; c.WaitingFor != "answer" {
		t.Errorf("got %s", text(c))
	}
	until := w.clock.now().Add(30 * time.Second)
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "next", Reserved: &until}, agent.VerdictApplied, "")
	if g := held(agent.HeldByContinuation); g.Continuation == nil || !g.Continuation.Deadline.Equal(until) {
		t.Errorf("got %s", text(g))
	}
	w.cancels(tr.root, tr.turn)
	if g := held(agent.HeldByCancel); g.OpenChildren[0].WaitingFor != "stop" {
		t.Errorf("got %s", text(g))
	}
}

// Two claims never hold one operation; a lease that ran out does.
func TestLeases(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	w.cancels(tr.root, tr.turn)
	claim := func() int {
		c, err := w.Claim(background(t), "w", time.Minute, 10)
		w.must(err)
		return len(c)
	}
	if n := claim(); n != 1 {
		t.Fatalf("claimed %d", n)
	}
	if n := claim(); n != 0 {
		t.Errorf("claimed %d that are held", n)
	}
	due, open, err := w.NextDue(background(t))
	w.must(err)
	if !open || !due.Equal(w.clock.now().Add(time.Minute)) {
		t.Errorf("next due %v, %v", due, open)
	}
	w.clock.advance(2 * time.Minute)
	if n := claim(); n != 1 {
		t.Errorf("claimed %d whose lease ran out", n)
	}
}
