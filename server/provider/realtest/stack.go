package realtest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// Stack is one session at a real program under commands, their worker, runtimes and
// storage. Everything on the wire is recorded.
type Stack struct {
	Setup
	Ctx     context.Context //nolint:containedctx // the life of one test
	Store   *store.Store
	Live    *live.Live
	Service *command.Service
	Ws      agent.WorkspaceID
	Root    agent.SessionID

	t        testing.TB
	follower *follower

	mu      sync.Mutex
	changed chan struct{}
	tape    *Tape
}

// Tape is a recording of the wire, as replays read it.
type Tape struct {
	Dir string // how the recordings of this provider mark a line that is not on the wire

	mu    sync.Mutex
	began time.Time
	lines bytes.Buffer
}

// NewTape returns an empty tape.
func NewTape(dir string) *Tape { return &Tape{Dir: dir, began: time.Now()} }

// Record writes a line; it is what goes to an adapter.
func (p *Tape) Record(dir string, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.lines, `{"t":%d,"dir":%q,"msg":%s}`+"\n", time.Since(p.began).Milliseconds(), dir, line)
}

// Note writes a line that was not on the wire.
func (p *Tape) Note(text string) { p.Record(p.Dir, []byte(text)) }

func (p *Tape) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines.String()
}

// OpenStack builds the parts and creates the session; its program starts with the first
// message. At the end of the test all is closed, and nothing of the program may be left.
func OpenStack(t testing.TB, s Setup, tape *Tape) *Stack {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), bound)
	t.Cleanup(stop)
	r := &Stack{Setup: s, Ctx: ctx, t: t, follower: newFollower(), changed: make(chan struct{}), tape: tape}
	mint := agent.NewMinter(uuid.NewString)
	var err error
	r.Store, err = store.Open(ctx, store.Options{Path: store.Memory, Synchronous: "normal", Mint: mint, OnCommit: func(events []agent.Event) {
		r.follower.commit(events)
		r.bump()
	}})
	r.Must(err)
	quiet := slog.New(slog.DiscardHandler)
	r.Live = live.New(live.Options{
		Adapters: map[string]provider.Adapter{s.Provider: s.Adapter}, Recorder: r.Store, Mint: mint, Env: s.Place.Env, Logger: quiet,
		Deltas: r.follower.delta,
	})
	r.Service = command.New(command.Options{
		Store: r.Store, Live: live.Port{Live: r.Live}, Logger: quiet,
		Card: func(context.Context, string) (agent.Capabilities, error) { return agent.Capabilities{}, nil },
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Service.Run(ctx)
	}()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for _, err := range []error{r.Service.Close(ctx), r.Live.Close(ctx), r.Store.Close()} {
			if err != nil {
				t.Errorf("close: %v", err)
			}
		}
		<-done
		s.leftovers(t)
	})
	ws, err := r.Service.CreateWorkspace(ctx, "", s.Place.Work)
	r.Must(err)
	r.Ws = ws.ID
	sub, err := r.Service.CreateSession(ctx, agent.NewSession{Workspace: ws.ID, Provider: s.Provider, PermissionMode: s.Mode, Model: s.ModelName})
	r.Must(err)
	r.Root = sub.Session.ID
	return r
}

// Must ends the test on an error.
func (r *Stack) Must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *Stack) bump() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Detail reads the session with every session below it.
func (r *Stack) Detail() agent.SessionDetail {
	r.t.Helper()
	d, err := r.Store.Detail(r.Ctx, r.Ws, r.Root)
	r.Must(err)
	return d
}

// Until waits for what storage reads to look a certain way.
func (r *Stack) Until(what string, holds func(agent.SessionDetail) bool) agent.SessionDetail {
	r.t.Helper()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		d := r.Detail()
		if holds(d) {
			return d
		}
		select {
		case <-changed:
		case <-r.Ctx.Done():
			r.t.Fatalf("never: %s\n%+v\n%+v\n%s", what, d, r.Live.Diagnostics(), r.tape)
		}
	}
}

// Say sends a person's message and tells what became of it.
func (r *Stack) Say(text string) agent.Submitted {
	r.t.Helper()
	sub, err := r.Service.Send(r.Ctx, r.Ws, agent.NewMessage{Session: r.Root, Text: text, Client: "test"})
	r.Must(err)
	return sub
}

// Held waits until the model stands at all those gates.
func (r *Stack) Held(gates ...string) {
	r.t.Helper()
	for _, g := range gates {
		r.Must(r.Model.WaitHeld(r.Ctx, g))
	}
}

