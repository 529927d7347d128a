package codex

import (
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// edge is a spawn as the parent's item tells it.
type edge struct {
	parent     *thread
	parentTurn *turn
	call       agent.CallID
	child      string // thread id
	naming
}

// spawned registers the child that an edge names. The same edge again is harmless.
// It returns the child's session, "" if the child was refused.
func (r *runtime) spawned(e edge) agent.SessionID {
	t := r.byID[e.child]
	if t != nil && t.state != threadHeld {
		if t.owned() && t != r.root {
			r.learn(t, e.naming) // it may have been adopted under a lesser name
		}
		return t.session // known, or shut ("")
	}
	if t == nil {
		t = &thread{id: e.child, turns: map[string]*turn{}}
		r.byID[e.child] = t
		r.heldCount++
	}
	if r.closedBelow(e.parentTurn) {
		r.Diagnose(provider.Refused, "spawn", e.child)
		r.shut(t, "")
		return ""
	}
	title, rank := e.title()
	child := agent.ChildStarted{
		Session: r.Mint.Session(), Turn: r.Mint.Turn(),
		Parent: e.parent.session, ParentTurn: e.parentTurn.id, Call: e.call,
		Title: title, Prompt: e.prompt, AgentType: e.agentType(), Model: e.model,
		Handles: agent.Handles{ThreadID: e.child, AgentPath: e.path},
	}
	applied, ok := r.Apply(child)
	if !ok {
		return ""
	}
	if applied.Verdict == agent.VerdictRefused {
		r.shut(t, "") // it may not run where nothing can own it
		return ""
	}
	r.own(e.child, child.Session)
	t.pending, t.titled = &turn{id: child.Turn}, rank
	return child.Session
}

// closedBelow says whether nothing may start below a turn any more.
func (r *runtime) closedBelow(u *turn) bool {
	return u.closed || u.dropped || r.canceled[u.id]
}

// settleIn delivers what a new child had said already, and adopts its own children.
func (r *runtime) settleIn(id string) {
	t := r.byID[id]
	if t == nil || !t.owned() {
		return
	}
	r.release(t)
	for _, other := range r.strangers() {
		if other.read != nil && other.read.ParentThreadID == id {
			r.adoptAs(other)
		}
	}
}

// candidate notes that a held thread's turn names one of our provider root turns.
func (r *runtime) candidate(t *thread, begun *turnInfo) {
	owner, ours := r.owners[begun.RootTurnID]
	if !ours {
		return
	}
	t.rootTurn = begun.RootTurnID
	if r.canceled[owner] {
		r.Diagnose(provider.Refused, "turn/started", t.id)
		r.shut(t, begun.ID)
		return
	}
	if t.stopWait == nil {
		t.stopWait = r.Clock.AfterFunc(adoptBound, func() {
			r.Do(func() { r.adopt(t) })
		})
	}
}

// strangers are the held threads that are ours by their root turn, oldest id first:
// thread ids sort by time, and the order of adoption must not hang on a map.
func (r *runtime) strangers() []*thread {
	var out []*thread
	for _, t := range r.byID {
		if t.state == threadHeld && t.rootTurn != "" {
			out = append(out, t)
		}
	}
	sortThreads(out)
	return out
}

// adopt asks who the parent of a held thread is, once its edge has not come in time.
func (r *runtime) adopt(t *thread) {
	if t.state != threadHeld || t.adopting || t.rootTurn == "" || r.Closing() {
		return
	}
	t.adopting = true
	r.send(methodThreadRead, threadReadParams{ThreadID: t.id}, adoptBound, func(a wire.Answer) {
		if t.state != threadHeld {
			return
		}
		var res threadResult
		if a.Decode(&res) == nil {
			t.read = &res.Thread
		} else {
			t.read = &threadInfo{}
		}
		if t.read.ParentThreadID == "" {
			t.read.ParentThreadID = t.read.spawn().SubAgent.ThreadSpawn.ParentThreadID
		}
		r.adoptAs(t)
	})
}

// adoptAs registers a held thread below its parent. Without a word on the parent it is
// a child of the root all the same: its turn names the root's, and a child that runs
// must hold the root open.
func (r *runtime) adoptAs(t *thread) {
	parent := r.byID[t.read.ParentThreadID]
	if parent != nil && parent.state == threadHeld && parent.rootTurn != "" && parent != t {
		r.adopt(parent) // first; settleIn comes back to this one
		if parent.state == threadHeld {
			return
		}
	}
	if parent == nil || !parent.owned() {
		parent = r.root
	}
	under := r.parentTurn(parent, t.rootTurn)
	if under == nil {
		r.Diagnose(provider.Unrouted, "adopt", t.id)
		r.shut(t, "")
		r.resumeRoot()
		return
	}
	e := edge{parent: parent, parentTurn: under, child: t.id, naming: t.read.naming()}
	t.lookedUp = true
	if i := openSpawn(under, t.read.Preview); i != nil {
		e.call = i.call
	}
	session := r.spawned(e)
	if i := under.items[string(e.call)]; i != nil && session != "" {
		r.putItem(parent, under, i, agent.Message{ChildSessionID: session})
	}
	r.settleIn(t.id)
	r.resumeRoot()
}

// parentTurn is the turn of a parent under which a child with that root turn was born.
func (r *runtime) parentTurn(parent *thread, rootTurn string) *turn {
	if u := parent.turns[rootTurn]; u != nil {
		return u
	}
	if parent.active != nil {
		return parent.active
	}
	if parent.pending != nil {
		return parent.pending
	}
	if n := len(parent.order); n > 0 {
		return parent.order[n-1]
	}
	return nil
}

// openSpawn is the spawn call of a turn that never named its child, if exactly one can
// be meant: the one with the child's prompt.
func openSpawn(u *turn, prompt string) *item {
	var found *item
	for _, i := range u.items {
		if i.spawn && i.child == "" && i.input == prompt {
			if found != nil {
				return nil
			}
			found = i
		}
	}
	return found
}

// holdRootFor pauses the root thread before the terminal of one of its turns while a
// child of that turn waits for adoption: the child must be there before the terminal
// is applied, or the root could settle above it.
func (r *runtime) holdRootFor(native string) bool {
	waiting := false
	for _, t := range r.strangers() {
		if t.rootTurn == native {
			r.adopt(t)
			waiting = waiting || t.state == threadHeld
		}
	}
	return waiting
}

// resumeRoot goes on with the root thread's frames.
func (r *runtime) resumeRoot() { r.resume(r.root) }

// resume goes on with the frames of a paused thread. Whatever else still holds them up
// pauses it again.
func (r *runtime) resume(t *thread) {
	if t.paused && (t != r.root || t.pending == nil) {
		t.paused = false
		r.release(t)
	}
}

func (r *runtime) stopAdoption(t *thread) {
	if t.stopWait != nil {
		t.stopWait()
		t.stopWait = nil
	}
}

func (r *runtime) stopTimers() {
	for _, t := range r.byID {
		r.stopAdoption(t)
		if t.stopSummon != nil {
			t.stopSummon()
		}
	}
}

// pathName is the last element of an agent path: "/root/a/b" is "b".
func pathName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
