package codex

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// child is the session of a thread.
func child(t *testing.T, v providertest.View, thread string) agent.Session {
	t.Helper()
	for _, s := range v.Sessions {
		if s.Handles.ThreadID == thread {
			return s
		}
	}
	t.Fatalf("no session has thread %s", thread)
	return agent.Session{}
}

// turnsOf are the turns of a session, oldest first.
func turnsOf(v providertest.View, session agent.SessionID) []agent.Turn {
	return slices.DeleteFunc(slices.Clone(v.Turns), func(u agent.Turn) bool { return u.SessionID != session })
}

// say renders the messages of a session: role, kind, status and text of each.
func say(v providertest.View, session agent.SessionID) []string {
	var out []string
	for _, m := range v.Messages {
		if m.SessionID != session {
			continue
		}
		text := m.Content
		if m.Kind == agent.MessageToolCall {
			text = m.Name + " " + m.Title
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", m.Role, m.Kind, m.Status, text))
	}
	return out
}

func wantOutcome(t *testing.T, turn agent.Turn, want agent.Outcome) {
	t.Helper()
	if turn.Phase != agent.PhaseSettled || turn.Outcome != want {
		t.Errorf("turn %s is %s %s, want settled %s", turn.ID, turn.Phase, turn.Outcome, want)
	}
}

func TestBothSpawnShapesMakeOneChild(t *testing.T) {
	for name, spawn := range map[string]func(a, b, c, d string) []string{"v1": spawnV1, "v2": spawnV2} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			in := s.begin("go", "r1")
			edge := spawn(rootThread, "r1", "call_a", "T1")
			s.send(edge...)
			s.send(edge...) // said twice
			s.send(started("T1", "c1", "r1"))
			s.send(said("T1", "c1", "m1", "child speaks")...)
			s.send(edge...)
			s.send(completed(rootThread, "r1", "r1", "completed"))
			v := s.View()
			if v.RootTurn().Phase != agent.PhaseWaiting || v.Held[in.Turn] != agent.HeldByChildren {
				t.Errorf("root is %s, held by %q", v.RootTurn().Phase, v.Held[in.Turn])
			}
			s.send(completed("T1", "c1", "r1", "completed"))

			v = s.View()
			if len(v.Sessions) != 2 {
				t.Fatalf("%d sessions", len(v.Sessions))
			}
			c := child(t, v, "T1")
			if c.ParentSessionID != s.Root || c.ParentTurnID != in.Turn || c.ParentToolCallID != "call_a" || c.Title == "" {
				t.Errorf("edge of the child: %+v, title %q", c.Relation, c.Title)
			}
			turns := turnsOf(v, c.ID)
			if len(turns) != 1 || turns[0].Trigger != agent.TriggerDelegation || turns[0].NativeID != "c1" {
				t.Errorf("turns of the child: %+v", turns)
			}
			wantOutcome(t, turns[0], agent.OutcomeCompleted)
			wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
			if got := say(v, c.ID); !slices.Equal(got, []string{"assistant text completed: child speaks"}) {
				t.Errorf("the child says %q", got)
			}
			calls := slices.DeleteFunc(v.Messages, func(m agent.Message) bool { return m.Kind != agent.MessageToolCall })
			if len(calls) != 1 || calls[0].ChildSessionID != c.ID || calls[0].Status != agent.MessageCompleted {
				t.Errorf("delegation calls: %+v", calls)
			}
		})
	}
}

func TestNestedChildHangsBelowItsOwnParent(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	s.send(spawnV1("T1", "c1", "call_b", "T2")...)
	s.send(started("T2", "g1", "r1"))
	s.send(completed("T1", "c1", "r1", "completed"), completed(rootThread, "r1", "r1", "completed"))
	v := s.View()
	parent, nested := child(t, v, "T1"), child(t, v, "T2")
	if nested.ParentSessionID != parent.ID || nested.ParentTurnID != turnsOf(v, parent.ID)[0].ID || nested.RootTurnID != in.Turn {
		t.Errorf("edge of the grandchild: %+v", nested.Relation)
	}
	if v.RootTurn().Phase != agent.PhaseWaiting {
		t.Errorf("root is %s while a grandchild runs", v.RootTurn().Phase)
	}
	s.send(completed("T2", "g1", "r1", "failed"))
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted) // its own outcome, not the grandchild's
}

