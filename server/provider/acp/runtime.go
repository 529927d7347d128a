package acp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// baseVersion is the protocol that is asked for: every agent speaks it, and with subagents
// opted in it says all there is to know.
const baseVersion = acp.V1

// Bounds of what an agent owes us, on the sink's clock.
const (
	handshakeBound = 60 * time.Second // initialize: some agents fetch things first
	sessionBound   = 60 * time.Second // new, load and resume, history included
	settingBound   = 15 * time.Second // a mode, a model
	takenBound     = 60 * time.Second // that a prompt of version 2, or a steering, is taken
	finishBound    = 2 * time.Second  // session/close, before the process is ended
	barrierBound   = 20 * time.Second // that a stopped turn ends, before the next one fails
	silenceBound   = 5 * time.Minute
)

// runtime is one agent process with one root session and all its children.
type runtime struct {
	o              Options
	params         provider.OpenParams
	peer           *wire.Peer
	served         sync.WaitGroup // files and terminals that are being served
	*runner.Runner                // its lock guards what follows

	version int // of the protocol that is spoken
	able    abilities
	offers  offers

	lanes
	turnState
	epochs
	asked     []*prompt // open requests of the agent, oldest first
	cancels   []*cancelRun
	terminals map[string]*terminal
	heardAt   time.Time
	stopWatch func() bool
}

// newRuntime wires a runtime to a transport; nothing is read before run.
func newRuntime(sink provider.Sink, link Transport, o Options, p provider.OpenParams) *runtime {
	r := &runtime{
		o: o, params: p,
		version:   o.Version,
		lanes:     newLanes(p.Root.ID),
		terminals: map[string]*terminal{},
	}
	r.Runner = runner.New(sink, link, o.Park, func(err error) { r.peer.Close(err) })
	options := wire.Options{Version: "2.0", Handler: r.handle, OnDiagnostic: r.odd, Refuse: true}
	if o.Record != nil {
		options.OnFrame = func(dir wire.Direction, line []byte) { o.Record(dir.String(), line) }
	}
	r.peer = wire.NewPeer(link, link, options)
	r.remember(p.Remembered)
	return r
}

// odd counts a line that is no message.
func (r *runtime) odd(d wire.Diagnostic) {
	kind := provider.Malformed
	if d.Kind == wire.DiagLateAnswer || d.Kind == wire.DiagUnknownAnswer {
		kind = provider.Late
	}
	r.Do(func() { r.Diagnose(kind, string(d.Kind), string(d.ID)) })
}

// after has f called under the lock later, unless the runtime is over by then.
func (r *runtime) after(d time.Duration, f func()) (stop func() bool) {
	return r.Clock.AfterFunc(d, func() {
		r.Do(func() {
			if r.gone() == nil {
				f()
			}
		})
	})
}

// errNoAnswer: the bound of a request has passed.
var errNoAnswer = errors.New("acp: no answer in time")

// send writes a request after the lock is released. done is called exactly once, with the
// lock held: with the answer, with errNoAnswer after bound (0: it has none), or with why it
// could not be written. Called with the lock held.
func (r *runtime) send(method string, params any, bound time.Duration, done func(wire.Answer)) {
	over := false // guarded by the lock
	stop := func() bool { return true }
	once := func(a wire.Answer) {
		r.Do(func() {
			if over {
				r.Diagnose(provider.Late, method, "answer")
				return
			}
			over = true
			stop()
			r.flushArrivals()
			done(a)
		})
	}
	if bound > 0 {
		stop = r.Clock.AfterFunc(bound, func() {
			r.Do(func() {
				if !over {
					over = true
					done(wire.Answer{Method: method, Err: errNoAnswer})
				}
			})
		})
	}
	r.Later(func() {
		if _, err := r.peer.Go(method, params, once); err != nil {
			r.Unwritten(err)
			once(wire.Answer{Method: method, Err: err})
		}
	})
}

// stop writes the stop of a session after the lock is released. It has no answer; done, if
// not nil, hears with the lock held whether it was written.
func (r *runtime) stop(session string, done func(error)) {
	r.Later(func() {
		err := r.peer.Notify(acp.MethodCancel, acp.SessionRef{SessionID: session})
		r.Unwritten(err)
		if done != nil {
			r.Do(func() { done(err) })
		}
	})
}

// reply answers a request of the agent after the lock is released.
func (r *runtime) reply(id wire.RawID, result any) {
	r.Later(func() { r.Unwritten(r.peer.Reply(id, result)) })
}

// refuse answers a request of the agent with an error after the lock is released.
func (r *runtime) refuse(id wire.RawID, code int, why string) {
	r.Later(func() { r.Unwritten(r.peer.ReplyError(id, code, why)) })
}

// gone says why nothing can be asked of the agent any more, nil if it can. Called with the
// lock held.
func (r *runtime) gone() error {
	if r.Over() || r.peer.Err() != nil {
		return agent.Errorf(agent.CodeProviderGone, "the %s process has ended", r.o.Title)
	}
	return nil
}

// run reads until the agent ends.
func (r *runtime) run() {
	r.Serve(r.peer.Run, r.lost)
}

