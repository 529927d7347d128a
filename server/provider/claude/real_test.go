//go:build providers

package claude_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/claude"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// The adapter with the real Claude Code: every scenario is held at gates of the scripted
// model, so that what races is brought about and not waited for.

// options of one scenario. The zero value asks the person for nothing.
type options struct {
	home   Options
	mode   string        // permission mode; "bypassPermissions" by default
	window time.Duration // for the continuation
	tape   *realtest.Tape
}

const (
	modeAsk  = "default"
	modeFull = "bypassPermissions"
)

// setup is the program with its model.
func setup(t *testing.T, script Script, o options) realtest.Setup {
	t.Helper()
	model := NewModel(t, script)
	o.home.BaseURL = model.BaseURL()
	a := claude.Options{
		Binary: Binary(t), Owner: t.Name(), Logger: slog.New(slog.DiscardHandler),
		Continuation: o.window, SettingSources: []string{},
	}
	if o.tape != nil {
		a.Record = recordOn(o.tape)
	}
	if o.mode == "" {
		o.mode = modeFull
	}
	return realtest.Setup{
		Provider: "claude", Adapter: claude.New(a), Model: model, Place: Home(t, o.home), Mode: o.mode,
		ModelName: "claude-sonnet-4-5", // what tools there are depends on it
		Thread:    func(s agent.Session) string { return s.Handles.TaskID },
	}
}

// recordOn writes the wire on the tape, and notes each process where it begins: by what is
// said to it first.
func recordOn(tape *realtest.Tape) func(dir string, line []byte) {
	var processes atomic.Int32
	return func(dir string, line []byte) {
		if dir == "out" && bytes.Contains(line, []byte(`"subtype":"initialize"`)) {
			if processes.Add(1) > 1 {
				tape.Note(`{"event":"exit"}`)
			}
			tape.Note(`{"event":"spawn"}`)
		}
		tape.Record(dir, line)
	}
}

func startReal(t *testing.T, script Script, o options) *realtest.Alone {
	t.Helper()
	return realtest.OpenAlone(t, setup(t, script, o))
}

func TestRealPlain(t *testing.T) {
	r := startReal(t, Script{"root": {{Think("let me see"), SayIn(3, "Hello from the script.")}}}, options{})
	in := r.Say("Say hello")
	v := r.WantRoot(agent.OutcomeCompleted)
	var got []string
	for _, m := range v.Messages {
		got = append(got, fmt.Sprintf("%s %s %s", m.Role, m.Kind, m.Content))
		if m.Status != agent.MessageCompleted {
			t.Errorf("message %q is %s", m.Content, m.Status)
		}
	}
	want := []string{"user text Say hello", "assistant thinking let me see", "assistant text Hello from the script."}
	if strings.Join(got, "|") != strings.Join(want, "|") || v.Messages[0].ID != in.Message {
		t.Errorf("messages %q", got)
	}
	if u := v.RootTurn().Usage; u.OutputTokens != OutputTokens || u.CachedInputTokens != CacheRead || u.InputTokens == 0 || u.CostMicros == 0 {
		t.Errorf("usage %+v", u)
	}
	if s := v.Root(); s.ProviderSessionID == "" || s.Model == "" {
		t.Errorf("session %+v", s)
	}
	r.Say("Again")
	r.Model.Append("root", Reply{Say("Second.")})
	r.WantRoot(agent.OutcomeCompleted)
}

// Both are of one model message, and the second ends first.
func TestRealTwoChildrenAtOnce(t *testing.T) {
	r := startReal(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a"), Foreground("toolu_b", "b", "task b")}, {Say("Root done.")}},
		"a":    {{Gate("a"), Say("Child a done.")}},
		"b":    {{Gate("b"), Say("Child b done.")}},
	}, options{})
	in := r.Say("Use two sub-agents")
	r.Held("a", "b")
	a, b := r.Agent("a"), r.Agent("b")
	for call, c := range map[agent.CallID]agent.Session{"toolu_a": a, "toolu_b": b} {
		if c.ParentSessionID != r.Root || c.ParentTurnID != in.Turn || c.ParentToolCallID != call || c.Title == "" || c.AgentType != "general-purpose" {
			t.Errorf("child %+v", c)
		}
	}
	r.Model.Open("b")
	r.Ends("b", agent.OutcomeCompleted)
	if got := realtest.Turn(r.View(), a.ID); got.Phase != agent.PhaseRunning || r.View().RootTurn().Phase != agent.PhaseRunning {
		t.Errorf("a is %s, the root %s", got.Phase, r.View().RootTurn().Phase)
	}
	r.Model.Open("a")
	v := r.WantRoot(agent.OutcomeCompleted)
	r.WantChild("a", agent.OutcomeCompleted)
	for c, text := range map[agent.SessionID]string{a.ID: "Child a done.", b.ID: "Child b done."} {
		said := 0
		for _, m := range v.MessagesOf(c) {
			if m.Role == agent.RoleAssistant && m.Kind == agent.MessageText {
				said++
				if m.Content != text {
					t.Errorf("%s says %q", c, m.Content)
				}
			}
		}
		if said != 1 {
			t.Errorf("%d texts of the child, want %q", said, text)
		}
	}
}

