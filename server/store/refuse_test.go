package store

import (
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A fact that storage cannot hold is refused like any other that makes no sense. Were it an
// error, it would end the runtime that reported it.
func TestFactThatCannotBeStoredIsRefused(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	kid := w.child("kid")
	other := w.begin()
	taken := other.child("kid")
	message := func(change func(*agent.Message)) agent.Fact {
		m := agent.Message{ID: "m", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleTool, Kind: agent.MessageToolCall, Status: agent.MessageCompleted}
		change(&m)
		return agent.MessagePut{Message: m}
	}
	ask := func(kind agent.InteractionKind, owner agent.Owner) agent.Fact {
		return agent.InteractionAsked{Interaction: agent.Interaction{SessionID: kid.session, TurnID: kid.turn, RequestID: "q", Kind: kind, Owner: owner}}
	}
	before := text(w.session())
	for name, f := range map[string]agent.Fact{
		"message without a status":    message(func(m *agent.Message) { m.Status = "" }),
		"message of no role":          message(func(m *agent.Message) { m.Role = "nobody" }),
		"message of no kind":          message(func(m *agent.Message) { m.Kind = "" }),
		"question of no kind":         ask("riddle", ""),
		"question of no owner":        ask(agent.InteractionApproval, "somebody"),
		"no outcome":                  agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: "nonsense"},
		"no outcome at all":           agent.TurnSettled{Session: kid.session, Turn: kid.turn},
		"provider turn of no outcome": agent.ProviderTurnEnded{Session: w.root, Turn: w.turn, Key: "p", Outcome: "nonsense"},
		"a child with another's turn": agent.ChildStarted{Session: "new", Turn: taken.turn, Parent: w.root, ParentTurn: w.turn},
	} {
		if a, err := w.Apply(background(t), f); err != nil || a.Verdict != agent.VerdictRefused || a.Code != agent.CodeInvalid {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	w.verdict(agent.MessagePut{Message: agent.Message{
		ID: "ok", SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleTool,
		Kind: agent.MessageToolCall, Status: agent.MessageCompleted,
	}}, agent.VerdictApplied, "")
	if after := text(w.session()); after != before {
		t.Errorf("a refused fact left a trace: %s, then %s", before, after)
	}
	w.childIs(kid, agent.PhaseSubmitted, "")
}

// A refused command costs nothing but itself: what the writer remembers stays, and what is
// committed with it is not run twice.
func TestRefusalKeepsWhatTheWriterRemembers(t *testing.T) {
	spy := newSpy(t)
	w := open(t, withDriver(spy.name)).begin()
	w.provider("p")
	kid := w.child("kid")
	beat := func(n int64) int {
		spy.take()
		w.apply(agent.UsageReported{Session: kid.session, Turn: kid.turn, Usage: agent.Usage{InputTokens: n}})
		return len(work(spy.take()))
	}
	beat(1)
	warm := beat(2)
	for name, refuse := range map[string]func() error{
		"an answer to nothing": func() error {
			_, _, err := w.PrepareAnswer(background(t), yes(kid.session, kid.turn, "none"))
			return err
		},
		"a message to a child": func() error {
			_, err := w.Submit(background(t), agent.NewMessage{Session: kid.session, Text: "x"})
			return err
		},
		"a session that is not": func() error {
			_, err := w.UpdateSession(background(t), w.ws, "none", agent.SessionPatch{})
			return err
		},
		"the same id for other words": func() error {
			_, err := w.Submit(background(t), agent.NewMessage{Session: w.root, ClientMessageID: "first", Text: "other"})
			return err
		},
	} {
		if err := refuse(); err == nil {
			t.Fatalf("%s was taken", name)
		}
		if got := beat(query[int64](w.world, "SELECT max(pk) FROM events") & seqMask); got != warm {
			t.Errorf("after %s a fact costs %d statements, before it %d", name, got, warm)
		}
	}
}

// Writes that fail share a transaction with writes that do not; neither leaves a trace in
// the other, in the file or in memory.
func TestFailuresDoNotHarmTheirNeighbours(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	kid := w.child("kid")
	w.verdict(agent.TurnStarted{Session: kid.session, Turn: kid.turn}, agent.VerdictApplied, "")
	const rounds, each = 20, 15
	for round := range rounds {
		var wait sync.WaitGroup
		for i := range each {
			wait.Go(func() {
				_, err := w.Apply(background(t), agent.MessagePut{Message: agent.Message{
					ID: agent.MessageID(text([]int{round, i})), SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant,
					Kind: agent.MessageText, Content: "x", Status: agent.MessageCompleted,
				}})
				if err != nil {
					t.Error(err)
				}
			})
			wait.Go(func() { // fails when it has changed things already
				a, err := w.Apply(background(t), agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: "nonsense"})
				if err != nil || a.Code != agent.CodeInvalid {
					t.Errorf("nonsense was taken: %+v, %v", a, err)
				}
			})
			wait.Go(func() { // refused before it has
				_, _, err := w.PrepareAnswer(background(t), yes(kid.session, kid.turn, "none"))
				if err == nil {
					t.Error("an answer to nothing was taken")
				}
			})
		}
		wait.Wait()
	}
	if n := query[int64](w.world, "SELECT count(*) FROM messages WHERE turn_id = ?", string(kid.turn)); n != rounds*each {
		t.Errorf("%d messages are stored, want %d", n, rounds*each)
	}
	if s := w.session(); s.ActiveChildCount != 1 {
		t.Errorf("the root counts %d live children", s.ActiveChildCount)
	}
	w.childIs(kid, agent.PhaseRunning, "")
	w.serves("x") // checks the numbers
	w.ends(kid, agent.OutcomeCompleted)
	w.childIs(kid, agent.PhaseSettled, agent.OutcomeCompleted)
}