// lost ends what the agent had us serve, lets go of everybody who waits for it, and says what
// was lost with it.
func (r *runtime) lost(reason error) {
	r.Do(func() { r.endTerminals() })
	r.served.Wait()
	r.Do(func() {
		r.stopTimers()
		why := agent.Errorf(agent.CodeProviderGone, "the %s process ended", r.o.Title)
		for _, c := range r.cancels {
			r.Finish(c.wait, why)
		}
		r.cancels = nil
		r.letGo(why)
		if !r.Losing() {
			return
		}
		for _, l := range r.children { // a grant is its process's
			l.granted = false
			r.tellGrant(l)
		}
		r.Lose(r.root.session, r.lossError(reason))
	})
}

func (r *runtime) lossError(reason error) *agent.Error {
	if r.Broken() {
		return agent.Errorf(agent.CodeUnavailable, "the session was closed because its events could not be stored")
	}
	if how := r.Link.Explain(); how != "" {
		return agent.Errorf(agent.CodeProviderGone, "%s ended: %s", r.o.Title, how)
	}
	if reason != nil {
		return agent.Errorf(agent.CodeProviderGone, "the conversation with %s broke: %v", r.o.Title, reason)
	}
	return agent.Errorf(agent.CodeProviderGone, "%s ended", r.o.Title)
}

// Close implements provider.Runtime.
func (r *runtime) Close(ctx context.Context) error {
	w := serial.NewWaiter()
	r.Do(func() {
		asks := r.Ready && r.gone() == nil && r.able.close
		r.Hush()
		if !asks {
			r.Finish(w, nil)
			return
		}
		r.send(acp.MethodCloseSession, acp.SessionRef{SessionID: r.root.id}, finishBound, func(wire.Answer) { r.Finish(w, nil) })
	})
	_ = r.Await(ctx, w) // the process ends in any case
	r.Abandon(nil)
	err := r.Link.Close(ctx)
	select {
	case <-r.Done():
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
	return err
}

// handle is the reading goroutine's entry: one line, start to end.
func (r *runtime) handle(f wire.Frame) {
	r.Do(func() {
		if r.Over() {
			if f.Kind == wire.KindRequest {
				r.refuse(f.ID, wire.CodeInternalError, "the session is being closed")
			}
			return
		}
		r.heardFrom()
		if f.Kind == wire.KindRequest {
			r.flushArrivals()
			r.request(f)
			return
		}
		r.notified(f)
	})
}

// notified handles a notification.
func (r *runtime) notified(f wire.Frame) {
	switch f.Method {
	case acp.MethodUpdate:
		var n acp.SessionNotification
		if err := decode(f.Params, &n); err != nil || n.SessionID == "" {
			r.Diagnose(provider.Malformed, f.Method, "")
			return
		}
		if n.Update.Err != nil {
			r.Diagnose(provider.Malformed, string(n.Update.Kind), n.SessionID)
			return
		}
		if !announces(n.Update) {
			r.flushArrivals()
		}
		r.update(&n)
	case wire.CancelMethod:
		var p wire.CancelParams
		if decode(f.Params, &p) == nil {
			r.withdrawn(p.RequestID)
		}
	case acp.MethodElicited:
		var p acp.Elicited
		if decode(f.Params, &p) == nil {
			r.elicited(p.ElicitationID)
		}
	default:
		r.Diagnose(provider.Ignored, f.Method, "")
	}
}

// stopTimers ends the timers that would outlive the agent.
func (r *runtime) stopTimers() {
	stops := []func() bool{r.stopWatch, r.stopReserve, r.stopBarrier, r.stopFold, r.stopArrive, r.stopRestore}
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
}

// callError turns the error of an answer, or of a write, into one that crosses packages.
func (r *runtime) callError(what string, err error) *agent.Error {
	var refused *wire.Error
	var unwritten *wire.WriteError
	name := r.o.Title
	switch {
	case errors.As(err, &refused) && refused.Code == acp.CodeAuthRequired:
		return agent.Errorf(agent.CodeProviderUnavailable, "%s wants you to sign in first: %s%s", name, reasonOf(refused), r.able.signIn())
	case errors.As(err, &refused):
		return agent.Errorf(agent.CodeProviderRefused, "%s refused to %s: %s", name, what, reasonOf(refused))
	case errors.Is(err, errNoAnswer):
		return agent.Errorf(agent.CodeTimeout, "%s did not answer when asked to %s", name, what)
	case errors.Is(err, wire.ErrClosed), errors.As(err, &unwritten):
		return agent.Errorf(agent.CodeProviderGone, "the %s process ended when asked to %s", name, what)
	case errors.Is(err, wire.ErrMessageTooLong):
		return agent.Errorf(agent.CodeInvalid, "%s cannot be asked to %s: the message is too long", name, what)
	}
	return agent.Errorf(agent.CodeProviderRefused, "%s gave an answer that cannot be read when asked to %s", name, what)
}

// reasonOf is what an error answer says: many agents put the reason into its data.
func reasonOf(e *wire.Error) string {
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Reason  string `json:"reason"`
	}
	said := strings.TrimSpace(e.Message)
	if decode(e.Data, &data) != nil {
		return said
	}
	for _, more := range []string{data.Details, data.Message, data.Reason} {
		if more != "" && !strings.Contains(said, more) {
			return said + ": " + more
		}
	}
	return said
}

// without removes one from a list.
func without[T comparable](list []T, one T) []T {
	return slices.DeleteFunc(list, func(o T) bool { return o == one })
}
