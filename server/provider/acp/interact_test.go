package acp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// A permission whose id is 0 is the child's that asks, and is answered once, with that id.
func TestPermissionWithIDZero(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		var got acp.PermissionOutcome
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.ask("one", func(o acp.PermissionOutcome) { got = o })
		})
		i := s.asked()
		if i.SessionID != s.child("one").ID || i.ProviderTurnID != "0" || i.Owner != agent.OwnerExact || i.Detail.Command != "make" || i.Detail.Cwd != "/w" || i.Detail.CallID != "run" {
			s.t.Errorf("the question is %+v", i)
		}
		if i.Options[0].Role != agent.RoleAllow || i.Options[1].Role != agent.RoleDeny {
			s.t.Errorf("the options are %+v", i.Options)
		}
		if err := s.answers(i, agent.Response{OptionID: "yes"}); err != nil {
			s.t.Fatal(err)
		}
		if got.Outcome != "selected" || got.OptionID != "yes" {
			s.t.Errorf("the agent got %+v", got)
		}
		s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"selected","optionId":"yes"}}`, 1)
	})
}

// A question that the agent takes back is answered once, with cancelled; a late reply of
// the person is refused (claude-agent-acp#851: ids out of step).
func TestWithdrawnPermission(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.ask("one", func(acp.PermissionOutcome) {})
		})
		i := s.asked()
		s.does(func(p *puppet) { p.withdraw() })
		s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"cancelled"}}`, 1)
		err := s.rt.Answer(s.t.Context(), provider.Answer{Interaction: i, Response: agent.Response{OptionID: "yes"}})
		if !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
			s.t.Errorf("a late reply: %v", err)
		}
		if v := s.View().Interactions[0]; v.Status != agent.InteractionSuperseded {
			s.t.Errorf("the question is %s", v.Status)
		}
		// A new one of the same child works.
		s.does(func(p *puppet) { p.ask("one", func(acp.PermissionOutcome) {}) })
		if err := s.answers(s.asked(), agent.Response{OptionID: "no"}); err != nil {
			s.t.Error(err)
		}
		s.p.wrote(s.t, `answer 1 {"outcome":{"outcome":"selected","optionId":"no"}}`, 1)
	})
}

// A stop of the root, or of the child, answers what is asked there: the agent may wait for
// that (goose#11651). A withdrawal that crosses the answer changes nothing.
func TestStopAnswersOpenPermissions(t *testing.T) {
	for name, whole := range map[string]bool{"root": true, "child": false} {
		t.Run(name, func(t *testing.T) {
			play(t, both, func(s *stage) {
				s.start()
				s.does(func(p *puppet) {
					p.delegate("one", rootSession)
					p.ask("one", func(o acp.PermissionOutcome) {
						if o.Outcome == "cancelled" {
							p.end("one", acp.StopCancelled)
							if whole {
								p.end(rootSession, acp.StopCancelled)
							}
						}
					})
					p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel } // it waits for the answer
				})
				s.asked()
				turn := s.in.Turn
				if !whole {
					turn = s.child("one").LatestTurn.ID
				}
				got := s.cancel(turn).completes()
				if got[s.child("one").ID] != agent.TargetCanceled {
					s.t.Errorf("targets read %v", got)
				}
				s.does(func(p *puppet) { p.withdrawID(0) })
				s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"cancelled"}}`, 1)
				s.ended("one", agent.OutcomeCanceled)
			})
		})
	}
}

// A child that reuses its session asks in its new turn: that question is withdrawn with
// that turn, not with the first (microsoft/vscode#337339).
func TestPermissionInALaterAssignment(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end("one", acp.StopEndTurn)
			p.run("one")
			p.ask("one", func(acp.PermissionOutcome) {})
		})
		i := s.asked()
		if i.TurnID != s.child("one").LatestTurn.ID {
			s.t.Errorf("the question belongs to %s", i.TurnID)
		}
		s.does(func(p *puppet) { p.end("one", acp.StopError) })
		if v := s.View().Interactions[0]; v.Status != agent.InteractionSuperseded {
			s.t.Errorf("the question is %s", v.Status)
		}
		s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"cancelled"}}`, 1)
	})
}

// The status of a tool call says nothing of the question about it (anomalyco/opencode#14301:
// in_progress closes the dialog).
func TestToolStatusResolvesNoQuestion(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.ask("one", func(acp.PermissionOutcome) {})
			for _, status := range []acp.ToolStatus{acp.ToolPending, acp.ToolRunning} {
				p.update("one", acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "run", Status: acp.Some(status)})
			}
		})
		s.asked()
	})
}

// A question of a nested child is that child's (anomalyco/opencode#44747: dropped at depth
// two).
func TestNestedPermission(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", "one")
			p.ask("two", func(acp.PermissionOutcome) {})
		})
		if i := s.asked(); i.SessionID != s.child("two").ID {
			s.t.Errorf("the question belongs to %s", i.SessionID)
		}
	})
}

// Siblings at the third depth that ask at once are two questions, each of its own agent and
// answered by itself (anomalyco/opencode#24644, #39112).
func TestSiblingsAskAtOnce(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		got := map[string]string{}
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.delegate("two", "one")
			for _, who := range []string{"a", "b"} {
				p.delegate(who, "two")
				p.ask(who, func(o acp.PermissionOutcome) { got[who] = o.OptionID })
			}
		})
		pending := s.View().Pending()
		if len(pending) != 2 {
			s.t.Fatalf("%d questions", len(pending))
		}
		for _, i := range pending {
			option := map[agent.SessionID]string{s.child("a").ID: "yes", s.child("b").ID: "no"}[i.SessionID]
			if err := s.answers(i, agent.Response{OptionID: option}); err != nil {
				s.t.Error(err)
			}
		}
		if got["a"] != "yes" || got["b"] != "no" {
			s.t.Errorf("the agent got %v", got)
		}
	})
}

