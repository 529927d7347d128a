package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// steering is a method that some agents of version 1 add: a message for the turn that runs.
const steering = "_session/steering"

// Start implements provider.Runtime.
func (r *runtime) Start(ctx context.Context, in provider.Input) error {
	return r.hand(ctx, in, r.announce)
}

// Guide implements provider.Runtime. While only children run, a message is a prompt like
// any other. Into a turn that runs it goes as the agent takes it: as another prompt, or by
// the steering that agents of version 1 add.
func (r *runtime) Guide(ctx context.Context, in provider.Input) error {
	return r.hand(ctx, in, func(x *userText) {
		running := slices.ContainsFunc(r.open, func(u *turn) bool { return !u.reserved && !u.closed })
		switch {
		case !running, r.version != acp.V1, r.able.queues:
			r.announce(x)
		case r.able.steers:
			r.steer(x)
		default:
			r.Finish(x.wait, agent.Errorf(agent.CodeGuidanceUnsupported, "%s takes no message while it works", r.o.Title))
		}
	})
}

// hand gives a person's message to the agent, and returns when it has been taken.
func (r *runtime) hand(ctx context.Context, in provider.Input, how func(*userText)) error {
	x := &userText{turn: in.Turn, message: in.Message, text: in.Text, wait: serial.NewWaiter()}
	r.Do(func() {
		if err := r.gone(); err != nil {
			r.Finish(x.wait, err)
			return
		}
		how(x)
	})
	err := r.Await(ctx, x.wait)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return agent.Errorf(agent.CodeTimeout, "%s has not taken the message yet; it may still do so", r.o.Title)
	}
	return err
}

// announce opens the provider turn of a message before it is written, so that the gate
// holds from then on. It waits for a stopped turn that has not ended: an agent would take
// the message into that, or refuse it.
func (r *runtime) announce(x *userText) {
	u, code := r.begin(x.turn, nil)
	if code != "" {
		r.Finish(x.wait, agent.Errorf(code, "the turn takes no message any more"))
		return
	}
	u.text = x
	if r.waiting != nil { // the message is what begins it
		r.endSilently(r.waiting)
	}
	if slices.ContainsFunc(r.open, stopping) {
		r.queued = append(r.queued, u)
		if len(r.queued) == 1 {
			r.stopBarrier = r.after(barrierBound, r.giveUpQueued)
		}
		return
	}
	r.prompt(u)
}

// stopping reports whether a turn runs that was asked to stop.
func stopping(u *turn) bool { return u.begun && (u.closed || u.dropped) }

// nextQueued writes the messages that waited, once the stopped turn has ended.
func (r *runtime) nextQueued() {
	if len(r.queued) == 0 || slices.ContainsFunc(r.open, stopping) {
		return
	}
	r.stopBarrier()
	queued := r.queued
	r.queued = nil
	for _, u := range queued {
		r.prompt(u)
	}
}

// giveUpQueued fails the messages that waited for a stopped turn which does not end.
func (r *runtime) giveUpQueued() {
	for _, u := range slices.Clone(r.queued) {
		why := agent.Errorf(agent.CodeTimeout, "%s has not ended the turn that was stopped, and takes no message until then", r.o.Title)
		u.text.lost = true
		r.putText(u.text, agent.MessageUndelivered)
		r.Finish(u.text.wait, why)
		r.endTurn(u, agent.OutcomeFailed, why)
	}
}

// steer adds a message to the turn that runs. It opens no turn of its own.
func (r *runtime) steer(x *userText) {
	params := acp.PromptRequest{SessionID: r.root.id, Prompt: []acp.ContentBlock{acp.Text(x.text)}}
	r.send(steering, params, takenBound, func(a wire.Answer) {
		if a.Err == nil {
			r.putText(x, agent.MessageCompleted)
			r.Finish(x.wait, nil)
			return
		}
		why := r.callError("take the message", a.Err)
		if why.Code != agent.CodeProviderGone {
			r.putText(x, agent.MessageUndelivered)
		}
		r.Finish(x.wait, why)
	})
}
