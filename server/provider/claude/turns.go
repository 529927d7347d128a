package claude

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// turn is one provider turn of the root, or one run of a child.
type turn struct {
	lane    *lane
	id      agent.TurnID // canonical: of a provider turn, the root turn that it runs under
	under   agent.TurnID // the root turn; of a provider turn the same as id
	trigger agent.Trigger
	run     string // of a child, its run id
	begun   bool   // its start was seen on the wire
	ended   bool
	closed  bool         // a target of a cancel
	unsure  bool         // its cancel has ended without its end: it counts for nothing any more
	dropped bool         // never shown, and stopped
	why     string       // of a child, why it failed
	failure *agent.Error // of the API, if that is the last that its model said

	key      agent.ProviderTurnID // of a provider turn
	opens    *userText            // the message that it was announced with, nil if none
	reported bool                 // storage knows it
	reserved bool                 // a continuation that has not spoken
	outcome  agent.Outcome        // of a held end; "" if it has said nothing
	err      *agent.Error

	items map[string]*item
	said  map[string]int // blocks seen of each message of the model
	spent spending

	writing string // the message that streams
}

// turnState is the part of the runtime that knows the root's provider turns.
type turnState struct {
	keys      provider.TurnKeys
	current   agent.TurnID // the root turn that was open last
	announced []*turn      // begun by a message, and not yet seen on the wire
	open      *turn        // between init and result
	waiting   *turn        // a reserved continuation
	held      *turn        // has its result; its end waits for idle or the next turn
	stopHeld  func() bool
	stopWait  func() bool
	texts     map[string]*userText // by uuid, while their fate is open

	// boundary: the last root turn was canceled, and no person has asked for anything
	// since. stale: what is under way belongs to a continuation whose time is up.
	boundary, stale bool
	state           string // of the session, as it was told last
	stateTold       bool
	idling          bool   // idle is being handled
	checked         bool   // what the program can do was looked at
	mode            string // of permissions, as it was told last
}

func newTurnState() turnState { return turnState{texts: map[string]*userText{}} }

// barred says whether the program may begin no turn by itself.
func (r *runtime) barred() bool { return r.boundary || r.stale }

// newTurn is a provider turn under a root turn; "" is wherever storage places it.
func (r *runtime) newTurn(under agent.TurnID) *turn {
	u := &turn{id: under, under: under}
	r.root.add(u)
	return u
}

// report tells storage of a provider turn. False means that it is not to be shown.
func (r *runtime) report(u *turn) bool {
	if u.reported || u.dropped {
		return !u.dropped
	}
	u.key = cmp.Or(u.key, r.keys.Next())
	started := agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key}
	if u.opens != nil {
		started.NativeID = u.opens.uuid
	}
	applied, ok := r.Apply(started)
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped = true
		r.Diagnose(provider.Refused, "turn", string(applied.Code))
		return false
	}
	u.reported = true
	u.id, u.under = applied.Turn, applied.Turn
	r.current = applied.Turn
	return true
}

// turnBegan handles the start of a provider turn on the wire: one that a message began, or
// the provider's own.
func (r *runtime) turnBegan(f *initFrame) {
	r.modelIs(r.root, f.Model)
	r.modeIs(f.PermissionMode, true)
	r.checkAbilities(f.Capabilities)
	var by *userText
	for _, id := range f.UserMessageUUIDs {
		x := r.texts[id]
		if x != nil && !x.lost {
			r.deliver(x)
			by = cmp.Or(by, x)
		}
	}
	lost := r.open
	if lost != nil && (by == nil || lost.opens == by) {
		r.Diagnose(provider.Ignored, f.name(), "said again") // the turn goes on
		return
	}
	u := r.placeTurn(by)
	if lost != nil && lost != u {
		r.loseOpen(f.name()) // after the next one is reported: the root must not settle between them
	}
	u.begun = true
	r.open = u
	switch {
	case u.dropped:
		u.ended = true
		r.Diagnose(provider.Refused, f.name(), "")
		r.interruptLoose()
	case by != nil:
		r.stale = false
		r.releaseHeld(u)
	}
}

// checkAbilities looks once at what the program says of itself.
func (r *runtime) checkAbilities(list []string) {
	if r.checked {
		return
	}
	r.checked = true
	if err := lacking(list); err != nil {
		r.Diagnose(provider.Refused, "capabilities", err.Message)
		r.o.Logger.Warn("claude", "session", r.root.session, "err", err)
	}
}

