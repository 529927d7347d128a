//go:build providers

package codex_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// The adapter with the real app-server: every scenario is held at gates of the scripted
// model, so that what races is brought about and not waited for.

// real is one session at a real app-server.
type real struct {
	*realtest.Alone
	tap *tap // of those that look at the server itself
}

// setup is the app-server with its model; connected adds to the adapter's options.
func setup(t *testing.T, script Script, o Options, connected codex.Options) realtest.Setup {
	t.Helper()
	model := NewModel(t, script)
	o.BaseURL = model.BaseURL()
	connected.Binary, connected.Owner, connected.Logger = Binary(t), t.Name(), slog.New(slog.DiscardHandler)
	return realtest.Setup{
		Provider: "codex", Adapter: codex.New(connected), Model: model, Place: Home(t, o),
		Thread: func(s agent.Session) string { return s.Handles.ThreadID },
	}
}

func startReal(t *testing.T, script Script, o Options) *real {
	t.Helper()
	return &real{Alone: realtest.OpenAlone(t, setup(t, script, o, codex.Options{}))}
}

// startTapped is startReal with a way to ask the server itself.
func startTapped(t *testing.T, script Script, o Options) *real {
	t.Helper()
	tap := newTap(t)
	return &real{Alone: realtest.OpenAlone(t, setup(t, script, o, codex.Options{Connect: tap.connect, Record: tap.record})), tap: tap}
}

func both(t *testing.T, f func(t *testing.T, v Version)) {
	for _, v := range []Version{V1, V2} {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

func TestRealPlain(t *testing.T) {
	r := startReal(t, Script{"root": {{Think("let me see"), SayIn(3, "Hello from the script.")}}}, Options{})
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
	if v.RootTurn().Usage.InputTokens == 0 {
		t.Error("no usage")
	}
	if s := v.Root(); s.ProviderSessionID == "" || s.Model == "" {
		t.Errorf("session %+v", s)
	}
}

func TestRealTwoChildrenAtOnce(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("root"), Say("Root done.")}},
			"a":    {{Gate("a"), Say("Child a done.")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		in := r.Say("Use two sub-agents")
		r.Held("a", "b", "root")
		a, b := r.Agent("a"), r.Agent("b")
		for _, c := range []agent.Session{a, b} {
			if c.ParentSessionID != r.Root || c.ParentTurnID != in.Turn || c.ParentToolCallID == "" || c.Title == "" {
				t.Errorf("child %+v", c)
			}
		}
		if v == V1 { // a child that ends while a v1 root samples makes it go on once more
			r.Model.Append("root", Reply{Say("Root done again.")})
		}
		r.Model.Open("b")
		r.Until("b ends first", func(v providertest.View) bool {
			return realtest.Settled(realtest.Turn(v, b.ID), agent.OutcomeCompleted)
		})
		r.Model.Open("root") // the root ends before its child a
		view := r.Until("the root waits for a", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		if view.Held[in.Turn] != agent.HeldByChildren {
			t.Errorf("held by %q", view.Held[in.Turn])
		}
		r.Model.Open("a")
		r.WantRoot(agent.OutcomeCompleted)
		r.WantChild("a", agent.OutcomeCompleted)
		r.WantChild("b", agent.OutcomeCompleted)
	})
}

func TestRealApprovalsInAChild(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {v.Wait("call_w", "call_a")}, {Say("Root done.")}},
			"a":    {{AskShell("call_one", "touch one.txt", "May I?")}, {AskShell("call_two", "touch two.txt", "May I?")}, {Say("Child done.")}},
		}, Options{V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
		in := r.Say("Use one sub-agent that runs commands")
		for at, option := range []string{"accept", "decline"} {
			view := r.Until("approval", func(v providertest.View) bool { return len(v.Interactions) > at })
			i := view.Interactions[at]
			if a := r.Agent("a"); i.SessionID != a.ID || i.TurnID == in.Turn || i.Owner != agent.OwnerExact || !strings.Contains(i.Detail.Command, "touch") {
				t.Errorf("interaction %+v", i)
			}
			answer, err := r.PrepareAnswer(i, agent.Response{OptionID: option})
			r.Must(err)
			r.Must(r.Runtime.Answer(r.Ctx, answer))
			r.Until("answered", func(v providertest.View) bool { return v.Interactions[at].Status == agent.InteractionAnswered })
		}
		r.WantRoot(agent.OutcomeCompleted)
		r.WantChild("a", agent.OutcomeCompleted)
		_, one := os.Stat(filepath.Join(r.Place.Work, "one.txt"))
		_, two := os.Stat(filepath.Join(r.Place.Work, "two.txt"))
		if one != nil || two == nil {
			t.Errorf("accepted: %v, declined: %v", one, two)
		}
	})
}

func TestRealCancelOfTheRootWithTwoChildren(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("never"), Say("x")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Shell("call_sh", "sleep 60")}, {Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		in := r.Say("Use two sub-agents")
		r.agentOfHeld("root", "a", "b")
		r.Until("b runs its shell", func(v providertest.View) bool {
			for _, m := range v.Messages {
				if m.CallID == "call_sh" {
					return true
				}
			}
			return false
		})
		r.Cancel(in.Turn)
		r.WantRoot(agent.OutcomeCanceled)
		r.WantChild("a", agent.OutcomeCanceled)
		r.WantChild("b", agent.OutcomeCanceled)
		for _, m := range r.View().Messages {
			if !m.Status.Ended() {
				t.Errorf("message %s %q is %s", m.Name, m.Content, m.Status)
			}
		}
	})
}

