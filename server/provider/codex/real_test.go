//go:build providers

package codex_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// The adapter with the real app-server: every scenario is held at gates of the scripted
// model, so that what races is brought about and not waited for.

// real is one session at a real app-server.
type real struct {
	*providertest.Sink
	t     *testing.T
	ctx   context.Context
	model *Model
	place Place
	rt    provider.Runtime
	tap   *tap // of those that look at the server itself
}

func startReal(t *testing.T, script Script, o Options) *real {
	t.Helper()
	return startRealWith(t, script, o, nil)
}

// startTapped is startReal with a way to ask the server itself.
func startTapped(t *testing.T, script Script, o Options) *real {
	t.Helper()
	return startRealWith(t, script, o, newTap(t))
}

func startRealWith(t *testing.T, script Script, o Options, tap *tap) *real {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(stop)
	model := NewModel(t, script)
	o.BaseURL = model.BaseURL()
	r := &real{t: t, ctx: ctx, model: model, place: Home(t, o), tap: tap}
	r.Sink = providertest.NewSink(t, agent.Session{Provider: "codex", Cwd: r.place.Work})
	t.Cleanup(func() {
		r.close()
		if left := ProcessesOf(t, r.place.Home); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		if over := model.Overruns(); len(over) > 0 {
			t.Errorf("the model was asked more than its script: %v", over)
		}
	})
	r.open()
	return r
}

func (r *real) open() {
	r.t.Helper()
	p := r.OpenParams()
	p.Env = r.place.Env
	o := codex.Options{Binary: Binary(r.t), Owner: r.t.Name()}
	if r.tap != nil {
		o.Connect, o.Record = r.tap.connect, r.tap.record
	}
	rt, err := codex.New(o).Open(r.ctx, p, r.Sink)
	if err != nil {
		r.t.Fatal(err)
	}
	r.rt = rt
}

func (r *real) close() {
	if r.rt != nil {
		if err := r.rt.Close(context.WithoutCancel(r.ctx)); err != nil {
			r.t.Errorf("close: %v", err)
		}
		r.Closed()
	}
}

// until waits for the record to look a certain way.
func (r *real) until(what string, holds func(providertest.View) bool) providertest.View {
	r.t.Helper()
	for {
		changed := r.Changed()
		if v := r.View(); holds(v) {
			return v
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			v := r.View()
			r.t.Fatalf("never: %s\nturns %+v\nmessages %+v\ndiagnostics %+v", what, v.Turns, v.Messages, r.Diagnostics())
		}
	}
}

func (r *real) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// say begins a root turn.
func (r *real) say(text string) provider.Input {
	r.t.Helper()
	in := r.Submit(r.Root, text)
	r.must(r.rt.Start(r.ctx, in))
	return in
}

// held waits until the model stands at all those gates.
func (r *real) held(gates ...string) {
	r.t.Helper()
	for _, g := range gates {
		r.must(r.model.WaitHeld(r.ctx, g))
	}
}