// placeTurn finds or makes the provider turn that begins. One that no message of ours
// began is reported at its first word only: it may be empty, and then it never was one.
func (r *runtime) placeTurn(by *userText) *turn {
	var u *turn
	at := slices.IndexFunc(r.announced, func(u *turn) bool { return u.opens == by && by != nil })
	switch {
	case at >= 0:
		u = r.announced[at]
		r.announced = slices.Delete(r.announced, at, at+1)
	case by == nil && r.barred(), by != nil && r.boundary:
		u = r.newTurn("")
		u.dropped = true
	case r.waiting != nil:
		u = r.waiting
	case by != nil:
		u = r.newTurn(by.turn)
		u.opens = by
		r.report(u)
	default:
		u = r.newTurn("")
	}
	return u
}

// speak is a word of the root agent in the turn that is open. False means that it is not
// to be shown.
func (r *runtime) speak(u *turn) bool {
	if u.reserved {
		r.unreserve(u)
	}
	if !r.report(u) {
		if u == r.open && u.begun && !u.ended {
			r.interruptLoose()
			u.ended = true // asked once
		}
		return false
	}
	r.releaseHeld(u)
	return true
}

// turnResult handles the end of a provider turn on the wire. It is not the end of the
// work: without a live child a continuation may follow.
func (r *runtime) turnResult(f *resultFrame) {
	u := r.open
	if u != nil && u.opens != nil && f.ofNotice() {
		// Of a notice, without a turn of its own (anthropics/claude-agent-sdk-typescript#383).
		r.Diagnose(provider.Late, f.name(), "of another turn")
		return
	}
	r.open = nil
	if u == nil {
		u = r.resultWithoutTurn(f)
		if u == nil {
			return
		}
	}
	for _, id := range f.UserMessageUUIDs {
		if x := r.texts[id]; x != nil && !u.dropped {
			r.deliver(x)
			r.foldInto(u, x)
		}
	}
	outcome, why := r.outcomeOf(u, f)
	switch {
	case f.empty() && u.reserved:
		return // a later turn answers: the wait goes on
	case f.empty() && !u.reported:
		u.ended = true
		r.boundHeld()
	case f.empty() && r.liveChildren(nil) == 0:
		r.holdEnd(u, "", nil)
	case f.empty():
		r.endSilently(u, nil)
	case u.dropped || !r.speak(u):
		u.ended = true
		r.resultUsage(r.current, f) // it was spent all the same
		r.confirm(u, outcome)
	default:
		r.resultUsage(u.id, f)
		r.endUnlaunched(r.root, u)
		r.closeItems(u)
		if u.closed || r.liveChildren(nil) > 0 {
			r.endTurn(u, outcome, why)
			return
		}
		r.holdEnd(u, outcome, why)
	}
}

// resultWithoutTurn finds whose a result is that no start came before: a message's that
// was refused at once, or nobody's.
func (r *runtime) resultWithoutTurn(f *resultFrame) *turn {
	if !r.Ready {
		r.startError = strings.Join(append(f.Errors, f.Result), " ")
		return nil
	}
	for _, u := range r.announced {
		if slices.Contains(f.UserMessageUUIDs, u.opens.uuid) {
			r.announced = slices.DeleteFunc(r.announced, func(o *turn) bool { return o == u })
			return u
		}
	}
	r.Diagnose(provider.Late, f.name(), "")
	return nil
}

// outcomeOf reads a result. A word nobody knows is no success, nor is an answer that is
// the API's error (anthropics/claude-code#68816).
func (r *runtime) outcomeOf(u *turn, f *resultFrame) (agent.Outcome, *agent.Error) {
	switch {
	case f.interrupted():
		return agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The turn was interrupted")
	case u.failure != nil:
		return agent.OutcomeFailed, u.failure
	case f.Subtype == resultSuccess && !f.IsError:
		return agent.OutcomeCompleted, nil
	}
	return agent.OutcomeFailed, errorOf(f)
}

// endTurn reports a provider turn's terminal.
func (r *runtime) endTurn(u *turn, outcome agent.Outcome, why *agent.Error) {
	if !u.closed {
		r.carryTexts(u.id)
	}
	u.ended = true
	r.Apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why})
	r.confirm(u, outcome)
}

// endSilently ends a provider turn that has said nothing: what was retained stays.
func (r *runtime) endSilently(u *turn, why *agent.Error) {
	u.ended, u.reserved = true, false
	outcome := agent.OutcomeCompleted
	if why != nil || u.closed {
		outcome = agent.OutcomeInterrupted
	}
	r.Apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why, Silent: true})
}

// loseOpen ends a provider turn whose result never came.
func (r *runtime) loseOpen(method string) {
	u := r.open
	r.open = nil
	if !u.reported || u.dropped {
		u.ended = true
		r.confirm(u, agent.OutcomeInterrupted)
		return
	}
	r.Diagnose(provider.Unrouted, method, "a turn without a result")
	r.endUnlaunched(r.root, u)
	r.closeItems(u)
	if u.reserved {
		return // its wait ends it
	}
	r.endTurn(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "Claude did not tell how the turn ended"))
}
