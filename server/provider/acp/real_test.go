//go:build providers

package acp_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	"github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// The whole of it with real agents: codex-acp with the real Codex, claude-agent-acp with
// the real Claude Code. Every scenario is held at gates of the scripted model, so that what
// races is brought about and not waited for. Everything on the wire is recorded, and the
// recording replayed in virtual time must come to the same end.

// program is one real agent in one version of the protocol, and the words in which its
// model uses its tools.
type program struct {
	version int
	full    string // the mode in which nobody is asked
	asking  string // the mode in which a person is
	model   func(t testing.TB, s Script) *Model
	home    func(t testing.TB, m *Model) Place
	command func(t testing.TB) string

	// launch gives work to a child, in the background where there is a choice; await waits
	// for the children that were launched by these calls, nil where the program does so by
	// itself.
	launch, foreground func(call, child string) ToolCall
	await              func(call string, launches ...string) ToolCall
	shell              func(call, command string) ToolCall
	ask                func(call, command string) ToolCall
}

func codexACP(version int) program {
	return program{
		version: version, full: "agent-full-access", asking: "read-only",
		model: codextest.NewModel,
		home: func(t testing.TB, m *Model) Place {
			place := codextest.Home(t, codextest.Options{BaseURL: m.BaseURL(), V2: true, Approval: "on-request", Sandbox: "read-only"})
			place.Env = append(place.Env, "CODEX_PATH="+codextest.Binary(t))
			return place
		},
		command: func(t testing.TB) string {
			return FindBinary(t, "TURNKEEPER_CODEX_ACP_BIN", "@agentclientprotocol/codex-acp/dist/index.js")
		},
		launch:     func(call, child string) ToolCall { return codextest.V2.Spawn(call, child, "task") },
		foreground: func(call, child string) ToolCall { return codextest.V2.Spawn(call, child, "task") },
		await: func(call string, _ ...string) ToolCall { // for as short as it may be: a stop does not end it
			return Call("wait_agent", map[string]any{"timeout_ms": 10_000}).In(codextest.V2.Namespace()).As(call)
		},
		shell: codextest.Shell,
		ask:   func(call, command string) ToolCall { return codextest.AskShell(call, command, "May I?") },
	}
}

func claudeACP(version int) program {
	return program{
		version: version, full: "bypassPermissions", asking: "default",
		model: claudetest.NewModel,
		home: func(t testing.TB, m *Model) Place {
			return claudetest.Home(t, claudetest.Options{BaseURL: m.BaseURL(), Env: []string{"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION=false"}})
		},
		command: func(t testing.TB) string {
			return FindBinary(t, "TURNKEEPER_CLAUDE_ACP_BIN", "@agentclientprotocol/claude-agent-acp/dist/index.js")
		},
		launch:     func(call, child string) ToolCall { return claudetest.Background(call, child, "task") },
		foreground: func(call, child string) ToolCall { return claudetest.Foreground(call, child, "task") },
		shell:      claudetest.Bash,
		ask:        claudetest.Bash,
	}
}

// each runs a scenario with both agents in both versions.
func each(t *testing.T, f func(t *testing.T, p program)) {
	for _, version := range []int{1, 2} {
		t.Run("codex/v"+strconv.Itoa(version), func(t *testing.T) { f(t, codexACP(version)) })
		t.Run("claude/v"+strconv.Itoa(version), func(t *testing.T) { f(t, claudeACP(version)) })
	}
}

func (p program) isClaude() bool { return p.await == nil }

// rootOf is what the root's model says: it launches children in one message, waits for
// them where that is a tool, and goes on.
func (p program) rootOf(launch func(call, child string) ToolCall, children []string, then ...Reply) []Reply {
	var first Reply
	var calls []string
	for _, c := range children {
		first = append(first, launch("call_"+c, c))
		calls = append(calls, "call_"+c)
	}
	replies := []Reply{first}
	if p.await != nil {
		replies = append(replies, Reply{p.await("call_w", calls...)})
	}
	return append(replies, then...)
}

// stack is one session at a real agent.
type stack struct {
	*realtest.Stack
	program
	t       *testing.T
	tape    *realtest.Tape
	runtime *watched
}