// agentOf is the child session that runs as an agent of the script.
func (r *real) agentOf(name string) agent.Session {
	r.t.Helper()
	thread := r.model.Thread(name)
	var found agent.Session
	r.until("session of "+name, func(v providertest.View) bool {
		for _, s := range v.Sessions {
			if s.Handles.ThreadID == thread && thread != "" {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

func turnOf(v providertest.View, session agent.SessionID) agent.Turn {
	var last agent.Turn
	for _, u := range v.Turns {
		if u.SessionID == session {
			last = u
		}
	}
	return last
}

func settled(turn agent.Turn, outcome agent.Outcome) bool {
	return turn.Phase == agent.PhaseSettled && turn.Outcome == outcome
}

func (r *real) wantRoot(outcome agent.Outcome) providertest.View {
	r.t.Helper()
	v := r.until("the root settles", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseSettled })
	if got := v.RootTurn(); got.Outcome != outcome {
		r.t.Errorf("the root is %s (%v), want %s", got.Outcome, got.Error, outcome)
	}
	return v
}

func (r *real) wantChild(name string, outcome agent.Outcome) {
	r.t.Helper()
	s := r.agentOf(name)
	if got := turnOf(r.View(), s.ID); !settled(got, outcome) {
		r.t.Errorf("child %s is %s %s (%v), want %s", name, got.Phase, got.Outcome, got.Error, outcome)
	}
}

func both(t *testing.T, f func(t *testing.T, v Version)) {
	for _, v := range []Version{V1, V2} {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

func TestRealPlain(t *testing.T) {
	r := startReal(t, Script{"root": {{Think("let me see"), SayIn(3, "Hello from the script.")}}}, Options{})
	in := r.say("Say hello")
	v := r.wantRoot(agent.OutcomeCompleted)
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
		in := r.say("Use two sub-agents")
		r.held("a", "b", "root")
		a, b := r.agentOf("a"), r.agentOf("b")
		for _, c := range []agent.Session{a, b} {
			if c.ParentSessionID != r.Root || c.ParentTurnID != in.Turn || c.ParentToolCallID == "" || c.Title == "" {
				t.Errorf("child %+v", c)
			}
		}
		if v == V1 { // a child that ends while a v1 root samples makes it go on once more
			r.model.Append("root", Reply{Say("Root done again.")})
		}
		r.model.Open("b")
		r.until("b ends first", func(v providertest.View) bool { return settled(turnOf(v, b.ID), agent.OutcomeCompleted) })
		r.model.Open("root") // the root ends before its child a
		view := r.until("the root waits for a", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		if view.Held[in.Turn] != agent.HeldByChildren {
			t.Errorf("held by %q", view.Held[in.Turn])
		}
		r.model.Open("a")
		r.wantRoot(agent.OutcomeCompleted)
		r.wantChild("a", agent.OutcomeCompleted)
		r.wantChild("b", agent.OutcomeCompleted)
	})
}

func TestRealApprovalsInAChild(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {v.Wait("call_w", "call_a")}, {Say("Root done.")}},
			"a":    {{AskShell("call_one", "touch one.txt", "May I?")}, {AskShell("call_two", "touch two.txt", "May I?")}, {Say("Child done.")}},
		}, Options{V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
		in := r.say("Use one sub-agent that runs commands")
		for at, option := range []string{"accept", "decline"} {
			view := r.until("approval", func(v providertest.View) bool { return len(v.Interactions) > at })
			i := view.Interactions[at]
			if a := r.agentOf("a"); i.SessionID != a.ID || i.TurnID == in.Turn || i.Owner != agent.OwnerExact || !strings.Contains(i.Detail.Command, "touch") {
				t.Errorf("interaction %+v", i)
			}
			answer, err := r.PrepareAnswer(i, agent.Response{OptionID: option})
			r.must(err)
			r.must(r.rt.Answer(r.ctx, answer))
			r.until("answered", func(v providertest.View) bool { return v.Interactions[at].Status == agent.InteractionAnswered })
		}
		r.wantRoot(agent.OutcomeCompleted)
		r.wantChild("a", agent.OutcomeCompleted)
		_, one := os.Stat(filepath.Join(r.place.Work, "one.txt"))
		_, two := os.Stat(filepath.Join(r.place.Work, "two.txt"))
		if one != nil || two == nil {
			t.Errorf("accepted: %v, declined: %v", one, two)
		}
	})
}

// cancel carries a prepared cancel out as the daemon does.
func (r *real) cancel(turn agent.TurnID) {
	r.t.Helper()
	c := r.PrepareCancel(turn)
	before := len(r.Evidence())
	r.must(r.rt.Cancel(r.ctx, c, r.Heard))
	for _, state := range r.CompleteCancel(c, r.Evidence()[before:]) {
		if state != agent.TargetCanceled && state != agent.TargetAlreadyTerminal {
			r.t.Errorf("a target is %s, evidence %+v", state, r.Evidence()[before:])
		}
	}
}

func TestRealCancelOfTheRootWithTwoChildren(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("never"), Say("x")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Shell("call_sh", "sleep 60")}, {Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		in := r.say("Use two sub-agents")
		r.agentOfHeld("root", "a", "b")
		r.until("b runs its shell", func(v providertest.View) bool {
			for _, m := range v.Messages {
				if m.CallID == "call_sh" {
					return true
				}
			}
			return false
		})
		r.cancel(in.Turn)
		r.wantRoot(agent.OutcomeCanceled)
		r.wantChild("a", agent.OutcomeCanceled)
		r.wantChild("b", agent.OutcomeCanceled)
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
	r.t.Helper()
	for _, name := range names {
		n := 1
		if name == "root" {
			n = 2
		}
		r.must(r.model.WaitRequests(r.ctx, name, n))
		if name != "root" {
			r.agentOf(name)
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
		r.say("Use two sub-agents")
		r.agentOfHeld("root", "a", "b")
		a, b := r.agentOf("a"), r.agentOf("b")
		r.cancel(turnOf(r.View(), a.ID).ID)
		r.wantChild("a", agent.OutcomeCanceled)
		view := r.View()
		if got := turnOf(view, b.ID); got.Phase != agent.PhaseRunning || view.RootTurn().Phase != agent.PhaseRunning {
			t.Errorf("b is %s, the root %s", got.Phase, view.RootTurn().Phase)
		}
		if v == V1 { // a child that ends while a v1 root samples makes it go on once more
			r.model.Append("root", Reply{Say("Root done again.")})
		}
		r.model.Open("b")
		r.until("b ends", func(v providertest.View) bool { return settled(turnOf(v, b.ID), agent.OutcomeCompleted) })
		r.model.Open("root")
		r.wantRoot(agent.OutcomeCompleted)
	})
}

func TestRealSteer(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Gate("root"), Say("Root done.")}, {Say("Root done, with X.")}},
			"a":    {{Gate("a"), Say("Child done.")}},
		}, Options{V2: v == V2})
		r.say("Use one sub-agent")
		r.held("a", "root")
		in := r.Guidance(r.Root, "Please also mention X")
		r.must(r.rt.Guide(r.ctx, in))
		r.until("the steer is taken", func(v providertest.View) bool {
			for _, m := range v.Messages {
				if m.ID == in.Message {
					return m.Status == agent.MessageCompleted
				}
			}
			return false
		})
		r.model.Append("root", Reply{Say("and more")})
		r.model.Open("root", "a")
		view := r.wantRoot(agent.OutcomeCompleted)
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
		first := r.say("Start one, do not wait")
		r.held("a")
		r.until("the root waits", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		in := r.Guidance(r.Root, "More guidance")
		r.must(r.rt.Guide(r.ctx, in))
		r.held("second")
		a := r.agentOf("a")
		r.model.Append("root", Reply{Say("Third.")})
		r.model.Open("a")
		r.until("the child ends", func(v providertest.View) bool { return settled(turnOf(v, a.ID), agent.OutcomeCompleted) })
		if got := r.View(); got.RootTurn().ID != first.Turn || got.Held[first.Turn] != agent.HeldByProvider {
			t.Errorf("root turn %s held by %q", got.RootTurn().ID, got.Held[first.Turn])
		}
		r.model.Open("second")
		view := r.wantRoot(agent.OutcomeCompleted)
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
		r.say("Use one sub-agent")
		r.held("never")
		r.agentOfHeld("a")
		killServer(t, r.place.Home)
		<-r.rt.Done()
		if r.Lost() != 1 {
			t.Errorf("%d losses", r.Lost())
		}
		r.wantRoot(agent.OutcomeInterrupted)
		r.wantChild("a", agent.OutcomeInterrupted)
		if left := ProcessesOf(t, r.place.Home); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		a := r.agentOf("a")
		r.close()
		r.Reopened()
		r.open() // resumes
		r.say("Go on")
		view := r.wantRoot(agent.OutcomeCompleted)
		if len(view.Sessions) != 2 || view.Sessions[1].ID != a.ID {
			t.Errorf("sessions %+v", view.Sessions)
		}
		if err := r.rt.Answer(r.ctx, provider.Answer{}); !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
			t.Errorf("answer to nothing: %v", err)
		}
	})
}

// killServer kills the app-server of a home, and nothing else of it.
func killServer(t *testing.T, home string) {
	t.Helper()
	Kill(t, home, "app-server")
}
