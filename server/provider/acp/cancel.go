package acp

import (
	"context"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// cancelRun is one Cancel call under way.
type cancelRun struct {
	targets []*cancelTarget
	wait    *serial.Waiter
}

// cancelTarget is one exact turn to stop.
type cancelTarget struct {
	runner.Target
	root bool
	lane *lane
	turn *turn // of a child; of the root the provider turn that runs, nil if none does
	sent bool  // session/cancel was written for it
}

// Cancel implements provider.Runtime. The root is asked to stop first, then each child that
// the agent lets be stopped alone: agents differ in which children a stop of the root takes
// along (decisions.md 14). A cancel has no answer: only the turn's own end confirms it.
func (r *runtime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	run := &cancelRun{wait: serial.NewWaiter()}
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(run.wait, err)
			return
		}
		r.flushArrivals()
		r.closeTargets(run, c, heard)
		r.cancels = append(r.cancels, run)
		for _, ct := range run.targets {
			r.stopTarget(run, ct)
		}
		r.settleRun(run)
	})
	err := r.Await(ctx, run.wait)
	r.Do(func() {
		r.cancels = without(r.cancels, run)
		if ctx.Err() != nil { // nobody waits for an answer in a turn that is given up
			r.answerClosed(func(p *prompt) bool { return true })
		}
	})
	return err
}

// closeTargets records the targets as closed before anything is written, so that what
// races the stop meets a closed door.
func (r *runtime) closeTargets(run *cancelRun, c provider.Cancel, heard func(agent.Evidence)) {
	for _, target := range c.Targets {
		ct := &cancelTarget{Target: r.Target(target, heard), lane: r.bySession[target.Session]}
		ct.root = ct.lane == r.root
		switch {
		case ct.lane == nil:
		case ct.root:
			for _, u := range r.open {
				if u.id == target.Turn {
					u.closed = true
					ct.turn = u
				}
			}
		default:
			ct.turn = ct.lane.find(target.Turn)
			if ct.turn != nil {
				ct.turn.closed = true
			}
		}
		run.targets = append(run.targets, ct)
	}
	slices.SortStableFunc(run.targets, func(a, b *cancelTarget) int { // the root first
		switch {
		case a.root == b.root:
			return 0
		case a.root:
			return -1
		}
		return 1
	})
}

// stopTarget asks the agent to stop one target, as far as it lets us.
func (r *runtime) stopTarget(run *cancelRun, ct *cancelTarget) {
	switch {
	case ct.root:
		r.stopRoot(run, ct)
	case ct.turn == nil || ct.turn.ended:
		ct.Hear(agent.TargetAlreadyTerminal, nil)
	case r.mayStop(ct.lane):
		r.stopChild(run, ct)
	default: // its own end may still come, or the grant
		r.Diagnose(provider.Held, acp.MethodCancel, "not granted: "+ct.lane.id)
	}
}

// stopRoot asks the root to stop. Where no prompt of it runs, nothing will confirm that.
func (r *runtime) stopRoot(run *cancelRun, ct *cancelTarget) {
	for _, u := range slices.Clone(r.open) {
		if u.id == ct.Turn && (u.reserved || slices.Contains(r.queued, u)) {
			r.endUnsent(u) // it has not begun
		}
	}
	if ct.turn != nil && ct.turn.ended {
		ct.turn = r.runningIn(ct.Turn)
	}
	ct.sent = true
	r.stop(r.root.id, func(err error) {
		switch {
		case err != nil:
			r.Finish(run.wait, r.callError("stop the turn", err)) // never a success
		case ct.turn == nil || ct.turn.ended && !ct.Done:
			ct.Hear(agent.TargetAcknowledged, nil)
			ct.Done = true
			r.settleRun(run)
		}
	})
	r.answerClosed(func(p *prompt) bool { return p.lane.isRoot() })
}

// endUnsent ends a provider turn that the agent knows nothing of.
func (r *runtime) endUnsent(u *turn) {
	if x := u.text; x != nil {
		x.lost = true
		r.putText(x, agent.MessageUndelivered)
		r.Finish(x.wait, agent.Errorf(agent.CodeTurnCanceling, "the turn was stopped before the message was sent"))
	}
	r.end(u, agent.OutcomeInterrupted, nil, u.reserved)
}

