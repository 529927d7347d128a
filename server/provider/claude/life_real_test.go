//go:build providers

package claude_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	. "github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// untilThere waits for a file that the agent's shell makes.
func (s *stack) untilThere(name string) {
	s.t.Helper()
	s.Must(realtest.UntilFile(s.Ctx, filepath.Join(s.Place.Work, name)))
}

func (s *stack) processes() []agent.Process {
	s.t.Helper()
	list, err := s.Store.Processes(s.Ctx, s.Ws, s.Root)
	s.Must(err)
	return list
}

// A detached shell holds nothing and is no child; when it ends, Claude starts a turn that
// nobody asked for.
func TestRealStackDetachedShellAndItsUnaskedTurn(t *testing.T) {
	s := startStack(t, Script{"root": {
		{Detached("toolu_s", untilFile("go"))},
		{Say("It runs.")},
		{Say("The shell has ended.")},
	}}, options{})
	s.Say("Start it")
	s.Settles(agent.OutcomeCompleted)
	if list := s.processes(); len(list) != 1 || list[0].Status != agent.ProcessRunning || !list[0].Stoppable || list[0].CallID != "toolu_s" || !strings.Contains(list[0].Command, "sleep 0.02") {
		t.Errorf("processes %+v", list)
	}
	s.touch("go")
	s.Said(s.Root, "The shell has ended.")
	s.Settles(agent.OutcomeCompleted)
	if list := s.processes(); len(list) != 1 || list[0].Status != agent.ProcessEnded {
		t.Errorf("processes %+v", list)
	}
	s.End()
	s.wantTurns(2, agent.TriggerProvider)
	if n := len(s.Detail().ChildSessions); n != 0 {
		t.Errorf("%d children", n)
	}
}

func TestRealStackDetachedShellIsStopped(t *testing.T) {
	s := startStack(t, Script{"root": {{Detached("toolu_s", "sleep 301")}, {Say("It runs.")}, {Say("Here I am.")}}}, options{})
	s.Say("Start it")
	s.Settles(agent.OutcomeCompleted)
	p := s.processes()[0]
	s.Must(s.Live.StopProcess(s.Ctx, s.Root, s.Root, p.ID))
	s.Until("it has ended", func(agent.SessionDetail) bool { return s.processes()[0].Status == agent.ProcessEnded })
	s.Must(UntilGone(s.Ctx, s.Place.Home, "sleep 301")) // Claude tells before it kills
	s.Say("Are you there?")
	s.Said(s.Root, "Here I am.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
}

// A stop of the turn leaves a shell alone that was detached; one that the turn waits for
// ends.
func TestRealStackStopAndShells(t *testing.T) {
	s := startStack(t, Script{"root": {{Detached("toolu_d", "sleep 302")}, {Bash("toolu_s", "touch begun; sleep 303")}}}, options{})
	s.Say("Start both")
	s.untilThere("begun")
	s.StopRoot()
	s.Settles(agent.OutcomeCanceled)
	s.Must(UntilGone(s.Ctx, s.Place.Home, "sleep 303")) // Claude tells before it kills
	if running(t, s.Place.Home, "sleep 302") == 0 {
		t.Error("the detached shell is gone")
	}
	if list := s.processes(); len(list) != 1 || list[0].Status != agent.ProcessRunning {
		t.Errorf("processes %+v", list)
	}
	s.End()
}

// running counts the processes of a home that say that.
func running(t *testing.T, home, text string) int {
	t.Helper()
	n := 0
	for _, p := range ProcessesOf(t, home) {
		if strings.Contains(p.Command, text) {
			n++
		}
	}
	return n
}

// killProgram kills Claude Code of a home, and nothing that it has started.
func killProgram(t *testing.T, home string) {
	t.Helper()
	Kill(t, home, "--permission-prompt-tool")
}

// Every shell has a session and a process group of its own: of the root and of children,
// waited for, detached, and hidden by the agent.
var shellsOfAll = Script{
	"root": {
		{Detached("toolu_d", "sleep 311"), Bash("toolu_h", "setsid nohup sleep 312 >/dev/null 2>&1 & disown; true")},
		{Background("toolu_a", "a", "task"), Bash("toolu_s", "touch root; sleep 313")},
	},
	"a": {{Bash("toolu_c", "touch child; sleep 314")}},
}

func TestRealShellsAreReapedOnClose(t *testing.T) {
	s := startStack(t, shellsOfAll, options{})
	s.Say("Start them")
	s.untilThere("root")
	s.untilThere("child")
	for _, text := range []string{"sleep 311", "sleep 312", "sleep 313", "sleep 314"} {
		if running(t, s.Place.Home, text) == 0 {
			t.Errorf("%s does not run", text)
		}
	}
	s.Must(s.Live.CloseSession(s.Ctx, s.Root))
	if left := ProcessesOf(t, s.Place.Home); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestRealShellsAreReapedAfterAKill(t *testing.T) {
	s := startStack(t, shellsOfAll, options{})
	s.Say("Start them")
	s.untilThere("root")
	s.untilThere("child")
	killProgram(t, s.Place.Home)
	s.Settles(agent.OutcomeInterrupted)
	s.Ends("a", agent.OutcomeInterrupted)
	if left := ProcessesOf(t, s.Place.Home); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if p := s.processes(); len(p) != 1 || p[0].Status != agent.ProcessEnded {
		t.Errorf("processes %+v", p)
	}
	s.Reconcile()
}

// The program dies with a background child: the root had answered. What the next process
// says of the child unasked is about the old one.
func TestRealStackKillAndResumeWithABackgroundChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Say("Started it.")}, {Say("After the resume.")}},
		"a":    {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use one, do not wait")
	s.Held("never")
	s.Waits(agent.HeldByChildren)
	before := s.Detail().Session.ProviderSessionID
	s.kept()
	killProgram(t, s.Place.Home)
	s.Settles(agent.OutcomeCompleted) // it takes the outcome it has
	s.Ends("a", agent.OutcomeInterrupted)
	s.Say("Go on")
	s.Said(s.Root, "After the resume.")
	s.Settles(agent.OutcomeCompleted)
	d := s.Detail()
	if d.Session.ProviderSessionID != before || len(d.ChildSessions) != 1 {
		t.Errorf("conversation %s, was %s; %d children", d.Session.ProviderSessionID, before, len(d.ChildSessions))
	}
	s.Ends("a", agent.OutcomeInterrupted)
	s.End()
	s.wantTurns(2, agent.TriggerUser)
}

