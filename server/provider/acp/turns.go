package acp

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

const (
	// continuationWindow is how long the root of an agent that tells of its background work
	// may take to its first word after the last of that has ended (decisions.md 16).
	continuationWindow = 30 * time.Second
	// levelPause is what is left of that when the root says that nothing is in its background
	// any more: its answer, if it gives one, begins some tens of milliseconds later.
	levelPause = 5 * time.Second
	// foldPause is how long after idle a prompt that was taken may take to begin. When it
	// does not, the turn that ran has answered it.
	foldPause = 2 * time.Second
)

// turn is one provider turn of the root, or one turn of a child.
type turn struct {
	lane    *lane
	id      agent.TurnID // canonical: of a provider turn, the root turn that it runs under
	begun   bool         // its start was seen on the wire
	ended   bool
	closed  bool // a target of a cancel
	dropped bool // never shown, and stopped

	key      agent.ProviderTurnID // of a provider turn
	text     *userText            // the message that it was announced with, nil if none
	reserved bool                 // a continuation that has not spoken

	items   map[string]*item
	writing *item // the text that is being written
	parts   map[string]int
	rest    *item // of an ended turn: what comes late
}

// userText is a person's message on its way to the root agent.
type userText struct {
	turn    agent.TurnID
	message agent.MessageID
	text    string
	wait    *serial.Waiter
	sent    bool // written
	read    bool // the agent has it
	lost    bool // the agent will never have it
}

// turnState is the part of the runtime that knows the root's provider turns.
type turnState struct {
	keys        provider.TurnKeys
	current     agent.TurnID // the root turn that was open last
	open        []*turn      // provider turns that have not ended, oldest first
	queued      []*turn      // of these, announced ones that wait for a stopped turn to end
	state       acp.SessionState
	background  []acp.BackgroundWork // of an idle root
	waiting     *turn                // a reserved continuation
	stray       *turn                // a turn that was opened for work of a child nobody asked for
	spent       map[agent.TurnID]agent.Usage
	cost        float64 // of the session so far
	costAt      float64 // when the root turn began
	stopReserve func() bool
	stopBarrier func() bool
	stopFold    func() bool
}

// idle reports whether nothing of the session runs.
func (r *runtime) idle() bool { return len(r.open) == 0 && r.liveChildren() == 0 }

// workOf is the turn that what an agent says belongs to: the one that runs, or the last
// one; nil if there never was one.
func (r *runtime) workOf(l *lane) *turn {
	switch {
	case l.isRoot() && len(r.open) > 0:
		return r.open[0]
	case l.live != nil:
		return l.live
	}
	return l.last()
}

// begin opens a provider turn under a root turn; "" is wherever storage places it. A code
// says why it may not be.
func (r *runtime) begin(under agent.TurnID, reserved *time.Time) (*turn, agent.Code) {
	u := &turn{id: under, key: r.keys.Next(), reserved: reserved != nil}
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: under, Key: u.key, Reserved: reserved})
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped = true
		return u, cmp.Or(applied.Code, agent.CodeUnavailable)
	}
	u.id = applied.Turn
	if r.current != u.id {
		r.current, r.costAt = u.id, r.cost
	}
	r.root.add(u)
	r.open = append(r.open, u)
	r.heardFrom()
	return u, ""
}

// unasked is the root turn for work that the agent began by itself while nothing was open,
// nil if that may not be.
func (r *runtime) unasked() *turn {
	if r.stray != nil {
		return r.stray
	}
	u, code := r.begin("", nil)
	if code != "" {
		return nil
	}
	r.stray = u
	return u
}

// endUnasked ends what unasked has opened: from now on the child's own turn holds the root.
func (r *runtime) endUnasked() {
	if u := r.stray; u != nil {
		r.stray = nil
		r.endTurn(u, agent.OutcomeCompleted, nil)
	}
}

