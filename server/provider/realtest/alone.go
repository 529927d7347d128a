package realtest

import (
	"context"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// bound is how long one scenario may take on a slow machine.
const bound = 3 * time.Minute

// Alone is an adapter with one session at its real program, and a sink that records.
type Alone struct {
	*providertest.Sink
	Setup
	Model   *modeltest.Model // the provider's; the sink has one of its own
	Ctx     context.Context  //nolint:containedctx // the life of one test
	Runtime provider.Runtime
	T       testing.TB
}

// OpenAlone opens the session. At the end of the test it is closed, and nothing of the
// program may be left.
func OpenAlone(t testing.TB, s Setup) *Alone {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), bound)
	t.Cleanup(stop)
	r := &Alone{Setup: s, Model: s.Model, Ctx: ctx, T: t}
	r.Sink = providertest.NewSink(t, agent.Session{Provider: s.Provider, Cwd: s.Place.Work, PermissionMode: s.Mode, Model: s.ModelName})
	t.Cleanup(func() {
		r.Close()
		s.leftovers(t)
	})
	r.Open()
	return r
}

// Open opens the session with what was remembered of it.
func (r *Alone) Open() {
	r.T.Helper()
	p := r.OpenParams()
	p.Env = r.Place.Env
	rt, err := r.Adapter.Open(r.Ctx, p, r.Sink)
	r.Must(err)
	r.Runtime = rt
}

// Close ends the runtime. From here on it may report nothing.
func (r *Alone) Close() {
	r.T.Helper()
	if r.Runtime == nil {
		return
	}
	if err := r.Runtime.Close(context.WithoutCancel(r.Ctx)); err != nil {
		r.T.Errorf("close: %v", err)
	}
	r.Closed()
}

// Reopen closes the session and opens it again.
func (r *Alone) Reopen() {
	r.T.Helper()
	r.Close()
	r.Reopened()
	r.Open()
}

// Must ends the test on an error.
func (r *Alone) Must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// Until waits for the record to look a certain way.
func (r *Alone) Until(what string, holds func(providertest.View) bool) providertest.View {
	r.T.Helper()
	for {
		changed := r.Changed()
		if v := r.View(); holds(v) {
			return v
		}
		select {
		case <-changed:
		case <-r.Ctx.Done():
			v := r.View()
			r.T.Fatalf("never: %s\n%s\nprovider turns %+v\nmessages %+v\ndiagnostics %+v", what, v, v.ProviderTurns, v.Messages, r.Diagnostics())
		}
	}
}

// Say begins a root turn.
func (r *Alone) Say(text string) provider.Input {
	r.T.Helper()
	in := r.Submit(r.Root, text)
	r.Must(r.Runtime.Start(r.Ctx, in))
	return in
}

// Guide adds a message to the open root turn.
func (r *Alone) Guide(text string) provider.Input {
	r.T.Helper()
	in := r.Guidance(r.Root, text)
	r.Must(r.Runtime.Guide(r.Ctx, in))
	return in
}

// Held waits until the model stands at all those gates.
func (r *Alone) Held(gates ...string) {
	r.T.Helper()
	for _, g := range gates {
		r.Must(r.Model.WaitHeld(r.Ctx, g))
	}
}

// Agent is the child session that runs as an agent of the script.
func (r *Alone) Agent(name string) agent.Session {
	r.T.Helper()
	var found agent.Session
	r.Until("session of "+name, func(v providertest.View) (ok bool) {
		found, ok = r.find(v.Sessions, name)
		return ok
	})
	return found
}

// Turn is the latest turn of a session.
func Turn(v providertest.View, session agent.SessionID) agent.Turn {
	if t := v.Session(session).LatestTurn; t != nil {
		return *t
	}
	return agent.Turn{}
}

// Settled tells whether a turn has ended so.
func Settled(turn agent.Turn, outcome agent.Outcome) bool {
	return turn.Phase == agent.PhaseSettled && turn.Outcome == outcome
}

// WantRoot waits for the root turn to end, and wants it to have ended so.
func (r *Alone) WantRoot(outcome agent.Outcome) providertest.View {
	r.T.Helper()
	v := r.Until("the root settles", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseSettled })
	if got := v.RootTurn(); got.Outcome != outcome {
		r.T.Errorf("the root is %s (%v), want %s", got.Outcome, got.Error, outcome)
	}
	return v
}

// WantChild wants the child to have ended so by now.
func (r *Alone) WantChild(name string, outcome agent.Outcome) {
	r.T.Helper()
	s := r.Agent(name)
	if got := Turn(r.View(), s.ID); !Settled(got, outcome) {
		r.T.Errorf("child %s is %s %s (%v), want %s", name, got.Phase, got.Outcome, got.Error, outcome)
	}
}

// Ends waits for the child to end so.
func (r *Alone) Ends(name string, outcome agent.Outcome) {
	r.T.Helper()
	s := r.Agent(name)
	r.Until(name+" ends", func(v providertest.View) bool { return Turn(v, s.ID).Phase == agent.PhaseSettled })
	r.WantChild(name, outcome)
}

// Cancel carries a prepared cancel out as the daemon does; every target must be
// confirmed.
func (r *Alone) Cancel(turn agent.TurnID) {
	r.T.Helper()
	c := r.PrepareCancel(turn)
	before := len(r.Evidence())
	r.Must(r.Runtime.Cancel(r.Ctx, c, r.Heard))
	for _, state := range r.CompleteCancel(c, r.Evidence()[before:]) {
		if state != agent.TargetCanceled && state != agent.TargetAlreadyTerminal {
			r.T.Errorf("a target is %s, evidence %+v", state, r.Evidence()[before:])
		}
	}
}

// Question waits for the n-th question, counted from 0.
func (r *Alone) Question(n int) agent.Interaction {
	r.T.Helper()
	return r.Until("question", func(v providertest.View) bool { return len(v.Interactions) > n }).Interactions[n]
}

// Answer answers a question and waits until that is taken.
func (r *Alone) Answer(i agent.Interaction, response agent.Response) {
	r.T.Helper()
	answer, err := r.PrepareAnswer(i, response)
	r.Must(err)
	r.Must(r.Runtime.Answer(r.Ctx, answer))
	r.Until("answered", func(v providertest.View) bool {
		for _, x := range v.Interactions {
			if x.RequestID == i.RequestID {
				return x.Status == agent.InteractionAnswered
			}
		}
		return false
	})
}