func TestRealLegacyToolName(t *testing.T) {
	r := startReal(t, Script{
		"root": {{Legacy("toolu_a", "a", "task a")}, {Say("Root done.")}},
		"a":    {{Say("Child done.")}},
	}, options{})
	r.Say("Use one sub-agent")
	r.WantRoot(agent.OutcomeCompleted)
	r.WantChild("a", agent.OutcomeCompleted)
}

// An agent of a kind that does not exist never begins.
func TestRealRefusedLaunch(t *testing.T) {
	r := startReal(t, Script{"root": {
		{Call("Agent", map[string]any{"description": "Nobody", "prompt": "x", "subagent_type": "no-such-type"}).As("toolu_x")},
		{Say("It could not be started.")},
	}}, options{})
	r.Say("Use one that is not there")
	v := r.WantRoot(agent.OutcomeCompleted)
	children := v.Children()
	if len(children) != 1 || !realtest.Settled(realtest.Turn(v, children[0].ID), agent.OutcomeFailed) {
		t.Errorf("children %+v", children)
	}
}

func TestRealQuestionToThePerson(t *testing.T) {
	r := startReal(t, Script{"root": {{Ask("toolu_q", "Which one?", "red", "blue")}, {Say("Thanks.")}}}, options{mode: modeAsk})
	r.Say("Ask me")
	q := r.Question(0)
	if q.Kind != agent.InteractionQuestion || q.SessionID != r.Root || len(q.Detail.Questions) != 1 {
		t.Fatalf("question %+v", q)
	}
	r.Answer(q, agent.Response{Answers: map[string]string{q.Detail.Questions[0].ID: "blue"}})
	r.WantRoot(agent.OutcomeCompleted)
	if said := strings.Join(Said(r.Model.Requests("root")[1]), " "); !strings.Contains(said, "blue") {
		t.Errorf("the model was told %s", said)
	}
}

func TestRealApprovalsInAChild(t *testing.T) {
	r := startReal(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("Root done.")}},
		"a":    {{Bash("toolu_one", "touch one.txt")}, {Bash("toolu_two", "touch two.txt")}, {Say("Child done.")}},
	}, options{mode: modeAsk})
	in := r.Say("Use one sub-agent that runs commands")
	for at, option := range []string{"allow", "deny"} {
		i := r.Question(at)
		if a := r.Agent("a"); i.SessionID != a.ID || i.TurnID == in.Turn || i.Owner != agent.OwnerExact || !strings.Contains(i.Detail.Command, "touch") {
			t.Errorf("interaction %+v", i)
		}
		r.Answer(i, agent.Response{OptionID: option})
	}
	r.WantRoot(agent.OutcomeCompleted)
	r.WantChild("a", agent.OutcomeCompleted)
	_, one := os.Stat(filepath.Join(r.Place.Work, "one.txt"))
	_, two := os.Stat(filepath.Join(r.Place.Work, "two.txt"))
	if one != nil || two == nil {
		t.Errorf("allowed: %v, denied: %v", one, two)
	}
}

// A child has a shell of its own, and so has the root: one foreground, one background.
func TestRealCancelOfTheRootWithForegroundAndBackgroundChildren(t *testing.T) {
	r := startReal(t, Script{
		"root": {{Background("toolu_g", "g", "go on"), Foreground("toolu_f", "f", "be waited for")}},
		"g":    {{Gate("g"), Say("x")}},
		"f":    {{Bash("toolu_s", "touch begun; sleep 300")}},
	}, options{})
	in := r.Say("Use two sub-agents")
	r.Held("g")
	r.Until("f runs its shell", func(v providertest.View) bool {
		for _, m := range v.Messages {
			if m.CallID == "toolu_s" {
				return true
			}
		}
		return false
	})
	g, f := r.Agent("g"), r.Agent("f")
	r.Cancel(in.Turn)
	v := r.WantRoot(agent.OutcomeCanceled)
	r.WantChild("g", agent.OutcomeCanceled)
	r.WantChild("f", agent.OutcomeCanceled)
	r.Must(r.Model.WaitLeft(r.Ctx, "g"))
	if v.LiveChildren() != 0 {
		t.Errorf("live children: %s", v)
	}
	r.Model.Append("root", Reply{Say("Here I am.")})
	r.Say("Are you there?")
	v = r.WantRoot(agent.OutcomeCompleted)
	for _, m := range v.Messages {
		if !m.Status.Ended() {
			t.Errorf("message %s %q is %s", m.Name, m.Content, m.Status)
		}
	}
	if len(v.Sessions) != 3 || len(v.Turns) != 4 {
		t.Errorf("sessions and turns of %s and %s: %s", g.ID, f.ID, v)
	}
}
