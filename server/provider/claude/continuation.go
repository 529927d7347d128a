package claude

import (
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

const (
	// continuationWindow is how long the root agent may take to its first word after its
	// last child has ended (spec, "Claude Code SDK Mapping").
	continuationWindow = 30 * time.Second
	// heldBound is how long a held end waits where the program will not say idle: one that
	// tells no state, or one that a workflow keeps busy. A continuation comes within half a
	// second where there is one.
	heldBound = 2 * time.Second
)

// reserve opens the continuation that a child's end causes, before that end is reported:
// when it is the last child's, and no provider turn lives, storage would settle the root
// before the program begins (decisions.md 16).
func (r *runtime) reserve(child *turn) {
	if r.idling { // its own word: nothing follows
		return
	}
	if child.under != r.current || r.barred() || r.liveChildren(child) > 0 || r.waiting != nil || r.held != nil || len(r.announced) > 0 {
		return
	}
	u := r.open // a continuation that is under way and has not spoken is the one
	switch {
	case u == nil:
		u = r.newTurn(r.current)
	case u.reported || u.dropped:
		return
	}
	u.id, u.under, u.key = r.current, r.current, r.keys.Next()
	deadline := r.Clock.Now().Add(r.o.Continuation)
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key, Reserved: &deadline})
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped, u.ended = true, true
		return
	}
	u.reserved, u.reported = true, true
	r.waiting = u
	r.stopWait = r.Clock.AfterFunc(r.o.Continuation, func() {
		r.Do(func() { r.expire(u) })
	})
}

// unreserve takes the first word of a continuation.
func (r *runtime) unreserve(u *turn) {
	r.endWait()
	u.reserved = false
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key})
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped = true
	}
}

// endWait forgets the reservation, whatever became of it.
func (r *runtime) endWait() {
	r.waiting = nil
	if r.stopWait != nil {
		r.stopWait()
		r.stopWait = nil
	}
}

// expire ends a reservation whose time is up. The continuation, with whatever was queued
// for it, is interrupted, and all that it still says is nobody's.
func (r *runtime) expire(u *turn) {
	if r.waiting != u || r.gone() != nil {
		return
	}
	r.endWait()
	r.stale = true
	r.Diagnose(provider.Unrouted, "continuation", "none came in time")
	if r.open == u {
		u.dropped = true
	}
	r.endSilently(u, agent.Errorf(agent.CodeTimeout, "The main agent was to go on after its last agent had ended, and did not"))
	r.send(interruptRequest{Subtype: reqInterrupt, CancelQueued: true}, requestBound, r.withdrawQueued)
}

// withdrawQueued takes the answer to an interrupt: the messages that it withdrew.
func (r *runtime) withdrawQueued(a answer) {
	var res interruptAnswer
	if a.decode(&res) != nil {
		return
	}
	for _, id := range res.Cancelled {
		if x := r.texts[id]; x != nil {
			r.lose(x)
			delete(r.texts, id)
		}
	}
}

// holdEnd keeps the end of a provider turn back until the program says idle, or begins
// the next one. Without an outcome it is an empty turn.
func (r *runtime) holdEnd(u *turn, outcome agent.Outcome, why *agent.Error) {
	r.releaseHeld(nil)
	u.outcome, u.err = outcome, why
	r.held = u
	r.boundHeld()
}

// boundHeld bounds the wait of a held end where the program will not say idle.
func (r *runtime) boundHeld() {
	u := r.held
	if u == nil || r.stateTold && !r.busyWorkflow() {
		return
	}
	if r.stopHeld != nil {
		r.stopHeld()
	}
	r.stopHeld = r.Clock.AfterFunc(heldBound, func() {
		r.Do(func() {
			if r.held == u && r.open == nil && r.gone() == nil {
				r.releaseHeld(nil)
			}
		})
	})
}

// releaseHeld reports the end that was held, unless it is that of the turn named.
func (r *runtime) releaseHeld(but *turn) {
	u := r.held
	if u == nil || u == but {
		return
	}
	r.held = nil
	if r.stopHeld != nil {
		r.stopHeld()
		r.stopHeld = nil
	}
	if u.outcome == "" {
		r.endSilently(u, nil)
		return
	}
	r.endTurn(u, u.outcome, u.err)
}

// stateChanged handles the program's own word of what it does. It is a level, and may be
// said again; nothing is counted by it.
func (r *runtime) stateChanged(f *stateFrame) {
	was := r.state
	r.state, r.stateTold = f.State, true
	if f.State != stateIdle {
		return
	}
	r.idle()
	if was != stateIdle {
		for _, l := range r.children {
			l.rest()
		}
	}
}

// idle closes whatever is open: no child lives, no root turn is open, and no continuation
// is to come. A message that the program has not read yet is not touched: this idle may be
// older than it.
func (r *runtime) idle() {
	r.idling = true
	defer func() { r.idling = false }()
	r.stale = false
	r.dropHeld()
	if r.open != nil {
		r.loseOpen("idle")
	}
	r.endLeftovers()
	r.endTexts()
	r.carryTexts(r.current)
	r.closeBooks()
	if u := r.waiting; u != nil {
		r.endWait()
		r.endSilently(u, nil)
	}
	r.releaseHeld(nil)
	r.confirmIdle()
}

// endLeftovers ends the children whose end was never told. One that the level still lists
// lives, whatever idle says (SkillfulAgents/SuperAgent#386). Of one that is to be stopped
// nothing is reported: that it was not confirmed is for its cancel to say.
func (r *runtime) endLeftovers() {
	for _, l := range r.children {
		u := l.live
		switch {
		case u == nil:
		case l.listed:
			r.Diagnose(provider.Ignored, "idle", "it lives: "+l.task)
		case u.closed && !u.unsure:
			r.unconfirmed(u)
		default:
			r.Diagnose(provider.Unrouted, "idle", "no end was told of "+l.task)
			r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "Claude did not tell how this agent ended"))
		}
	}
}

func (r *runtime) stopTimers() {
	for _, stop := range []func() bool{r.stopHeld, r.stopWait} {
		if stop != nil {
			stop()
		}
	}
	for _, x := range r.texts {
		if x.stop != nil {
			x.stop()
		}
	}
}
