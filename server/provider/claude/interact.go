package claude

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// prompt is one open request of the program with whose question it is. Its id on the wire
// lives here and in the interaction's correlation, and names nothing else.
type prompt struct {
	*inquiry
	request agent.RequestID
	lane    *lane
	turn    *turn
	gone    bool // nobody may answer it any more
}

// ask turns a request of the program into an interaction of exactly the agent that it
// names. A form of an MCP server names none: it becomes the root's, marked as of an unknown
// owner (decisions.md 19).
func (r *runtime) ask(f *requestFrame) {
	if r.asked[f.RequestID] != nil {
		r.Diagnose(provider.Ignored, f.subtype(), "asked before")
		return
	}
	q, err := inquire(f, r.o.SettingSources)
	if err != nil {
		r.Diagnose(provider.Malformed, f.subtype(), f.RequestID)
		r.refuse(f, "the request cannot be read")
		return
	}
	l := r.root
	if q.agentID != "" {
		l = r.byTask[q.agentID]
	}
	if l == nil {
		r.hold(q.agentID, f)
		r.Clock.AfterFunc(ownerBound, func() { r.Do(func() { r.refuseStranger(q.agentID, f) }) })
		return
	}
	u := r.workOf(l)
	if u == nil || u.ended && !q.unowned || u.dropped || u.closed || l.shut {
		r.Diagnose(provider.Refused, f.subtype(), q.agentID)
		r.refuse(f, "this agent is being stopped")
		return
	}
	p := &prompt{inquiry: q, request: r.Mint.Request(), lane: l, turn: u}
	i := q.interaction
	i.SessionID, i.TurnID, i.RequestID, i.ProviderTurnID, i.Owner = l.session, u.id, p.request, f.RequestID, agent.OwnerExact
	if q.unowned {
		i.Owner = agent.OwnerUnknown
	}
	applied, ok := r.Apply(agent.InteractionAsked{Interaction: i})
	if !ok || applied.Verdict == agent.VerdictRefused || applied.Verdict == agent.VerdictLate {
		r.refuse(f, "this turn is being stopped")
		return
	}
	r.asked[f.RequestID] = p
}

// refuseStranger refuses a request that was held, if nobody has launched its agent yet: the
// program would wait for ever, and it never becomes the root's (decisions.md 25).
func (r *runtime) refuseStranger(agentID string, f *requestFrame) {
	if r.gone() != nil || !r.unhold(agentID, func(o frame) bool { return o == frame(f) }) {
		return
	}
	r.Diagnose(provider.Refused, f.subtype(), agentID)
	r.refuse(f, "no agent of this session asks")
}

// refuse answers a request with an error: nobody can be asked (decisions.md 25). To the
// model it is a tool that failed.
func (r *runtime) refuse(f *requestFrame, why string) { r.refuseID(f.RequestID, why) }

func (r *runtime) refuseID(id, why string) {
	r.Later(func() { r.Unwritten(r.conn.refuse(id, why)) })
}

// withdrawn handles the program's word that a request is not to be answered any more.
func (r *runtime) withdrawn(f *withdrawFrame) {
	for key := range r.early { // its agent may not be known yet
		r.unhold(key, func(o frame) bool {
			q, ok := o.(*requestFrame)
			return ok && q.RequestID == f.RequestID
		})
	}
	r.endAsk(f.RequestID, agent.AskResolved)
}

func (r *runtime) endAsk(id string, step agent.InteractionStep) {
	p := r.asked[id]
	if p == nil {
		return
	}
	delete(r.asked, id)
	r.Apply(agent.InteractionEnded{Session: p.lane.session, Turn: p.turn.id, Request: p.request, Step: step})
}

// resolveCall ends the questions about a tool call that has its result: whatever was
// answered, nothing waits for it any more.
func (r *runtime) resolveCall(l *lane, call string) {
	for _, id := range slices.Sorted(maps.Keys(r.asked)) {
		if p := r.asked[id]; p.lane == l && string(p.call) == call && call != "" {
			r.endAsk(id, agent.AskResolved)
		}
	}
}

// withdrawAsked makes questions unanswerable. Storage has withdrawn them with their turn;
// they are kept while a stop is under way, so that the program's word finds them.
func (r *runtime) withdrawAsked(these func(*prompt) bool) {
	for id, p := range r.asked {
		switch {
		case !these(p):
		case p.turn.ended:
			delete(r.asked, id)
		default:
			p.gone = true
		}
	}
}

// over says whether the work that a question belongs to is over. A form that names no agent
// may be a child's, and outlives the root's own provider turn.
func (r *runtime) over(p *prompt) bool {
	if p.unowned {
		return r.boundary
	}
	return p.turn.closed || p.turn.ended
}

// Answer implements provider.Runtime.
func (r *runtime) Answer(_ context.Context, a provider.Answer) error {
	var p *prompt
	var payload any
	var err error
	r.Do(func() {
		for _, o := range r.asked {
			if o.request == a.Interaction.RequestID {
				p = o
			}
		}
		gone := r.gone()
		switch {
		case gone != nil:
			err = gone
		case p == nil || p.gone || r.over(p):
			err = agent.Errorf(agent.CodeInteractionGone, "the question is no longer open at Claude")
		default:
			payload, err = p.reply(a.Response)
			p.gone = err == nil // one answer, whatever becomes of it on its way
		}
	})
	if err != nil {
		return err
	}
	err = r.conn.reply(p.id, payload)
	switch {
	case err == nil:
		r.Do(func() {
			if p.unowned { // no result of a call will end it
				delete(r.asked, p.id)
			}
		})
		return nil
	case errors.Is(err, errNotOpen):
		return agent.Errorf(agent.CodeInteractionGone, "the question is no longer open at Claude")
	}
	r.Unwritten(err)
	reason := callError("take the answer", err)
	if errors.Is(err, wire.ErrMessageTooLong) { // nothing was written: another answer may do
		r.Do(func() { p.gone = r.over(p) })
	}
	return reason
}
