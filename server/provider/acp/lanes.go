package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Bounds of what is kept for sessions that nobody has announced yet.
const (
	maxHeldOwners = 64
	maxHeldLines  = 512
)

// arrivalPause is how long a new child is kept back for the message that names the tool
// call which made it: agents that have one send it right behind the announcement.
const arrivalPause = 250 * time.Millisecond

// lane is one session of the agent: the root, or a child.
type lane struct {
	id      string // the agent's name for it
	parent  *lane  // nil for the root
	session agent.SessionID

	title, about  string // as announced
	prompt, call  string // of its first assignment, where a message told
	model         string
	known         bool // storage has it
	arriving      bool // its first turn has begun, and is not told yet
	shut          bool // stopped or deleted: nothing of it is shown
	granted       bool // the agent lets it be stopped alone, in this epoch
	told          bool // storage says that it can be stopped alone
	own, mirrored level
	unsure        bool // the agent has said that it does not know its state
	runs          int  // how many turns its states have opened

	live      *turn   // of a child, the turn that has not ended
	order     []*turn // the latest turns, as they began
	launch    *item   // of a child, the entry of its parent that made its latest turn
	launchIn  *turn
	terminals map[string]*output
}

func (l *lane) isRoot() bool { return l.parent == nil }

// last is the turn that began last, nil if none has.
func (l *lane) last() *turn {
	if len(l.order) == 0 {
		return nil
	}
	return l.order[len(l.order)-1]
}

// add notes a turn of the lane.
func (l *lane) add(u *turn) {
	u.lane = l
	l.order = append(l.order, u)
	if len(l.order) > 4 { // late lines name recent turns; older ones keep no items
		l.order[0].items = nil
		l.order = l.order[1:]
	}
}

// find is a turn of the lane by its canonical id.
func (l *lane) find(id agent.TurnID) *turn {
	for _, u := range l.order {
		if u.id == id {
			return u
		}
	}
	return nil
}

// below reports whether l is o or hangs below it.
func (l *lane) below(o *lane) bool {
	for ; l != nil; l = l.parent {
		if l == o {
			return true
		}
	}
	return false
}

// held is a line whose session nobody has announced: an update or a request.
type held struct {
	update  *acp.SessionNotification
	request *wire.Frame
}

// lanes is the part of the runtime that knows whose a line is.
type lanes struct {
	root       *lane
	byID       map[string]*lane
	bySession  map[agent.SessionID]*lane
	children   []*lane // in the order of their announcement
	early      map[string][]held
	arrivals   []*lane
	stopArrive func() bool
}

func newLanes(root agent.SessionID) lanes {
	l := &lane{session: root, known: true}
	return lanes{root: l, byID: map[string]*lane{}, bySession: map[agent.SessionID]*lane{root: l}, early: map[string][]held{}}
}

// enter registers a child.
func (r *runtime) enter(l *lane) {
	r.children = append(r.children, l)
	r.byID[l.id] = l
	if l.session != "" {
		r.bySession[l.session] = l
	}
}

// rootIs notes the agent's name for the root, and handles what came before it was known.
func (r *runtime) rootIs(id string) {
	r.root.id = id
	r.byID[id] = r.root
	r.release(id)
}

// liveChildren counts the children that have not ended.
func (r *runtime) liveChildren() int {
	n := 0
	for _, l := range r.children {
		if l.live != nil && !l.live.dropped || l.arriving {
			n++
		}
	}
	return n
}

// hold keeps a line for a session that nobody has announced yet. False means that there is
// no room.
func (r *runtime) hold(id, method string, h held) bool {
	lines, known := r.early[id]
	if id == "" || !known && len(r.early) >= maxHeldOwners || len(lines) >= maxHeldLines {
		r.Diagnose(provider.Unrouted, method, id)
		return false
	}
	r.Diagnose(provider.Held, method, id)
	r.early[id] = append(lines, h)
	return true
}

// release handles what was held for a session, in order.
func (r *runtime) release(id string) {
	lines := r.early[id]
	delete(r.early, id)
	for _, h := range lines {
		if h.request != nil {
			r.flushArrivals()
			r.request(*h.request)
		} else {
			if !announces(h.update.Update) {
				r.flushArrivals()
			}
			r.update(h.update)
		}
	}
}

// dropHeld gives up the lines of sessions that nobody has announced: nothing lives, so
// nobody will. Who asked there is told so (decisions.md 25).
func (r *runtime) dropHeld() {
	for _, id := range slices.Sorted(maps.Keys(r.early)) {
		for _, h := range r.early[id] {
			if h.request == nil {
				r.Diagnose(provider.Unrouted, string(h.update.Update.Kind), id)
				continue
			}
			r.Diagnose(provider.Refused, h.request.Method, id)
			r.decline(*h.request)
		}
	}
	clear(r.early)
}

// update routes one update to the session that it is about.
func (r *runtime) update(n *acp.SessionNotification) {
	l := r.byID[n.SessionID]
	if l == nil {
		r.hold(n.SessionID, string(n.Update.Kind), held{update: n})
		return
	}
	if u, ok := n.Update.Variant.(*acp.SubagentUpdate); ok {
		r.announced(l, u)
		return
	}
	if r.loading() { // history; what is true now is told again after the answer
		r.historical(l, n)
		return
	}
	switch v := n.Update.Variant.(type) {
	case *acp.StateUpdate:
		if l.isRoot() {
			r.rootState(v)
		} else {
			r.childState(l, &l.own, v)
		}
	case *acp.SessionMessage:
		r.passed(l, v)
	default:
		r.shown(l, n)
	}
}

// announces says that an update can stand between the announcement of a child and the
// message that names its tool call.
func announces(u acp.Update) bool { return slices.Contains(announcing, u.Kind) }

var announcing = []acp.UpdateKind{
	acp.UpdateSubagent, acp.UpdateState, acp.UpdateMessage, acp.UpdateConfig, acp.UpdateUsage, acp.UpdateSessionInfo, acp.UpdateCommands,
}

// historical takes from a replayed line what is true of the session for good.
func (r *runtime) historical(l *lane, n *acp.SessionNotification) {
	switch v := n.Update.Variant.(type) {
	case *acp.SessionMessage:
		if child := r.byID[v.RecipientSessionID]; child != nil && !child.isRoot() && l == child.parent && !child.known {
			child.call, child.prompt = v.MessageID, textOf(v.Content)
		}
	case *acp.ConfigUpdate:
		r.optionsAre(l, v.ConfigOptions)
	case *acp.StateUpdate: // a turn of version 2 may end while the session is loaded
		if l.isRoot() && (r.rootSaid == nil || v.StopReason != "" || v.State != r.rootSaid.State) {
			r.rootSaid = v
		}
	}
}

func textOf(c acp.Opt[[]acp.ContentBlock]) string { return acp.Words(c.Or(nil)) }

// decode reads JSON that an agent has sent; absent is an error.
func decode(raw json.RawMessage, v any) error {
	return json.Unmarshal(raw, v)
}