// prompt writes a person's message.
func (r *runtime) prompt(u *turn) {
	x := u.text
	x.sent = true
	params := acp.PromptRequest{SessionID: r.root.id, Prompt: []acp.ContentBlock{acp.Text(x.text)}}
	bound := takenBound
	if r.version == acp.V1 {
		bound, u.begun = 0, true // its answer is the end of the turn
	}
	r.send(acp.MethodPrompt, params, bound, func(a wire.Answer) {
		var got acp.PromptResponse
		err := a.Decode(&got)
		if errors.Is(err, errNoAnswer) && r.state.Live() {
			err = nil // it has begun to work on it
		}
		if err != nil {
			r.promptFailed(u, err)
			return
		}
		if r.version == acp.V1 {
			r.prompted(u, &got)
			return
		}
		r.delivered(u)
		r.Finish(x.wait, nil)
		if got.MessageID != "" && !u.ended {
			r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key, NativeID: got.MessageID})
		}
		if r.state == acp.StateIdle && !u.begun {
			r.awaitFold()
		}
	})
	if r.version == acp.V1 {
		r.Later(func() { r.Do(func() { r.Finish(x.wait, nil) }) }) // written, which is all there is to know
	}
}

// prompted takes the end of a turn of version 1. It is not the end of its children.
func (r *runtime) prompted(u *turn, got *acp.PromptResponse) {
	r.delivered(u)
	if got.Usage != nil {
		r.used(u.id, usageOf(got.Usage))
	}
	outcome, why := r.outcomeOf(got.StopReason, nil)
	r.endTurn(u, outcome, why)
}

// promptFailed ends a turn whose prompt was answered with an error, or could not be sent.
// If the process is gone, it was lost and not refused: the loss is reported for the whole
// tree.
func (r *runtime) promptFailed(u *turn, err error) {
	reason := r.callError("take the message", err)
	x := u.text
	r.Finish(x.wait, reason)
	if reason.Code == agent.CodeProviderGone || u.ended {
		return
	}
	if !x.read && !x.lost {
		x.lost = true
		r.putText(x, agent.MessageUndelivered)
	}
	r.endTurn(u, agent.OutcomeFailed, reason)
}

// delivered says that the agent has a message. It is said once.
func (r *runtime) delivered(u *turn) {
	if x := u.text; x != nil && x.sent && !x.read && !x.lost {
		x.read = true
		r.putText(x, agent.MessageCompleted)
	}
}

// putText says what became of a person's message.
func (r *runtime) putText(x *userText, status agent.MessageStatus) {
	r.Apply(agent.MessagePut{Message: agent.Message{
		ID: x.message, SessionID: r.root.session, TurnID: x.turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: status,
	}})
}

// endTurn reports a provider turn's terminal.
func (r *runtime) endTurn(u *turn, outcome agent.Outcome, why *agent.Error) {
	r.end(u, outcome, why, false)
}

// endSilently ends a provider turn that has said nothing: what was retained stays.
func (r *runtime) endSilently(u *turn) {
	outcome := agent.OutcomeCompleted
	if u.closed {
		outcome = agent.OutcomeInterrupted
	}
	r.end(u, outcome, nil, true)
}

func (r *runtime) end(u *turn, outcome agent.Outcome, why *agent.Error, silent bool) {
	if u.ended {
		return
	}
	u.ended, u.reserved = true, false
	r.open = without(r.open, u)
	r.queued = without(r.queued, u)
	if r.waiting == u {
		r.waiting = nil
		r.stopReserve()
	}
	if !u.dropped {
		r.closeItems(u, outcome)
		r.withdrawOf(u)
		r.Apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why, Silent: silent})
	}
	r.confirm(u, outcome)
	r.heardFrom()
	if r.idle() {
		r.dropHeld()
	}
	r.nextQueued()
}

// rootState takes a state of the root from its own stream, which version 2 alone has.
func (r *runtime) rootState(st *acp.StateUpdate) {
	was := r.state
	r.state = st.State
	r.background = st.Background.Or(nil)
	switch {
	case st.State.Live():
		if r.stopFold != nil {
			r.stopFold()
		}
		r.rootRuns(was)
	case st.State == acp.StateIdle:
		r.flushArrivals()
		r.rootIdle(st)
	default:
		r.Diagnose(provider.Ignored, "state", string(st.State))
	}
}

