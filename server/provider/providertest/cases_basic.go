package providertest

import (
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var basicCases = []Case{
	{
		"plain", `Root: says "[root] hello", makes a tool call with some output, says "[root] done", completes.`,
		func(s *stage) {
			s.start("Go.")
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 0, "a child was invented")
			s.check(len(v.ProviderTurns) == 1 && v.ProviderTurns[0].Outcome == agent.OutcomeCompleted, "provider turns: %+v", v.ProviderTurns)
			s.check(v.Root().ProviderSessionID != "", "the provider's session id is not reported")
			calls := 0
			for _, m := range v.MessagesOf(s.Root) {
				s.check(m.Status == agent.MessageCompleted, "message %s %q is %s", m.ID, m.Content, m.Status)
				if m.Kind == agent.MessageToolCall {
					calls++
					s.check(m.Output != "" && m.CallID != "" && m.Name != "", "tool call is %+v", m)
				}
			}
			s.check(calls == 1, "%d tool calls, want 1", calls)
			s.check(v.Holder("[root] hello").ID == s.Root && v.Holder("[root] done").ID == s.Root, "what the root said is missing")
		},
	},
	{
		"child", `Root: delegates to one and waits for it, says "[root] done", completes. One: says "[one] hi", holds at one, completes.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			v := s.View()
			s.check(one.ParentSessionID == s.Root && one.ParentTurnID == s.in.Turn && one.RootTurnID == s.in.Turn, "the edge is %+v", one.Relation)
			s.check(one.LatestTurn.Trigger == agent.TriggerDelegation && one.LatestTurn.Live(), "the child's turn is %+v", one.LatestTurn)
			s.check(alive(v.Turn(s.in.Turn)), "the root ended while its child runs")
			s.release("one")
			s.ends(one.ID, agent.OutcomeCompleted)
			v = s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 1, "%d children, want 1", len(v.Children()))
			s.check(delegation(v, one), "no delegation call names the child")
		},
	},
	{"two-in-order", twoScript + " One ends first.", func(s *stage) { two(s, "one", "two") }},
	{"two-in-reverse", twoScript + " Two ends first.", func(s *stage) { two(s, "two", "one") }},
	{
		"nested", `Root: delegates to one and waits for it, completes. One: says "[one] hi", delegates to nested and waits for it, completes.
Nested: says "[nested] hi", holds at nested, completes.`,
		func(s *stage) {
			s.start("Go.")
			nested, one := s.says("[nested] hi"), s.says("[one] hi")
			s.check(nested.ParentSessionID == one.ID && nested.ParentTurnID == one.LatestTurn.ID, "the nested edge is %+v", nested.Relation)
			s.check(nested.RootSessionID == s.Root && nested.RootTurnID == s.in.Turn, "the nested root is %+v", nested.Relation)
			s.release("nested")
			s.ends(nested.ID, agent.OutcomeCompleted)
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 2, "%d children, want 2", len(v.Children()))
		},
	},
	{
		"root-first", `Root: delegates to one in the background and completes. One: says "[one] hi", holds at one, completes. Nothing follows.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			v := s.await("the root waits for its child", func(v View) bool { return v.Held[s.in.Turn] == agent.HeldByChildren })
			s.check(v.Retained[s.in.Turn] == agent.OutcomeCompleted && v.Turn(s.in.Turn).Phase == agent.PhaseWaiting, "the root's outcome is not retained")
			s.release("one")
			s.ends(one.ID, agent.OutcomeCompleted)
			s.settles(agent.OutcomeCompleted)
			for _, r := range s.Records() {
				if f, ok := r.Fact.(agent.TurnSettled); ok && f.Session == one.ID && r.Applied.Verdict == agent.VerdictApplied {
					s.check(r.Applied.RootSettled != s.reserves, "the root settled with its last child: %v", r.Applied.RootSettled)
				}
			}
		},
	},
	{
		"failing-child", `Root: delegates to one and waits for it, says "[root] done", completes. One: says "[one] hi", holds at one, fails with some reason.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.release("one")
			s.ends(one.ID, agent.OutcomeFailed)
			s.check(s.View().Session(one.ID).LatestTurn.Error != nil, "no reason is given for the failure")
			s.settles(agent.OutcomeCompleted)
		},
	},
}

const twoScript = `Root: delegates to one and two at the same time and waits for both, says "[root] done", completes.
One: says "[one] hi", holds at one, says "[one] bye", completes. Two: says "[two] hi", holds at two, says "[two] bye", completes.`

func two(s *stage, first, second string) {
	s.start("Go.")
	a, b := s.says("["+first+"] hi"), s.says("["+second+"] hi")
	s.check(a.ID != b.ID, "two agents share a session")
	s.release(first)
	s.ends(a.ID, agent.OutcomeCompleted)
	v := s.View()
	s.check(v.Session(b.ID).ActiveTurn != nil && alive(v.Turn(s.in.Turn)), "the end of one touched the other, or the root")
	s.release(second)
	s.ends(b.ID, agent.OutcomeCompleted)
	v = s.settles(agent.OutcomeCompleted)
	s.check(len(v.Children()) == 2, "%d children, want 2", len(v.Children()))
	s.check(v.Holder("["+first+"] bye").ID == a.ID && v.Holder("["+second+"] bye").ID == b.ID, "last words are missing")
}

// delegation reports whether a tool call of the parent's turn names the child.
func delegation(v View, child agent.Session) bool {
	for _, m := range v.MessagesOf(child.ParentSessionID) {
		if m.Kind == agent.MessageToolCall && m.TurnID == child.ParentTurnID && m.ChildSessionID == child.ID {
			return child.ParentToolCallID == "" || m.CallID == child.ParentToolCallID
		}
	}
	return false
}

// times counts how often somebody other than a person said text.
func times(v View, text string) int {
	n := 0
	for _, m := range v.Messages {
		if m.Role != agent.RoleUser && (m.Kind == agent.MessageText || m.Kind == agent.MessageThinking) {
			n += strings.Count(m.Content, text)
		}
	}
	return n
}

func alive(t agent.Turn) bool { return t.Live() }
