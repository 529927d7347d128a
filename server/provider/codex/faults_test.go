package codex

import (
	"fmt"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Faults that users of other integrations met, see docs/faults.md.

func usageNote(thread, turn string, input int) string {
	return note("thread/tokenUsage/updated", fmt.Sprintf(`{"threadId":%q,"turnId":%q,"tokenUsage":{"total":{"inputTokens":%d}}}`, thread, turn, input))
}

// B001: text, turns and usage of a child thread landed on the root.
func TestChildTextTurnsAndUsageNeverReachTheRoot(t *testing.T) {
	s := withChild(t)
	s.quiet()
	s.send(said("T1", "c1", "m1", "child words")...)
	s.send(usageNote(rootThread, "r1", 7), usageNote("T1", "c1", 500), usageNote("T1", "c1", 900))
	before := say(s.View(), s.Root)
	s.send(completed("T1", "c1", "r1", "completed"))
	v := s.View()
	c := child(t, v, "T1")
	if root := v.RootTurn(); root.Phase != agent.PhaseRunning || root.Usage.InputTokens != 7 || len(turnsOf(v, s.Root)) != 1 {
		t.Errorf("root turn %+v", root)
	}
	if got := turnsOf(v, c.ID); len(got) != 1 || got[0].Usage.InputTokens != 900 || got[0].Outcome != agent.OutcomeCompleted {
		t.Errorf("turns of the child %+v", got)
	}
	if after := say(v, s.Root); fmt.Sprint(before) != fmt.Sprint(after) || len(say(v, c.ID)) == 0 {
		t.Errorf("the root said %q and %q", before, after)
	}
}

// B005: after a child had ended, the person's messages went to its thread.
func TestLaterMessageGoesToTheRootThread(t *testing.T) {
	s := withChild(t)
	s.send(completed("T1", "c1", "r1", "completed"), completed(rootThread, "r1", "r1", "completed"))
	s.quiet()
	told := len(say(s.View(), child(t, s.View(), "T1").ID))
	in := s.Submit(s.Root, "and now?")
	go func() { _ = s.rt.Start(t.Context(), in) }()
	m := s.expect(methodTurnStart)
	if m.Params.ThreadID != rootThread {
		t.Errorf("the message went to %s", m.Params.ThreadID)
	}
	s.answer(m, turnAnswer("r2"))
	s.send(started(rootThread, "r2", "r2"), completed(rootThread, "r2", "r2", "completed"))
	if got := len(say(s.View(), child(t, s.View(), "T1").ID)); got != told {
		t.Errorf("the child has %d messages, it had %d", got, told)
	}
}

// B071, B072: some approvals of children were not shown, or could not be answered from
// where the person was.
func TestEveryApprovalOfAChildIsAskedAndAnswered(t *testing.T) {
	s := withChild(t)
	s.quiet()
	const many = 200
	for n := range many {
		s.send(approval(n, "T1", "c1", fmt.Sprintf("x%d", n)))
	}
	v := s.View()
	if len(v.Interactions) != many {
		t.Fatalf("%d questions", len(v.Interactions))
	}
	for n := many - 1; n >= 0; n-- { // in another order
		if err := s.answerWith(s.asked(n), agent.Response{OptionID: "accept"}); err != nil {
			t.Fatal(err)
		}
		if m := s.expect("answer"); string(m.ID) != fmt.Sprint(n) {
			t.Fatalf("answered %s, not %d", m.ID, n)
		}
		s.send(resolvedNote("T1", n))
	}
	for _, i := range s.View().Interactions {
		if i.Status != agent.InteractionAnswered || i.SessionID != child(t, v, "T1").ID {
			t.Errorf("question %s is %s", i.RequestID, i.Status)
		}
	}
}

// 45: output that came before its item's start was lost, or worse, invented an item.
func TestOutputBeforeItsItemIsCounted(t *testing.T) {
	s := withChild(t)
	s.send(note("item/commandExecution/outputDelta", `{"threadId":"T1","turnId":"c1","itemId":"x1","delta":"early"}`))
	s.send(itemNote("completed", "T1", "c1", `{"type":"commandExecution","id":"x1","command":"ls","status":"completed","aggregatedOutput":"early and late"}`))
	v := s.View()
	if got := toolsOf(v, child(t, v, "T1").ID)[itemCommand]; len(got) != 1 || got[0].Output != "early and late" || got[0].Status != agent.MessageCompleted {
		t.Errorf("commands %+v", got)
	}
}