func TestRealStackKillAndResumeWithAForegroundChild(t *testing.T) {
	s := startStack(t, Script{
		"root": {{Foreground("toolu_a", "a", "task a")}, {Say("After the resume.")}},
		"a":    {{Gate("never"), Say("x")}},
	}, options{})
	s.Say("Use one")
	s.Held("never")
	s.Agent("a")
	s.kept()
	killProgram(t, s.Place.Home)
	s.Settles(agent.OutcomeInterrupted)
	s.Ends("a", agent.OutcomeInterrupted)
	s.Say("Go on")
	s.Said(s.Root, "After the resume.")
	s.Settles(agent.OutcomeCompleted)
	s.End()
	s.wantTurns(2, agent.TriggerUser)
}

// kept waits until the program has written the conversation down, so that there is something
// to resume.
func (s *stack) kept() {
	s.t.Helper()
	s.Must(realtest.UntilFile(s.Ctx, filepath.Join(s.Place.Home, ".claude", "projects", "*", s.Detail().Session.ProviderSessionID+".jsonl")))
}

// The contract of a runtime around a death: one loss, no fact after it, the same children
// after a resume.
func TestRealKillInMidTurn(t *testing.T) {
	r := startReal(t, Script{
		"root": {{Background("toolu_a", "a", "task a")}, {Gate("never"), Say("x")}, {Say("After the resume.")}},
		"a":    {{Bash("toolu_s", "sleep 300")}},
	}, options{})
	r.Say("Use one sub-agent")
	r.Held("never")
	a := r.Agent("a")
	killProgram(t, r.Place.Home)
	<-r.Runtime.Done()
	if r.Lost() != 1 {
		t.Errorf("%d losses", r.Lost())
	}
	r.WantRoot(agent.OutcomeInterrupted)
	r.WantChild("a", agent.OutcomeInterrupted)
	if left := ProcessesOf(t, r.Place.Home); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	r.Reopen()
	r.Say("Go on")
	v := r.WantRoot(agent.OutcomeCompleted)
	if len(v.Sessions) != 2 || v.Sessions[1].ID != a.ID {
		t.Errorf("sessions %+v", v.Sessions)
	}
	if err := r.Runtime.Answer(r.Ctx, provider.Answer{}); !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
		t.Errorf("answer to nothing: %v", err)
	}
}

// What the program keeps of a conversation may be gone: the agent begins anew, and that is
// said. A conversation without a first turn has nothing that could be lost.
func TestRealConversationThatIsNotKeptOpensAgain(t *testing.T) {
	r := startReal(t, Script{"root": {{Say("First.")}, {Say("Second.")}}}, options{})
	for range 2 {
		r.Reopen()
	}
	notices := func() (n int) {
		for _, m := range r.View().Messages {
			if m.Kind == agent.MessageNotice {
				n++
			}
		}
		return n
	}
	r.Say("Say hello")
	r.WantRoot(agent.OutcomeCompleted)
	if n := notices(); n != 0 {
		t.Errorf("nothing was lost, and %d notices say so", n)
	}
	kept := r.View().Root().ProviderSessionID
	r.Reopen()
	if got := r.View().Root().ProviderSessionID; got != kept {
		t.Errorf("a conversation that is kept became %q, was %q", got, kept)
	}
	r.Close()
	files, err := filepath.Glob(filepath.Join(r.Place.Home, ".claude", "projects", "*", kept+".jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of %s: %v, %v", kept, files, err)
	}
	r.Must(os.Remove(files[0]))
	r.Reopened()
	r.Open()
	r.Say("And again")
	r.WantRoot(agent.OutcomeCompleted)
	if n := notices(); n != 1 {
		t.Errorf("the conversation was lost, and %d notices say so", n)
	}
}
