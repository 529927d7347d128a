//go:build providers

package claude_test

import (
	"fmt"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// A stop races a launch, at each moment at which a person may press it: no child that came
// of it is left running, whether it was seen or not.
func TestRealLaunchRacesAStop(t *testing.T) {
	const rounds, most = 12, 48
	for name, launch := range map[string]func(call, child, task string) ToolCall{"foreground": Foreground, "background": Background} {
		t.Run(name, func(t *testing.T) {
			script := Script{}
			for n := range most { // a stopped turn may have asked once more than it used
				child := fmt.Sprintf("c%d", n)
				script["root"] = append(script["root"], Reply{Gate(fmt.Sprintf("g%d", n+1)), launch(fmt.Sprintf("toolu_%d", n), child, "work")})
				script[child] = []Reply{{Gate("never"), Say("x")}}
			}
			r := startReal(t, script, options{})
			for round := range rounds {
				before := len(r.Model.Requests("root"))
				in := r.Say(fmt.Sprintf("Round %d", round))
				r.Must(r.Model.WaitRequests(r.Ctx, "root", before+1))
				sessions, messages := len(r.View().Sessions), len(r.View().Messages)
				r.Model.Open(fmt.Sprintf("g%d", before+1))
				switch round % 4 {
				case 1:
					r.Until("the launch is seen", func(v providertest.View) bool { return len(v.Messages) > messages })
				case 2:
					r.Until("the child is seen", func(v providertest.View) bool { return len(v.Sessions) > sessions })
				case 3:
					r.Must(r.Model.WaitRequests(r.Ctx, fmt.Sprintf("c%d", before), 1))
				}
				r.Cancel(in.Turn)
				r.WantRoot(agent.OutcomeCanceled)
				r.Must(r.Model.WaitLeft(r.Ctx, "never"))
			}
			view := r.View()
			for _, u := range view.Turns {
				if u.Live() {
					t.Errorf("turn %s is %s", u.ID, u.Phase)
				}
			}
			for _, m := range view.Messages {
				if !m.Status.Ended() {
					t.Errorf("message %s %q is %s", m.Name, m.Content, m.Status)
				}
			}
		})
	}
}

// A stop races the end of the turn: whichever comes first, the turn ends once and the next
// message is answered.
func TestRealEndRacesAStop(t *testing.T) {
	const rounds = 10
	script := Script{}
	for n := range rounds {
		script["root"] = append(script["root"], Reply{Gate(fmt.Sprintf("g%d", n+1)), Say(fmt.Sprintf("Answer %d.", n+1))})
	}
	r := startReal(t, script, options{})
	ends := map[agent.Outcome]int{}
	for range rounds {
		before := len(r.Model.Requests("root"))
		in := r.Say("Go")
		r.Must(r.Model.WaitRequests(r.Ctx, "root", before+1))
		messages := len(r.View().Messages)
		r.Model.Open(fmt.Sprintf("g%d", before+1))
		if before%2 == 1 {
			r.Until("the answer is seen", func(v providertest.View) bool { return len(v.Messages) > messages })
		}
		r.Cancel(in.Turn)
		v := r.Until("the root settles", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseSettled })
		ends[v.RootTurn().Outcome]++
	}
	if ends[agent.OutcomeCompleted]+ends[agent.OutcomeCanceled] != rounds {
		t.Errorf("ends %v", ends)
	}
	r.Model.Next("root", Reply{Say("Here I am.")})
	r.Say("Are you there?")
	v := r.WantRoot(agent.OutcomeCompleted)
	if m := v.Messages[len(v.Messages)-1]; m.Content != "Here I am." {
		t.Errorf("the last message is %q", m.Content)
	}
}

// Two stops of one child, and a stop of the root while a child's is under way.
func TestRealStopsAtOnce(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a"), Background("toolu_b", "b", "task b")}, {Say("Started both.")}, {Gate("never"), Say("x")}},
		"a":    {{Gate("never"), Say("x")}},
		"b":    {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use two, do not wait")
	a := s.Agent("a")
	s.Agent("b")
	s.Waits(agent.HeldByChildren)
	root := s.Detail().Session.ActiveTurn.ID
	var ops []agent.OperationID
	for _, target := range []struct {
		session agent.SessionID
		turn    agent.TurnID
	}{{a.ID, a.LatestTurn.ID}, {a.ID, a.LatestTurn.ID}, {s.Root, root}} {
		op, _, err := s.Service.Cancel(s.Ctx, s.Ws, target.session, target.turn, "test")
		s.Must(err)
		ops = append(ops, op.ID)
	}
	s.Settles(agent.OutcomeCanceled)
	s.Ends("a", agent.OutcomeCanceled)
	s.Ends("b", agent.OutcomeCanceled)
	for _, id := range ops {
		s.Until("the stop is carried out", func(agent.SessionDetail) bool {
			op, err := s.Store.Operation(s.Ctx, s.Ws, id)
			s.Must(err)
			return op.Status == agent.OperationSucceeded
		})
	}
	s.Must(s.Model.WaitLeft(s.Ctx, "never"))
	s.Model.Next("root", Reply{Say("Here I am.")}) // a may have had a continuation
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.Reconcile()
	s.wantTurns(2, agent.TriggerUser)
}