// rootRuns finds or makes the provider turn that runs: a continuation that was expected,
// the next one that a message announced, or one that nobody asked for.
func (r *runtime) rootRuns(was acp.SessionState) {
	for _, u := range r.open {
		if u.begun && !u.reserved {
			return // it goes on
		}
	}
	announced := slices.IndexFunc(r.open, func(u *turn) bool { return u.text != nil && u.text.sent })
	switch {
	case r.waiting != nil:
		r.speak(r.waiting)
	case announced >= 0:
		r.open[announced].begun = true
	case was.Live():
	default:
		u, code := r.begin("", nil)
		u.begun = true
		if code == "" {
			return
		}
		r.Diagnose(provider.Refused, "turn", string(code))
		r.root.add(u)
		r.open = append(r.open, u)
		r.stop(r.root.id, nil)
	}
}

// rootIdle ends the provider turn that ran. What was sent into it is answered with it,
// unless another turn begins for that at once.
func (r *runtime) rootIdle(st *acp.StateUpdate) {
	outcome, why := r.outcomeOf(st.StopReason, st.Error)
	for _, u := range slices.Clone(r.open) {
		switch {
		case u.reserved && st.StopReason != "":
			r.endSilently(u)
		case u.reserved && !r.awaited(): // the level of its background alone
			r.bound(u, levelPause)
		case u.begun && !u.reserved:
			if st.Usage != nil && !u.dropped {
				r.used(u.id, usageOf(st.Usage))
			}
			r.endTurn(u, outcome, why)
		}
	}
	if len(r.open) > 0 {
		r.awaitFold()
	}
}

// awaitFold ends the turns of messages that were taken and begin no turn of their own.
func (r *runtime) awaitFold() {
	if r.stopFold != nil {
		r.stopFold()
	}
	r.stopFold = r.after(foldPause, func() {
		for _, u := range slices.Clone(r.open) {
			if u.text != nil && u.text.read && !u.begun {
				r.endSilently(u)
			}
		}
	})
}

// awaited reports whether an idle root still has work of a child to answer.
func (r *runtime) awaited() bool {
	return slices.ContainsFunc(r.background, func(w acp.BackgroundWork) bool { return w.Type == acp.BackgroundSubagent })
}

// expectContinuation reserves the root's answer to a child that it had named as work in its
// background, before that child ends: the root turn must not settle in between.
func (r *runtime) expectContinuation(l *lane) {
	named := slices.ContainsFunc(r.background, func(w acp.BackgroundWork) bool { return w.SessionID == l.id })
	if !named || r.state != acp.StateIdle || len(r.open) > 0 || r.liveChildren() > 0 || r.stopsRoot() {
		return
	}
	until := r.Clock.Now().Add(continuationWindow)
	w, code := r.begin(r.current, &until)
	if code != "" {
		return
	}
	r.waiting = w
	r.stopReserve = func() bool { return true }
	r.bound(w, continuationWindow)
}

// bound ends a reservation when it has not spoken by then.
func (r *runtime) bound(w *turn, d time.Duration) {
	r.stopReserve()
	r.stopReserve = r.after(d, func() {
		if r.waiting == w {
			r.endSilently(w)
		}
	})
}

// speak ends a reservation: the continuation has begun.
func (r *runtime) speak(u *turn) {
	if !u.reserved {
		return
	}
	u.reserved, u.begun = false, true
	r.waiting = nil
	r.stopReserve()
	r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key})
}

// used adds to what a root turn has spent.
func (r *runtime) used(id agent.TurnID, more agent.Usage) {
	if r.spent == nil {
		r.spent = map[agent.TurnID]agent.Usage{}
	}
	total := r.spent[id].Add(more)
	r.spent[id] = total
	total.CostMicros = max(total.CostMicros, micros(r.cost-r.costAt))
	r.Apply(agent.UsageReported{Session: r.root.session, Turn: id, Usage: total})
}

// letGo ends the waits of everybody who handed a message over.
func (r *runtime) letGo(why *agent.Error) {
	for _, u := range r.open {
		if u.text != nil {
			r.Finish(u.text.wait, why)
		}
	}
}
