package demo

import (
	"fmt"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// maxHeld bounds what is kept of an agent whose edge has not come.
const maxHeld = 1000

// player plays steps as one agent in one turn: a child, or the root within one of its
// provider turns.
type player struct {
	rt      *runtime
	play    *play
	pt      *providerTurn // of the root agent
	parent  *player       // of a child
	kind    *Agent        // of a child
	session agent.SessionID
	turn    agent.TurnID

	stack   [][]Step // what is still to be played, innermost last
	pending *timer
	halted  bool // plays no further step
	ended   bool // its terminal was reported

	bound  bool     // its edge has been reported
	orphan bool     // its edge never comes
	held   []func() // reports from before the edge

	kids      int     // live agents that it spawned
	joining   bool    // it waits for them
	awaits    *player // the foreground agent it waits for
	awaitCall agent.Message
	usage     agent.Usage

	canceling bool     // a stop was asked for
	waiters   []func() // told when its terminal was reported
}

func (p *player) push(steps []Step) {
	if len(steps) > 0 {
		p.stack = append(p.stack, steps)
	}
}

// next plays steps until one of them takes time.
func (p *player) next() {
	for !p.halted && !p.rt.over {
		step := p.pop()
		if step == nil {
			p.finish(agent.OutcomeCompleted, nil)
			return
		}
		if _, waiting := step.(Wait); !waiting && p.pt != nil {
			p.rt.unreserve(p.pt)
		}
		if !step.play(p) {
			return
		}
	}
}

func (p *player) pop() Step {
	for len(p.stack) > 0 {
		top := len(p.stack) - 1
		if len(p.stack[top]) == 0 {
			p.stack = p.stack[:top]
			continue
		}
		step := p.stack[top][0]
		p.stack[top] = p.stack[top][1:]
		return step
	}
	return nil
}

// after goes on with f after d of the machine's time; d is already scaled.
func (p *player) after(d time.Duration, f func()) {
	p.pending = p.rt.timer(d, func() {
		p.pending = nil
		if !p.halted {
			f()
		}
	})
}

// later is after with a duration of the script.
func (p *player) later(d time.Duration, f func()) { p.after(p.rt.adapter.scaled(d), f) }

// halt stops the player where it is. It reports nothing.
func (p *player) halt() {
	p.halted = true
	p.rt.stopTimer(p.pending)
	for id, a := range p.rt.asks {
		if a.player == p {
			a.forget()
			delete(p.rt.asks, id)
		}
	}
}

// report sends a fact of this agent, or keeps it until its edge has come.
func (p *player) report(f agent.Fact) agent.Applied {
	if p.bound {
		applied := p.rt.apply(f)
		if p.play.script.Twice {
			p.rt.apply(f)
		}
		return applied
	}
	p.hold(fmt.Sprintf("%T", f), func() { p.report(f) })
	return agent.Applied{}
}

// text streams text, or keeps it until the edge has come.
func (p *player) text(id agent.MessageID, text string) {
	if !p.bound {
		p.hold("text", func() { p.text(id, text) })
		return
	}
	if p.rt.over {
		return
	}
	if err := p.rt.sink.Text(p.session, p.turn, id, text); err != nil {
		p.rt.end(nil)
	}
}

func (p *player) hold(what string, f func()) {
	d := provider.Diagnostic{Kind: provider.Held, Method: what, Detail: "agent " + p.kind.Name}
	if p.orphan || len(p.held) >= maxHeld {
		d.Kind = provider.Unrouted
	} else {
		p.held = append(p.held, f)
	}
	p.rt.sink.Diagnose(d)
}

// finish reports that the turn has ended, once; steps that are left come late.
func (p *player) finish(outcome agent.Outcome, err *agent.Error) {
	if p.ended {
		return
	}
	p.ended = true
	if p.pt != nil {
		p.rt.finishMain(p.play, p.pt, outcome, err)
	} else {
		if !p.canceling {
			p.rt.beforeLast(p)
		}
		p.report(agent.TurnSettled{Session: p.session, Turn: p.turn, Outcome: outcome, Err: err})
		if p.bound {
			p.tellParent()
		} else {
			p.held = append(p.held, p.tellParent) // its parent learns of both at once
		}
	}
	p.tellStops()
}

// tellStops lets the stops go on that wait for the agent's end.
func (p *player) tellStops() {
	for _, w := range p.waiters {
		w()
	}
	p.waiters = nil
}

// tellParent lets the agent that spawned this one go on, if it waits.
func (p *player) tellParent() {
	parent := p.parent
	if parent == nil {
		return
	}
	parent.kids--
	if parent.awaits == p {
		parent.awaits = nil
		call := parent.awaitCall
		call.Status, call.Output = agent.MessageCompleted, p.kind.Title+" has ended."
		parent.report(agent.MessagePut{Message: call})
		parent.later(200*time.Millisecond, parent.next)
	}
	if parent.joining && parent.kids == 0 {
		parent.joining = false
		parent.later(200*time.Millisecond, parent.next)
	}
}

// finishMain counts one of the root agent's players out; the last ends the provider
// turn with the outcome of the script's own.
func (r *runtime) finishMain(pl *play, pt *providerTurn, outcome agent.Outcome, err *agent.Error) {
	if pt.outcome == "" || outcome != agent.OutcomeCompleted {
		pt.outcome, pt.err = outcome, err
	}
	if pt.mains--; pt.mains == 0 {
		r.endProviderTurn(pl, pt)
	}
}

// endProviderTurn reports the terminal. Where the last agent has ended already, the
// turn that follows it begins first, so that the root is held without a gap.
func (r *runtime) endProviderTurn(pl *play, pt *providerTurn) {
	if pt.ended {
		return
	}
	pt.ended = true
	pl.provider = nil
	if pl.script.After != nil && pl.spawned && !pl.live() && !pt.stopping && pt.outcome == agent.OutcomeCompleted {
		r.follow(pl)
	}
	r.reportEnd(pl, pt)
	for _, w := range pt.waiters {
		w()
	}
	pt.waiters = nil
}

func (r *runtime) reportEnd(pl *play, pt *providerTurn) {
	f := agent.ProviderTurnEnded{Session: r.root, Turn: pl.turn, Key: pt.key, Outcome: pt.outcome, Err: pt.err, Silent: pt.reserved != nil}
	r.apply(f)
	if pl.script.Twice {
		r.apply(f)
	}
}

// beforeLast begins the turn that follows the last agent before that agent's own
// terminal, as a provider announces it: the root must not settle in between.
func (r *runtime) beforeLast(p *player) {
	if p.play.provider == nil && p.bound && !p.play.live() {
		r.follow(p.play)
	}
}

// follow plays After, once.
func (r *runtime) follow(pl *play) {
	after := pl.script.After
	if after == nil || pl.continued || pl.canceled {
		return
	}
	pl.continued = true
	if after.Reserved == 0 {
		_, _ = r.begin(pl, after.Steps, nil) // a storage failure has ended the runtime
		return
	}
	deadline := r.sink.Clock().Now().Add(r.adapter.scaled(after.Reserved))
	if _, err := r.begin(pl, after.Steps, &deadline); err != nil || pl.provider == nil {
		return
	}
	pt := pl.provider
	r.timer(r.adapter.scaled(after.Reserved), func() {
		if pt.reserved == nil || pt.ended {
			return
		}
		for _, p := range pt.players {
			p.halt()
		}
		pt.outcome = agent.OutcomeCompleted
		r.endProviderTurn(pl, pt)
	})
}

// unreserve reports that an announced provider turn has spoken.
func (r *runtime) unreserve(pt *providerTurn) {
	if pt.reserved == nil || pt.ended {
		return
	}
	pt.reserved = nil
	r.apply(agent.ProviderTurnStarted{Session: r.root, Key: pt.key, NativeID: string(pt.key)})
}

// live reports whether an agent of the play, with an edge, has not ended.
func (pl *play) live() bool {
	for _, p := range pl.agents {
		if !p.ended && p.bound {
			return true
		}
	}
	return false
}

// over reports whether nothing of the play can be addressed any more.
func (pl *play) over() bool { return pl.provider == nil && !pl.live() }
