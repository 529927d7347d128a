package codex

import (
	"context"
	"errors"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

func (s *stage) guide(text string) (provider.Input, <-chan error) {
	in := s.Guidance(s.Root, text)
	return in, s.goes(func(ctx context.Context) error { return s.rt.Guide(ctx, in) })
}

func (s *stage) wantMessage(id agent.MessageID, want agent.MessageStatus) {
	s.t.Helper()
	for _, m := range s.View().Messages {
		if m.ID == id {
			if m.Status != want {
				s.t.Errorf("message %q is %s, want %s", m.Content, m.Status, want)
			}
			return
		}
	}
	s.t.Errorf("no message %s", id)
}

func TestSteerIsDeliveredWhenItsItemIsSeen(t *testing.T) {
	s := newStage(t)
	first := s.begin("go", "r1")
	s.send(heardUser(rootThread, "r1", "u1", string(first.Message), "go"))
	s.wantMessage(first.Message, agent.MessageCompleted)
	in, done := s.guide("and X")
	m := s.expect(methodTurnSteer)
	if m.Params.ThreadID != rootThread || m.Params.ExpectedTurnID != "r1" {
		t.Errorf("steer %+v", m.Params)
	}
	s.answer(m, `{"turnId":"r1"}`)
	wait(t, done)
	s.wantMessage(in.Message, agent.MessagePending) // accepted is not delivered
	s.send(heardUser(rootThread, "r1", "u2", "", "and X"))
	s.wantMessage(in.Message, agent.MessageCompleted)
	if n := len(s.View().Messages); n != 2 {
		t.Errorf("%d messages: a person's text was doubled", n)
	}
}

func TestSteerLostToAnInterruptIsUndelivered(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	in, done := s.guide("and X")
	s.answer(s.expect(methodTurnSteer), `{"turnId":"r1"}`)
	wait(t, done)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	s.wantMessage(in.Message, agent.MessageUndelivered)
}

func TestSteerThatCameTooLateBecomesATurnOfTheSameRoot(t *testing.T) {
	s := newStage(t)
	first := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	in, done := s.guide("more")
	s.fail(s.expect(methodTurnSteer), "no active turn to steer")
	start := s.expect(methodTurnStart)
	s.send(completed(rootThread, "r1", "r1", "completed"))
	s.send(completed("T1", "c1", "r1", "completed"))
	if got := s.View().Held[first.Turn]; got != agent.HeldByProvider {
		t.Errorf("root is held by %q: the new turn must hold it before it is answered", got)
	}
	s.answer(start, turnAnswer("r2"))
	wait(t, done)
	s.send(started(rootThread, "r2", "r2"), heardUser(rootThread, "r2", "u", "", "more"))
	s.wantMessage(in.Message, agent.MessageCompleted)
	s.send(completed(rootThread, "r2", "r2", "failed"))
	v := s.View()
	if turns := turnsOf(v, s.Root); len(turns) != 1 || len(v.ProviderTurns) != 2 {
		t.Errorf("%d root turns, %d provider turns", len(turns), len(v.ProviderTurns))
	}
	wantOutcome(t, v.RootTurn(), agent.OutcomeFailed) // the last provider turn decides
}

func TestGuidanceWhileOnlyAChildRuns(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"), completed(rootThread, "r1", "r1", "completed"))
	in, done := s.guide("more")
	s.answer(s.expect(methodTurnStart), turnAnswer("r2"))
	wait(t, done)
	s.send(started(rootThread, "r2", "r2"), completed("T1", "c1", "r1", "completed"))
	s.send(started("T9", "e1", "r2")) // a child of the guidance turn is ours too
	s.send(completed(rootThread, "r2", "r2", "completed"))
	s.answer(s.expect(methodThreadRead), `{"thread":{"id":"T9","parentThreadId":"T0"}}`)
	s.wantMessage(in.Message, agent.MessageCompleted)
	s.send(completed("T9", "e1", "r2", "completed"))
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
}

func TestSteerFollowsTheTurnThatIsReallyActive(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	in, done := s.guide("and X")
	s.fail(s.expect(methodTurnSteer), "expected active turn id `r1` but found `r2`")
	m := s.expect(methodTurnSteer)
	if m.Params.ExpectedTurnID != "r2" {
		t.Errorf("steer of %s", m.Params.ExpectedTurnID)
	}
	s.send(completed(rootThread, "r1", "r1", "completed"), started(rootThread, "r2", "r2"))
	s.answer(m, `{"turnId":"r2"}`)
	wait(t, done)
	s.send(completed(rootThread, "r2", "r2", "interrupted"))
	s.wantMessage(in.Message, agent.MessageUndelivered)
}

func TestGuidanceWaitsForTheTurnToBegin(t *testing.T) {
	s := newStage(t)
	first := s.Submit(s.Root, "go")
	begun := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, first) })
	start := s.expect(methodTurnStart)
	_, done := s.guide("and X")
	s.answer(start, turnAnswer("r1"))
	wait(t, begun)
	s.quiet() // a steer before turn/started would be refused
	s.send(started(rootThread, "r1", "r1"))
	s.answer(s.expect(methodTurnSteer), `{"turnId":"r1"}`)
	wait(t, done)
}

func TestOtherRefusalOfASteerIsSaid(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	in, done := s.guide("and X")
	s.fail(s.expect(methodTurnSteer), "no room")
	if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) {
		t.Errorf("guidance ended with %v", err)
	}
	s.wantMessage(in.Message, agent.MessageUndelivered)
}

func TestRefusedStartFailsTheTurn(t *testing.T) {
	s := newStage(t)
	in := s.Submit(s.Root, "go")
	done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	s.fail(s.expect(methodTurnStart), "thread not found: T0")
	if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) {
		t.Errorf("start ended with %v", err)
	}
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeFailed)
	s.wantMessage(in.Message, agent.MessageUndelivered)
}

// turn/start while the server runs a turn of its own is taken as a steer of that one.
func TestStartThatTheServerTookAsASteer(t *testing.T) {
	s := newStage(t)
	in := s.Submit(s.Root, "go")
	done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	start := s.expect(methodTurnStart)
	s.send(started(rootThread, "goal", "goal")) // ours or its own? The answer tells
	s.send(said(rootThread, "goal", "m", "working")...)
	s.answer(start, turnAnswer("goal"))
	wait(t, done)
	s.send(heardUser(rootThread, "goal", "u", string(in.Message), "go"))
	s.send(completed(rootThread, "goal", "goal", "completed"))
	v := s.View()
	wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
	if len(turnsOf(v, s.Root)) != 1 {
		t.Errorf("root turns: %+v", turnsOf(v, s.Root))
	}
	s.wantMessage(in.Message, agent.MessageCompleted)
}
