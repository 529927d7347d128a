package providertest

import (
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

const askScript = `Root: delegates to one and waits for it, completes. One: says "[one] hi", asks to run a command; `

var askCases = []Case{
	{"approval-accept", askScript + `if allowed says "[one] ran", completes.`, func(s *stage) { approval(s, agent.RoleAllow, "[one] ran") }},
	{"approval-decline", askScript + `if denied says "[one] skipped", completes.`, func(s *stage) { approval(s, agent.RoleDeny, "[one] skipped") }},
	{
		"root-approval", `Root: says "[root] hello", asks to run a command; if allowed says "[root] ran", completes.`,
		func(s *stage) {
			s.start("Go.")
			i := s.asked()
			s.check(i.SessionID == s.Root && i.TurnID == s.in.Turn, "the root's question belongs to %s %s", i.SessionID, i.TurnID)
			s.check(s.View().Held[s.in.Turn] == agent.HeldByPrompt, "the root is held by %q", s.View().Held[s.in.Turn])
			s.answer(i, agent.RoleAllow)
			s.says("[root] ran")
			s.settles(agent.OutcomeCompleted)
		},
	},
	{
		"withdrawn", askScript + `the provider itself takes the question back (after 3 s, or at the point withdraw); one says "[one] went on", completes.`,
		func(s *stage) {
			s.start("Go.")
			i := s.asked()
			s.release("withdraw")
			v := s.await("the question is withdrawn", func(v View) bool { return v.Interactions[0].Status == agent.InteractionSuperseded })
			s.check(v.Interactions[0].Response == nil, "a withdrawn question has an answer")
			err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: i.Options[0].ID}})
			s.check(err != nil, "an answer to a withdrawn question was taken")
			s.says("[one] went on")
			s.settles(agent.OutcomeCompleted)
		},
	},
	{
		"unknown-answer", `As plain.`,
		func(s *stage) {
			s.start("Go.")
			i := agent.Interaction{SessionID: s.Root, TurnID: s.in.Turn, RequestID: "req_nobody", Kind: agent.InteractionApproval}
			err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: "allow"}})
			s.check(err != nil, "an answer to a question that nobody asked was taken")
			s.settles(agent.OutcomeCompleted)
		},
	},
}

// asked waits for the one open question.
func (s *stage) asked() agent.Interaction {
	s.t.Helper()
	v := s.await("a question", func(v View) bool { return len(v.Pending()) > 0 })
	s.check(len(v.Pending()) == 1, "%d questions, want 1", len(v.Pending()))
	return v.Pending()[0]
}

// answer gives the first option with a role, and checks that it was taken once.
func (s *stage) answer(i agent.Interaction, role string) {
	s.t.Helper()
	option := ""
	for _, o := range i.Options {
		if o.Role == role && option == "" {
			option = o.ID
		}
	}
	s.check(option != "", "the question offers nothing with role %q: %+v", role, i.Options)
	a, err := s.PrepareAnswer(i, agent.Response{OptionID: option})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.rt.Answer(s.t.Context(), a); err != nil {
		s.t.Fatalf("Answer: %v", err)
	}
	s.CompleteAnswer(a, nil)
	s.check(s.rt.Answer(s.t.Context(), a) != nil, "the same question took two answers")
}

func approval(s *stage, role, then string) {
	s.start("Go.")
	one := s.says("[one] hi")
	i := s.asked()
	s.check(i.SessionID == one.ID && i.TurnID == one.LatestTurn.ID, "the child's question belongs to %s %s", i.SessionID, i.TurnID)
	s.check(i.Kind == agent.InteractionApproval && i.Owner == agent.OwnerExact, "the question is %s with owner %q", i.Kind, i.Owner)
	s.check(i.Title != "" && i.Detail.Command != "", "the question does not say what would run: %+v", i)
	s.check(s.View().Turn(i.TurnID).Phase == agent.PhaseWaiting, "the child does not wait")
	s.answer(i, role)
	s.says(then)
	s.ends(one.ID, agent.OutcomeCompleted)
	v := s.settles(agent.OutcomeCompleted)
	s.check(v.Interactions[0].Status == agent.InteractionAnswered, "the question is %s", v.Interactions[0].Status)
}
