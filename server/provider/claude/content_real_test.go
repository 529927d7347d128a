//go:build providers

package claude_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

func (s *stack) messages(session agent.SessionID) []agent.Message {
	s.t.Helper()
	page, err := s.Store.Messages(s.Ctx, s.Ws, session, agent.MessageRange{Limit: 500})
	s.Must(err)
	return page.Items
}

// call is the message of a tool call.
func (s *stack) call(session agent.SessionID, id agent.CallID) agent.Message {
	s.t.Helper()
	for _, m := range s.messages(session) {
		if m.CallID == id {
			return m
		}
	}
	s.t.Errorf("no call %s", id)
	return agent.Message{}
}

// What the model said it has used is what all sessions of the tree have used together.
func TestRealStackUsage(t *testing.T) {
	s := startStack(t, Script{
		"root":   {{Foreground("toolu_a", "outer", "task"), Background("toolu_c", "beside", "task")}, {Gate("root"), Say("Root done.")}, {Say("All done.")}},
		"outer":  {{Foreground("toolu_b", "inner", "task")}, {Say("Outer done.")}},
		"inner":  {{Bash("toolu_ls", "true")}, {Say("Inner done.")}},
		"beside": {{Gate("beside"), Say("Beside done.")}},
	}, options{})
	s.Say("Use three")
	s.Held("beside", "root")
	s.Model.Open("root")
	s.Waits(agent.HeldByChildren)
	s.Model.Open("beside")
	s.Settles(agent.OutcomeCompleted)
	asked := int64(0)
	for _, name := range []string{"root", "outer", "inner", "beside"} {
		asked += int64(len(s.Model.Requests(name)))
	}
	d := s.Detail()
	var out, money int64
	for _, x := range append([]agent.Session{d.Session}, d.ChildSessions...) {
		out += x.Usage.OutputTokens
		money += x.Usage.CostMicros
		if x.Usage.OutputTokens == 0 {
			t.Errorf("%s has used nothing", x.Title)
		}
	}
	if out != asked*OutputTokens || money == 0 {
		t.Errorf("%d tokens and %d micros in all, want %d tokens of %d requests", out, money, asked*OutputTokens, asked)
	}
	s.End()
}

func TestRealStackRetriesOfAChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("Root done.")}},
		"a":    {{Status(500, "")}, {Say("Child done.")}},
	}, options{home: Options{Retries: 2}})
	s.Say("Use one")
	s.Settles(agent.OutcomeCompleted)
	s.Ends("a", agent.OutcomeCompleted)
	s.Said(s.Agent("a").ID, "Child done.")
	s.End()
}

// The stream breaks off: what was said stays, and the turn fails with a reason.
func TestRealStackDroppedStream(t *testing.T) {
	s := startStack(t, Script{"root": {{Say("Half of it."), Drop()}, {Say("Here again.")}}}, options{})
	s.Say("Try")
	s.Settles(agent.OutcomeFailed)
	if e := s.Detail().Session.LatestTurn.Error; e == nil || e.Message == "" {
		t.Errorf("error %+v", e)
	}
	s.Say("Try again")
	s.Said(s.Root, "Here again.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

func TestRealStackToolResults(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	s := startStack(t, Script{"root": {
		{Bash("toolu_ok", "echo out; echo err >&2"), Bash("toolu_bad", "echo no; exit 3"), Call("NoSuchTool", nil).As("toolu_none")},
	}}, options{})
	at := func(name string) string { return filepath.Join(s.Place.Work, name) }
	s.Model.Append("root",
		Reply{Write("toolu_w", at("note.txt"), "one\ntwo\n"), Call("Read", map[string]any{"file_path": at("p.png")}).As("toolu_p")},
		Reply{Say("Done.")},
	)
	s.Must(os.WriteFile(at("p.png"), picture.Bytes(), 0o644))
	s.Say("Do things")
	s.Settles(agent.OutcomeCompleted)
	for id, want := range map[agent.CallID]struct {
		status agent.MessageStatus
		output string
	}{
		"toolu_ok":   {agent.MessageCompleted, "out"},
		"toolu_bad":  {agent.MessageFailed, "no"},
		"toolu_none": {agent.MessageFailed, "NoSuchTool"},
		"toolu_w":    {agent.MessageCompleted, "note.txt"},
		"toolu_p":    {agent.MessageCompleted, "image"},
	} {
		if m := s.call(s.Root, id); m.Status != want.status || !strings.Contains(m.Output, want.output) || m.Title == "" {
			t.Errorf("%s is %s, titled %q: %q", id, m.Status, m.Title, m.Output)
		}
	}
	s.End()
}

// A slash command is answered by the program itself, without the model; a compaction asks
// the model for a summary, and the conversation goes on.
func TestRealStackSlashCommandsAndCompaction(t *testing.T) {
	s := startStack(t, Script{"root": {{Say("First answer.")}}}, options{})
	s.Say("Say something")
	s.Settles(agent.OutcomeCompleted)
	s.Say("/cost")
	s.Settles(agent.OutcomeCompleted)
	if n := len(s.Model.Requests("root")); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	summary := Reply{Say("<summary>A summary of it all.</summary>")}
	s.Model.Next("root", summary, summary, summary)
	s.Say("/compact")
	s.Settles(agent.OutcomeCompleted)
	s.Model.Next("root", Reply{Say("After the compaction.")})
	s.Say("Go on")
	s.Said(s.Root, "After the compaction.")
	s.Settles(agent.OutcomeCompleted)
	var shown []string
	for _, m := range s.messages(s.Root) {
		shown = append(shown, fmt.Sprintf("%s %s %s", m.Role, m.Kind, m.Content))
	}
	text := strings.Join(shown, "\n")
	for _, part := range []string{"/usage", "local-command", "This session is being continued", "A summary of it all", "system-reminder"} {
		if strings.Contains(text, part) {
			t.Errorf("the lane shows %q:\n%s", part, text)
		}
	}
	if !strings.Contains(text, "system notice") {
		t.Errorf("nothing says that it was compacted:\n%s", text)
	}
	s.End()
	s.wantTurns(4, agent.TriggerUser)
}

func TestRealStackToDoList(t *testing.T) {
	s := startStack(t, Script{"root": {
		{Call("TaskCreate", map[string]any{"subject": "Look around", "description": "See what is there", "activeForm": "Looking"}).As("toolu_t1")},
		{Call("TaskUpdate", map[string]any{"taskId": "1", "status": "in_progress"}).As("toolu_t2")},
		{Call("TaskUpdate", map[string]any{"taskId": "1", "status": "completed"}).As("toolu_t3")},
		{Say("Done.")},
	}}, options{})
	s.Say("Plan it")
	s.Settles(agent.OutcomeCompleted)
	if n := len(s.Detail().ChildSessions); n != 0 {
		t.Errorf("%d children of a to-do list", n)
	}
	plan := s.call(s.Root, "plan")
	if plan.Status != agent.MessageCompleted || !strings.Contains(plan.Output, "Look around") {
		t.Errorf("the list is %s: %q", plan.Status, plan.Output)
	}
	s.End()
}
