package claude

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// userText is a person's message on its way to the root agent.
type userText struct {
	uuid    string
	turn    agent.TurnID // the canonical turn it was said in
	message agent.MessageID
	acked   bool // the program has it
	read    bool // the agent has it
	lost    bool // the agent will never have it
	wait    *serial.Waiter
	stop    func() bool // of the wait for its acknowledgement
}

// over says whether the message's fate is told.
func (x *userText) over() bool { return x.read || x.lost }

// messageSpace is the name space of the uuids that messages bear on the wire.
var messageSpace = uuid.MustParse("5f0f8e0f-6f4b-4c1e-9d0a-6a7d3a1c2b90")

// wireID is a message's uuid: the same each time, so that nothing has to be kept of it.
func wireID(id agent.MessageID) string {
	return uuid.NewSHA1(messageSpace, []byte(id)).String()
}

// announce opens the provider turn of a message before it is written. False means that
// the root turn takes none any more.
func (r *runtime) announce(x *userText) (agent.Code, bool) {
	u := r.newTurn(x.turn)
	u.opens = x
	u.key = r.keys.Next()
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Turn: u.id, Key: u.key, NativeID: x.uuid})
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped, u.ended = true, true
		return cmp.Or(applied.Code, agent.CodeUnavailable), false
	}
	u.reported = true
	r.current = x.turn
	r.announced = append(r.announced, u)
	return "", true
}

// carryTexts opens a provider turn for a message that the program has not taken yet,
// before the turn it was written into ends: the root must not settle over it.
func (r *runtime) carryTexts(root agent.TurnID) {
	if r.boundary {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.texts)) {
		x := r.texts[id]
		if !x.over() && x.turn == root && !slices.ContainsFunc(r.announced, func(o *turn) bool { return o.opens == x }) {
			r.announce(x)
		}
	}
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
	r.Finish(x.wait, nil)
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
	r.Apply(agent.MessagePut{Message: agent.Message{
		ID: x.message, SessionID: r.root.session, TurnID: x.turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: status,
	}})
}

// letGo ends the waits of everybody who handed a message over, or waits for a process.
func (r *runtime) letGo(why *agent.Error) {
	for _, id := range slices.Sorted(maps.Keys(r.texts)) {
		if x := r.texts[id]; !x.acked {
			x.acked = true
			r.Finish(x.wait, why)
		}
	}
	for _, p := range r.processes {
		for _, w := range p.waits {
			r.Finish(w, why)
		}
	}
}

// unread gives up a message that was queued, if the program is idle all the same. It is
// taken back first: what is said to be lost must not be read later.
func (r *runtime) unread(x *userText) {
	if x.over() || r.state != stateIdle || r.gone() != nil {
		return // it is under way, or the next idle asks again
	}
	r.send(withdrawRequest{Subtype: reqWithdraw, MessageUUID: x.uuid}, requestBound, func(answer) {
		if !x.over() && r.state == stateIdle {
			r.Diagnose(provider.Unrouted, "idle", "a message was never read")
			r.lose(x)
			delete(r.texts, x.uuid)
		}
	})
}

// endTexts forgets the messages whose fate is told. One that was queued and not read may
// have crossed this idle on the wire; it has some time.
func (r *runtime) endTexts() {
	for _, id := range slices.Sorted(maps.Keys(r.texts)) {
		x := r.texts[id]
		switch {
		case !x.acked:
		case x.over():
			delete(r.texts, id)
		case r.boundary: // should it still be read, it is nobody's
			r.Diagnose(provider.Unrouted, "idle", "a message was never read")
			r.lose(x)
			delete(r.texts, id)
		default:
			x.stop()
			x.stop = r.Clock.AfterFunc(messageBound, func() { r.Do(func() { r.unread(x) }) })
		}
	}
	for _, u := range slices.Clone(r.announced) {
		if u.opens.over() { // taken into a turn that has ended
			r.foldInto(nil, u.opens)
		}
	}
}
