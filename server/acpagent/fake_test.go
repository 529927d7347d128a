package acpagent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// fake is a provider that does what a test says, when it says it.
type fake struct {
	caps agent.Capabilities

	opened  chan *fakeRuntime
	starts  chan provider.Input
	cancels chan *fakeCancel
	answers chan provider.Answer
}

// fakeCancel is a stop that the provider was asked for and that the test answers.
type fakeCancel struct {
	provider.Cancel
	heard func(agent.Evidence)
	done  chan error
}

func newFake() *fake {
	return &fake{
		caps:   agent.Capabilities{Cancel: true, ConfirmsCancel: true, ChildCancel: true, ConfirmsChildCancel: true, Guide: true, Resume: true},
		opened: make(chan *fakeRuntime, 16), starts: make(chan provider.Input, 16), cancels: make(chan *fakeCancel, 16), answers: make(chan provider.Answer, 16),
	}
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Probe(context.Context) provider.Info {
	return provider.Info{
		Name: "fake", DisplayName: "Fake", Found: true, Capabilities: f.caps, Notes: []string{}, Models: []string{"small", "large"},
		PermissionModes: []string{"ask", "auto"}, Scenarios: []provider.Scenario{},
	}
}

func (f *fake) Open(_ context.Context, p provider.OpenParams, s provider.Sink) (provider.Runtime, error) {
	r := &fakeRuntime{fake: f, sink: s, root: p.Root.ID, done: make(chan struct{}), model: p.Root.Model}
	r.apply(agent.SessionDescribed{Session: p.Root.ID, Capabilities: &f.caps, ProviderSessionID: "thread-root"})
	f.opened <- r
	return r, nil
}

// fakeRuntime is one root session at the provider.
type fakeRuntime struct {
	fake *fake
	sink provider.Sink
	root agent.SessionID
	done chan struct{}
	once sync.Once
	n    int

	model string
}

func (r *fakeRuntime) apply(f agent.Fact) agent.Applied {
	a, err := r.sink.Apply(f)
	if err != nil {
		panic(err)
	}
	return a
}

func (r *fakeRuntime) Start(_ context.Context, in provider.Input) error {
	r.apply(agent.ProviderTurnStarted{Session: r.root, Turn: in.Turn, Key: keyOfTurn(in.Turn)})
	r.apply(agent.MessagePut{Message: agent.Message{ID: in.Message, SessionID: r.root, TurnID: in.Turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: agent.MessageCompleted}})
	r.fake.starts <- in
	return nil
}

func keyOfTurn(t agent.TurnID) agent.ProviderTurnID { return agent.ProviderTurnID("p-" + string(t)) }

func (r *fakeRuntime) Guide(_ context.Context, in provider.Input) error {
	r.apply(agent.MessagePut{Message: agent.Message{ID: in.Message, SessionID: r.root, TurnID: in.Turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: agent.MessageCompleted}})
	return nil
}

func (r *fakeRuntime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	call := &fakeCancel{Cancel: c, heard: heard, done: make(chan error, 1)}
	select {
	case r.fake.cancels <- call:
	case <-r.done:
		return nil
	}
	select {
	case err := <-call.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return nil
	}
}

func (r *fakeRuntime) Answer(_ context.Context, a provider.Answer) error {
	r.fake.answers <- a
	r.apply(agent.InteractionEnded{Session: a.Interaction.SessionID, Turn: a.Interaction.TurnID, Request: a.Interaction.RequestID, Step: agent.AskDelivered})
	return nil
}

func (*fakeRuntime) Forget(context.Context, []agent.SessionID) {}

func (r *fakeRuntime) Close(context.Context) error {
	r.once.Do(func() { close(r.done) })
	return nil
}

func (r *fakeRuntime) Done() <-chan struct{} { return r.done }

// fakeAgent is one agent of the tree with its current turn.
type fakeAgent struct {
	r       *fakeRuntime
	session agent.SessionID
	turn    agent.TurnID
	thread  string
}

// main is the root in the turn that a prompt began.
func (r *fakeRuntime) main(in provider.Input) *fakeAgent {
	return &fakeAgent{r: r, session: r.root, turn: in.Turn, thread: "thread-root"}
}

// spawn begins a child and its first turn.
func (a *fakeAgent) spawn(title string) *fakeAgent {
	c := a.announce(title)
	a.r.apply(agent.TurnStarted{Session: c.session, Turn: c.turn, NativeID: "native-" + string(c.turn)})
	return c
}

// announce begins a child whose turn has not been seen running.
func (a *fakeAgent) announce(title string) *fakeAgent {
	a.r.n++
	c := &fakeAgent{r: a.r, session: a.r.sink.Mint().Session(), turn: a.r.sink.Mint().Turn(), thread: "thread-" + title}
	a.r.apply(agent.ChildStarted{
		Session: c.session, Turn: c.turn, Parent: a.session, ParentTurn: a.turn, Title: title, Prompt: "do " + title,
		AgentType: "worker", Handles: agent.Handles{ThreadID: c.thread},
	})
	return c
}

// again gives a child that has ended another turn.
func (a *fakeAgent) again() {
	a.turn = a.r.sink.Mint().Turn()
	a.r.apply(agent.TurnStarted{Session: a.session, Turn: a.turn, NativeID: "native-" + string(a.turn), Trigger: agent.TriggerDelegation})
}

func (a *fakeAgent) say(text string) {
	a.r.apply(agent.MessagePut{Message: agent.Message{
		ID: a.r.sink.Mint().Message(), SessionID: a.session, TurnID: a.turn, Role: agent.RoleAssistant,
		Kind: agent.MessageText, Status: agent.MessageCompleted, Content: text,
	}})
}

func (a *fakeAgent) put(m agent.Message) agent.Message {
	if m.ID == "" {
		m.ID = a.r.sink.Mint().Message()
	}
	m.SessionID, m.TurnID = a.session, a.turn
	a.r.apply(agent.MessagePut{Message: m})
	return m
}

// end ends the turn: of the root the provider's own turn.
func (a *fakeAgent) end(o agent.Outcome) {
	var why *agent.Error
	if o == agent.OutcomeFailed {
		why = agent.Errorf(agent.CodeProviderRefused, "the model is overloaded")
	}
	if a.session == a.r.root {
		a.r.apply(agent.ProviderTurnEnded{Session: a.session, Turn: a.turn, Key: keyOfTurn(a.turn), Outcome: o, Err: why})
		return
	}
	a.r.apply(agent.TurnSettled{Session: a.session, Turn: a.turn, Outcome: o, Err: why})
}

// ask asks whether a command may run.
func (a *fakeAgent) ask(title string) agent.RequestID {
	return a.askWith(agent.Interaction{
		Kind: agent.InteractionApproval, Title: title, Detail: agent.Detail{Command: "touch file", Reason: "it needs the file"},
		Options: []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}, {ID: "no", Label: "No", Role: agent.RoleDeny}},
	})
}

func (a *fakeAgent) askWith(i agent.Interaction) agent.RequestID {
	i.SessionID, i.TurnID, i.RequestID, i.Owner = a.session, a.turn, a.r.sink.Mint().Request(), agent.OwnerExact
	if i.Options == nil {
		i.Options = []agent.Option{}
	}
	a.r.apply(agent.InteractionAsked{Interaction: i})
	return i.RequestID
}

// confirm stops every target: its end is reported first, then the stop is over.
func (c *fakeCancel) confirm(agents ...*fakeAgent) {
	for _, a := range agents {
		a.end(agent.OutcomeInterrupted)
	}
	for _, t := range c.Targets {
		c.heard(agent.Evidence{SessionID: t.Session, TurnID: t.Turn, State: agent.TargetCanceled})
	}
	c.done <- nil
}

// targets are the turns that are to stop.
func (c *fakeCancel) targets() map[agent.TurnID]bool {
	out := map[agent.TurnID]bool{}
	for _, t := range c.Targets {
		out[t.Turn] = true
	}
	return out
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func none[T any](t *testing.T, what string, from <-chan T) {
	t.Helper()
	select {
	case v := <-from:
		t.Fatalf("%s: %+v", what, v)
	default:
	}
}
