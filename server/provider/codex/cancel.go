package codex

import (
	"context"
	"errors"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// cancelRun is one Cancel call under way. All of it after the first request happens in
// the order of the wire.
type cancelRun struct {
	heard   func(agent.Evidence)
	targets []*cancelTarget
	rootYet bool // the root's interrupt has not been answered: children and orphans wait
	orphans []orphan
	wait    *waiter
}

type orphan struct{ thread, native string }

// cancelTarget is one exact turn to stop.
type cancelTarget struct {
	provider.CancelTarget
	root   bool
	thread *thread
	turn   *turn // the native turn; of the root the provider turn that runs
	tries  int
	done   bool // confirmed, ended before, or out of reach
}

// Cancel implements provider.Runtime: the root first, and its answer is awaited; then
// each child (decisions.md 12). What confirms a stop is that thread's turn/completed.
func (r *runtime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	run := &cancelRun{heard: heard, wait: newWaiter()}
	r.do(func() {
		if err := r.gone(); err != nil {
			r.finish(run.wait, err)
			return
		}
		r.closeTargets(run, c)
		r.cancels = append(r.cancels, run)
		if root := run.rootTarget(); root != nil {
			run.rootYet = true
			r.interruptTarget(run, root)
		} else {
			r.interruptChildren(run)
		}
		r.settleRun(run)
	})
	err := r.await(ctx, run.wait)
	r.do(func() { r.forgetRun(run) })
	return err
}

// closeTargets records the targets as closed before anything is written, so that a
// frame which races the interrupt meets a closed door.
func (r *runtime) closeTargets(run *cancelRun, c provider.Cancel) {
	if c.Root {
		r.canceled[c.Turn], r.boundary = true, true
	}
	for _, target := range c.Targets {
		ct := &cancelTarget{CancelTarget: target, thread: r.bySession[target.Session]}
		ct.root = ct.thread == r.root
		switch {
		case ct.thread == nil:
		case ct.root:
			if ct.turn = r.liveRoot(target.Turn); ct.turn == nil && r.root.pending != nil && r.root.pending.id == target.Turn {
				ct.turn = r.root.pending
			}
		default:
			ct.turn = ct.thread.find(target.Turn)
		}
		if ct.turn != nil {
			ct.turn.closed = true
		}
		run.targets = append(run.targets, ct)
	}
	r.withdrawAsked(func(q *question) bool { return q.turn.closed })
	if c.Root {
		for _, t := range r.strangers() {
			if r.owners[t.rootTurn] == c.Turn {
				run.orphans = append(run.orphans, orphan{thread: t.id})
			}
		}
	}
}

// find is a child's turn by its canonical id.
func (t *thread) find(id agent.TurnID) *turn {
	if t.pending != nil && t.pending.id == id {
		return t.pending
	}
	for _, u := range t.turns {
		if u.id == id {
			return u
		}
	}
	return nil
}

func (run *cancelRun) rootTarget() *cancelTarget {
	for _, ct := range run.targets {
		if ct.root {
			return ct
		}
	}
	return nil
}

// interruptTarget writes the interrupt of one target. One that has ended, or that this
// process does not hold, needs none.
func (r *runtime) interruptTarget(run *cancelRun, ct *cancelTarget) {
	switch {
	case ct.done:
	case ct.turn == nil || ct.turn.ended:
		// The root's own turn has ended and only children run; or the turn is of a
		// process that is gone, and ended with it.
		r.hear(run, ct, agent.TargetAlreadyTerminal, nil)
		r.rootAnswered(run, ct)
	default:
		native := ct.turn.native
		if !ct.turn.begun || ct.tries > 0 {
			native = "" // before turn/started the exact id is refused and the turn would run on
		}
		ct.tries++
		params := turnInterruptParams{ThreadID: ct.thread.id, TurnID: native}
		r.send(methodTurnInterrupt, params, interruptBound, func(a wire.Answer) { r.interruptAnswered(run, ct, a) })
	}
}

const maxTries = 3

// interruptAnswered takes the answer to one interrupt. It is never a confirmation.
func (r *runtime) interruptAnswered(run *cancelRun, ct *cancelTarget, a wire.Answer) {
	var refused *wire.Error
	switch {
	case a.Err == nil:
		r.hear(run, ct, agent.TargetAcknowledged, nil)
	case errors.As(a.Err, &refused):
		if ct.turn.ended {
			r.hear(run, ct, agent.TargetAlreadyTerminal, nil)
		} else if ct.tries < maxTries && interruptMissed(refused.Message, ct.root) {
			r.interruptTarget(run, ct) // with an empty turn id
			return
		} else if strings.Contains(refused.Message, "thread not found") {
			r.hear(run, ct, agent.TargetAlreadyTerminal, nil) // not loaded: nothing runs
		} else {
			r.hear(run, ct, "", callError("stop the turn", refused))
		}
	case errors.Is(a.Err, errNoAnswer):
		r.diagnose(provider.Ignored, methodTurnInterrupt, "not answered in time")
	default:
		r.finish(run.wait, callError("stop the turn", a.Err)) // not written: never a success
	}
	r.rootAnswered(run, ct)
}

// interruptMissed says whether a refusal means that the turn had not begun yet, so that
// an interrupt of whatever is active, or about to be, finds it. On the root thread that
// may be another turn too: after a cancel none may run there. On a child's thread
// another turn is nobody's target.
func interruptMissed(message string, root bool) bool {
	return strings.Contains(message, "no active turn") || root && strings.Contains(message, "expected active turn")
}

// rootAnswered lets the children follow once the root's interrupt was answered: by
// then every child that was to appear has sent its turn/started.
func (r *runtime) rootAnswered(run *cancelRun, ct *cancelTarget) {
	if ct.root && run.rootYet {
		run.rootYet = false
		r.interruptChildren(run)
		for _, o := range run.orphans {
			if t := r.byID[o.thread]; t != nil && t.state == threadHeld {
				r.diagnose(provider.Refused, "turn/started", t.id)
				r.shut(t, "")
			} else {
				r.interruptLoose(o.thread, o.native)
			}
		}
		run.orphans = nil
	}
	r.settleRun(run)
}

func (r *runtime) interruptChildren(run *cancelRun) {
	for _, ct := range run.targets {
		if !ct.root {
			r.interruptTarget(run, ct)
		}
	}
}

// confirm tells the cancels that wait for it how a turn ended. An interruption is the
// confirmation; any other end won the race and stands.
func (r *runtime) confirm(t *thread, u *turn, outcome agent.Outcome) {
	state := agent.TargetAlreadyTerminal
	if outcome == agent.OutcomeInterrupted {
		state = agent.TargetCanceled
	}
	for _, run := range r.cancels {
		for _, ct := range run.targets {
			if ct.thread == t && ct.turn == u && !ct.done {
				r.hear(run, ct, state, nil)
				r.rootAnswered(run, ct)
			}
		}
	}
}

// hear passes evidence on, after the lock is released and in order.
func (r *runtime) hear(run *cancelRun, ct *cancelTarget, state agent.TargetState, err *agent.Error) {
	if ct.done {
		return
	}
	ct.done = state == agent.TargetCanceled || state == agent.TargetAlreadyTerminal || err != nil
	e := agent.Evidence{SessionID: ct.Session, TurnID: ct.Turn, State: state, Err: err}
	r.later(func() { run.heard(e) })
}

// settleRun ends a cancel whose targets are all accounted for.
func (r *runtime) settleRun(run *cancelRun) {
	for _, ct := range run.targets {
		if !ct.done {
			return
		}
	}
	if !run.rootYet {
		r.finish(run.wait, nil)
	}
}

func (r *runtime) forgetRun(run *cancelRun) {
	for i, other := range r.cancels {
		if other == run {
			r.cancels = append(r.cancels[:i:i], r.cancels[i+1:]...)
			return
		}
	}
}

// stopOrphan interrupts a turn that nobody owns, after the root's own interrupt has
// been answered if one is under way.
func (r *runtime) stopOrphan(thread, native string) {
	if thread != r.root.id {
		for _, run := range r.cancels {
			if run.rootYet {
				run.orphans = append(run.orphans, orphan{thread, native})
				return
			}
		}
	}
	r.interruptLoose(thread, native)
}

// interruptLoose writes an interrupt that nobody waits for. It is repeated without the
// turn's id on other threads only: on the root thread that could hit a turn which a
// person has started since.
func (r *runtime) interruptLoose(thread, native string) {
	params := turnInterruptParams{ThreadID: thread, TurnID: native}
	r.send(methodTurnInterrupt, params, interruptBound, func(a wire.Answer) {
		var refused *wire.Error
		if native != "" && thread != r.root.id && errors.As(a.Err, &refused) && interruptMissed(refused.Message, false) {
			r.interruptLoose(thread, "")
		}
	})
}

// Forget implements provider.Runtime.
func (r *runtime) Forget(_ context.Context, sessions []agent.SessionID) {
	r.do(func() {
		if r.gone() != nil {
			return
		}
		for _, id := range sessions {
			t := r.bySession[id]
			if t == nil {
				continue
			}
			for _, q := range r.asked {
				if q.thread == t {
					delete(r.asked, q.request)
					r.later(func() { _ = r.peer.ReplyError(q.wireID, wire.CodeInvalidRequest, "the session was deleted") })
				}
			}
			r.shut(t, "")
		}
	})
}
