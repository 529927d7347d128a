package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Every fact may arrive twice, and applying it twice equals applying it once: no event, no
// change, whatever the verdict.
func TestEveryFactTwiceIsEveryFactOnce(t *testing.T) {
	w := open(t)
	tr := w.begin()
	kid := named(tr.root, "kid")
	until := w.clock.now().Add(time.Minute)
	caps := allCaps
	text1 := agent.Message{ID: "m1", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming, Content: "a"}
	done := text1
	done.Status, done.Content = agent.MessageCompleted, ""
	call := agent.Message{ID: "m2", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleTool, Kind: agent.MessageToolCall, Status: agent.MessageCompleted, CallID: "c", Name: "sh", Output: "ok"}
	_, started := tr.start("kid", tr.root, tr.turn)
	for i, f := range []agent.Fact{
		agent.SessionDescribed{Session: tr.root, Title: "better", ProviderSessionID: "native", Handles: agent.Handles{ThreadID: "t"}, Capabilities: &caps},
		agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "p1"},
		agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "p1", NativeID: "n1"},
		started,
		agent.TurnStarted{Session: kid.session, Turn: kid.turn, NativeID: "k1"},
		agent.MessagePut{Message: text1},
		agent.TextAppended{Session: kid.session, Turn: kid.turn, Message: "m1", Offset: 1, Text: "bc"},
		agent.MessagePut{Message: done},
		agent.MessagePut{Message: call},
		agent.InteractionAsked{Interaction: question(kid, "q")},
		agent.InteractionEnded{Session: kid.session, Turn: kid.turn, Request: "q", Step: agent.AskResolved},
		agent.UsageReported{Session: kid.session, Turn: kid.turn, Usage: agent.Usage{InputTokens: 3, CostMicros: 5}},
		agent.ProviderTurnEnded{Session: tr.root, Turn: tr.turn, Key: "p1", Outcome: agent.OutcomeCompleted},
		agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "p2", Reserved: &until},
		agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: agent.OutcomeFailed, Err: failed("no")},
		agent.TurnStarted{Session: kid.session, Turn: "second", Trigger: agent.TriggerGuidance},
		agent.TurnSettled{Session: kid.session, Turn: "second", Outcome: agent.OutcomeCompleted},
		agent.ProviderTurnEnded{Session: tr.root, Turn: tr.turn, Key: "p2", Outcome: agent.OutcomeInterrupted, Silent: true},
		agent.SessionLost{Session: tr.root, Err: failed("gone")},
	} {
		name := fmt.Sprintf("%d %T", i, f)
		first := tr.apply(f)
		if first.Verdict == agent.VerdictRefused {
			t.Fatalf("%s: refused %s", name, first.Code)
		}
		w.events()
		second := tr.apply(f)
		if second.Verdict == agent.VerdictApplied || second.Verdict == agent.VerdictRefused {
			t.Errorf("%s: the second time it was %s %s", name, second.Verdict, second.Code)
		}
		if e := w.events(); len(e) != 0 {
			t.Errorf("%s: the second time it caused %v", name, kinds(e))
		}
	}
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted) // p1's: p2 ended without having spoken
	m, err := w.Message(background(t), w.ws, kid.session, "m1")
	w.must(err)
	if m.Content != "abc" || m.Status != agent.MessageCompleted {
		t.Errorf("the message reads %q, %s", m.Content, m.Status)
	}
	w.verify()
}

// A continuation belongs to the open root turn; a provider's own work begins a turn that is
// visible as such; after a stop that nobody followed up it is refused (decisions.md 3).
func TestWorkThatNobodyAskedFor(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	a := tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Key: "own"}, agent.VerdictApplied, "")
	if a.Turn != tr.turn {
		t.Errorf("a continuation went to %s", a.Turn)
	}
	tr.providerEnds("p", agent.OutcomeFailed)
	tr.verdict(agent.ProviderTurnEnded{Session: tr.root, Key: "own", Outcome: agent.OutcomeCompleted}, agent.VerdictApplied, "")
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)

	a = tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Key: "goal"}, agent.VerdictApplied, "")
	own := &tree{world: w, root: tr.root, turn: a.Turn}
	if turn := own.rootTurn(); turn.Trigger != agent.TriggerProvider || turn.ID == tr.turn {
		t.Errorf("got %+v", turn)
	}
	own.is(agent.PhaseRunning, "")
	op := w.cancels(own.root, own.turn)
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Key: "more"}, agent.VerdictRefused, agent.CodeTurnCanceling)
	_, err := w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Key: "more"}, agent.VerdictRefused, agent.CodeUnaskedAfterCancel)
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Turn: own.turn, Key: "more"}, agent.VerdictRefused, agent.CodeTurnSettled)
	next, err := w.Submit(background(t), agent.NewMessage{Session: tr.root, ClientMessageID: "2", Text: "go on"})
	w.must(err)
	a = tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Key: "more"}, agent.VerdictApplied, "")
	if a.Turn != next.Turn.ID {
		t.Errorf("it went to %s", a.Turn)
	}
	w.verify()
}

