package codex

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// summonsV1 and summonsV2 give an existing child another task.
func summonsV1(turn, child string) []string {
	const item = `{"type":"collabAgentToolCall","id":"again","tool":"sendInput","status":%q,"prompt":"more","receiverThreadIds":[%q]}`
	return []string{
		itemNote("started", rootThread, turn, fmt.Sprintf(item, statusInProgress, child)),
		itemNote("completed", rootThread, turn, fmt.Sprintf(item, statusCompleted, child)),
	}
}

func summonsV2(turn, child string) []string {
	item := fmt.Sprintf(`{"type":"subAgentActivity","id":"again","kind":"interacted","agentThreadId":%q,"agentPath":"/root/a"}`, child)
	return []string{itemNote("started", rootThread, turn, item), itemNote("completed", rootThread, turn, item)}
}

// The root gives an idle child another task and ends before the child has begun: the
// child's turn runs under the root turn that asked for it.
func TestRootEndsBeforeItsChildBeginsAgain(t *testing.T) {
	for name, summons := range map[string]func(turn, child string) []string{"v1": summonsV1, "v2": summonsV2} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			in := s.begin("go", "r1")
			s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
			s.send(started("T1", "c1", "r1"), completed("T1", "c1", "r1", "completed"))
			s.send(slices.Concat(summons("r1", "T1"), []string{completed(rootThread, "r1", "r1", "completed")})...)
			if got := s.View().RootTurn(); got.Phase == agent.PhaseSettled {
				t.Fatal("the root settled while its child was about to begin")
			}
			s.send(started("T1", "c2", "r1"))
			if v := s.View(); v.Held[in.Turn] != agent.HeldByChildren {
				t.Errorf("held by %q", v.Held[in.Turn])
			}
			s.send(completed("T1", "c2", "r1", "completed"))
			v := s.View()
			wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
			turns := turnsOf(v, child(t, v, "T1").ID)
			if len(turns) != 2 || turns[1].RootTurnID != in.Turn || turns[1].Trigger != agent.TriggerGuidance {
				t.Errorf("turns %+v", turns)
			}
		})
	}
}

// A message that starts nothing holds the root's end up for a bounded time only; one to a
// child that runs, not at all.
func TestMessageToAChildThatStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		s.send(spawnV2(rootThread, "r1", "call_a", "T1")...)
		s.send(started("T1", "c1", "r1"), completed("T1", "c1", "r1", "completed"))
		s.send(append(summonsV2("r1", "T1"), completed(rootThread, "r1", "r1", "completed"))...)
		<-time.After(adoptBound)
		synctest.Wait()
		wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)

		s.begin("more", "r2")
		s.send(started("T1", "c2", "r2"))
		s.send(append(summonsV2("r2", "T1"), completed("T1", "c2", "r2", "completed"), completed(rootThread, "r2", "r2", "completed"))...)
		wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
		s.close()
	})
}
