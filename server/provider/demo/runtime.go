package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// runtime is one open root session. Everything in it happens under its lock: a command
// or a timer takes it, does its part and reports while it holds it, so that facts leave
// in the order in which things happened. It has no goroutine of its own.
type runtime struct {
	adapter *Adapter
	sink    provider.Sink
	root    agent.SessionID
	script  *Script // of the session

	// lock is a channel, not a mutex: in a synctest bubble a goroutine that waits for a
	// mutex stops the clock, and Apply may have to wait for time to pass.
	lock chan struct{}
	done chan struct{}

	over     bool // closed or dead: nothing happens any more
	turns    int  // provider turns so far
	calls    int  // tool calls so far
	plays    []*play
	children map[string]*player // the newest of each kind, for resume
	asks     map[agent.RequestID]*asked
	timers   map[*timer]bool

	processes map[agent.ProcessID]agent.Process // that run
}

// timer is one armed timer, so that all can be stopped.
type timer struct{ stop func() bool }

// play is one root turn as the script plays it.
type play struct {
	turn      agent.TurnID
	script    *Script
	provider  *providerTurn // the running one, or nil
	agents    []*player     // every child, at any depth
	spawned   bool          // there was at least one child
	continued bool          // After was played
	canceled  bool          // a stop of the whole turn was asked for
}

// providerTurn is one provider turn of a play.
type providerTurn struct {
	key      agent.ProviderTurnID
	mains    int // players that have not finished
	outcome  agent.Outcome
	err      *agent.Error
	reserved *time.Time
	players  []*player
	waiters  []func() // told when it has ended
	stopping bool
	ended    bool
}

func newRuntime(a *Adapter, p provider.OpenParams, script *Script, sink provider.Sink) *runtime {
	return &runtime{
		adapter: a, sink: sink, root: p.Root.ID, script: script, turns: len(p.ProviderTurns), calls: 100 * len(p.ProviderTurns),
		lock: make(chan struct{}, 1), done: make(chan struct{}),
		children: map[string]*player{}, asks: map[agent.RequestID]*asked{}, timers: map[*timer]bool{},
		processes: map[agent.ProcessID]agent.Process{},
	}
}

// hold takes the lock and returns what releases it.
func (r *runtime) hold() func() {
	r.lock <- struct{}{}
	return func() { <-r.lock }
}

// gone is the answer to a command after the end.
func gone() error {
	return agent.Errorf(agent.CodeProviderGone, "the demo agent's process has ended; send a message to start it again")
}

// Start implements provider.Runtime.
func (r *runtime) Start(_ context.Context, in provider.Input) error {
	defer r.hold()()
	if r.over {
		return gone()
	}
	script := r.script
	if named := r.adapter.named(in.Text); named != nil {
		script = named
	}
	pl := &play{turn: in.Turn, script: script}
	applied, err := r.begin(pl, script.Root, nil)
	switch {
	case err != nil:
		return err
	case applied.Verdict == agent.VerdictRefused:
		return agent.Errorf(applied.Code, "the turn cannot start any more")
	}
	r.silence()
	r.plays = append(slices.DeleteFunc(r.plays, (*play).over), pl)
	caps := capabilities(script)
	r.apply(agent.SessionDescribed{Session: r.root, Capabilities: &caps})
	r.deliver(in)
	return nil
}

// silence stops what an older, canceled turn still plays: its provider would have
// ended it when it took the next message.
func (r *runtime) silence() {
	for _, pl := range r.plays {
		if !pl.canceled {
			continue
		}
		for _, p := range pl.agents {
			p.halt()
		}
		if pl.provider != nil {
			for _, p := range pl.provider.players {
				p.halt()
			}
		}
	}
}

// deliver reports that the agent has a person's message.
func (r *runtime) deliver(in provider.Input) {
	r.apply(agent.MessagePut{Message: agent.Message{ID: in.Message, SessionID: r.root, TurnID: in.Turn, Status: agent.MessageCompleted}})
}

// begin opens a provider turn under a play and starts to play steps in it. With
// reserved it is only announced. It may be refused.
func (r *runtime) begin(pl *play, steps []Step, reserved *time.Time) (agent.Applied, error) {
	r.turns++
	pt := &providerTurn{key: agent.ProviderTurnID(fmt.Sprintf("demo-turn-%d", r.turns)), reserved: reserved}
	started := agent.ProviderTurnStarted{Session: r.root, Turn: pl.turn, Key: pt.key, NativeID: string(pt.key), Reserved: reserved}
	applied, err := r.sink.Apply(started)
	if err != nil {
		r.end(nil)
		return applied, err
	}
	if applied.Verdict == agent.VerdictRefused {
		return applied, nil
	}
	if pl.turn == "" {
		pl.turn = applied.Turn // where a turn that nobody asked for was placed
	}
	pl.provider = pt
	r.addMain(pl, pt, steps, 0)
	return applied, nil
}

