package acp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// A prompt that is refused fails its turn, and its message was not delivered; one whose
// error comes after the agent has spoken was.
func TestRefusedPrompt(t *testing.T) {
	play(t, both, func(s *stage) {
		s.p.onHeard = func(m line) bool {
			if m.Method != acp.MethodPrompt {
				return false
			}
			s.p.refuse(m.ID, -32603, "overloaded")
			return true
		}
		s.in = s.Submit(s.Root, "Go.")
		_ = s.rt.Start(s.t.Context(), s.in) // told either way
		s.pass(0)
		s.rooted(agent.OutcomeFailed)
		v := s.View()
		if e := v.Turn(s.in.Turn).Error; e == nil || !strings.Contains(e.Message, "overloaded") {
			s.t.Errorf("the reason is %v", e)
		}
		if m := v.MessagesOf(s.Root)[0]; m.Status != agent.MessageUndelivered {
			s.t.Errorf("the message is %s", m.Status)
		}
	})
	play(t, one, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.says(rootSession, "hello")
			p.refuse(p.prompt, -32603, "broken")
		})
		s.rooted(agent.OutcomeFailed)
		if m := s.View().MessagesOf(s.Root)[0]; m.Status != agent.MessageCompleted {
			s.t.Errorf("the message is %s", m.Status)
		}
	})
}

// A message for a turn that runs: by the steering that some agents have, or not at all.
func TestGuideInVersionOne(t *testing.T) {
	play(t, one, func(s *stage) {
		s.start()
		err := s.rt.Guide(s.t.Context(), s.Guidance(s.Root, "And more."))
		if !errors.Is(err, &agent.Error{Code: agent.CodeGuidanceUnsupported}) {
			s.t.Errorf("Guide: %v", err)
		}
		if s.View().Root().Capabilities.Guide {
			s.t.Error("it is said to be able to")
		}
	})
}

// In version 2 a prompt goes into the turn that runs: it opens none of its own, unless the
// agent answers it in one.
func TestPromptsThatAreFolded(t *testing.T) {
	for name, own := range map[string]bool{"folded": false, "queued": true} {
		t.Run(name, func(t *testing.T) {
			play(t, two, func(s *stage) {
				s.p.onSteer = func(string) {}
				s.start()
				in := s.Guidance(s.Root, "And more.")
				if err := s.rt.Guide(s.t.Context(), in); err != nil {
					s.t.Fatal(err)
				}
				s.does(func(p *puppet) { p.end(rootSession, acp.StopEndTurn) })
				s.rooted("") // the second may have a turn of its own
				if own {
					s.does(func(p *puppet) {
						p.begin()
						p.says(rootSession, "second")
					})
					s.pass(10 * time.Second)
					s.rooted("")
					s.does(func(p *puppet) { p.end(rootSession, acp.StopEndTurn) })
				} else {
					s.pass(10 * time.Second)
				}
				s.rooted(agent.OutcomeCompleted)
				for _, m := range s.View().MessagesOf(s.Root) {
					if m.Role == agent.RoleUser && m.Status != agent.MessageCompleted {
						s.t.Errorf("message %s is %s", m.Content, m.Status)
					}
				}
			})
		})
	}
}

// backgrounds tells an idle root with work in its background, as some agents do.
func (p *puppet) backgrounds(stop acp.StopReason, children ...string) {
	st := acp.StateUpdate{State: acp.StateIdle, StopReason: stop, Background: acp.Some([]acp.BackgroundWork{})}
	for _, c := range children {
		st.Background = acp.Some(append(st.Background.Or(nil), acp.BackgroundWork{Type: acp.BackgroundSubagent, SessionID: c}))
	}
	delete(p.live, rootSession)
	p.state(rootSession, st)
}

