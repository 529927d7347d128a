package demo

import (
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// asked is one open question.
type asked struct {
	player  *player
	request agent.RequestID
	step    Ask
	asked   agent.Interaction
	timer   *timer // of the withdrawal
}

func (s Ask) play(p *player) bool {
	a := &asked{player: p, request: p.rt.sink.Mint().Request(), step: s}
	i := agent.Interaction{
		SessionID: p.session, TurnID: p.turn, RequestID: a.request, Kind: s.Kind, Title: s.Title, Detail: s.Detail,
		Options: []agent.Option{}, Owner: agent.OwnerExact,
	}
	for _, c := range s.Choices {
		i.Options = append(i.Options, c.Option)
	}
	if p.pt != nil {
		i.ProviderTurnID = string(p.pt.key)
	}
	a.asked = i
	if applied := p.report(agent.InteractionAsked{Interaction: i}); applied.Verdict == agent.VerdictRefused {
		return true // nobody can answer: the agent is told no, and goes on
	}
	p.rt.asks[a.request] = a
	if s.Withdraw > 0 {
		a.timer = p.rt.timer(p.rt.adapter.scaled(s.Withdraw), a.withdraw)
	}
	return false
}

// answer takes a person's answer and plays what follows it.
func (a *asked) answer(r agent.Response) {
	p := a.player
	delete(p.rt.asks, a.request)
	a.forget()
	p.report(agent.InteractionEnded{Session: p.session, Turn: p.turn, Request: a.request, Step: agent.AskDelivered})
	chosen := a.asked.Chosen(r)
	for _, c := range a.step.Choices {
		if c.Option.ID == chosen {
			p.push(c.Steps)
			if c.Option.Role == agent.RoleAbort && len(c.Steps) == 0 {
				p.push([]Step{End{Outcome: agent.OutcomeInterrupted}})
			}
			break
		}
	}
	p.later(250*time.Millisecond, p.next)
}

// withdraw takes the question back.
func (a *asked) withdraw() {
	p := a.player
	a.timer = nil
	delete(p.rt.asks, a.request)
	p.report(agent.InteractionEnded{Session: p.session, Turn: p.turn, Request: a.request, Step: agent.AskWithdraw})
	p.later(250*time.Millisecond, p.next)
}

func (a *asked) forget() { a.player.rt.stopTimer(a.timer) }