// addMain plays steps as the root agent within a running provider turn.
func (r *runtime) addMain(pl *play, pt *providerTurn, steps []Step, after time.Duration) {
	p := &player{rt: r, play: pl, pt: pt, session: r.root, turn: pl.turn, bound: true}
	p.push(steps)
	pt.mains++
	pt.players = append(pt.players, p)
	p.after(after, p.next)
}

// Guide implements provider.Runtime: to the running provider turn, or as a new one
// while only children run.
func (r *runtime) Guide(_ context.Context, in provider.Input) error {
	defer r.hold()()
	if r.over {
		return gone()
	}
	pl := r.current()
	switch {
	case pl == nil || pl.turn != in.Turn:
		return agent.Errorf(agent.CodeTurnSettled, "the turn has ended")
	case pl.canceled:
		return agent.Errorf(agent.CodeTurnCanceling, "the turn is being stopped")
	}
	steps := guidance(pl.script, in.Text)
	if pt := pl.provider; pt != nil {
		r.unreserve(pt)
		r.deliver(in)
		r.addMain(pl, pt, steps, r.adapter.scaled(300*time.Millisecond))
		return nil
	}
	if !pl.live() {
		return agent.Errorf(agent.CodeTurnSettled, "the turn has ended")
	}
	applied, err := r.begin(pl, steps, nil)
	switch {
	case err != nil:
		return err
	case applied.Verdict == agent.VerdictRefused:
		return agent.Errorf(applied.Code, "the turn takes no message any more")
	}
	r.deliver(in)
	return nil
}

// current returns the newest play, or nil.
func (r *runtime) current() *play {
	if len(r.plays) == 0 {
		return nil
	}
	return r.plays[len(r.plays)-1]
}

// Answer implements provider.Runtime.
func (r *runtime) Answer(_ context.Context, a provider.Answer) error {
	defer r.hold()()
	if r.over {
		return gone()
	}
	ask := r.asks[a.Interaction.RequestID]
	if ask == nil || ask.player.session != a.Interaction.SessionID || ask.player.turn != a.Interaction.TurnID {
		return agent.Errorf(agent.CodeInteractionGone, "the agent no longer waits for this answer")
	}
	ask.answer(a.Response)
	return nil
}

// Forget implements provider.Runtime: the agents stop where they are and are not
// heard of again.
func (r *runtime) Forget(_ context.Context, sessions []agent.SessionID) {
	defer r.hold()()
	gone := map[agent.SessionID]bool{}
	for _, id := range sessions {
		gone[id] = true
	}
	for _, pl := range r.plays {
		for _, p := range pl.agents {
			if gone[p.session] && !p.ended {
				p.halt()
				p.ended = true
				p.tellParent()
				p.tellStops()
			}
		}
	}
}

// Close implements provider.Runtime.
func (r *runtime) Close(context.Context) error {
	defer r.hold()()
	r.end(nil)
	return nil
}

// Done implements provider.Runtime.
func (r *runtime) Done() <-chan struct{} { return r.done }

// end stops everything, once. With an error it is the process that died, and that is
// reported.
func (r *runtime) end(death *agent.Error) {
	if r.over {
		return
	}
	if death != nil {
		_, _ = r.sink.Apply(agent.SessionLost{Session: r.root, Err: death}) // nothing more can be done if it fails
	}
	r.over = true
	for t := range r.timers {
		t.stop()
	}
	close(r.done)
}

// apply reports one fact. A storage that fails ends the runtime, as the contract says.
func (r *runtime) apply(f agent.Fact) agent.Applied {
	if r.over {
		return agent.Applied{}
	}
	applied, err := r.sink.Apply(f)
	if err != nil {
		r.end(nil)
	}
	return applied
}

// scaled is a duration of the script at the adapter's speed.
func (a *Adapter) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / a.speed)
}

// timer calls f under the lock after d, unless it is stopped or the runtime has ended.
func (r *runtime) timer(d time.Duration, f func()) *timer {
	t := &timer{}
	t.stop = r.sink.Clock().AfterFunc(d, func() {
		defer r.hold()()
		if r.over || !r.timers[t] {
			return
		}
		delete(r.timers, t)
		f()
	})
	r.timers[t] = true
	return t
}

func (r *runtime) stopTimer(t *timer) {
	if t != nil && r.timers[t] {
		t.stop()
		delete(r.timers, t)
	}
}