func TestEventsBeforeTheEdgeAreHeldAndApplied(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "")...)
	s.send(started("T1", "c1", "r1"))
	s.send(said("T1", "c1", "m1", "early words")...)
	s.send(approval(0, "T1", "c1", "x"))
	if v := s.View(); len(v.Sessions) != 1 || len(say(v, s.Root)) != 2 {
		t.Errorf("something was shown before the edge: %q", say(v, s.Root))
	}
	if n := s.Diagnosed(provider.Held); n != 5 {
		t.Errorf("%d frames held, want 5", n)
	}
	s.quiet()
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	v := s.View()
	c := child(t, v, "T1")
	if got := say(v, c.ID); !slices.Equal(got, []string{"assistant text completed: early words"}) {
		t.Errorf("the child says %q", got)
	}
	if len(v.Interactions) != 1 || v.Interactions[0].SessionID != c.ID {
		t.Errorf("interactions: %+v", v.Interactions)
	}
}

// A child that no edge names is adopted once its root's terminal comes, before it.
func TestChildWithoutEdgeIsAdoptedBeforeTheRootEnds(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "")...)
	s.send(started("T1", "c1", "r1"))
	s.send(completed(rootThread, "r1", "r1", "completed"))
	read := s.expect(methodThreadRead)
	if got := s.View().RootTurn().Phase; got != agent.PhaseRunning {
		t.Errorf("root is %s before the child is there", got)
	}
	s.answer(read, `{"thread":{"id":"T1","parentThreadId":"T0","preview":"do call_a","agentNickname":"Bohr"}}`)
	v := s.View()
	c := child(t, v, "T1")
	if c.ParentSessionID != s.Root || c.ParentTurnID != in.Turn || c.ParentToolCallID != "call_a" || c.Title != "do call_a" {
		t.Errorf("adopted as %+v, title %q", c.Relation, c.Title)
	}
	if v.RootTurn().Phase != agent.PhaseWaiting {
		t.Errorf("root is %s while the adopted child runs", v.RootTurn().Phase)
	}
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...) // the edge after all: nothing new
	s.send(completed("T1", "c1", "r1", "completed"))
	if v := s.View(); len(v.Sessions) != 2 {
		t.Errorf("%d sessions", len(v.Sessions))
	}
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCompleted)
}

func TestChildWithoutEdgeIsAdoptedAfterTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		s.send(started("T1", "c1", "r1"))
		<-time.After(adoptBound)
		s.answer(s.expect(methodThreadRead), `{"thread":{"id":"T1","source":{"subAgent":{"thread_spawn":{"parent_thread_id":"T0","agent_path":"/root/a"}}}}}`)
		if c := child(t, s.View(), "T1"); c.ParentSessionID != s.Root || c.Title != "a" {
			t.Errorf("adopted as %+v, title %q", c.Relation, c.Title)
		}
		s.send(started("T2", "c2", "r1"))
		<-time.After(adoptBound)
		s.expect(methodThreadRead)
		<-time.After(adoptBound) // no answer: it runs below the root all the same
		synctest.Wait()
		if c := child(t, s.View(), "T2"); c.ParentSessionID != s.Root {
			t.Errorf("adopted as %+v", c.Relation)
		}
		s.close()
	})
}

