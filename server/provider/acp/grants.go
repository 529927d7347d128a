package acp

import (
	"context"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// restorePauses are how long after a load that failed the session is taken up again.
var restorePauses = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// epochs is the part of the runtime that knows what is history. An epoch begins when a
// session is loaded; only the answer to the latest load ends the history, and only a
// success makes valid what is said after it.
type epochs struct {
	epoch       int // of the latest load
	answered    int // the latest epoch that was answered
	valid       bool
	failures    int              // loads that failed, one after the other
	rootSaid    *acp.StateUpdate // of its state, since the latest load
	stopRestore func() bool
}

// loading reports whether what arrives is history.
func (r *runtime) loading() bool { return r.answered < r.epoch }

// mayStop reports whether the agent lets a child be stopped alone, now.
func (r *runtime) mayStop(l *lane) bool {
	return l.granted && r.valid && !r.loading() && l.live != nil && (l.own.live || l.mirrored.live) && !l.unsure
}

// tellGrant tells storage when it has changed whether a child can be stopped alone.
func (r *runtime) tellGrant(l *lane) {
	can := r.mayStop(l)
	if can == l.told || !l.known || l.shut {
		return
	}
	l.told = can
	r.Apply(agent.SessionDescribed{Session: l.session, Capabilities: &agent.Capabilities{ChildCancel: can, ConfirmsChildCancel: can}})
	if can {
		r.stopGranted(l)
	}
}

// beginLoad ends the validity of everything live (spec, replay freshness).
func (r *runtime) beginLoad() int {
	r.epoch++
	r.valid, r.rootSaid = false, nil
	for _, l := range r.children {
		l.granted = false
		r.tellGrant(l)
	}
	return r.epoch
}

// endLoad takes the answer to a load. Of several only the latest counts.
func (r *runtime) endLoad(epoch int, ok bool) {
	if epoch != r.epoch {
		return
	}
	r.answered = epoch
	r.valid = ok
	if ok {
		r.failures = 0
	}
	for _, l := range r.children { // what follows are the current states
		l.own = level{live: l.live != nil, begun: l.runs}
		l.mirrored = l.own
		if r.version == acp.V1 {
			l.own = level{begun: l.runs}
		}
	}
	if ok && r.rootSaid != nil && r.rootSaid.State == acp.StateIdle && slices.ContainsFunc(r.open, func(u *turn) bool { return u.begun && !u.reserved }) {
		r.rootState(r.rootSaid) // it has ended while the history was told
	}
}

// Reload loads the session again in the same process: the agent repeats its history, which
// is not shown, and then says what is live. While it loads, and until one load has
// succeeded, no child can be stopped alone. Errors: CodeProviderRefused, CodeTimeout,
// CodeProviderGone.
func (r *runtime) Reload(ctx context.Context) error {
	w := serial.NewWaiter()
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(w, err)
			return
		}
		r.reload(w)
	})
	return r.Await(ctx, w)
}

// reload sends one load of the live session; w may be nil.
func (r *runtime) reload(w *serial.Waiter) {
	method, params := r.able.loadOf(r.version, r.root.id, r.params.Root.Cwd)
	if method == "" {
		if w != nil {
			r.Finish(w, agent.Errorf(agent.CodeProviderRefused, "%s cannot load a session", r.o.Title))
		}
		return
	}
	epoch := r.beginLoad()
	r.send(method, params, sessionBound, func(a wire.Answer) {
		r.endLoad(epoch, a.Err == nil)
		if a.Err == nil {
			var got acp.SessionResponse
			if a.Decode(&got) == nil {
				r.offered(&got)
			}
		} else if epoch == r.epoch {
			r.loadFailed(a.Err)
		}
		if w == nil {
			return
		}
		if a.Err != nil {
			r.Finish(w, r.callError("load the session again", a.Err))
			return
		}
		r.Finish(w, nil)
	})
}

// loadFailed says that no child can be stopped alone any more, and tries to restore that:
// the agent goes on, but its grants are suspended without a word.
func (r *runtime) loadFailed(err error) {
	n := r.failures
	r.failures++
	r.Diagnose(provider.Refused, acp.MethodLoadSession, "the live session could not be loaded")
	if n == 0 && r.liveChildren() > 0 {
		r.notice(r.callError("load the session again", err).Message + ". Until that has succeeded its agents cannot be stopped one by one; stopping the whole turn works.")
	}
	if n < len(restorePauses) && r.gone() == nil {
		r.stopRestore = r.after(restorePauses[n], func() { r.reload(nil) })
	}
}
