package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// client is how a replay's commands are signed.
const client = "replay"

// obey gives the command that a line of the recorded client stands for. A command that
// is refused, or that means nothing at this moment, is a note: a person would have been
// told so.
func (e *engine) obey(at int, in intent) error {
	var err error
	switch in.kind {
	case wantsNothing:
	case wantsOpen:
		return e.openRoot(in)
	case wantsWatch:
		e.watch(in)
	case wantsSend, wantsGuide:
		var given bool
		if given, err = e.send(at, in); !given {
			e.dialect.skip(at)
		}
	case wantsCancel:
		err = e.cancel(in)
	case wantsAnswer:
		err = e.answer(in)
	case wantsDelete:
		err = e.remove(in)
	case wantsStop:
		e.stop(in)
	case wantsReload:
		e.reload()
	}
	var refused *agent.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// openRoot makes the session of a new conversation. One that is resumed is there.
func (e *engine) openRoot(in intent) error {
	if _, known := e.sessionOf(in.thread); known || in.thread == "" {
		if in.watch { // by another process
			e.watch(in)
		}
		return nil
	}
	sub, err := e.commands.CreateSession(e.ctx, agent.NewSession{Workspace: e.workspace, Provider: e.provider, Model: in.model})
	if err != nil {
		return fmt.Errorf("create a session: %w", err)
	}
	e.roots[in.thread] = sub.Session.ID
	if in.known { // as an earlier life of the daemon left it
		if _, err := e.store.Apply(e.ctx, agent.SessionDescribed{Session: sub.Session.ID, ProviderSessionID: in.thread}); err != nil {
			return fmt.Errorf("name the session: %w", err)
		}
	}
	if in.watch {
		e.watch(in)
	}
	return nil
}

// watch opens a conversation that may have turns which nobody sends a message for. It
// does not wait: the answers that it needs may be lines to come.
func (e *engine) watch(in intent) {
	root, ok := e.sessionOf(in.thread)
	if !ok {
		return
	}
	e.still.work(1)
	go func() {
		defer e.still.work(-1)
		_ = e.live.Watch(e.ctx, root) // without a runtime nothing is seen, and the end shows it
	}()
}

// witness knows the runtime that an adapter opened last.
type witness struct {
	provider.Adapter
	runtime provider.Runtime // the driver looks when nothing moves
}

// Open implements provider.Adapter.
func (w *witness) Open(ctx context.Context, p provider.OpenParams, s provider.Sink) (provider.Runtime, error) {
	r, err := w.Adapter.Open(ctx, p, s)
	w.runtime = r
	return r, err
}

// reload has the open session loaded again, which no command of a person's does. It does
// not wait: the answer is a line to come.
func (e *engine) reload() {
	r, ok := e.witness.runtime.(interface {
		Reload(ctx context.Context) error
	})
	if !ok {
		return
	}
	e.still.work(1)
	go func() {
		defer e.still.work(-1)
		_ = r.Reload(e.ctx) // a refusal shows in the end
	}()
}

// sessionOf finds the session of a conversation, root or child.
func (e *engine) sessionOf(thread string) (agent.Session, bool) {
	if id, ok := e.roots[thread]; ok {
		s, err := e.store.Session(e.ctx, e.workspace, id)
		return s, err == nil
	}
	for _, id := range e.roots {
		detail, err := e.store.Detail(e.ctx, e.workspace, id)
		if err != nil {
			continue // deleted
		}
		for _, s := range detail.ChildSessions {
			if h := s.Handles; thread != "" && (h.ThreadID == thread || h.TaskID == thread || h.AgentID == thread) {
				return s, true
			}
		}
	}
	return agent.Session{}, false
}

// send gives a message. One that was meant for a turn which does not run any more, or
// never did, is not given: a person cannot name a provider's turn.
func (e *engine) send(at int, in intent) (bool, error) {
	root, ok := e.sessionOf(in.thread)
	if !ok || !root.IsRoot() {
		return false, nil
	}
	if in.kind == wantsGuide && !runs(root.ActiveTurn, in.native) {
		return false, nil
	}
	e.dialect.take(at) // the request may be written before Send returns
	e.still.work(1)
	sub, err := e.commands.Send(e.ctx, e.workspace, agent.NewMessage{
		Session: root.ID, ClientMessageID: fmt.Sprintf("line-%d", at+1), Text: in.text, Client: client,
	})
	if err != nil || sub.Delivery != agent.DeliveryStarted {
		e.still.work(-1) // nothing was started in the background
	} // else runtimes.Start ends it
	return err == nil, err
}

// runs reports whether a root turn is open whose provider turn of that name runs.
func runs(t *agent.Turn, native string) bool {
	return t != nil && t.ProviderTurn != nil && t.ProviderTurn.NativeID == native && t.ProviderTurn.Phase == agent.ProviderRunning
}

// cancel stops the turn of a conversation. One that another cancel has closed already
// is left to that.
func (e *engine) cancel(in intent) error {
	s, ok := e.sessionOf(in.thread)
	if !ok || s.ActiveTurn == nil || s.ActiveTurn.Phase == agent.PhaseSettling {
		return nil
	}
	t := s.ActiveTurn
	native := t.NativeID
	if t.ProviderTurn != nil {
		native = t.ProviderTurn.NativeID
	}
	if in.native != "" && native != "" && in.native != native {
		return nil
	}
	_, _, err := e.commands.Cancel(e.ctx, e.workspace, s.ID, t.ID, client)
	return err
}

// answer answers the open question about that call.
func (e *engine) answer(in intent) error {
	s, ok := e.sessionOf(in.thread)
	if !ok {
		return nil
	}
	open, err := e.store.Interactions(e.ctx, e.workspace, s.ID, agent.InteractionPending)
	if err != nil {
		return err
	}
	for _, i := range open {
		if i.SessionID == s.ID && i.ProviderTurnID == in.native && (in.call == "" || i.Detail.CallID == in.call) {
			_, _, err := e.commands.Answer(e.ctx, e.workspace, agent.NewAnswer{
				Session: i.SessionID, Turn: i.TurnID, Request: i.RequestID, Response: in.response, Client: client,
			})
			return err
		}
	}
	return nil
}

// remove deletes a session.
func (e *engine) remove(in intent) error {
	s, ok := e.sessionOf(in.thread)
	if !ok {
		return nil
	}
	e.still.work(1) // runtimes.CloseSession or Forget ends it
	if err := e.commands.DeleteSession(e.ctx, e.workspace, s.ID); err != nil {
		e.still.work(-1)
		return err
	}
	return nil
}

// stop ends one process. It does not wait: the provider's answer is a line to come.
func (e *engine) stop(in intent) {
	e.judge.mu.Lock()
	at := slices.IndexFunc(e.judge.processes, func(p agent.Process) bool {
		return string(p.ID) == in.native && p.Status == agent.ProcessRunning
	})
	var p agent.Process
	if at >= 0 {
		p = e.judge.processes[at]
	}
	e.judge.mu.Unlock()
	if at < 0 {
		return
	}
	e.still.work(1)
	go func() {
		defer e.still.work(-1)
		_, _ = e.commands.StopProcess(e.ctx, e.workspace, p.SessionID, p.ID) // a refusal shows in the end
	}()
}

// runtimes are the live runtimes as commands see them. What commands do in the
// background has been counted as work by whoever gave the command.
type runtimes engine

func (r *runtimes) port() live.Port { return live.Port{Live: r.live} }

// Start implements command.Live.
func (r *runtimes) Start(ctx context.Context, session agent.Session, m agent.Message) error {
	r.worker.enter(session.ID)
	defer r.still.work(-1)
	defer r.worker.leave(session.ID)
	return r.port().Start(ctx, session, m)
}

// Guide implements command.Live.
func (r *runtimes) Guide(ctx context.Context, root agent.SessionID, m agent.Message) error {
	return r.port().Guide(ctx, root, m)
}

// Cancel implements command.Live.
func (r *runtimes) Cancel(ctx context.Context, c agent.Claimed, heard func(agent.Evidence)) error {
	defer r.bounds.call(ctx)()
	return r.port().Cancel(ctx, c, heard)
}

// Answer implements command.Live.
func (r *runtimes) Answer(ctx context.Context, root agent.SessionID, i agent.Interaction) error {
	return r.port().Answer(ctx, root, i)
}

// StopProcess implements command.Live.
func (r *runtimes) StopProcess(ctx context.Context, root, session agent.SessionID, process agent.ProcessID) error {
	return r.live.StopProcess(ctx, root, session, process)
}

// Forget implements command.Live.
func (r *runtimes) Forget(ctx context.Context, root agent.SessionID, sessions []agent.SessionID) {
	defer r.still.work(-1)
	r.live.Forget(ctx, root, sessions)
}

// CloseSession implements command.Live.
func (r *runtimes) CloseSession(ctx context.Context, root agent.SessionID) error {
	defer r.still.work(-1)
	return r.live.CloseSession(ctx, root)
}
