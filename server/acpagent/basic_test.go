package acpagent

import (
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A prompt runs until its turn has settled, and its text arrives before its end.
func TestPromptRunsAndEnds(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := newWorld(t, newFake()).newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		root.say("hello there")
		root.end(agent.OutcomeCompleted)
		end := e.ended(session, prompt, acp.StopEndTurn)
		if _, at := e.from(0, "the text", isText(session, "hello there")); at > end {
			t.Error("the text came after the end")
		}
		if version == acp.V2 {
			if r := e.response(prompt); !strings.Contains(string(r.Result), `"messageId"`) {
				t.Errorf("the prompt was answered with %s", r.raw)
			}
		}
	})
}
