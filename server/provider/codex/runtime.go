package codex

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Bounds of what the server owes us, on the sink's clock.
const (
	handshakeBound = 30 * time.Second // initialize, and thread/start or thread/resume
	requestBound   = 60 * time.Second // turn/start and turn/steer
	interruptBound = 10 * time.Second // one turn/interrupt (openai/codex#36926: may never be answered)
	adoptBound     = 2 * time.Second  // a child's wait for its spawn edge
)

var errNoAnswer = errors.New("codex: no answer within the bound")

// Transport is a running app-server.
type Transport = runner.Transport

// runtime is one app-server process with one root thread.
type runtime struct {
	peer           *wire.Peer
	*runner.Runner // its lock guards what follows

	threads
	turnState
	asked   map[agent.RequestID]*question
	cancels []*cancelRun
}

// newRuntime wires a runtime to a transport; nothing is read before run.
func newRuntime(sink provider.Sink, link Transport, o Options) *runtime {
	r := &runtime{
		threads:   newThreads(),
		turnState: newTurnState(),
		asked:     map[agent.RequestID]*question{},
	}
	r.Runner = runner.New(sink, link, o.Park, func(err error) { r.peer.Close(err) })
	options := wire.Options{Handler: r.handle, OnDiagnostic: r.unusable}
	if o.Record != nil {
		options.OnFrame = func(dir wire.Direction, line []byte) {
			o.Record(dir.String(), line)
		}
	}
	r.peer = wire.NewPeer(link, link, options)
	return r
}

// unusable counts a line that was no message. It runs in the reading goroutine,
// without the lock.
func (r *runtime) unusable(d wire.Diagnostic) {
	r.Do(func() {
		kind := provider.Malformed
		if d.Kind == wire.DiagUnknownAnswer || d.Kind == wire.DiagLateAnswer {
			kind = provider.Late
		}
		r.Diagnose(kind, "", string(d.Kind))
	})
}

// send writes a request after the lock is released. done is called exactly once, with
// the lock held: with the answer, with errNoAnswer after bound, or with why it could
// not be written. Called with the lock held.
func (r *runtime) send(method string, params any, bound time.Duration, done func(wire.Answer)) {
	var once sync.Once
	finish := func(a wire.Answer) {
		once.Do(func() { r.Do(func() { done(a) }) })
	}
	stop := r.Clock.AfterFunc(bound, func() { finish(wire.Answer{Method: method, Err: errNoAnswer}) })
	r.Later(func() {
		_, err := r.peer.Go(method, params, func(a wire.Answer) {
			stop()
			finish(a)
		})
		if err != nil {
			stop()
			r.Unwritten(err)
			finish(wire.Answer{Method: method, Err: err})
		}
	})
}

// run reads until the server ends.
func (r *runtime) run() {
	r.Serve(r.peer.Run, r.lost)
}

// lost lets go of everybody who waits for the server, and says what was lost with it.
func (r *runtime) lost(reason error) {
	r.Do(func() {
		r.stopTimers()
		for _, c := range r.cancels {
			c.stopPauses()
			r.Finish(c.wait, agent.Errorf(agent.CodeProviderGone, "the Codex process ended"))
		}
		r.cancels = nil
		if r.root != nil {
			for _, u := range r.root.turns {
				r.wakeGuides(u)
			}
		}
		if r.Losing() {
			r.Lose(r.root.session, r.Loss("Codex", reason))
		}
	})
}

// Close implements provider.Runtime.
func (r *runtime) Close(ctx context.Context) error {
	r.Do(func() {
		r.Hush()
		r.stopTimers()
	})
	err := r.Link.Close(ctx)
	r.peer.Close(nil) // what still lies in the pipe is not wanted
	<-r.Done()
	return err
}

// gone is the error of a call that came after the end.
func (r *runtime) gone() *agent.Error {
	if r.Over() || r.peer.Err() != nil {
		return agent.Errorf(agent.CodeProviderGone, "the Codex process of this session has ended")
	}
	return nil
}

// callError turns the error of an answer into one that crosses packages.
func callError(what string, err error) *agent.Error {
	var refused *wire.Error
	var unwritten *wire.WriteError
	switch {
	case errors.As(err, &refused):
		return agent.Errorf(agent.CodeProviderRefused, "Codex refused to %s: %s", what, refused.Message)
	case errors.Is(err, errNoAnswer):
		return agent.Errorf(agent.CodeTimeout, "Codex did not answer when asked to %s", what)
	case errors.Is(err, wire.ErrClosed), errors.As(err, &unwritten):
		return agent.Errorf(agent.CodeProviderGone, "the Codex process ended when asked to %s", what)
	case errors.Is(err, wire.ErrMessageTooLong):
		return agent.Errorf(agent.CodeInvalid, "Codex cannot be asked to %s: the message is too long", what)
	}
	return agent.Errorf(agent.CodeProviderRefused, "Codex gave an answer that cannot be read when asked to %s", what)
}
