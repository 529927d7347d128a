package codex

import (
	"context"
	"fmt"
	"testing"
)

// A resumed thread repeats its total under the name of an old turn. When it does is the
// server's: before the next turn is asked for, between that and the answer, or when it has
// begun. The turn has used the same each time.
func TestRepeatedTotalIsNotUsedTwice(t *testing.T) {
	total := func(turn string, n int) string {
		return note("thread/tokenUsage/updated", fmt.Sprintf(`{"threadId":%q,"turnId":%q,"tokenUsage":{"total":{"inputTokens":%d}}}`, rootThread, turn, n))
	}
	for _, when := range []string{"before it is asked for", "before the answer", "after the answer", "after it has begun"} {
		t.Run(when, func(t *testing.T) {
			s := newStage(t)
			s.begin("one", "r1")
			s.send(total("r1", 20), completed(rootThread, "r1", "r1", "completed"))
			s.close()
			s.Reopened()
			s.srv = newServer()
			s.open()
			repeat := func(at string) {
				if at == when {
					s.send(total("r1", 20))
				}
			}
			repeat("before it is asked for")
			in := s.Submit(s.Root, "two")
			done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
			m := s.expect(methodTurnStart)
			repeat("before the answer")
			s.answer(m, turnAnswer("r2"))
			wait(t, done)
			repeat("after the answer")
			s.send(started(rootThread, "r2", "r2"))
			repeat("after it has begun")
			s.send(total("r2", 50), total("r1", 20), total("r2", 60), completed(rootThread, "r2", "r2", "completed"))
			if got := s.View().RootTurn().Usage.InputTokens; got != 40 {
				t.Errorf("the turn used %d, want 40", got)
			}
		})
	}
}