// watched knows the runtime that the adapter opened last.
type watched struct {
	provider.Adapter
	opened chan provider.Runtime
}

func (w *watched) Open(ctx context.Context, p provider.OpenParams, s provider.Sink) (provider.Runtime, error) {
	r, err := w.Adapter.Open(ctx, p, s)
	if err == nil {
		w.opened <- r
	}
	return r, err
}

func (p program) start(t *testing.T, script Script, mode string) *stack {
	t.Helper()
	tape := realtest.NewTape("note")
	for range 4 { // both give the session a title, whenever they like
		script["aside"] = append(script["aside"], Reply{Say(`{"title":"A title"}`)})
	}
	model := p.model(t, script)
	place := p.home(t, model)
	w := &watched{opened: make(chan provider.Runtime, 8), Adapter: acp.New(acp.Options{
		Agent: acp.Agent{Name: "acp", Title: "the agent", Command: p.command(t), Version: p.version},
		Owner: t.Name(), Logger: slog.New(slog.DiscardHandler), Record: tape.Record,
	})}
	s := realtest.OpenStack(t, realtest.Setup{
		Provider: "acp", Adapter: w, Model: model, Place: place, Mode: mode, Nameless: true, Thread: threadOf,
	}, tape)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the wire:\n" + tape.String())
		}
	})
	return &stack{s, p, t, tape, w}
}

// threadOf is the id by which the model knows an agent: codex-acp puts it into its own.
func threadOf(s agent.Session) string {
	id := s.Handles.ThreadID
	if at := strings.LastIndex(id, ":"); at >= 0 {
		return id[at+1:]
	}
	return id
}

// granted waits until a child can be stopped alone, or cannot.
func (s *stack) granted(name string, want bool) agent.Session {
	s.t.Helper()
	child := s.Agent(name)
	s.Until(name+" is granted", func(d agent.SessionDetail) bool {
		at := slices.IndexFunc(d.ChildSessions, func(x agent.Session) bool { return x.ID == child.ID })
		return at >= 0 && d.ChildSessions[at].Capabilities.ChildCancel == want
	})
	return child
}

// stop stops one child by its grant.
func (s *stack) stop(name string) {
	s.t.Helper()
	child := s.granted(name, true)
	s.Cancel(child.ID, child.LatestTurn.ID)
	s.Ends(name, agent.OutcomeCanceled)
	s.granted(name, false)
}

// finish checks the end of a scenario, once no child can be stopped alone any more: that is
// said right after the last one has settled.
func (s *stack) finish() {
	s.t.Helper()
	s.Until("no grant is left", func(d agent.SessionDetail) bool {
		return !slices.ContainsFunc(d.ChildSessions, func(x agent.Session) bool { return x.Capabilities.ChildCancel })
	})
	s.End()
}

// made reports whether a command of an agent has made its file.
func (s *stack) made(name string) bool {
	_, err := os.Stat(filepath.Join(s.Place.Work, name))
	return err == nil
}

// answered waits until an answer is taken.
func (s *stack) answered(q agent.Interaction) {
	s.t.Helper()
	s.Until("it is answered", func(agent.SessionDetail) bool { return s.question(q).Status == agent.InteractionAnswered })
}

func (s *stack) question(q agent.Interaction) agent.Interaction {
	s.t.Helper()
	now, err := s.Store.Interaction(s.Ctx, s.Ws, q.SessionID, q.TurnID, q.RequestID)
	s.Must(err)
	return now
}

// optionOf is the option that does what a role says.
func optionOf(t testing.TB, q agent.Interaction, role string) agent.Response {
	t.Helper()
	at := slices.IndexFunc(q.Options, func(o agent.Option) bool { return o.Role == role })
	if at < 0 {
		t.Fatalf("no option to %s: %+v", role, q.Options)
	}
	return agent.Response{OptionID: q.Options[at].ID}
}

func TestRealPlain(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		s := p.start(t, Script{"root": {{SayIn(3, "Hello from the script.")}, {Say("Again.")}}}, p.full)
		s.Say("Say hello")
		s.Settles(agent.OutcomeCompleted)
		s.Said(s.Root, "Hello from the script.")
		s.Say("And again")
		s.Said(s.Root, "Again.")
		s.Settles(agent.OutcomeCompleted)
		s.finish()
	})
}