func TestNestedOrphansAreAdoptedParentsFirst(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(started("T2", "g1", "r1"), started("T1", "c1", "r1"))
	s.send(completed(rootThread, "r1", "r1", "completed"))
	first, second := s.expect(methodThreadRead), s.expect(methodThreadRead)
	if first.Params.ThreadID == "T1" {
		first, second = second, first
	}
	s.answer(first, `{"thread":{"id":"T2","parentThreadId":"T1"}}`)
	s.answer(second, `{"thread":{"id":"T1","parentThreadId":"T0"}}`)
	v := s.View()
	if got := child(t, v, "T2").ParentSessionID; got != child(t, v, "T1").ID {
		t.Errorf("the grandchild hangs below %s", got)
	}
	if v.RootTurn().Phase != agent.PhaseWaiting {
		t.Errorf("root is %s", v.RootTurn().Phase)
	}
}

func TestForeignThreadNeverTouchesTheRoot(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	before := s.View()
	s.send(started("X", "x1", "elsewhere"))
	s.send(said("X", "x1", "m1", "foreign words")...)
	s.send(note("thread/tokenUsage/updated", `{"threadId":"X","turnId":"x1","tokenUsage":{"total":{"inputTokens":9}}}`))
	s.send(completed("X", "x1", "elsewhere", "failed"))
	s.send(approval(7, "X", "x1", "x"))
	if m := s.expect("refusal"); string(m.ID) != "7" {
		t.Errorf("request %s was refused", m.ID)
	}
	after := s.View()
	if len(after.Sessions) != 1 || len(after.Messages) != len(before.Messages) || len(after.Interactions) != 0 ||
		after.RootTurn().Phase != agent.PhaseRunning || after.RootTurn().Usage != (agent.Usage{}) {
		t.Errorf("the root was touched: %+v", after.RootTurn())
	}
	if s.Diagnosed(provider.Refused) != 1 {
		t.Error("the refusal was not counted")
	}
}

func TestHeldFramesAreBounded(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	for range maxHeldFrames + 10 {
		s.send(note("item/agentMessage/delta", `{"threadId":"T1","turnId":"c1","itemId":"m","delta":"x"}`))
	}
	if n := s.Diagnosed(provider.Unrouted); n != 10 {
		t.Errorf("%d frames dropped, want 10", n)
	}
	for i := range maxHeldThreads {
		s.send(started(fmt.Sprintf("Y%d", i), "y", "elsewhere"))
	}
	if n := s.Diagnosed(provider.Unrouted); n != 11 {
		t.Errorf("%d dropped after too many threads, want 11", n)
	}
}

func TestSecondTurnOfAChildIsGuidance(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV2(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"), completed("T1", "c1", "r1", "completed"))
	s.send(started("T1", "c2", "r1"))
	s.send(started("T1", "c2", "r1"))
	s.send(completed(rootThread, "r1", "r1", "completed"))
	if got := s.View().RootTurn().Phase; got != agent.PhaseWaiting {
		t.Errorf("root is %s while a second turn of the child runs", got)
	}
	s.send(completed("T1", "c2", "r1", "completed"), completed("T1", "c2", "r1", "completed"))
	v := s.View()
	turns := turnsOf(v, child(t, v, "T1").ID)
	if len(turns) != 2 || turns[1].Trigger != agent.TriggerGuidance || turns[1].NativeID != "c2" {
		t.Fatalf("turns of the child: %+v", turns)
	}
	wantOutcome(t, turns[1], agent.OutcomeCompleted)
	wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
}

func TestRefusedAndAbandonedSpawnsCreateNothing(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(itemNote("completed", rootThread, "r1",
		`{"type":"collabAgentToolCall","id":"call_a","tool":"spawnAgent","status":"failed","prompt":"p","receiverThreadIds":[]}`))
	s.send(spawnV1(rootThread, "r1", "call_b", "")...)
	s.send(completed(rootThread, "r1", "r1", "interrupted"))
	v := s.View()
	if len(v.Sessions) != 1 {
		t.Errorf("%d sessions", len(v.Sessions))
	}
	want := []string{
		"user text undelivered: go",
		"tool tool_call failed: spawnAgent Start agent: p",
		"tool tool_call interrupted: spawnAgent Start agent: do call_b",
	}
	if got := say(v, s.Root); !slices.Equal(got, want) {
		t.Errorf("the root says %q", got)
	}
}
