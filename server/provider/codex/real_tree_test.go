//go:build providers

package codex_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/realtest"
)

// deep is a home in which agents may nest: version 2 offers that to models it knows.
func deep(v Version) Options {
	if v == V2 {
		return Options{V2: true, Model: "gpt-5.6-sol"}
	}
	return Options{MaxDepth: 3}
}

func TestRealNestedChildren(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startTapped(t, Script{
			"root": {{v.Spawn("call_spawn_a", "a", "task a")}, {Say("Started it.")}},
			"a":    {{v.Spawn("call_spawn_g", "g", "task g")}, {Gate("a"), Say("Child done.")}},
			"g":    {{Gate("g"), Say("Grandchild done.")}},
		}, deep(v))
		in := r.Say("Use a nested sub-agent")
		r.Held("a", "g")
		a, g := r.Agent("a"), r.Agent("g")
		turn := realtest.Turn(r.View(), a.ID)
		if a.ParentSessionID != r.Root || g.ParentSessionID != a.ID || g.ParentTurnID != turn.ID || g.RootSessionID != r.Root || g.RootTurnID != in.Turn {
			t.Errorf("a %+v, g %+v", a.Relation, g.Relation)
		}
		r.Until("both have their nicknames", func(v providertest.View) bool {
			return v.Sessions[1].AgentType != "" && v.Sessions[2].AgentType != ""
		})
		r.Until("the root waits", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		r.Model.Open("a") // the child ends before the grandchild
		r.Until("a ends", func(v providertest.View) bool {
			return realtest.Settled(realtest.Turn(v, a.ID), agent.OutcomeCompleted)
		})
		if got := r.View().RootTurn(); got.Phase != agent.PhaseWaiting {
			t.Errorf("the root is %s while its grandchild runs", got.Phase)
		}
		r.Model.Open("g")
		r.WantRoot(agent.OutcomeCompleted)
		r.WantChild("g", agent.OutcomeCompleted)
	})
}

func TestRealCancelOfANestedTree(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startTapped(t, Script{
			"root": {{v.Spawn("call_spawn_a", "a", "task a")}, {Gate("never"), Say("x")}},
			"a":    {{v.Spawn("call_spawn_g", "g", "task g")}, {Gate("never"), Say("x")}},
			"g":    {{Gate("never"), Say("x")}},
		}, deep(v))
		in := r.Say("Use a nested sub-agent")
		r.Must(r.Model.WaitRequests(r.Ctx, "root", 2))
		r.Must(r.Model.WaitRequests(r.Ctx, "a", 2))
		r.Must(r.Model.WaitRequests(r.Ctx, "g", 1))
		r.Agent("g")
		r.Cancel(in.Turn)
		r.WantRoot(agent.OutcomeCanceled)
		r.WantChild("a", agent.OutcomeCanceled)
		r.WantChild("g", agent.OutcomeCanceled)
		r.stops()
	})
}

// Both a child and the root wait for an answer when the root is stopped: the questions are
// withdrawn, and an answer to one comes too late.
func TestRealApprovalsPendingAtCancel(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startTapped(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {AskShell("call_r", "touch r.txt", "May I?")}, {Say("x")}},
			"a":    {{AskShell("call_x", "touch a.txt", "May I?")}, {Say("x")}},
		}, Options{V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
		in := r.Say("Use one sub-agent")
		view := r.Until("two questions", func(v providertest.View) bool { return len(v.Interactions) == 2 })
		r.Cancel(in.Turn)
		r.WantRoot(agent.OutcomeCanceled)
		r.WantChild("a", agent.OutcomeCanceled)
		for n, i := range r.View().Interactions {
			if i.Status != agent.InteractionSuperseded {
				t.Errorf("question of %s is %s", i.SessionID, i.Status)
			}
			if _, err := r.PrepareAnswer(view.Interactions[n], agent.Response{OptionID: "accept"}); err == nil {
				t.Error("a withdrawn question takes an answer")
			}
		}
		r.stops()
		for _, name := range []string{"r.txt", "a.txt"} {
			if _, err := os.Stat(filepath.Join(r.Place.Work, name)); err == nil {
				t.Errorf("%s was made without leave", name)
			}
		}
	})
}

// However a child's model fails, its own turn says why, and the root goes
// on.
func TestRealChildFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		last Step
		says string
	}{
		{"http 400", Status(400, `{"error":{"message":"bad request","type":"invalid_request_error"}}`), "bad request"},
		{"http 500", Status(500, `{"error":{"message":"scripted"}}`), "The model's server failed"},
		{"context", Fail("context_length_exceeded", "too long"), "too long for the model"},
		{"dropped stream", Drop(), "stream disconnected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, v Version) {
				reply := Reply{Gate("a"), c.last}
				if c.name == "dropped stream" {
					reply = Reply{Gate("a"), SayPieces("half", " of"), c.last}
				}
				r := startReal(t, Script{
					"root": {{v.Spawn("call_a", "a", "task a")}, {v.Wait("call_w", "call_a")}, {Say("The child failed; root done.")}},
					"a":    {reply},
				}, Options{V2: v == V2})
				r.Say("Use one sub-agent")
				r.begun("a")
				r.Model.Open("a")
				r.WantRoot(agent.OutcomeCompleted)
				r.WantChild("a", agent.OutcomeFailed)
				a := r.Agent("a")
				if got := realtest.Turn(r.View(), a.ID); got.Error == nil || got.Error.Code != agent.CodeProviderRefused || !strings.Contains(got.Error.Message, c.says) {
					t.Errorf("error %+v", got.Error)
				}
			})
		})
	}
}

