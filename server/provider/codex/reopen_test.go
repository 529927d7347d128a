package codex

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Field report B130: the server keeps nothing of a conversation before its first turn.

const noRollout = "no rollout found for thread id " + rootThread

// reopen opens the session again, at a server that refuses to resume it. The new thread
// is T9.
func (s *stage) reopen(why string) error {
	s.t.Helper()
	s.close()
	s.Reopened()
	s.srv = newServer()
	a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return s.srv, nil }})
	opened := make(chan error, 1)
	go func() {
		rt, err := a.Open(s.t.Context(), s.OpenParams(), s.Sink)
		if err == nil {
			s.rt = rt
		}
		opened <- err
	}()
	s.answer(s.expect(methodInitialize), `{"userAgent":"x/0.171.0 (test)"}`)
	s.fail(s.expect(methodThreadResume), why)
	if why == noRollout {
		m := s.expect(methodThreadStart)
		if m.Params.ThreadID != "" {
			s.t.Errorf("the new thread was asked for as %q", m.Params.ThreadID)
		}
		s.answer(m, `{"thread":{"id":"T9"},"model":"m"}`)
	}
	return <-opened
}

func TestUnusedConversationOpensAgain(t *testing.T) {
	s := newStage(t)
	if err := s.reopen(noRollout); err != nil {
		t.Fatal(err)
	}
	if root := s.View().Root(); root.ProviderSessionID != "T9" || root.Handles.ThreadID != "T9" {
		t.Errorf("the session is %q %+v", root.ProviderSessionID, root.Handles)
	}
	in := s.Submit(s.Root, "hello")
	done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	m := s.expect(methodTurnStart)
	if m.Params.ThreadID != "T9" {
		t.Errorf("the turn went to %q", m.Params.ThreadID)
	}
	s.answer(m, turnAnswer("r1"))
	wait(t, done)
	s.send(started("T9", "r1", "r1"), heardUser("T9", "r1", "u", "", "hello"), completed("T9", "r1", "r1", "completed"))
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
	if got, want := say(s.View(), s.Root), []string{"user text completed: hello"}; !slices.Equal(got, want) {
		t.Errorf("the root says %q, want %q: nothing was lost, so nothing is said of it", got, want)
	}
}

func TestLostConversationOpensAgainAndIsSaidToBeLost(t *testing.T) {
	s := newStage(t)
	s.begin("hello", "r1")
	s.send(heardUser(rootThread, "r1", "u", "", "hello"), completed(rootThread, "r1", "r1", "completed"))
	if err := s.reopen(noRollout); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"user text completed: hello",
		"system notice completed: Codex no longer has this conversation. The agent begins anew and remembers nothing of what was said before.",
	}
	if got := say(s.View(), s.Root); !slices.Equal(got, want) {
		t.Errorf("the root says %q", got)
	}
	if s.Diagnosed(provider.Refused) != 1 {
		t.Errorf("diagnostics: %+v", s.Diagnostics())
	}
}

func TestOtherRefusalOfAResumeIsAnError(t *testing.T) {
	s := newStage(t)
	if err := s.reopen("config is invalid"); !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) {
		t.Errorf("open ended with %v", err)
	}
}
