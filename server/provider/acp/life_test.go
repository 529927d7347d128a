package acp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// fullSink is storage that takes nothing any more.
type fullSink struct {
	*providertest.Sink
	full bool
}

func (s *fullSink) Apply(f agent.Fact) (agent.Applied, error) {
	if s.full {
		return agent.Applied{}, errors.New("the disk is full")
	}
	return s.Sink.Apply(f)
}

// A runtime whose facts cannot be stored ends, rather than going on unseen.
func TestStorageThatTakesNothing(t *testing.T) {
	setting(t, both, func(s *stage) {
		s.Sink = providertest.NewSink(s.t, s.root)
		sink := &fullSink{Sink: s.Sink}
		rt, err := New(s.o).Open(s.t.Context(), s.OpenParams(), sink)
		if err != nil {
			s.t.Fatal(err)
		}
		s.rt = rt.(*runtime)
		s.start()
		sink.full = true
		s.does(func(p *puppet) { p.delegate("one", rootSession) })
		s.pass(time.Second)
		select {
		case <-s.rt.Done():
		default:
			s.t.Error("the runtime goes on")
		}
		if err := s.rt.Start(s.t.Context(), s.in); !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
			s.t.Errorf("Start: %v", err)
		}
	})
}

// A deleted child is stopped, its questions are answered, and nothing of it is shown again.
func TestForgottenChild(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.delegate("one", rootSession)
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel }
			p.ask("one", func(acp.PermissionOutcome) {})
		})
		child := s.child("one").ID
		s.rt.Forget(s.t.Context(), s.Delete(child))
		s.pass(0)
		s.p.wrote(s.t, "cancel one", 1)
		s.p.wrote(s.t, `answer 0 {"outcome":{"outcome":"cancelled"}}`, 1)
		s.does(func(p *puppet) {
			p.says("one", "still here")
			p.ask("one", func(acp.PermissionOutcome) {})
			p.end("one", acp.StopCancelled)
			p.run("one")
			p.says("one", "again")
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		if n := len(s.View().Children()); n != 0 {
			s.t.Errorf("%d children\n%s", n, s.View())
		}
		s.p.wrote(s.t, `answer 1 {"outcome":{"outcome":"cancelled"}}`, 1)
	})
}

// A message that waits for a stopped turn to end is not sent when its own turn is stopped,
// and says so.
func TestStopOfAMessageThatWaits(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.says(rootSession, "hello")
			p.onHeard = func(m line) bool { return m.Method == acp.MethodCancel }
		})
		s.cancel(s.in.Turn).completes()
		s.in = s.Submit(s.Root, "Go on.")
		var err error
		started := make(chan struct{})
		go func() { err = s.rt.Start(s.t.Context(), s.in); close(started) }()
		s.pass(time.Second)
		s.cancel(s.in.Turn).completes()
		s.rooted(agent.OutcomeCanceled)
		<-started
		if !errors.Is(err, &agent.Error{Code: agent.CodeTurnCanceling}) {
			s.t.Errorf("Start: %v", err)
		}
		s.p.wrote(s.t, acp.MethodPrompt, 1)
		messages := s.View().MessagesOf(s.Root)
		if last := messages[len(messages)-1]; last.Status != agent.MessageUndelivered {
			s.t.Errorf("the message is %s", last.Status)
		}
	})
}

// A steering that is refused leaves the message undelivered, and the turn as it was.
func TestRefusedSteering(t *testing.T) {
	setting(t, one, func(s *stage) {
		s.p.onSteer = func(string) {}
		s.open()
		s.start()
		s.does(func(p *puppet) {
			p.onHeard = func(m line) bool {
				if m.Method == steering {
					p.refuse(m.ID, -32603, "no turn to steer")
				}
				return m.Method == steering
			}
		})
		in := s.Guidance(s.Root, "And more.")
		if err := s.rt.Guide(s.t.Context(), in); !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) {
			s.t.Errorf("Guide: %v", err)
		}
		s.rooted("")
		for _, m := range s.View().MessagesOf(s.Root) {
			if m.ID == in.Message && m.Status != agent.MessageUndelivered {
				s.t.Errorf("the message is %s", m.Status)
			}
		}
	})
}

// What a tool shows may come piece by piece, and before the call itself.
func TestToolContentInPieces(t *testing.T) {
	play(t, two, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			for _, text := range []string{"a", "b"} {
				block := acp.Text(text)
				p.update(rootSession, acp.UpdateToolContent, &acp.ToolContentChunk{ToolCallID: "c", Content: acp.ToolContent{Type: acp.ToolContentBlock, Content: &block}})
			}
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "c", Title: acp.Some("search"), Status: acp.Some(acp.ToolCompleted)})
			p.done("done")
		})
		if c := s.calls(s.Root); len(c) != 1 || c[0].Output != "a\nb" || c[0].Title != "search" {
			s.t.Errorf("the calls are %+v", c)
		}
	})
}

// Every line can be recorded, in the order of the wire.
func TestRecord(t *testing.T) {
	setting(t, one, func(s *stage) {
		var lines []string
		s.o.Record = func(dir string, line []byte) { lines = append(lines, dir+" "+string(line)) }
		s.open()
		if len(lines) != 4 || !strings.HasPrefix(lines[0], `out {"jsonrpc":"2.0","id":1,"method":"initialize"`) || !strings.HasPrefix(lines[1], "in ") {
			s.t.Errorf("%q", lines)
		}
	})
}

// Bounds: an answer that never comes is no answer, and a stop of a runtime that is gone is
// an error.
func TestNothingIsAwaitedForEver(t *testing.T) {
	play(t, both, func(s *stage) {
		s.p.onHeard = func(m line) bool { return m.Method == acp.MethodLoadSession || m.Method == acp.MethodResumeSession }
		if err := s.rt.Reload(s.t.Context()); !errors.Is(err, &agent.Error{Code: agent.CodeTimeout}) {
			s.t.Errorf("Reload: %v", err)
		}
		s.start()
		s.p.End("exit 1")
		s.pass(time.Second)
		err := s.rt.Cancel(s.t.Context(), provider.Cancel{Root: true, Turn: s.in.Turn, Targets: []provider.CancelTarget{{Session: s.Root, Turn: s.in.Turn}}}, s.Heard)
		if !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
			s.t.Errorf("Cancel: %v", err)
		}
	})
}
