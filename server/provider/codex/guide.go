package codex

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Start implements provider.Runtime.
func (r *runtime) Start(ctx context.Context, in provider.Input) error {
	r.Do(func() { r.boundary = false }) // a turn that a person asked for
	return r.startTurn(ctx, in)
}

// startTurn begins a provider turn under a canonical root turn: its first one, or a
// further one while only children run. The turn is reported before the request is
// written, so that the gate holds from then on.
func (r *runtime) startTurn(ctx context.Context, in provider.Input) error {
	w := serial.NewWaiter()
	r.Do(func() {
		if err := r.announce(in, w); err != nil {
			r.Finish(w, err)
		}
	})
	err := r.Await(ctx, w)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return agent.Errorf(agent.CodeTimeout, "Codex has not answered yet; the turn may still begin")
	}
	return err
}

// announce reports a provider turn and writes turn/start.
func (r *runtime) announce(in provider.Input, w *serial.Waiter) error {
	if err := r.gone(); err != nil {
		return err
	}
	if r.root.pending != nil {
		return agent.Errorf(agent.CodeSessionBusy, "another message is being handed to Codex; try again")
	}
	u := &turn{id: in.Turn, key: r.keys.Next(), base: r.baseOf(in.Turn)}
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: in.Turn, Key: u.key})
	if !ok {
		return agent.Errorf(agent.CodeUnavailable, "storage did not take the turn")
	}
	if applied.Verdict == agent.VerdictRefused {
		return agent.Errorf(applied.Code, "the turn can no longer be started")
	}
	u.texts = []*userText{{turn: in.Turn, message: in.Message, text: in.Text, opens: true}}
	r.root.pending = u
	params := turnStartParams{ThreadID: r.root.id, Input: userInput(in.Text), ClientUserMessageID: string(in.Message)}
	r.send(methodTurnStart, params, requestBound, func(a wire.Answer) {
		r.startAnswered(u, a, w)
	})
	return nil
}

// baseOf is the thread's usage when a canonical turn began, which an earlier provider
// turn of it may know.
func (r *runtime) baseOf(id agent.TurnID) agent.Usage {
	for _, u := range r.root.turns { // those of one root turn agree
		if u.id == id {
			return u.base
		}
	}
	return r.root.total
}

// startAnswered binds the native id of a provider turn, at the answer's place in the
// order of the wire.
func (r *runtime) startAnswered(u *turn, a wire.Answer, w *serial.Waiter) {
	var res turnStartResult
	err := a.Decode(&res)
	r.root.pending = nil
	if err == nil && res.Turn.ID == "" {
		err = errors.New("codex: turn/start was answered without a turn id")
	}
	switch active := r.root.turns[res.Turn.ID]; {
	case err != nil:
		r.startFailed(u, err, w)
	case active != nil && !active.ended:
		// The server took it as a steer of a turn it had begun itself.
		r.Apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: agent.OutcomeCompleted, Silent: true})
		u.ended = true
		u.texts[0].accepted, u.texts[0].opens = true, false
		active.texts = append(active.texts, u.texts...)
		r.wakeGuides(u)
		r.Finish(w, nil)
	default:
		u.texts[0].accepted = true
		r.root.add(res.Turn.ID, u)
		r.owners[res.Turn.ID] = u.id
		r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key, NativeID: u.native})
		r.Finish(w, nil)
	}
	r.resumeRoot()
}

// startFailed ends a provider turn that never began. If the process is gone, the turn
// was lost and not refused: the loss is reported for the whole tree.
func (r *runtime) startFailed(u *turn, err error, w *serial.Waiter) {
	reason := callError("start the turn", err)
	if reason.Code != agent.CodeProviderGone {
		r.putText(r.root, u.texts[0], agent.MessageUndelivered)
		r.Apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: agent.OutcomeFailed, Err: reason})
	}
	u.ended = true
	r.wakeGuides(u)
	if reason.Code != agent.CodeProviderGone {
		r.confirm(r.root, u, agent.OutcomeFailed)
	}
	if errors.Is(err, errNoAnswer) {
		// It may have been taken all the same. Should it begin, it is nobody's.
		r.boundary = true
		r.stopOrphan(r.root.id, "")
	}
	r.Finish(w, reason)
}