// The root of an agent that tells of its background answers a child that has ended there:
// the root turn does not settle in between, and settles when no answer comes.
func TestContinuationAfterABackgroundChild(t *testing.T) {
	for _, how := range []string{"answers", "says idle", "says nothing", "answers after the level", "is sent a message"} {
		t.Run(how, func(t *testing.T) {
			play(t, two, func(s *stage) {
				s.start()
				s.does(func(p *puppet) {
					p.delegate("one", rootSession)
					p.says(rootSession, "in the background")
					p.backgrounds(acp.StopEndTurn, "one")
				})
				s.rooted("")
				s.does(func(p *puppet) { p.end("one", acp.StopEndTurn) })
				s.ended("one", agent.OutcomeCompleted)
				s.rooted("")
				if h := s.View().Held[s.in.Turn]; h != agent.HeldByContinuation {
					s.t.Errorf("the root is held by %q", h)
				}
				switch how {
				case "answers":
					s.does(func(p *puppet) {
						p.begin()
						p.says(rootSession, "it is done")
						p.backgrounds(acp.StopEndTurn)
					})
				case "says idle": // with the level of its background alone, and then nothing
					s.does(func(p *puppet) { p.backgrounds("") })
					s.pass(time.Second)
					s.rooted("")
					s.pass(10 * time.Second)
				case "answers after the level":
					s.does(func(p *puppet) { p.backgrounds("") })
					s.pass(100 * time.Millisecond)
					s.does(func(p *puppet) {
						p.begin()
						p.says(rootSession, "it is done")
						p.backgrounds(acp.StopEndTurn)
					})
				case "is sent a message": // in the wait: the root turn takes it
					s.p.onTurn = turns(func(string) {})
					if err := s.rt.Guide(s.t.Context(), s.Guidance(s.Root, "And?")); err != nil {
						s.t.Fatal(err)
					}
					s.pass(time.Minute)
					s.rooted("")
					s.does(func(p *puppet) { p.done("so") })
				default:
					s.pass(time.Minute)
				}
				s.rooted(agent.OutcomeCompleted)
				if n := len(s.View().Turns); n != 2 {
					s.t.Errorf("%d turns, want 2\n%s", n, s.View())
				}
			})
		})
	}
}

// A child that works again while nothing is open is work that nobody asked for: a root turn
// of its own (decisions.md 3).
func TestAChildWorksWithoutARootTurn(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		s.does(func(p *puppet) {
			p.run("one")
			p.says("one", "by the way")
			p.announce("two", rootSession)
			p.run("two")
			p.says("two", "me too")
		})
		root := s.View().RootTurn()
		if root.Trigger != agent.TriggerProvider || !root.Live() || s.child("one").LatestTurn.RootTurnID != root.ID || s.child("two").RootTurnID != root.ID {
			s.t.Errorf("the root turn is %+v\n%s", root, s.View())
		}
		s.does(func(p *puppet) {
			p.end("one", acp.StopEndTurn)
			p.end("two", acp.StopEndTurn)
		})
		if root := s.View().RootTurn(); root.Outcome != agent.OutcomeCompleted {
			s.t.Errorf("the root turn is %+v", root)
		}
	})
}

// A root that is silent with nothing pending is shown to the person, once, and stopping
// works (zed-industries/zed#62015, anomalyco/opencode#48232: the question of a child is
// lost, and everybody waits).
func TestWatchdog(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) { p.says(rootSession, "hello") })
		s.pass(4 * time.Minute)
		s.does(func(p *puppet) { p.says(rootSession, "still") })
		s.pass(4 * time.Minute)
		if strings.Contains(s.texts(s.Root), "has said nothing") {
			s.t.Errorf("too soon: %s", s.texts(s.Root))
		}
		s.pass(time.Hour)
		if n := strings.Count(s.texts(s.Root), "has said nothing"); n != 1 {
			s.t.Errorf("it was said %d times: %s", n, s.texts(s.Root))
		}
		s.rooted("")
		s.cancel(s.in.Turn).completes()
		s.rooted(agent.OutcomeCanceled)
	})
	play(t, both, func(s *stage) { // a question is open: it is the person's turn
		s.start()
		s.does(func(p *puppet) { p.ask(rootSession, func(acp.PermissionOutcome) {}) })
		s.pass(time.Hour)
		if strings.Contains(s.texts(s.Root), "has said nothing") {
			s.t.Errorf("%s", s.texts(s.Root))
		}
	})
}