// agentOfHeld waits until every agent of the script has been asked once and its child is
// known.
func (r *real) agentOfHeld(names ...string) {
	r.T.Helper()
	for _, name := range names {
		n := 1
		if name == "root" {
			n = 2
		}
		r.Must(r.Model.WaitRequests(r.Ctx, name, n))
		if name != "root" {
			r.Agent(name)
		}
	}
}

func TestRealCancelOfOneChild(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("root"), Say("Root done.")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		r.Say("Use two sub-agents")
		r.agentOfHeld("root", "a", "b")
		a, b := r.Agent("a"), r.Agent("b")
		r.Cancel(realtest.Turn(r.View(), a.ID).ID)
		r.WantChild("a", agent.OutcomeCanceled)
		view := r.View()
		if got := realtest.Turn(view, b.ID); got.Phase != agent.PhaseRunning || view.RootTurn().Phase != agent.PhaseRunning {
			t.Errorf("b is %s, the root %s", got.Phase, view.RootTurn().Phase)
		}
		if v == V1 { // a child that ends while a v1 root samples makes it go on once more
			r.Model.Append("root", Reply{Say("Root done again.")})
		}
		r.Model.Open("b")
		r.Until("b ends", func(v providertest.View) bool {
			return realtest.Settled(realtest.Turn(v, b.ID), agent.OutcomeCompleted)
		})
		r.Model.Open("root")
		r.WantRoot(agent.OutcomeCompleted)
	})
}

func TestRealSteer(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Gate("root"), Say("Root done.")}, {Say("Root done, with X.")}},
			"a":    {{Gate("a"), Say("Child done.")}},
		}, Options{V2: v == V2})
		r.Say("Use one sub-agent")
		r.Held("a", "root")
		in := r.Guidance(r.Root, "Please also mention X")
		r.Must(r.Runtime.Guide(r.Ctx, in))
		r.Until("the steer is taken", func(v providertest.View) bool {
			for _, m := range v.Messages {
				if m.ID == in.Message {
					return m.Status == agent.MessageCompleted
				}
			}
			return false
		})
		r.Model.Append("root", Reply{Say("and more")})
		r.Model.Open("root", "a")
		view := r.WantRoot(agent.OutcomeCompleted)
		users := 0
		for _, m := range view.Messages {
			if m.Role == agent.RoleUser && m.SessionID == r.Root {
				users++
			}
		}
		if users != 2 || len(view.ProviderTurns) != 1 {
			t.Errorf("%d messages of the person, %d provider turns", users, len(view.ProviderTurns))
		}
	})
}

func TestRealStartWhileOnlyAChildRuns(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Say("Started it.")}, {Gate("second"), Say("Second answer.")}},
			"a":    {{Gate("a"), Say("Child done.")}},
		}, Options{V2: v == V2})
		first := r.Say("Start one, do not wait")
		r.Held("a")
		r.Until("the root waits", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		in := r.Guidance(r.Root, "More guidance")
		r.Must(r.Runtime.Guide(r.Ctx, in))
		r.Held("second")
		a := r.Agent("a")
		r.Model.Append("root", Reply{Say("Third.")})
		r.Model.Open("a")
		r.Until("the child ends", func(v providertest.View) bool {
			return realtest.Settled(realtest.Turn(v, a.ID), agent.OutcomeCompleted)
		})
		if got := r.View(); got.RootTurn().ID != first.Turn || got.Held[first.Turn] != agent.HeldByProvider {
			t.Errorf("root turn %s held by %q", got.RootTurn().ID, got.Held[first.Turn])
		}
		r.Model.Open("second")
		view := r.WantRoot(agent.OutcomeCompleted)
		if len(view.ProviderTurns) != 2 {
			t.Errorf("%d provider turns", len(view.ProviderTurns))
		}
	})
}

func TestRealKillInMidTurn(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Gate("never"), Say("x")}, {Say("After the resume.")}},
			"a":    {{Shell("call_sh", "sleep 60")}, {Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		r.Say("Use one sub-agent")
		r.Held("never")
		r.agentOfHeld("a")
		killServer(t, r.Place.Home)
		<-r.Runtime.Done()
		if r.Lost() != 1 {
			t.Errorf("%d losses", r.Lost())
		}
		r.WantRoot(agent.OutcomeInterrupted)
		r.WantChild("a", agent.OutcomeInterrupted)
		if left := ProcessesOf(t, r.Place.Home); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		a := r.Agent("a")
		r.Close()
		r.Reopened()
		r.Open() // resumes
		r.Say("Go on")
		view := r.WantRoot(agent.OutcomeCompleted)
		if len(view.Sessions) != 2 || view.Sessions[1].ID != a.ID {
			t.Errorf("sessions %+v", view.Sessions)
		}
		if err := r.Runtime.Answer(r.Ctx, provider.Answer{}); !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
			t.Errorf("answer to nothing: %v", err)
		}
	})
}

// killServer kills the app-server of a home, and nothing else of it.
func killServer(t *testing.T, home string) {
	t.Helper()
	Kill(t, home, "app-server")
}
