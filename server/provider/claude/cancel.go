package claude

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

const (
	// stragglerPause is how long after an interrupt was taken a child that has not ended is
	// asked to stop by itself. The program ends background agents before it answers, those
	// in the foreground some tens of milliseconds later.
	stragglerPause = time.Second
	// idlePause is how long after an interrupt was taken idle is awaited where no turn was
	// open that could confirm it.
	idlePause = 2 * time.Second
)

// cancelRun is one Cancel call under way.
type cancelRun struct {
	targets []*cancelTarget
	wait    *serial.Waiter
	taken   bool          // the root's interrupt was answered
	stops   []func() bool // of its timers
}

// cancelTarget is one exact turn to stop.
type cancelTarget struct {
	runner.Target
	root bool
	lane *lane
	turn *turn // of a child; of the root the provider turn that is open on the wire
}

// Cancel implements provider.Runtime. With the root among the targets one interrupt ends
// everything, what was queued included; a child alone is stopped by its task
// (decisions.md 13). The answers confirm nothing of a child: its own end does.
func (r *runtime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	run := &cancelRun{wait: serial.NewWaiter()}
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(run.wait, err)
			return
		}
		r.closeTargets(run, c, heard)
		r.cancels = append(r.cancels, run)
		if run.rootTarget() != nil {
			r.interruptRoot(run)
		} else {
			for _, ct := range run.targets {
				r.stopTarget(run, ct)
			}
		}
		r.settleRun(run)
	})
	err := r.Await(ctx, run.wait)
	r.Do(func() {
		run.stopTimer()
		r.cancels = slices.DeleteFunc(r.cancels, func(o *cancelRun) bool { return o == run })
		for _, ct := range run.targets {
			if !ct.root && !ct.Done && ct.turn != nil {
				ct.turn.unsure = true
			}
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
			r.closeRoot(ct)
		default:
			ct.turn = ct.lane.find(target.Turn)
			if ct.turn != nil {
				ct.turn.closed, ct.turn.unsure = true, false
			}
		}
		run.targets = append(run.targets, ct)
	}
	if c.Root {
		r.boundary = true
		r.endWaitTimer()
	}
	r.withdrawAsked(func(q *prompt) bool { return q.turn.closed })
}

// closeRoot closes every provider turn of a root turn. The one that is open on the wire
// will have a result; without it the stop is confirmed by idle.
func (r *runtime) closeRoot(ct *cancelTarget) {
	all := append([]*turn{r.open, r.waiting, r.held}, r.announced...)
	for _, u := range all {
		if u != nil && (u.id == ct.Turn || !u.reported) {
			u.closed = true
		}
	}
	if r.open != nil && r.open.closed {
		ct.turn = r.open
	}
}

// endWaitTimer stops the clock of a reservation; the reservation is ended by what follows
// the interrupt.
func (r *runtime) endWaitTimer() {
	if r.stopWait != nil {
		r.stopWait()
		r.stopWait = nil
	}
}

func (run *cancelRun) rootTarget() *cancelTarget {
	at := slices.IndexFunc(run.targets, func(ct *cancelTarget) bool { return ct.root })
	if at < 0 {
		return nil
	}
	return run.targets[at]
}

func (run *cancelRun) stopTimer() {
	for _, stop := range run.stops {
		stop()
	}
}

// after has f called later, unless the cancel is over by then.
func (r *runtime) after(run *cancelRun, d time.Duration, f func()) {
	run.stops = append(run.stops, r.Clock.AfterFunc(d, func() {
		r.Do(func() {
			if r.gone() == nil && slices.Contains(r.cancels, run) {
				f()
				r.settleRun(run)
			}
		})
	}))
}

// interruptRoot writes the one interrupt that ends the root and all of its children.
func (r *runtime) interruptRoot(run *cancelRun) {
	for _, ct := range run.targets {
		if !ct.root && (ct.turn == nil || ct.turn.ended) {
			ct.Hear(agent.TargetAlreadyTerminal, nil)
		}
	}
	r.send(interruptRequest{Subtype: reqInterrupt, CancelQueued: true}, requestBound, func(a answer) {
		r.interruptAnswered(run, a)
		r.settleRun(run)
	})
}

// interruptAnswered takes the answer to the interrupt: it was taken, and of the root that
// is all there is to know until its result, or idle.
func (r *runtime) interruptAnswered(run *cancelRun, a answer) {
	root := run.rootTarget()
	var refused *refusedError
	switch {
	case a.err == nil:
	case errors.As(a.err, &refused):
		root.Hear("", callError("stop the turn", refused))
		return
	case errors.Is(a.err, errNoAnswer):
		r.Diagnose(provider.Ignored, reqInterrupt, "not answered in time")
		return
	default:
		r.Finish(run.wait, callError("stop the turn", a.err)) // not written: never a success
		return
	}
	run.taken = true
	r.withdrawQueued(a)
	root.Hear(agent.TargetAcknowledged, nil)
	if root.turn == nil {
		r.after(run, idlePause, func() {
			if r.open == nil || !r.open.closed {
				root.Hear(agent.TargetCanceled, nil)
			}
		})
	}
	r.after(run, stragglerPause, func() {
		for _, ct := range run.targets {
			if !ct.root && !ct.Done {
				r.stopLoose(ct.lane)
			}
		}
	})
}