// What a turn has spent is the root's own count; money is what the session has cost since
// the turn began.
func TestUsage(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		cost := func(p *puppet, amount float64) {
			p.update(rootSession, acp.UpdateUsage, &acp.UsageUpdate{Used: 1, Size: 2, Cost: &acp.Cost{Amount: amount, Currency: "USD"}})
		}
		end := func(p *puppet) {
			cached := int64(4)
			u := &acp.TokenUsage{TotalTokens: 19, InputTokens: 10, OutputTokens: 5, CachedReadTokens: &cached}
			delete(p.live, rootSession)
			if p.version == acp.V2 {
				p.state(rootSession, acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopEndTurn, Usage: u})
			} else {
				p.reply(p.prompt, acp.PromptResponse{StopReason: acp.StopEndTurn, Usage: u})
			}
		}
		s.does(func(p *puppet) {
			cost(p, 0.5)
			end(p)
		})
		if got := s.View().RootTurn().Usage; got != (agent.Usage{InputTokens: 14, CachedInputTokens: 4, OutputTokens: 5, CostMicros: 500000}) {
			s.t.Errorf("usage %+v", got)
		}
		s.start()
		s.does(func(p *puppet) {
			cost(p, 0.75)
			end(p)
		})
		if got := s.View().RootTurn().Usage; got.CostMicros != 250000 {
			s.t.Errorf("usage %+v", got)
		}
	})
}

// Hundreds of lines at once end in the order in which they came, with nothing lost
// (coder/acp-go-sdk#40, #50: a queue of 1024 overflows).
func TestAFlood(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			for n := range 3000 {
				p.update("one", acp.UpdateAgentChunk, &acp.MessageChunk{MessageID: "long", Content: acp.Text(fmt.Sprintf("%d,", n))})
			}
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		var want strings.Builder
		for n := range 3000 {
			fmt.Fprintf(&want, "%d,", n)
		}
		if got := s.texts(s.child("one").ID); !strings.HasSuffix(got, want.String()) {
			s.t.Errorf("it has %d bytes", len(got))
		}
	})
}

// Unknown updates, states and contents are counted and pass (noetic#96: an unknown
// usage_update fails the session).
func TestUnknownVariantsFailNothing(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		for _, raw := range []string{
			`{"sessionUpdate":"weather_update","rain":true}`, `{"sessionUpdate":"usage_update","used":"many"}`, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"done"}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"hologram","depth":3}}`, `{"no":"kind"}`, `7`,
		} {
			s.line(`{"method":"session/update","params":{"sessionId":"R","update":` + raw + `}}`)
		}
		s.does(func(p *puppet) { p.done("done") })
		s.rooted(agent.OutcomeCompleted)
		if s.Diagnosed(provider.Ignored)+s.Diagnosed(provider.Malformed) < 4 {
			s.t.Errorf("not counted: %+v", s.Diagnostics())
		}
	})
}

// Requests that no client of ours serves are answered, and a line that is none is refused
// with id null.
func TestEveryRequestIsAnswered(t *testing.T) {
	play(t, both, func(s *stage) {
		s.line(`{"jsonrpc":"2.0","id":"a","method":"mcp/message","params":{}}`)
		s.p.wrote(s.t, `refusal "a"`, 1)
		s.line(`[{"jsonrpc":"2.0","id":"b","method":"mcp/message"}]`)
		s.p.wrote(s.t, "refusal null", 1)
		s.line(`{"jsonrpc":"2.0","id":"c","method":"fs/read_text_file","params":{"sessionId":"nobody","path":"/w/x"}}`)
		s.p.wrote(s.t, `refusal "c"`, 1)
	})
}
