package providertest_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree is a model with one root session and an open root turn.
type tree struct {
	*providertest.Model
	t    *testing.T
	root agent.SessionID
	in   provider.Input
}

func newTree(t *testing.T) *tree {
	m := providertest.NewModel(providertest.Counter(), provider.RealClock{})
	tr := &tree{Model: m, t: t, root: m.AddRoot(agent.Session{Provider: "x"}).ID}
	tr.in = m.Submit(tr.root, "Go.")
	tr.apply(agent.ProviderTurnStarted{Session: tr.root, Turn: tr.in.Turn, Key: "p1"})
	return tr
}

func (tr *tree) apply(f agent.Fact) agent.Applied {
	tr.t.Helper()
	a, err := tr.Apply(context.Background(), f)
	if err != nil {
		tr.t.Fatal(err)
	}
	return a
}

func (tr *tree) child(id agent.SessionID) agent.Applied {
	return tr.apply(agent.ChildStarted{Session: id, Turn: agent.TurnID(id) + "-t", Parent: tr.root, ParentTurn: tr.in.Turn})
}

func (tr *tree) settle(id agent.SessionID, o agent.Outcome) agent.Applied {
	return tr.apply(agent.TurnSettled{Session: id, Turn: agent.TurnID(id) + "-t", Outcome: o})
}

func (tr *tree) end() agent.Applied {
	return tr.apply(agent.ProviderTurnEnded{Session: tr.root, Turn: tr.in.Turn, Key: "p1", Outcome: agent.OutcomeCompleted})
}

func TestRootSettlesWithWhateverEndsLast(t *testing.T) {
	for _, rootFirst := range []bool{true, false} {
		tr := newTree(t)
		tr.child("a")
		last := func() agent.Applied { return tr.settle("a", agent.OutcomeFailed) }
		if rootFirst {
			tr.end()
		} else {
			last()
			last = tr.end
		}
		if v := tr.View(); v.RootTurn().Phase == agent.PhaseSettled {
			t.Errorf("it settled too early\n%s", v)
		}
		if !last().RootSettled || tr.View().RootTurn().Outcome != agent.OutcomeCompleted {
			t.Errorf("it did not settle\n%s", tr.View())
		}
	}
}

func TestFence(t *testing.T) {
	tr := newTree(t)
	tr.child("a")
	c := tr.PrepareCancel(tr.in.Turn)
	if a := tr.child("b"); a.Code != agent.CodeTurnCanceling {
		t.Errorf("a child during a cancel: %+v", a)
	}
	states := tr.CompleteCancel(c, []agent.Evidence{{SessionID: tr.root, TurnID: tr.in.Turn, State: agent.TargetAcknowledged}})
	if len(states) != 2 || states[0] != agent.TargetCanceled || states[1] != agent.TargetInterrupted {
		t.Errorf("targets read %v", states)
	}
	if a := tr.child("c"); a.Code != agent.CodeTurnSettled {
		t.Errorf("a child below a settled root: %+v", a)
	}
	if a := tr.apply(agent.ProviderTurnStarted{Session: tr.root, Key: "p2"}); a.Code != agent.CodeUnaskedAfterCancel {
		t.Errorf("unasked work after a cancel: %+v", a)
	}
	if len(tr.Violations()) != 0 {
		t.Errorf("a fence is no violation: %v", tr.Violations())
	}
}

func TestDeletingTheLastChildSettlesTheRoot(t *testing.T) {
	tr := newTree(t)
	tr.child("a")
	tr.end()
	tr.Delete("a")
	if tr.View().RootTurn().Outcome != agent.OutcomeCompleted {
		t.Errorf("the root still waits\n%s", tr.View())
	}
	if a := tr.settle("a", agent.OutcomeCompleted); a.Code != agent.CodeSessionDeleted {
		t.Errorf("a late fact of a deleted child: %+v", a)
	}
}

func TestLossKeepsARetainedOutcome(t *testing.T) {
	for _, ended := range []bool{true, false} {
		tr := newTree(t)
		tr.child("a")
		want := agent.OutcomeInterrupted
		if ended {
			tr.end()
			want = agent.OutcomeCompleted
		}
		tr.apply(agent.SessionLost{Session: tr.root, Err: agent.Errorf(agent.CodeProviderGone, "gone")})
		v := tr.View()
		if v.RootTurn().Outcome != want || v.Children()[0].LatestTurn.Outcome != agent.OutcomeInterrupted {
			t.Errorf("ended %v\n%s", ended, v)
		}
	}
}

func TestViolations(t *testing.T) {
	text := agent.Message{ID: "m", Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}
	for want, do := range map[string]func(tr *tree){
		"nobody registered": func(tr *tree) { tr.apply(agent.TurnStarted{Session: "ghost", Turn: "t"}) },
		"never started": func(tr *tree) {
			tr.apply(agent.ProviderTurnEnded{Session: tr.root, Key: "p9", Outcome: agent.OutcomeCompleted})
		},
		"none of session": func(tr *tree) {
			tr.child("a")
			tr.apply(agent.TurnSettled{Session: "a", Turn: tr.in.Turn, Outcome: agent.OutcomeCompleted})
		},
		"terminal of root turn": func(tr *tree) {
			tr.apply(agent.TurnSettled{Session: tr.root, Turn: tr.in.Turn, Outcome: agent.OutcomeCompleted})
		},
		"another parent": func(tr *tree) {
			tr.child("a")
			tr.apply(agent.ChildStarted{Session: "a", Turn: "a-t", Parent: "a", ParentTurn: "a-t"})
		},
		"never put": func(tr *tree) {
			tr.apply(agent.TextAppended{Session: tr.root, Turn: tr.in.Turn, Message: "m", Text: "x"})
		},
		"leaves a gap": func(tr *tree) {
			m := text
			m.SessionID, m.TurnID = tr.root, tr.in.Turn
			tr.apply(agent.MessagePut{Message: m})
			tr.apply(agent.TextAppended{Session: tr.root, Turn: tr.in.Turn, Message: "m", Offset: 3, Text: "x"})
		},
		"never asked": func(tr *tree) {
			tr.apply(agent.InteractionEnded{Session: tr.root, Turn: tr.in.Turn, Request: "r", Step: agent.AskResolved})
		},
		"without an outcome": func(tr *tree) {
			tr.child("a")
			tr.settle("a", "")
		},
	} {
		tr := newTree(t)
		do(tr)
		if got := strings.Join(tr.Violations(), "\n"); !strings.Contains(got, want) {
			t.Errorf("violations are %q, want %q", got, want)
		}
	}
}

// Every case has a name of its own and says what must be played.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range providertest.Cases() {
		if c.Name == "" || c.Script == "" || seen[c.Name] {
			t.Errorf("case %q is there twice, or says nothing", c.Name)
		}
		seen[c.Name] = true
	}
}
