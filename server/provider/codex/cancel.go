package codex

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// cancelRun is one Cancel call under way. All of it after the first request happens in
// the order of the wire.
type cancelRun struct {
	targets []*cancelTarget
	rootYet bool // the root's interrupt has not been answered: children and orphans wait
	orphans []orphan
	wait    *serial.Waiter
}

type orphan struct{ thread, native string }

// cancelTarget is one exact turn to stop.
type cancelTarget struct {
	runner.Target
	root   bool
	thread *thread
	turn   *turn // the native turn; of the root the provider turn that runs
	tries  int   // since the last pause
	pauses int
	stop   func() bool // of the pause before the next request
}

// Pauses before an interrupt that was refused is sent again: the first, doubled each
// time, up to the longest. A refusal confirms nothing, so the turn runs on.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 2 * time.Second
)

// Cancel implements provider.Runtime: the root first, and its answer is awaited; then
// each child (decisions.md 12). What confirms a stop is that thread's turn/completed.
func (r *runtime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	run := &cancelRun{wait: serial.NewWaiter()}
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(run.wait, err)
			return
		}
		r.closeTargets(run, c, heard)
		r.cancels = append(r.cancels, run)
		if root := run.rootTarget(); root != nil {
			run.rootYet = true
			r.interruptTarget(run, root)
		} else {
			r.interruptChildren(run)
		}
		r.settleRun(run)
	})
	err := r.Await(ctx, run.wait)
	r.Do(func() { r.forgetRun(run) })
	return err
}

// closeTargets records the targets as closed before anything is written, so that a
// frame which races the interrupt meets a closed door.
func (r *runtime) closeTargets(run *cancelRun, c provider.Cancel, heard func(agent.Evidence)) {
	if c.Root {
		r.canceled[c.Turn], r.boundary = true, true
	}
	for _, target := range c.Targets {
		ct := &cancelTarget{Target: r.Target(target, heard), thread: r.bySession[target.Session]}
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
	case ct.Done:
	case ct.turn == nil || ct.turn.ended:
		// The root's own turn has ended and only children run; or the turn is of a
		// process that is gone, and ended with it.
		ct.Hear(agent.TargetAlreadyTerminal, nil)
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
		ct.Hear(agent.TargetAcknowledged, nil)
	case errors.As(a.Err, &refused):
		if ct.turn.ended {
			ct.Hear(agent.TargetAlreadyTerminal, nil)
		} else if ct.tries < maxTries && interruptMissed(refused.Message, ct.root) {
			r.interruptTarget(run, ct) // with an empty turn id
			return
		} else if strings.Contains(refused.Message, "thread not found") {
			ct.Hear(agent.TargetAlreadyTerminal, nil) // not loaded: nothing runs
		} else {
			ct.Hear("", callError("stop the turn", refused))
			r.interruptLater(run, ct)
		}
	case errors.Is(a.Err, errNoAnswer):
		r.Diagnose(provider.Ignored, methodTurnInterrupt, "not answered in time")
	default:
		r.Finish(run.wait, callError("stop the turn", a.Err)) // not written: never a success
	}
	r.rootAnswered(run, ct)
}

// interruptLater asks again after a pause, for as long as the cancel lasts.
func (r *runtime) interruptLater(run *cancelRun, ct *cancelTarget) {
	pause := min(firstPause<<min(ct.pauses, 10), longestPause)
	ct.pauses++
	ct.stop = r.Clock.AfterFunc(pause, func() {
		r.Do(func() {
			if r.gone() == nil && slices.Contains(r.cancels, run) {
				ct.tries = 0
				r.interruptTarget(run, ct)
			}
		})
	})
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
		r.interruptOrphans(run)
	}
	r.settleRun(run)
}

func (r *runtime) interruptOrphans(run *cancelRun) {
	for _, o := range run.orphans {
		if t := r.byID[o.thread]; t != nil && t.state == threadHeld {
			r.Diagnose(provider.Refused, "turn/started", t.id)
			r.shut(t, "")
		} else {
			r.interruptLoose(o.thread, o.native)
		}
	}
	run.orphans = nil
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
			if ct.thread == t && ct.turn == u && !ct.Done {
				ct.Hear(state, nil)
				r.rootAnswered(run, ct)
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
	if !run.rootYet {
		r.Finish(run.wait, nil)
	}
}

// forgetRun ends a cancel. What was refused and whose time is now up is still asked to
// stop: storage ends these turns, so they must not run on.
func (r *runtime) forgetRun(run *cancelRun) {
	run.stopPauses()
	at := slices.Index(r.cancels, run)
	if at < 0 {
		return
	}
	r.cancels = slices.Delete(r.cancels, at, at+1)
	for _, ct := range run.targets {
		if ct.pauses > 0 && !ct.Done && !ct.turn.ended && r.gone() == nil {
			r.interruptLoose(ct.thread.id, ct.turn.native)
		}
	}
}

func (run *cancelRun) stopPauses() {
	for _, ct := range run.targets {
		if ct.stop != nil {
			ct.stop()
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
	r.interruptAgain(thread, native, 0)
}

// looseTries bounds the requests to stop a turn that no cancel waits for.
const looseTries = 6

func (r *runtime) interruptAgain(thread, native string, refusals int) {
	params := turnInterruptParams{ThreadID: thread, TurnID: native}
	r.send(methodTurnInterrupt, params, interruptBound, func(a wire.Answer) {
		var refused *wire.Error
		switch {
		case !errors.As(a.Err, &refused), thread == r.root.id && native == "": // on the root it could hit a later turn
		case strings.Contains(refused.Message, "thread not found"), strings.Contains(refused.Message, "expected active turn"):
			// Not loaded, or another turn runs there: this one has ended.
		case interruptMissed(refused.Message, false):
			if native != "" && thread != r.root.id {
				r.interruptAgain(thread, "", refusals)
			}
		case refusals < looseTries:
			r.Clock.AfterFunc(min(firstPause<<refusals, longestPause), func() {
				r.Do(func() {
					if r.gone() == nil {
						r.interruptAgain(thread, native, refusals+1)
					}
				})
			})
		default:
			r.Diagnose(provider.Refused, methodTurnInterrupt, thread)
		}
	})
}

// Forget implements provider.Runtime.
func (r *runtime) Forget(_ context.Context, sessions []agent.SessionID) {
	r.Do(func() {
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
					r.refuse(frame{id: q.wireID}, wire.CodeInvalidRequest, "the session was deleted")
				}
			}
			r.shut(t, "")
		}
		r.forgetTargets(sessions)
	})
}

// forgetTargets lets cancels go on that wait for deleted sessions: nothing more is heard
// of those.
func (r *runtime) forgetTargets(sessions []agent.SessionID) {
	for _, run := range slices.Clone(r.cancels) {
		for _, ct := range run.targets {
			ct.Done = ct.Done || slices.Contains(sessions, ct.Session)
		}
		if root := run.rootTarget(); root != nil && root.Done {
			r.rootAnswered(run, root)
		}
		r.settleRun(run)
	}
}
