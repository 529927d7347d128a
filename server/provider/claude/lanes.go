package claude

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Bounds of what is kept of children that nobody has launched yet.
const (
	maxHeldOwners = 64
	maxHeldLines  = 1024 // of one child
)

// lane is one agent: the root, or a child.
type lane struct {
	session agent.SessionID
	parent  *lane                      // nil for the root
	call    string                     // of a child, the tool call that launched it
	by      *turn                      // of a child, the turn of its parent that made the call
	task    string                     // of a child, its task id; "" until it is known
	order   []*turn                    // the latest turns, as they began
	byRun   map[string]*turn           // of a child, by run id
	live    *turn                      // of a child, the turn that has not ended
	tools   map[string]json.RawMessage // arguments of the calls that have no result
	todos   todoList
	// background says that its launching call has returned and only the notice of its task
	// ends it. A call may begin in the foreground and be moved.
	background bool
	listed     bool // the level has named it
	shut       bool // stopped or deleted: nothing of it is shown
	rested     bool // it was at rest at the last idle
	compacted  bool // the next line that the program writes itself is the summary for its model
	naming     naming
	model      string
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
	u.lane, l.rested = l, false
	l.order = append(l.order, u)
	if len(l.order) > 4 { // late lines name recent turns; older ones keep no items
		l.order[0].forget()
		l.order = l.order[1:]
	}
}

// rest drops what is kept for lines of turns that have ended, once the lane has been at rest
// for as long as the program worked in between: nothing more is on its way. A long session
// has many children.
func (l *lane) rest() {
	if !l.rested || l.live != nil {
		l.rested = l.live == nil
		return
	}
	for _, u := range l.order {
		if u.ended {
			u.forget()
		}
	}
}

// forget drops what grows with a turn's work.
func (u *turn) forget() { u.items, u.said, u.spent.messages, u.spent.counted = nil, nil, nil, 0 }

// find is a turn of the lane by its canonical id.
func (l *lane) find(id agent.TurnID) *turn {
	for _, u := range l.order {
		if u.id == id {
			return u
		}
	}
	return nil
}

// lanes is the part of the runtime that knows whose a line is.
type lanes struct {
	root      *lane
	byTask    map[string]*lane
	byCall    map[string]*lane
	bySession map[agent.SessionID]*lane
	children  []*lane         // in the order of their launch
	onLevel   map[string]bool // tasks that the last level has listed
	// early are lines whose owner is not known, by its launching call, or its task id.
	early map[string][]frame
}

func newLanes(root agent.SessionID) lanes {
	l := &lane{session: root}
	return lanes{
		root: l, byTask: map[string]*lane{}, byCall: map[string]*lane{},
		bySession: map[agent.SessionID]*lane{root: l}, early: map[string][]frame{}, onLevel: map[string]bool{},
	}
}

// ownerOf is whose line it is, nil if nobody has launched that child yet. The task id is
// looked up first: a child keeps it in all its runs. It never falls back to the root.
func (r *runtime) ownerOf(h *header) *lane {
	if !h.isChild() {
		return r.root
	}
	if l := r.byTask[h.AgentID]; l != nil && h.AgentID != "" {
		return l
	}
	l := r.byCall[h.ParentToolUseID]
	if l == nil || h.AgentID == "" || l.task == h.AgentID {
		return l
	}
	if l.task != "" {
		return nil // another agent's: two children are never taken for one
	}
	r.bind(l, h.AgentID)
	return l
}

// bind notes the task id of a child, under which it is known from now on.
func (r *runtime) bind(l *lane, task string) {
	if l.task != "" || task == "" {
		return
	}
	l.task = task
	r.byTask[task] = l
	if !l.shut {
		r.Apply(agent.SessionDescribed{Session: l.session, Handles: agent.Handles{TaskID: task, AgentID: task, ParentToolUseID: l.call}})
	}
}

// enter registers a child.
func (r *runtime) enter(l *lane) {
	l.byRun = map[string]*turn{}
	r.children = append(r.children, l)
	if l.session != "" {
		r.bySession[l.session] = l
	}
	if l.call != "" {
		r.byCall[l.call] = l
	}
	if l.task != "" {
		r.byTask[l.task] = l
	}
}

// liveChildren counts the children that have not ended, but for one turn. One that a cancel
// has given up is none: its turn has ended without it.
func (r *runtime) liveChildren(but *turn) int {
	n := 0
	for _, l := range r.children {
		if l.live != nil && l.live != but && !l.live.dropped && !l.live.unsure {
			n++
		}
	}
	return n
}

// hold keeps a line for a child that nobody has launched yet.
func (r *runtime) hold(key string, f frame) {
	h := f.head()
	if key == "" {
		r.Diagnose(provider.Unrouted, h.name(), "")
		return
	}
	lines, known := r.early[key]
	if !known && len(r.early) >= maxHeldOwners || len(lines) >= maxHeldLines {
		r.Diagnose(provider.Unrouted, h.name(), key)
		return
	}
	r.Diagnose(provider.Held, h.name(), key)
	r.early[key] = append(lines, f)
}

// unhold gives up held lines, and says whether there were any.
func (r *runtime) unhold(key string, these func(frame) bool) bool {
	lines := r.early[key]
	left := slices.DeleteFunc(lines, these)
	if r.early[key] = left; len(left) == 0 {
		delete(r.early, key)
	}
	return len(left) < len(lines)
}

// release handles what was held for a child, in order.
func (r *runtime) release(l *lane) {
	for _, key := range []string{l.call, l.task} {
		lines := r.early[key]
		delete(r.early, key)
		if key == "" {
			continue
		}
		for _, f := range lines {
			r.route(f)
		}
	}
}

// dropHeld gives up the lines of children that nobody has launched: nothing lives, so
// nobody will.
func (r *runtime) dropHeld() {
	for _, key := range slices.Sorted(maps.Keys(r.early)) {
		for _, f := range r.early[key] {
			r.Diagnose(provider.Unrouted, f.head().name(), key)
			if q, ok := f.(*requestFrame); ok {
				r.refuse(q, "no agent of this session asks")
			}
		}
	}
	clear(r.early)
}