// Guide implements provider.Runtime: a steer of the running provider turn, or a new
// provider turn under the same canonical root turn while only children run.
func (r *runtime) Guide(ctx context.Context, in provider.Input) error {
	expected := ""
	for range 4 {
		w := serial.NewWaiter()
		var next guideStep
		r.Do(func() { next = r.nextGuide(in, expected, w) })
		switch next {
		case guideStart:
			return r.startTurn(ctx, in)
		case guideFailed:
			return r.Await(ctx, w)
		case guideWait:
			if err := r.Await(ctx, w); err != nil {
				return err
			}
			continue
		case guideSteer:
		}
		err := r.Await(ctx, w)
		var refused *wire.Error
		if !errors.As(err, &refused) {
			return err
		}
		// Three refusals have a meaning of their own (openai/codex#31438: only the text
		// tells them apart).
		if m := foundTurn.FindStringSubmatch(refused.Message); m != nil {
			expected = m[1]
			continue
		}
		if strings.Contains(refused.Message, "no active turn") {
			return r.startTurn(ctx, in)
		}
		r.Do(func() { r.putText(r.root, &userText{turn: in.Turn, message: in.Message}, agent.MessageUndelivered) })
		return callError("take the message", refused)
	}
	return agent.Errorf(agent.CodeTimeout, "Codex changed turns faster than the message could follow; send it again")
}

// foundTurn reads the turn that is really active out of a refused steer or interrupt.
var foundTurn = regexp.MustCompile("expected active turn id `?[^` ]+`? but found `?([^` ]+)`?")

type guideStep uint8

const (
	guideFailed guideStep = iota // the waiter has the error
	guideStart
	guideWait  // for the turn to begin; then look again
	guideSteer // the waiter has the answer
)

// nextGuide decides what guidance does now, and writes the steer if it is one.
func (r *runtime) nextGuide(in provider.Input, expected string, w *serial.Waiter) guideStep {
	if err := r.gone(); err != nil {
		r.Finish(w, err)
		return guideFailed
	}
	u := r.root.pending
	if u == nil {
		u = r.liveRoot(in.Turn)
	}
	switch {
	case u == nil && expected == "":
		return guideStart
	case u != nil && !u.begun:
		u.began = append(u.began, w) // a steer that comes before turn/started is refused
		return guideWait
	case expected == "":
		expected = u.native
	}
	text := &userText{turn: in.Turn, message: in.Message, text: in.Text}
	if u != nil {
		u.texts = append(u.texts, text)
	}
	params := turnSteerParams{
		ThreadID: r.root.id, ExpectedTurnID: expected, Input: userInput(in.Text), ClientUserMessageID: string(in.Message),
	}
	r.send(methodTurnSteer, params, requestBound, func(a wire.Answer) { r.steerAnswered(u, text, a, w) })
	return guideSteer
}

// steerAnswered takes the answer to a steer. Acceptance is not delivery: the message
// stays pending until its userMessage item is seen.
func (r *runtime) steerAnswered(u *turn, text *userText, a wire.Answer, w *serial.Waiter) {
	var res turnSteerResult
	err := a.Decode(&res)
	holder := u
	if err == nil && res.TurnID != "" && (u == nil || res.TurnID != u.native) {
		holder = r.root.turns[res.TurnID]
	}
	if u != nil && (err != nil || holder != u) {
		u.texts = slices.DeleteFunc(u.texts, func(x *userText) bool { return x == text })
	}
	var refused *wire.Error
	switch {
	case err == nil:
		text.accepted = true
		if holder != nil && holder != u {
			holder.texts = append(holder.texts, text)
		}
		if holder != nil && holder.ended {
			r.loseTexts(r.root, holder)
		}
	case !errors.As(err, &refused):
		err = callError("take the message", err)
	}
	r.Finish(w, err)
}

// liveRoot is the provider turn of a root turn that has not ended, nil if there is none.
func (r *runtime) liveRoot(id agent.TurnID) *turn {
	for _, u := range slices.Backward(r.root.order) {
		if u.id == id && !u.ended && !u.dropped {
			return u
		}
	}
	return nil
}