// stopTarget asks one child to stop. One that has ended, or that this program does not
// hold, needs no request; one whose task is not known yet is asked when it is.
func (r *runtime) stopTarget(run *cancelRun, ct *cancelTarget) {
	switch {
	case ct.turn == nil || ct.turn.ended:
		ct.Hear(agent.TargetAlreadyTerminal, nil)
	case ct.lane.task == "" || !ct.turn.begun:
		r.Diagnose(provider.Held, reqStopTask, "its task is not known yet")
	default:
		r.send(stopTaskRequest{Subtype: reqStopTask, TaskID: ct.lane.task}, requestBound, func(a answer) {
			r.stopAnswered(run, ct, a)
			r.settleRun(run)
		})
	}
}

// stopAnswered takes the answer to a stop_task, which is the same whatever happened: only
// the end of the run confirms. A refusal or a failed write is told.
func (r *runtime) stopAnswered(run *cancelRun, ct *cancelTarget, a answer) {
	var refused *refusedError
	switch {
	case a.err == nil:
	case errors.As(a.err, &refused):
		ct.Hear("", callError("stop the agent", refused))
	case errors.Is(a.err, errNoAnswer):
		r.Diagnose(provider.Ignored, reqStopTask, "not answered in time")
	default:
		r.Finish(run.wait, callError("stop the agent", a.err))
	}
}

// confirm tells the cancels that wait for it how a turn ended. An interruption is the
// confirmation; any other end won the race and stands.
func (r *runtime) confirm(u *turn, outcome agent.Outcome) {
	state := agent.TargetAlreadyTerminal
	if outcome == agent.OutcomeInterrupted {
		state = agent.TargetCanceled
	}
	for _, run := range r.cancels {
		for _, ct := range run.targets {
			if ct.turn == u && !ct.Done {
				ct.Hear(state, nil)
				r.settleRun(run)
			}
		}
	}
}

// confirmIdle confirms the stop of a root that had no turn open: nothing runs, and nothing
// follows. An idle from before the interrupt confirms nothing.
func (r *runtime) confirmIdle() {
	for _, run := range r.cancels {
		if root := run.rootTarget(); root != nil && run.taken {
			root.Hear(agent.TargetCanceled, nil)
			r.settleRun(run)
		}
	}
}

// unconfirmed gives up a child whose end will not be told: nothing lives any more. Without
// evidence its cancel ends it as interrupted.
func (r *runtime) unconfirmed(u *turn) {
	for _, run := range r.cancels {
		for _, ct := range run.targets {
			if ct.turn == u && !ct.Done && (run.taken || run.rootTarget() == nil) {
				r.Diagnose(provider.Unrouted, "idle", "no end was told of "+u.lane.task)
				ct.Done = true
				u.ended = true
				u.lane.live = nil
				r.settleRun(run)
			}
		}
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

// stopLoose asks a child to stop whom no cancel waits for.
func (r *runtime) stopLoose(l *lane) {
	if l.task != "" {
		r.stopTask(l.task)
	}
}

// stopTask asks a task to stop; nobody waits for it.
func (r *runtime) stopTask(task string) {
	r.send(stopTaskRequest{Subtype: reqStopTask, TaskID: task}, requestBound, func(answer) {})
}

// interruptLoose interrupts a turn that nobody owns. What is queued behind it is nobody's
// either, unless a person's message is among it.
func (r *runtime) interruptLoose() {
	queued := false
	for _, x := range r.texts {
		queued = queued || !x.over()
	}
	r.send(interruptRequest{Subtype: reqInterrupt, CancelQueued: !queued}, requestBound, func(answer) {})
}

// Forget implements provider.Runtime.
func (r *runtime) Forget(_ context.Context, sessions []agent.SessionID) {
	r.Do(func() {
		if r.gone() != nil {
			return
		}
		for _, id := range sessions {
			if l := r.bySession[id]; l != nil && !l.isRoot() { // of a deleted root the runtime is closed
				r.shutLane(l)
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

// shutLane ends whatever runs of a deleted child; what it still says is nobody's.
func (r *runtime) shutLane(l *lane) {
	for _, q := range r.asked {
		if q.lane == l {
			delete(r.asked, q.id)
			r.refuseID(q.id, "the session was deleted")
		}
	}
	for _, task := range slices.Sorted(maps.Keys(r.processes)) {
		if r.processes[task].session == l.session {
			r.stopTask(task)
		}
	}
	l.shut = true
	if l.live != nil {
		l.live.dropped = true
		r.stopLoose(l)
		l.live = nil
	}
}
