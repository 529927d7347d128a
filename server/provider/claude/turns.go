package claude

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

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

// userText is a person's message on its way to the root agent.
type userText struct {
	uuid    string
	turn    agent.TurnID // the canonical turn it was said in
	message agent.MessageID
	acked   bool // the program has it
	read    bool // the agent has it
	lost    bool // the agent will never have it
	wait    *waiter
	stop    func() bool // of the wait for its acknowledgement
}

// over says whether the message's fate is told.
func (x *userText) over() bool { return x.read || x.lost }

// turnState is the part of the runtime that knows the root's provider turns.
type turnState struct {
	lastKey   int
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
	idling          bool // idle is being handled
	checked         bool // what the program can do was looked at
}

func newTurnState() turnState { return turnState{texts: map[string]*userText{}} }

const keyPrefix = "pt-"

// nextKey names a provider turn; the program has no name for one.
func (r *runtime) nextKey() agent.ProviderTurnID {
	r.lastKey++
	return agent.ProviderTurnID(fmt.Sprintf("%s%d", keyPrefix, r.lastKey))
}

// noteKey keeps keys unique across processes of one session.
func (r *runtime) noteKey(key agent.ProviderTurnID) {
	var n int
	if _, err := fmt.Sscanf(strings.TrimPrefix(string(key), keyPrefix), "%d", &n); err == nil {
		r.lastKey = max(r.lastKey, n)
	}
}

// messageSpace is the name space of the uuids that messages bear on the wire.
var messageSpace = uuid.MustParse("5f0f8e0f-6f4b-4c1e-9d0a-6a7d3a1c2b90")

// wireID is a message's uuid: the same each time, so that nothing has to be kept of it.
func wireID(id agent.MessageID) string {
	return uuid.NewSHA1(messageSpace, []byte(id)).String()
}

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
	u.key = cmp.Or(u.key, r.nextKey())
	started := agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key}
	if u.opens != nil {
		started.NativeID = u.opens.uuid
	}
	applied, ok := r.apply(started)
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped = true
		r.diagnose(provider.Refused, "turn", string(applied.Code))
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
	r.checkAbilities(f.Capabilities)
	if r.open != nil {
		r.loseOpen(f.name())
	}
	var by *userText
	for _, id := range f.UserMessageUUIDs {
		x := r.texts[id]
		if x != nil && !x.lost {
			r.deliver(x)
			by = cmp.Or(by, x)
		}
	}
	u := r.placeTurn(by)
	u.begun = true
	r.open = u
	switch {
	case u.dropped:
		u.ended = true
		r.diagnose(provider.Refused, f.name(), "")
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
		r.diagnose(provider.Refused, "capabilities", err.Message)
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
	if !r.ready {
		r.startError = strings.Join(append(f.Errors, f.Result), " ")
		return nil
	}
	for _, u := range r.announced {
		if slices.Contains(f.UserMessageUUIDs, u.opens.uuid) {
			r.announced = slices.DeleteFunc(r.announced, func(o *turn) bool { return o == u })
			return u
		}
	}
	r.diagnose(provider.Late, f.name(), "")
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
	r.carryTexts(u)
	u.ended = true
	r.apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why})
	r.confirm(u, outcome)
}

// endSilently ends a provider turn that has said nothing: what was retained stays.
func (r *runtime) endSilently(u *turn, why *agent.Error) {
	u.ended, u.reserved = true, false
	outcome := agent.OutcomeCompleted
	if why != nil || u.closed {
		outcome = agent.OutcomeInterrupted
	}
	r.apply(agent.ProviderTurnEnded{Session: r.root.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why, Silent: true})
}

// carryTexts opens a provider turn for a message that the program has not taken yet,
// before the turn it was written into ends: the root must not settle over it.
func (r *runtime) carryTexts(u *turn) {
	if u.closed {
		return
	}
	for _, id := range sortedKeys(r.texts) {
		x := r.texts[id]
		if !x.over() && x.turn == u.id && !slices.ContainsFunc(r.announced, func(o *turn) bool { return o.opens == x }) {
			r.announce(x)
		}
	}
}

// announce opens the provider turn of a message before it is written. False means that
// the root turn takes none any more.
func (r *runtime) announce(x *userText) (agent.Code, bool) {
	u := r.newTurn(x.turn)
	u.opens = x
	u.key = r.nextKey()
	applied, ok := r.apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key, NativeID: x.uuid})
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped, u.ended = true, true
		return cmp.Or(applied.Code, agent.CodeUnavailable), false
	}
	u.reported = true
	r.current = x.turn
	r.announced = append(r.announced, u)
	return "", true
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
	r.diagnose(provider.Unrouted, method, "a turn without a result")
	r.endUnlaunched(r.root, u)
	r.closeItems(u)
	if u.reserved {
		return // its wait ends it
	}
	r.endTurn(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "Claude did not tell how the turn ended"))
}

// messageFate handles what became of a person's message.
func (r *runtime) messageFate(f *lifecycleFrame) {
	x := r.texts[f.CommandUUID]
	if x == nil {
		return // of another host, or over long ago
	}
	r.acknowledge(x)
	switch f.State {
	case lifeStarted, lifeCompleted:
		r.deliver(x)
		if r.open != nil {
			r.foldInto(r.open, x)
		}
	case lifeCancelled:
		r.lose(x)
	}
	if f.State == lifeCompleted || f.State == lifeCancelled {
		delete(r.texts, x.uuid)
	}
}

// acknowledge lets whoever handed a message over go on.
func (r *runtime) acknowledge(x *userText) {
	if x.acked {
		return
	}
	x.acked = true
	if x.stop != nil {
		x.stop()
	}
	r.finish(x.wait, nil)
}

// deliver says that the agent has a message. It is said once.
func (r *runtime) deliver(x *userText) {
	r.acknowledge(x)
	if x.over() {
		return
	}
	x.read = true
	r.putText(x, agent.MessageCompleted)
}

// foldInto ends the provider turn that was opened for a message which another turn has
// taken.
func (r *runtime) foldInto(u *turn, x *userText) {
	at := slices.IndexFunc(r.announced, func(o *turn) bool { return o.opens == x })
	if at < 0 || r.announced[at] == u {
		return
	}
	opened := r.announced[at]
	r.announced = slices.Delete(r.announced, at, at+1)
	r.endSilently(opened, nil)
}

// lose says that a message never reached the agent, and ends the turn that was to begin
// with it.
func (r *runtime) lose(x *userText) {
	if x.over() {
		return
	}
	x.lost = true
	r.putText(x, agent.MessageUndelivered)
	at := slices.IndexFunc(r.announced, func(u *turn) bool { return u.opens == x })
	if at < 0 {
		return
	}
	u := r.announced[at]
	r.announced = slices.Delete(r.announced, at, at+1)
	r.endTurn(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The message was withdrawn before the agent had read it"))
}

// putText says what became of a person's message.
func (r *runtime) putText(x *userText, status agent.MessageStatus) {
	r.apply(agent.MessagePut{Message: agent.Message{
		ID: x.message, SessionID: r.root.session, TurnID: x.turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: status,
	}})
}

// letGo ends the waits of everybody who handed a message over, or waits for a process.
func (r *runtime) letGo(why *agent.Error) {
	for _, id := range sortedKeys(r.texts) {
		if x := r.texts[id]; !x.acked {
			x.acked = true
			r.finish(x.wait, why)
		}
	}
	for _, p := range r.processes {
		for _, w := range p.waits {
			r.finish(w, why)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
