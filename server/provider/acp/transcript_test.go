package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A text ends where the next begins; one that goes on afterwards is a further entry, at its
// place; chunks without a name go on with what is open.
func TestTextsInOrder(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		chunk := func(p *puppet, kind acp.UpdateKind, id, text string) {
			p.update(rootSession, kind, &acp.MessageChunk{MessageID: id, Content: acp.Text(text)})
		}
		s.does(func(p *puppet) {
			chunk(p, acp.UpdateThoughtChunk, "t", "hm")
			chunk(p, acp.UpdateAgentChunk, "m", "a")
			chunk(p, acp.UpdateAgentChunk, "m", "b")
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "c", Title: acp.Some("ls"), Status: acp.Some(acp.ToolCompleted)})
			chunk(p, acp.UpdateAgentChunk, "m", "c")
			chunk(p, acp.UpdateAgentChunk, "", "d")
			chunk(p, acp.UpdateUserChunk, "u", "Go.") // an echo of what was sent
			chunk(p, acp.UpdateAgentChunk, "n", "e")
			p.end(rootSession, acp.StopEndTurn)
		})
		if got := s.texts(s.Root); got != "user:Go.|assistant:hm|assistant:ab|assistant:cd|assistant:e" {
			s.t.Errorf("the transcript is %s", got)
		}
		for _, m := range s.View().MessagesOf(s.Root) {
			if m.Status != agent.MessageCompleted {
				s.t.Errorf("%q is %s", m.Content, m.Status)
			}
		}
	})
}

// A whole message of version 2 replaces what was streamed of it, and is not said twice.
func TestWholeMessages(t *testing.T) {
	play(t, two, func(s *stage) {
		s.start()
		whole := func(p *puppet, id, text string) {
			p.update(rootSession, acp.UpdateAgentMessage, &acp.WholeMessage{MessageID: id, Content: acp.Some([]acp.ContentBlock{acp.Text(text)})})
		}
		s.does(func(p *puppet) {
			p.update(rootSession, acp.UpdateAgentChunk, &acp.MessageChunk{MessageID: "m", Content: acp.Text("hel")})
			whole(p, "m", "hello")
			whole(p, "m", "hello")
			whole(p, "n", "bye")
			p.end(rootSession, acp.StopEndTurn)
		})
		if got := s.texts(s.Root); got != "user:Go.|assistant:hello|assistant:bye" {
			s.t.Errorf("the transcript is %s", got)
		}
	})
}

// A tool call is one entry that its patches change; what is left out stays.
func TestToolCallPatches(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{
				ToolCallID: "c", Title: acp.Some("Write a"), Name: acp.Some("Write"), Kind: acp.Some(acp.ToolEdit), Status: acp.Some(acp.ToolPending), RawInput: json.RawMessage(`{"path":"a"}`),
			})
			text := "b\n"
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "c", Status: acp.Some(acp.ToolRunning), Content: acp.Some([]acp.ToolContent{{Type: acp.ToolContentDiff, Path: "/w/a", NewText: &text}})})
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "c", Status: acp.Some(acp.ToolFailed)})
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "d", Title: acp.Some("never ends"), Status: acp.Some(acp.ToolRunning)})
			p.end(rootSession, acp.StopEndTurn)
		})
		calls := s.calls(s.Root)
		if len(calls) != 2 {
			s.t.Fatalf("%d calls: %+v", len(calls), calls)
		}
		c := calls[0]
		if c.Name != "Write" || c.Title != "Write a" || c.Input != `{"path":"a"}` || c.Output != "--- /dev/null\n+++ b/w/a\n+b" || c.Status != agent.MessageFailed {
			s.t.Errorf("the call is %+v", c)
		}
		if calls[1].Status != agent.MessageInterrupted {
			s.t.Errorf("a call that never ended is %s", calls[1].Status)
		}
	})
}