// Agent is the child session that runs as an agent of the script, as soon as the turn it
// runs in is known by the program's name.
func (r *Stack) Agent(name string) agent.Session {
	r.t.Helper()
	r.Must(r.Model.WaitRequests(r.Ctx, name, 1)) // from then on the model knows its thread
	var found agent.Session
	r.Until("session of "+name, func(d agent.SessionDetail) (ok bool) {
		found, ok = r.find(d.ChildSessions, name)
		return ok && found.LatestTurn != nil && (r.Nameless || found.LatestTurn.NativeID != "")
	})
	return found
}

// Ends waits for the child's latest turn to end so.
func (r *Stack) Ends(name string, outcome agent.Outcome) {
	r.t.Helper()
	id := r.Agent(name).ID
	r.Until(name+" ends", func(d agent.SessionDetail) bool {
		at := slices.IndexFunc(d.ChildSessions, func(x agent.Session) bool { return x.ID == id })
		turn := d.ChildSessions[at].LatestTurn
		if turn.Phase == agent.PhaseSettled && turn.Outcome != outcome {
			r.t.Errorf("%s is %s (%v), want %s", name, turn.Outcome, turn.Error, outcome)
		}
		return turn.Phase == agent.PhaseSettled
	})
}

// Waits waits until the root has answered and is held open by something.
func (r *Stack) Waits(by agent.HeldBy) agent.GateReport {
	r.t.Helper()
	var gate agent.GateReport
	r.Until("the root waits for "+string(by), func(d agent.SessionDetail) bool {
		turn := d.Session.ActiveTurn
		if turn == nil {
			return false
		}
		var err error
		gate, err = r.Store.Gate(r.Ctx, r.Ws, r.Root, turn.ID)
		r.Must(err)
		return turn.Phase == agent.PhaseWaiting && gate.HeldBy == by
	})
	return gate
}

// Settles waits until the root has nothing open, and wants its latest turn to have ended
// so.
func (r *Stack) Settles(outcome agent.Outcome) {
	r.t.Helper()
	d := r.Until("the root settles", func(d agent.SessionDetail) bool {
		return d.Session.ActiveTurn == nil && d.Session.LatestTurn != nil
	})
	if got := d.Session.LatestTurn.Outcome; got != outcome {
		r.t.Errorf("the root is %s (%v), want %s", got, d.Session.LatestTurn.Error, outcome)
	}
}

// Said waits until a session shows a whole message with that content.
func (r *Stack) Said(session agent.SessionID, content string) agent.Message {
	r.t.Helper()
	var found agent.Message
	r.Until(fmt.Sprintf("%q is said", content), func(agent.SessionDetail) bool {
		page, err := r.Store.Messages(r.Ctx, r.Ws, session, agent.MessageRange{Limit: 500})
		r.Must(err)
		at := slices.IndexFunc(page.Items, func(m agent.Message) bool { return m.Content == content && m.Status.Ended() })
		if at >= 0 {
			found = page.Items[at]
		}
		return at >= 0
	})
	return found
}

// StopRoot stops the root turn that is open, with all below it.
func (r *Stack) StopRoot() {
	r.t.Helper()
	turn := r.Detail().Session.ActiveTurn
	if turn == nil {
		r.t.Fatal("no root turn is open")
	}
	r.Cancel(r.Root, turn.ID)
}

// Cancel stops a turn and waits until that is carried out and confirmed.
func (r *Stack) Cancel(session agent.SessionID, turn agent.TurnID) {
	r.t.Helper()
	op, _, err := r.Service.Cancel(r.Ctx, r.Ws, session, turn, "test")
	r.Must(err)
	r.Until("the stop is carried out", func(agent.SessionDetail) bool {
		now, err := r.Store.Operation(r.Ctx, r.Ws, op.ID)
		r.Must(err)
		if !now.Status.Open() && now.Status != agent.OperationSucceeded {
			r.t.Errorf("the stop is %s: %+v", now.Status, now.Targets)
		}
		return !now.Status.Open()
	})
}

// Question waits for a question that is open.
func (r *Stack) Question() agent.Interaction {
	r.t.Helper()
	var open []agent.Interaction
	r.Until("a question", func(agent.SessionDetail) bool {
		var err error
		open, err = r.Store.Interactions(r.Ctx, r.Ws, r.Root, agent.InteractionPending)
		r.Must(err)
		return len(open) > 0
	})
	return open[0]
}

// Answer answers a question.
func (r *Stack) Answer(i agent.Interaction, response agent.Response) {
	r.t.Helper()
	_, _, err := r.Service.Answer(r.Ctx, r.Ws, agent.NewAnswer{
		Session: i.SessionID, Turn: i.TurnID, Request: i.RequestID, Response: response, Client: "test",
	})
	r.Must(err)
}