// runningIn is a provider turn that has not ended under a root turn, nil if none.
func (r *runtime) runningIn(root agent.TurnID) *turn {
	at := slices.IndexFunc(r.open, func(u *turn) bool { return u.id == root })
	if at < 0 {
		return nil
	}
	return r.open[at]
}

// stopChild asks the agent to stop one child.
func (r *runtime) stopChild(run *cancelRun, ct *cancelTarget) {
	ct.sent = true
	r.stop(ct.lane.id, func(err error) {
		if err != nil {
			r.Finish(run.wait, r.callError("stop the agent", err))
		}
	})
	r.answerClosed(func(p *prompt) bool { return p.lane == ct.lane })
}

// stopGranted asks for the stop of a child that could not be asked for before.
func (r *runtime) stopGranted(l *lane) {
	for _, run := range r.cancels {
		for _, ct := range run.targets {
			if ct.lane == l && ct.turn == l.live && !ct.sent && !ct.Done {
				r.stopChild(run, ct)
			}
		}
	}
	if l.live != nil && l.live.dropped {
		r.stopLoose(l)
	}
}

// answerClosed answers what is asked in turns that are being stopped: the agent may wait
// for it. Storage withdraws such questions itself.
func (r *runtime) answerClosed(these func(*prompt) bool) {
	for _, p := range r.asked {
		if p.turn.closed && these(p) {
			r.unanswered(p)
		}
	}
}

// stopsRoot reports whether a stop of the root turn is under way.
func (r *runtime) stopsRoot() bool {
	return slices.ContainsFunc(r.cancels, func(run *cancelRun) bool {
		return slices.ContainsFunc(run.targets, func(ct *cancelTarget) bool { return ct.root && ct.Turn == r.current })
	})
}

// confirm tells the cancels that wait for a turn how it ended.
func (r *runtime) confirm(u *turn, outcome agent.Outcome) {
	for _, run := range slices.Clone(r.cancels) {
		for _, ct := range run.targets {
			if ct.Done || ct.lane != u.lane {
				continue
			}
			if ct.root && ct.Turn == u.id {
				if next := r.runningIn(ct.Turn); next != nil && next.closed {
					ct.turn = next // of several prompts the last one counts
					continue
				}
			} else if ct.turn != u {
				continue
			}
			if outcome == agent.OutcomeInterrupted {
				ct.Hear(agent.TargetCanceled, nil)
			} else {
				ct.Hear(agent.TargetAlreadyTerminal, nil)
			}
		}
		r.settleRun(run)
	}
}

// settleRun ends a cancel whose targets are all accounted for.
func (r *runtime) settleRun(run *cancelRun) {
	for _, ct := range run.targets {
		if !ct.Done {
			return
		}
	}
	r.Finish(run.wait, nil)
}

// stopLoose asks a child to stop whom no cancel waits for, if the agent lets it be stopped.
func (r *runtime) stopLoose(l *lane) {
	if l.granted && r.valid && !r.loading() {
		r.stop(l.id, nil)
	}
}

// Forget implements provider.Runtime.
func (r *runtime) Forget(_ context.Context, sessions []agent.SessionID) {
	r.Do(func() {
		if r.gone() != nil {
			return
		}
		for _, id := range sessions {
			l := r.bySession[id]
			if l == nil || l.isRoot() { // of a deleted root the runtime is closed
				continue
			}
			for _, p := range slices.Clone(r.asked) {
				if p.lane == l {
					r.asked = without(r.asked, p)
					r.unanswered(p)
				}
			}
			l.shut = true
			if l.live != nil {
				r.stopLoose(l)
				l.live.dropped = true
			}
		}
		for _, run := range slices.Clone(r.cancels) {
			for _, ct := range run.targets {
				ct.Done = ct.Done || slices.Contains(sessions, ct.Session)
			}
			r.settleRun(run)
		}
	})
}