// The output of a command comes by a terminal: in version 2 by updates of its own, in
// version 1 in what some agents add.
func TestTerminalOutputs(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{
				ToolCallID: "c", Title: acp.Some("make"), Status: acp.Some(acp.ToolRunning), Content: acp.Some([]acp.ToolContent{{Type: acp.ToolContentTerminal, TerminalID: "t"}}),
			})
			end := &acp.ToolCall{ToolCallID: "c", Status: acp.Some(acp.ToolCompleted)}
			if p.version == acp.V2 {
				p.update(rootSession, acp.UpdateTerminal, &acp.TerminalUpdate{TerminalID: "t", Command: acp.Some("make")})
				p.update(rootSession, acp.UpdateTerminalChunk, &acp.TerminalChunk{TerminalID: "t", Data: []byte("a\n")})
				p.update(rootSession, acp.UpdateTerminalChunk, &acp.TerminalChunk{TerminalID: "t", Data: []byte("b\n")})
			} else {
				p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: "c", Meta: json.RawMessage(`{"terminal_output_delta":{"data":"a\n","terminal_id":"t"}}`)})
				end.Meta = json.RawMessage(`{"terminal_output_delta":{"data":"b\n","terminal_id":"t"},"terminal_exit":{"exit_code":0}}`)
			}
			p.update(rootSession, acp.UpdateToolCallUpdate, end)
			p.end(rootSession, acp.StopEndTurn)
		})
		if c := s.calls(s.Root); len(c) != 1 || c[0].Output != "a\nb" || c[0].Status != agent.MessageCompleted {
			s.t.Errorf("the calls are %+v", c)
		}
	})
}

// A plan is one entry, a notice another.
func TestPlansAndNotices(t *testing.T) {
	play(t, both, func(s *stage) {
		s.start()
		s.does(func(p *puppet) {
			for _, status := range []string{"in_progress", "completed"} {
				entries := []acp.PlanEntry{{Content: "first", Priority: "high", Status: status}, {Content: "second", Priority: "low", Status: "pending"}}
				if p.version == acp.V1 {
					p.update(rootSession, acp.UpdatePlan, &acp.Plan{Entries: entries})
				} else {
					p.update(rootSession, acp.UpdatePlanUpdate, &acp.PlanUpdate{Plan: acp.PlanContent{Type: "items", PlanID: "plan", Entries: entries}})
				}
			}
			p.update(rootSession, acp.UpdateNotice, &acp.Notice{Severity: "warning", Title: "Careful", Description: "slow"})
			p.end(rootSession, acp.StopEndTurn)
		})
		c := s.calls(s.Root)
		if len(c) != 1 || c[0].Name != "plan" || c[0].Title != "Plan: 1 of 2 steps done" || !strings.Contains(c[0].Output, "[x] first") {
			s.t.Errorf("the plan is %+v", c)
		}
		if got := s.texts(s.Root); !strings.HasSuffix(got, "system:Careful: slow") {
			s.t.Errorf("the transcript is %s", got)
		}
	})
}

func TestDiffs(t *testing.T) {
	text := func(s string) *string { return &s }
	long := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	for name, c := range map[string]struct {
		before      *string
		after, want string
	}{
		"new":     {nil, "a\n", "--- /dev/null\n+++ b/f\n+a\n"},
		"middle":  {text(long), strings.Replace(long, "5", "five", 1), "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"append":  {text("1\n"), "1\n2\n", "--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n 1\n+2\n"},
		"emptied": {text("1\n"), "", "--- a/f\n+++ b/f\n@@ -1,1 +0,0 @@\n-1\n"},
		"filled":  {text(""), "1\n", "--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+1\n"},
	} {
		if got := textDiff("/f", c.before, c.after); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	var content []acp.ToolContent
	raw := `[{"type":"diff","changes":[{"operation":"modify","path":"/a"}],"patch":{"format":"git_patch","text":"diff --git a/a b/a\n"}},
		{"type":"diff","changes":[{"operation":"move","oldPath":"/b","path":"/c"}]},{"type":"chart"}]`
	if err := json.Unmarshal([]byte(raw), &content); err != nil {
		t.Fatal(err)
	}
	if got := diffOf(content); got != "diff --git a/a b/a\nmove /b → /c\n" {
		t.Errorf("got %q", got)
	}
}