// A request never overtakes the announcement of its child (Memoh#953): it waits for it, and
// is refused when nobody announces that child (decisions.md 25).
func TestPermissionBeforeTheAnnouncement(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.ask("one", func(acp.PermissionOutcome) {})
			p.ask("stray", func(acp.PermissionOutcome) {})
		})
		if n := len(s.View().Interactions); n != 0 {
			s.t.Fatalf("%d questions of nobody are shown", n)
		}
		s.does(func(p *puppet) {
			p.announce("one", rootSession)
			p.run("one")
			p.says("one", "hi")
		})
		if i := s.asked(); i.SessionID != s.child("one").ID {
			s.t.Errorf("the question belongs to %s", i.SessionID)
		}
		s.does(func(p *puppet) {
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.p.wrote(s.t, `answer 1 {"outcome":{"outcome":"cancelled"}}`, 1)
		if s.Diagnosed(provider.Held) == 0 || s.Diagnosed(provider.Refused) == 0 {
			s.t.Errorf("nothing was counted: %+v", s.Diagnostics())
		}
	})
}

// What is held for sessions that nobody announces is bounded; what does not fit is counted
// and its questions are answered.
func TestHeldTrafficIsBounded(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			for range maxHeldLines + 20 {
				p.says("one", "x")
			}
			p.ask("one", func(acp.PermissionOutcome) {})
		})
		if got := s.Diagnosed(provider.Unrouted); got < 21 {
			s.t.Errorf("%d lines were counted as lost, want 21 at least", got)
		}
		s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"cancelled"}}`, 1)
	})
}

// An answer that cannot be written is no answer (spec: a failed permission answer).
func TestAnswerThatCannotBeWritten(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.ask("one", func(acp.PermissionOutcome) {})
		})
		i := s.asked()
		s.p.onHeard = nil
		a, err := s.PrepareAnswer(i, agent.Response{OptionID: "yes"})
		if err != nil {
			s.t.Fatal(err)
		}
		s.p.End("signal: killed")
		err = s.rt.Answer(s.t.Context(), a)
		s.CompleteAnswer(a, err)
		s.pass(time.Second)
		if err == nil || s.View().Interactions[0].Status == agent.InteractionAnswered {
			s.t.Errorf("err %v, the question is %s", err, s.View().Interactions[0].Status)
		}
	})
}

// A form, an address to visit, and a form of nobody's session.
func TestElicitation(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) { p.delegate("one", rootSession) })
		s.line(`{"jsonrpc":"2.0","id":"f","method":"elicitation/create","params":{"mode":"form","message":"Which?","sessionId":"one","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","title":"Number"}},"required":["n"]}}}`)
		i := s.asked()
		if i.Kind != agent.InteractionElicitation || i.SessionID != s.child("one").ID || len(i.Detail.Questions) != 1 || i.Owner != agent.OwnerExact {
			s.t.Fatalf("the question is %+v", i)
		}
		if err := s.answers(i, agent.Response{Answers: map[string]string{"n": "7"}}); err != nil {
			s.t.Fatal(err)
		}
		s.p.wrote(s.t, `answer "f" {"action":"accept","content":{"n":7}}`, 1)

		s.line(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"mode":"url","message":"Sign in","requestId":1,"elicitationId":"e","url":"https://example.com"}}`)
		i = s.asked()
		if i.SessionID != s.Root || i.Owner != agent.OwnerUnknown || !strings.Contains(i.Detail.Text, "https://example.com") {
			s.t.Errorf("the question is %+v", i)
		}
		s.line(`{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}`)
		if n := len(s.View().Pending()); n != 0 {
			s.t.Errorf("%d questions are open", n)
		}
		s.p.wrote(s.t, `answer 7 {"action":"accept"}`, 1)

		s.line(`{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"mode":"dance","message":"?"}}`)
		s.p.wrote(s.t, "refusal 8", 1)
	})
}

func TestWhatAPermissionShows(t *testing.T) {
	var q acp.PermissionRequest
	raw := `{"sessionId":"R","toolCall":{"toolCallId":"p","title":"Ready?","kind":"switch_mode","rawInput":{"plan":"1. Do it"},
		"content":[{"type":"diff","path":"/w/a","oldText":"x\n","newText":"y\n"}]},"options":[{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"b","name":"B","kind":"maybe"}]}`
	if err := json.Unmarshal([]byte(raw), &q); err != nil {
		t.Fatal(err)
	}
	i := describePermission(&q)
	if i.Kind != agent.InteractionPlan || i.Detail.Text != "1. Do it" || !strings.Contains(i.Detail.Diff, "-x\n+y") ||
		i.Options[0].Role != agent.RoleAllowAlways || i.Options[1].Role != agent.RoleOther {
		t.Errorf("%+v", i)
	}
	for in, want := range map[string]string{`"make it"`: "make it", `["make","it"]`: "make it", `7`: "", `null`: ""} {
		if got := commandOf(json.RawMessage(in)); got != want {
			t.Errorf("%s is %q", in, got)
		}
	}
	if _, err := permit(q.Options, agent.Response{OptionID: "c"}); err == nil {
		t.Error("an option that was not offered was taken")
	}
}
