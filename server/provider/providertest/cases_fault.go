package providertest

import "github.com/turnkeeper/turnkeeper/server/agent"

var faultCases = []Case{
	{
		"late", `Root: delegates to one in the background, says "[root] hello", completes. One: says "[one] hi", completes; after that it says "[one] late"
and is reported as failed. Second message: root says "[root] again", completes.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.ends(one.ID, agent.OutcomeCompleted)
			s.settles(agent.OutcomeCompleted)
			s.again()
			s.says("[root] again")
			v := s.settles(agent.OutcomeCompleted)
			s.check(v.Session(one.ID).LatestTurn.Outcome == agent.OutcomeCompleted, "a late terminal changed the child")
			s.check(len(v.Children()) == 1, "%d children, want 1", len(v.Children()))
		},
	},
	{
		"duplicates", `As child, but the provider sends everything twice: texts, tool calls, the delegation, starts and ends.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.release("one")
			s.ends(one.ID, agent.OutcomeCompleted)
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 1, "%d children, want 1", len(v.Children()))
			s.check(len(v.ProviderTurns) == 1, "%d provider turns, want 1", len(v.ProviderTurns))
			s.check(times(v, "[one] hi") == 1 && times(v, "[root] done") == 1, "something was said twice")
		},
	},
	{
		"garbage", `As plain, but between its frames the provider sends what nobody understands.`,
		func(s *stage) {
			s.start("Go.")
			v := s.settles(agent.OutcomeCompleted)
			s.check(v.Holder("[root] done").ID == s.Root, "what the root said is missing")
			s.check(len(s.Diagnostics()) > 0, "nothing was counted")
		},
	},
	{
		"early", `As child, but one's own events, up to "[one] hi", come before the delegation does.`,
		func(s *stage) {
			s.start("Go.")
			one := s.says("[one] hi")
			s.check(one.ParentSessionID == s.Root, "the early child hangs below %s", one.ParentSessionID)
			s.release("one")
			s.ends(one.ID, agent.OutcomeCompleted)
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 1, "%d children, want 1", len(v.Children()))
		},
	},
	{
		"orphan", `Root: says "[root] hello" while events of an agent come that nothing ever delegates to, among them "[stray] hi"; root completes.`,
		func(s *stage) {
			s.start("Go.")
			v := s.settles(agent.OutcomeCompleted)
			s.check(len(v.Children()) == 0, "a child was invented")
			s.check(v.Holder("[stray] hi").ID == "", "words of nobody's agent are shown")
			s.check(len(s.Diagnostics()) > 0, "nothing was counted")
		},
	},
}