// begun waits for an agent's first request and its session.
func (r *real) begun(name string) {
	r.T.Helper()
	r.Must(r.Model.WaitRequests(r.Ctx, name, 1))
	r.Agent(name)
}

// Killed while a child runs; after the resume the root agent gives that very child another
// task.
func TestRealKillAndReuseOfTheChild(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		again := []Reply{{Call("followup_task", map[string]any{"target": "a", "message": "go on"}).In(v.Namespace()).As("call_in")}}
		if v == V1 {
			id := OutputOf("call_a", "agent_id")
			again = []Reply{
				{Call("resume_agent", map[string]any{"id": id}).In(v.Namespace()).As("call_res")},
				{Call("send_input", map[string]any{"target": id, "message": "go on"}).In(v.Namespace()).As("call_in")},
			}
		}
		root := append([]Reply{{v.Spawn("call_a", "a", "task a")}, {Gate("never"), Say("x")}}, again...)
		r := startTapped(t, Script{
			"root": append(root, Reply{v.Wait("call_w", "call_a")}, Reply{Say("Root done after the resume.")}),
			"a":    {{Gate("never"), Say("x")}, {Say("Child done after the resume.")}},
		}, Options{V2: v == V2})
		r.Say("Use one sub-agent")
		r.agentOfHeld("root", "a")
		a := r.Agent("a")
		killServer(t, r.Place.Home)
		<-r.Runtime.Done()
		r.WantRoot(agent.OutcomeInterrupted)
		r.Close()
		r.Reopened()
		r.Open()
		in := r.Say("Go on with the agent")
		view := r.WantRoot(agent.OutcomeCompleted)
		if len(view.Sessions) != 2 || view.Sessions[1].ID != a.ID {
			t.Fatalf("sessions %+v", view.Sessions)
		}
		got := realtest.Turn(view, a.ID)
		if !realtest.Settled(got, agent.OutcomeCompleted) || got.RootTurnID != in.Turn || got.Trigger != agent.TriggerGuidance {
			t.Errorf("the child's later turn is %+v", got)
		}
	})
}

// A spawn that Codex refuses is no child; in the first version its call shows as failed.
func TestRealRefusedSpawn(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		r := startReal(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {v.Spawn("call_b", "b", "task b")}, {Say("Only one.")}},
			"a":    {{Gate("a"), Say("Child done.")}},
		}, Options{V2: v == V2, MaxThreads: int(v)}) // v1 counts sub-agents, v2 the root too
		r.Say("Use two sub-agents")
		r.Held("a")
		r.Until("the root waits", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseWaiting })
		r.Model.Open("a")
		view := r.WantRoot(agent.OutcomeCompleted)
		if len(view.Sessions) != 2 {
			t.Errorf("%d sessions", len(view.Sessions))
		}
		for _, m := range view.Messages {
			if m.CallID == "call_b" && (m.Status != agent.MessageFailed || m.ChildSessionID != "") {
				t.Errorf("the refused call is %+v", m)
			}
			if !m.Status.Ended() {
				t.Errorf("message %s is %s", m.Name, m.Status)
			}
		}
	})
}

// A command that writes far more than anybody reads: what is kept of it is bounded, and
// holds its beginning and its end.
func TestRealLongCommandOutput(t *testing.T) {
	r := startReal(t, Script{"root": {
		{Shell("call_sh", `echo first; i=0; while [ $i -lt 20000 ]; do echo "line $i ..............................................."; i=$((i+1)); done; echo last`)},
		{Say("Done.")},
	}}, Options{})
	r.Say("Write a lot")
	view := r.WantRoot(agent.OutcomeCompleted)
	for _, m := range view.Messages {
		if m.CallID != "call_sh" {
			continue
		}
		if n := len(m.Output); n == 0 || n > 80<<10 || !strings.HasPrefix(m.Output, "first") || !strings.Contains(m.Output[n-100:], "last") {
			t.Errorf("%d bytes of output, %q … %q", n, m.Output[:min(n, 20)], m.Output[max(0, n-20):])
		}
		return
	}
	t.Error(fmt.Errorf("no command among %d messages", len(view.Messages)))
}

func TestRealProbe(t *testing.T) {
	place := Home(t, Options{BaseURL: NewModel(t, Script{}).BaseURL()})
	info := codex.New(codex.Options{Binary: Binary(t), Env: place.Env}).Probe(t.Context())
	if !info.Found || info.Version == "" || info.Reason != "" {
		t.Errorf("probe %+v", info)
	}
}

func TestRealRefusedConfiguration(t *testing.T) {
	model := NewModel(t, Script{})
	place := Home(t, Options{BaseURL: model.BaseURL(), Approval: "untrusted"}) // gone since 0.171
	sink := providertest.NewSink(t, agent.Session{Provider: "codex", Cwd: place.Work})
	p := sink.OpenParams()
	p.Env = place.Env
	_, err := codex.New(codex.Options{Binary: Binary(t)}).Open(t.Context(), p, sink)
	if !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) {
		t.Errorf("open ended with %v", err)
	}
	t.Log(err)
}
