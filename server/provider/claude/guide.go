package claude

import (
	"context"
	"errors"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// Start implements provider.Runtime.
func (r *runtime) Start(ctx context.Context, in provider.Input) error {
	return r.hand(ctx, in, func() bool {
		r.boundary = false // a turn that a person asked for
		r.current = in.Turn
		if u := r.waiting; u != nil && u.id != in.Turn { // of a turn that was ended without idle
			r.endWait()
			r.endSilently(u, nil)
		}
		return true
	})
}

// Guide implements provider.Runtime. The program folds a message into the turn that runs,
// or answers it in a turn of its own right afterwards; while only children run, at once.
// In the wait for a continuation it is part of that wait, and does not prolong it. A
// message that a stop has overtaken is not written: it would be read all the same.
func (r *runtime) Guide(ctx context.Context, in provider.Input) error {
	return r.hand(ctx, in, func() bool { return r.open == nil && r.waiting == nil && len(r.announced) == 0 })
}

// hand writes a person's message, and returns when the program has queued it. announce
// decides, under the lock, whether the message opens a provider turn of its own: that is
// reported before the message is written, so that the gate holds from then on.
func (r *runtime) hand(ctx context.Context, in provider.Input, announce func() bool) error {
	x := &userText{uuid: wireID(in.Message), turn: in.Turn, message: in.Message, wait: serial.NewWaiter()}
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(x.wait, err)
			return
		}
		opens := announce()
		if r.boundary {
			stopped := agent.Errorf(agent.CodeTurnCanceling, "the turn is being stopped")
			r.refuseText(x, stopped)
			r.Finish(x.wait, stopped)
			return
		}
		if opens {
			if code, ok := r.announce(x); !ok {
				r.Finish(x.wait, agent.Errorf(code, "the turn takes no message any more"))
				return
			}
		}
		r.texts[x.uuid] = x
		x.stop = r.Clock.AfterFunc(messageBound, func() { r.Do(func() { r.notTaken(x, errNoAnswer) }) })
		r.Later(func() {
			if err := r.conn.user(x.uuid, in.Text); err != nil {
				r.Unwritten(err)
				r.Do(func() { r.notTaken(x, err) })
			}
		})
	})
	err := r.Await(ctx, x.wait)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return agent.Errorf(agent.CodeTimeout, "Claude has not taken the message yet; it may still do so")
	}
	return err
}

// notTaken gives up a message that the program did not take. If the process is gone, the
// message was lost and not refused: the loss is reported for the whole tree.
func (r *runtime) notTaken(x *userText, err error) {
	if x.acked {
		return
	}
	x.acked = true
	x.stop()
	reason := callError("take the message", err)
	if reason.Code != agent.CodeProviderGone {
		r.refuseText(x, reason)
	}
	delete(r.texts, x.uuid)
	if errors.Is(err, errNoAnswer) {
		// It may have been taken all the same. Should it still be read, it is nobody's.
		r.send(withdrawRequest{Subtype: reqWithdraw, MessageUUID: x.uuid}, requestBound, func(answer) {})
	}
	r.Finish(x.wait, reason)
}

// refuseText says that a message was refused, and fails the turn that was to begin with it.
func (r *runtime) refuseText(x *userText, reason *agent.Error) {
	x.lost = true
	r.putText(x, agent.MessageUndelivered)
	for i, u := range r.announced {
		if u.opens == x {
			r.announced = append(r.announced[:i:i], r.announced[i+1:]...)
			r.endTurn(u, agent.OutcomeFailed, reason)
			return
		}
	}
}
