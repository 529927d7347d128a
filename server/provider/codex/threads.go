package codex

import (
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Bounds of what is kept of threads that nobody has claimed yet.
const (
	maxHeldThreads = 64
	maxHeldFrames  = 1024 // of one thread; lifecycle frames may exceed it twofold
)

type threadState uint8

const (
	threadHeld  threadState = iota // unknown: frames are kept until it is claimed
	threadOwned                    // registered: it has a session
	threadShut                     // interrupted or deleted: nothing of it is shown
)

// thread is one app-server thread and the session it is.
type thread struct {
	id      string
	state   threadState
	session agent.SessionID
	turns   map[string]*turn // by native id
	order   []*turn          // as they became known
	pending *turn            // announced, but its native id is not known
	active  *turn            // begun and not ended
	total   agent.Usage      // of the whole thread, as last reported

	held    []frame
	paused  bool // owned, but its frames wait for something else
	dropped int  // frames that did not fit

	titled   titleRank // of a child: what its title is made of
	lookedUp bool      // of a child: thread/read was asked for its names

	shells     map[agent.ProcessID]running // that outlive their turns
	summoned   *turn                       // the turn that asked this idle child to work again
	summonedOn *thread
	stopSummon func() bool

	rootTurn string // held: the provider root turn that its turn names
	adopting bool
	read     *threadInfo // held: what thread/read said
	stopWait func() bool
}

func (t *thread) owned() bool { return t.state == threadOwned }

// add records a turn under its native id.
func (t *thread) add(native string, u *turn) {
	u.native = native
	t.turns[native] = u
	t.order = append(t.order, u)
	if len(t.order) > 4 { // late items name recent turns; older ones keep no items
		t.order[0].items = nil
		t.order = t.order[1:]
	}
}

// threads is the part of the runtime that knows whose a thread is.
type threads struct {
	root      *thread
	byID      map[string]*thread
	bySession map[agent.SessionID]*thread
	// owners maps every provider root turn of this root, of earlier processes too, to
	// its canonical root turn: a child's turn.rootTurnId is one of the keys.
	owners map[string]agent.TurnID
	// canceled are the root turns that were canceled in this process: whatever turns
	// up below them is interrupted and creates nothing (decisions.md 12).
	canceled  map[agent.TurnID]bool
	heldCount int
}

func newThreads() threads {
	return threads{
		byID: map[string]*thread{}, bySession: map[agent.SessionID]*thread{},
		owners: map[string]agent.TurnID{}, canceled: map[agent.TurnID]bool{},
	}
}

// own registers a thread as a session's.
func (r *runtime) own(id string, session agent.SessionID) *thread {
	t := r.byID[id]
	if t == nil {
		t = &thread{id: id, turns: map[string]*turn{}}
		r.byID[id] = t
	} else if t.state == threadHeld {
		r.heldCount--
	}
	t.state, t.session = threadOwned, session
	r.bySession[session] = t
	r.stopAdoption(t)
	return t
}

// remember binds what storage knows of the tree, so that a child of an earlier process
// is found again when its thread speaks.
func (r *runtime) remember(m agent.Remembered) {
	for _, p := range m.ProviderTurns {
		r.keys.Note(p.Key)
		if p.NativeID != "" {
			r.owners[p.NativeID] = p.Turn
			r.root.add(p.NativeID, &turn{id: p.Turn, key: p.Key, begun: true, ended: true})
		}
	}
	for _, c := range m.Children {
		if c.Handles.ThreadID == "" {
			continue
		}
		t := r.own(c.Handles.ThreadID, c.ID)
		t.titled, t.lookedUp = rememberedRank(c), c.AgentType != ""
		if last := c.LatestTurn; last != nil && last.NativeID != "" {
			t.add(last.NativeID, &turn{id: last.ID, begun: true, ended: true})
		}
	}
	last := m.Root.LatestTurn
	r.boundary = last != nil && last.Outcome == agent.OutcomeCanceled
}

// frame is one notification or request with what routes it.
type frame struct {
	method string
	id     wire.RawID // of a request
	params json.RawMessage
	header
}

// handle is the reading goroutine's entry: one frame, start to end.
func (r *runtime) handle(w wire.Frame) {
	r.Do(func() {
		if r.Over() {
			return
		}
		f := frame{method: w.Method, id: w.ID, params: w.Params}
		if len(w.Params) > 0 {
			if err := json.Unmarshal(w.Params, &f.header); err != nil {
				r.Diagnose(provider.Malformed, f.method, "parameters cannot be read")
				r.refuse(f, wire.CodeInvalidParams, "parameters cannot be read")
				return
			}
		}
		r.route(f)
	})
}

// route finds the owner of a frame. It never falls back to the root.
func (r *runtime) route(f frame) {
	if f.method == noteLimits && f.id == "" {
		r.rateLimits(f)
		return
	}
	if f.id == "" && !ofInterest[f.method] {
		r.Diagnose(provider.Ignored, f.method, "")
		return
	}
	if f.ThreadID == "" {
		if f.id == "" {
			r.Diagnose(provider.Unrouted, f.method, "no thread is named")
			return
		}
		r.refuseUnowned(f)
		return
	}
	t := r.byID[f.ThreadID]
	switch {
	case t == nil:
		r.meetStranger(f)
	case t.state == threadShut:
		r.afterShut(t, f)
	case t.state == threadHeld, t.paused:
		r.hold(t, f)
	default:
		r.deliver(t, f)
	}
}

// ofInterest are the notifications that can become facts; all others are counted.
var ofInterest = map[string]bool{
	"turn/started":                      true,
	"turn/completed":                    true,
	"item/started":                      true,
	"item/completed":                    true,
	"item/agentMessage/delta":           true,
	"item/plan/delta":                   true,
	"item/reasoning/summaryTextDelta":   true,
	"item/commandExecution/outputDelta": true,
	"thread/tokenUsage/updated":         true,
	notePlan:                            true,
	noteDiff:                            true,
	"serverRequest/resolved":            true,
	"error":                             true,
}

// deliver handles a frame of an owned thread.
func (r *runtime) deliver(t *thread, f frame) {
	if f.id != "" {
		r.ask(t, f)
		return
	}
	switch f.method {
	case "turn/started":
		r.turnStarted(t, f)
	case "turn/completed":
		r.turnCompleted(t, f)
	case "serverRequest/resolved":
		r.resolved(t, f)
	case "thread/tokenUsage/updated":
		r.tokenUsage(t, f)
	default:
		r.itemFrame(t, f)
	}
}

// meetStranger keeps the first frame of a thread that nobody has claimed.
func (r *runtime) meetStranger(f frame) {
	if r.heldCount >= maxHeldThreads {
		r.Diagnose(provider.Unrouted, f.method, f.ThreadID)
		r.refuse(f, wire.CodeInvalidRequest, "unknown thread")
		return
	}
	t := &thread{id: f.ThreadID, turns: map[string]*turn{}}
	r.byID[f.ThreadID] = t
	r.heldCount++
	r.hold(t, f)
}

// hold keeps a frame until its thread is claimed or goes on.
func (r *runtime) hold(t *thread, f frame) {
	if t.state == threadHeld {
		if f.method == "turn/started" && f.Turn != nil {
			r.candidate(t, f.Turn)
			if t.state == threadShut {
				return
			}
		}
		if f.id != "" && t.rootTurn == "" {
			r.refuseUnowned(f) // nothing ties this thread to us
			return
		}
		if f.method == "turn/completed" && t.rootTurn != "" {
			defer r.adopt(t) // its whole turn has passed; no edge will come first
		}
	}
	r.Diagnose(provider.Held, f.method, f.ThreadID)
	limit := maxHeldFrames
	if f.id != "" || f.Turn != nil || f.method == "item/started" || f.method == "item/completed" {
		limit *= 2
	}
	if len(t.held) >= limit {
		t.dropped++
		r.Diagnose(provider.Unrouted, f.method, f.ThreadID)
		r.refuse(f, wire.CodeInvalidRequest, "too much is waiting for this thread's owner")
		return
	}
	t.held = append(t.held, f)
}

// release delivers what was held, in order. A frame may pause the thread again.
func (r *runtime) release(t *thread) {
	for len(t.held) > 0 && !t.paused && t.owned() {
		f := t.held[0]
		t.held = t.held[1:]
		r.deliver(t, f)
	}
	if len(t.held) == 0 {
		t.held = nil
	}
}

// shut closes a thread: it is interrupted, now and whenever it starts again, and
// nothing of it is shown. native is the turn that runs, "" if it is not known.
func (r *runtime) shut(t *thread, native string) {
	if t.state == threadHeld {
		r.heldCount--
	}
	idle := t.state == threadOwned && t.active == nil && t.pending == nil
	t.state = threadShut
	r.stopAdoption(t)
	if idle {
		return
	}
	over := false
	for _, f := range t.held { // its turn may have begun and even ended already
		if f.Turn != nil {
			native, over = f.Turn.ID, f.method == "turn/completed"
		}
		r.Diagnose(provider.Refused, f.method, f.ThreadID)
		r.refuse(f, wire.CodeInvalidRequest, "this agent was stopped")
	}
	t.held = nil
	if t.active != nil {
		native = t.active.native
	}
	if !over {
		r.stopOrphan(t.id, native)
	}
}

// afterShut drops a frame of a shut thread; a turn that starts is interrupted.
func (r *runtime) afterShut(t *thread, f frame) {
	r.Diagnose(provider.Refused, f.method, f.ThreadID)
	r.refuse(f, wire.CodeInvalidRequest, "this agent was stopped")
	if f.method == "turn/started" && f.Turn != nil {
		r.stopOrphan(t.id, f.Turn.ID)
	}
}

// refuse answers a request with an error; a notification needs no answer.
func (r *runtime) refuse(f frame, code int, why string) {
	if f.id == "" {
		return
	}
	r.Later(func() { r.Unwritten(r.peer.ReplyError(f.id, code, why)) })
}

// refuseUnowned refuses a request that nobody can be asked for (decisions.md 25).
func (r *runtime) refuseUnowned(f frame) {
	r.Diagnose(provider.Refused, f.method, f.ThreadID)
	r.refuse(f, wire.CodeInvalidRequest, "unknown thread")
}