// What a provider says of its own turn after the root turn ended is shown on it and changes
// nothing else.
func TestLateProviderTerminalIsKept(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	op := w.cancels(tr.root, tr.turn)
	_, err := w.CompleteCancel(background(t), op.ID, nil)
	w.must(err)
	before := tr.rootTurn()
	w.events()
	tr.verdict(agent.ProviderTurnEnded{Session: tr.root, Turn: tr.turn, Key: "p", Outcome: agent.OutcomeCompleted}, agent.VerdictLate, "")
	after := tr.rootTurn()
	if after.ProviderTurn.Phase != agent.ProviderEnded || after.ProviderTurn.Outcome != agent.OutcomeCompleted {
		t.Errorf("the provider's turn still reads %+v", after.ProviderTurn)
	}
	before.ProviderTurn = after.ProviderTurn
	if text(before) != text(after) {
		t.Errorf("the root turn changed: %s, then %s", text(before), text(after))
	}
	if e := w.events(); len(e) != 1 || e[0].Kind != agent.TurnUpdated {
		t.Errorf("events %v", kinds(e))
	}
}

// Usage is a total of its turn: the latest report counts, once, in the session, in every
// session above it, and in the root.
func TestUsageIsSummedUpwards(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	kid := tr.child("kid")
	nested := tr.below(kid, "nested")
	report := func(c child, n int64) {
		tr.apply(agent.UsageReported{Session: c.session, Turn: c.turn, Usage: agent.Usage{InputTokens: n}})
	}
	report(child{tr.root, tr.turn}, 1)
	report(kid, 10)
	report(nested, 70)
	report(nested, 100)
	tr.ends(nested, agent.OutcomeCompleted)
	report(nested, 200) // late, and paid for
	d, err := w.Detail(background(t), w.ws, tr.root)
	w.must(err)
	got := map[agent.SessionID][2]int64{}
	for _, s := range append(d.ChildSessions, d.Session) {
		got[s.ID] = [2]int64{s.Usage.InputTokens, s.UsageWithChildren.InputTokens}
	}
	for id, want := range map[agent.SessionID][2]int64{tr.root: {1, 211}, kid.session: {10, 210}, nested.session: {200, 200}} {
		if got[id] != want {
			t.Errorf("%s has %v, want %v", id, got[id], want)
		}
	}
	w.verify()
}

// Text arrives in chunks that may repeat and overlap; what is missing is not made up.
func TestTextByOffset(t *testing.T) {
	w := open(t)
	tr := w.begin()
	m := agent.Message{ID: "m", SessionID: tr.root, TurnID: tr.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming, Content: "né"}
	tr.verdict(agent.MessagePut{Message: m}, agent.VerdictApplied, "")
	at := func(offset int64, s string, v agent.Verdict, c agent.Code) {
		t.Helper()
		tr.verdict(agent.TextAppended{Session: tr.root, Turn: tr.turn, Message: "m", Offset: offset, Text: s}, v, c)
	}
	at(3, "e ", agent.VerdictApplied, "")
	at(3, "e ", agent.VerdictUnchanged, "")
	at(4, " week", agent.VerdictApplied, "")
	at(20, "lost", agent.VerdictRefused, agent.CodeInvalid)
	w.reopen() // the stream is read again
	at(9, "s", agent.VerdictApplied, "")
	page, err := w.Messages(background(t), w.ws, tr.root, agent.MessageRange{Limit: 5})
	w.must(err)
	if got := page.Items[1]; got.Content != "née weeks" || got.Status != agent.MessageStreaming {
		t.Errorf("reads %q, %s", got.Content, got.Status)
	}
	w.events()
	m.Status, m.Content = agent.MessageCompleted, ""
	tr.verdict(agent.MessagePut{Message: m}, agent.VerdictApplied, "")
	if got := decoded[agent.Message](w, w.events(), agent.MessageUpdated); len(got) != 1 || got[0].Content != "née weeks" {
		t.Errorf("the event has %+v", got)
	}
	at(10, "more", agent.VerdictLate, "")
	if n := query[int64](w, "SELECT count(*) FROM message_chunks"); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
	w.verify()
}

// An alias names one session of a tree: the first binding stands.
func TestAliasesBindOnce(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	_, f := tr.start("one", tr.root, tr.turn)
	f.Handles = agent.Handles{ThreadID: "thread", AgentID: "a"}
	tr.verdict(f, agent.VerdictApplied, "")
	_, g := tr.start("two", tr.root, tr.turn)
	g.Handles = agent.Handles{ThreadID: "thread", TaskID: "task"}
	tr.verdict(g, agent.VerdictApplied, "")
	owner := query[string](w, "SELECT s.id FROM session_aliases a JOIN sessions s ON s.pk = a.session WHERE a.kind = 'threadId' AND a.value = 'thread'")
	if owner != string(f.Session) {
		t.Errorf("the thread is of %s", owner)
	}
	known, err := w.Remember(background(t), tr.root)
	w.must(err)
	if len(known.Children) != 2 || known.Children[1].Handles.TaskID != "task" || len(known.ProviderTurns) != 1 || known.ProviderTurns[0].Key != "p" {
		t.Errorf("remembered %s", text(known))
	}
}
