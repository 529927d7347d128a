package acp

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// level is what one source tells of a child's state. In version 2 there are two, the
// child's own stream and its parent's, and either may lag: each counts the times that work
// began, so that an echo of what is over begins nothing.
type level struct {
	live  bool
	begun int
}

// announced handles what a stream says of a child of its session. The first word is the
// announcement; every other is a patch.
func (r *runtime) announced(parent *lane, u *acp.SubagentUpdate) {
	l := r.byID[u.SessionID]
	switch {
	case u.SessionID == "", l != nil && parent.below(l): // itself, or an ancestor
		r.Diagnose(provider.Malformed, string(acp.UpdateSubagent), "a session below itself: "+u.SessionID)
		return
	case l != nil && l.parent != parent:
		r.Diagnose(provider.Refused, string(acp.UpdateSubagent), "another parent for "+u.SessionID)
		return
	}
	fresh := l == nil
	if fresh {
		l = &lane{id: u.SessionID, parent: parent}
		r.enter(l)
	}
	r.describe(l, u)
	if !r.loading() {
		if c := u.Capabilities; c.Said() {
			was := l.granted
			l.granted = c.Or(acp.SubagentCapabilities{}).MayCancel()
			if l.shut && !was {
				r.stopLoose(l) // it could not be, before
			}
		}
		if st, ok := u.State.Get(); ok {
			r.childState(l, &l.mirrored, &st)
		}
		r.tellGrant(l)
	}
	if fresh {
		r.release(l.id)
	}
}

// describe takes over what a patch says of a child's names.
func (r *runtime) describe(l *lane, u *acp.SubagentUpdate) {
	title, about := l.title, l.about
	if u.Title.Said() {
		title = u.Title.Or("")
	}
	if u.Description.Said() {
		about = u.Description.Or("")
	}
	if title == l.title && about == l.about {
		return
	}
	l.title, l.about = title, about
	if l.known && !l.shut && !r.loading() {
		r.Apply(agent.SessionDescribed{Session: l.session, Title: l.title, AgentType: l.agentType()})
	}
}

// agentType is the description where that is one word: the type of agent, for those that
// have types.
func (l *lane) agentType() string {
	if strings.ContainsAny(l.about, " \n\t") || len(l.about) > 64 {
		return ""
	}
	return l.about
}

// childState takes a state of a child from one of its sources. States are levels: only a
// change of a source counts, and only if the other has not told it before. What is neither
// live nor idle is no end.
func (r *runtime) childState(l *lane, from *level, st *acp.StateUpdate) {
	l.unsure = !st.State.Live() && st.State != acp.StateIdle
	switch {
	case st.State.Live():
		if from.live {
			return
		}
		from.live = true
		from.begun++
		if from.begun > l.runs {
			l.runs = from.begun
			r.beginChild(l)
		}
	case st.State == acp.StateIdle:
		if !from.live {
			from.begun = max(from.begun, l.runs) // it has not told the beginning
		}
		from.live = false
		if from.begun == l.runs {
			r.endChild(l, st)
		}
	default:
		r.Diagnose(provider.Ignored, "state", string(st.State)+" "+l.id)
	}
	r.tellGrant(l)
}

// beginChild opens a turn of a child: the first one of a new child after a short pause, so
// that the tool call which made it can be told with it.
func (r *runtime) beginChild(l *lane) {
	switch {
	case l.shut:
		r.stopLoose(l)
		return
	case l.known:
		r.beginTurn(l)
		return
	case l.arriving:
		return
	}
	l.arriving = true
	r.arrivals = append(r.arrivals, l)
	if len(r.arrivals) == 1 {
		r.stopArrive = r.after(arrivalPause, r.flushArrivals)
	}
	if l.call != "" { // it was told before, in the history
		r.flushArrivals()
	}
}

// flushArrivals tells of every child that was kept back.
func (r *runtime) flushArrivals() {
	if len(r.arrivals) == 0 {
		return
	}
	r.stopArrive()
	arrivals := r.arrivals
	r.arrivals = nil
	for _, l := range arrivals {
		l.arriving = false
		r.bear(l)
		r.tellGrant(l)
	}
}

// bear creates the session of a child with its first turn.
func (r *runtime) bear(l *lane) {
	defer r.endUnasked()
	parent := r.workOf(l.parent)
	if parent == nil && l.parent.isRoot() {
		parent = r.unasked()
	}
	if parent == nil || l.parent.shut || !l.parent.known {
		r.shutOut(l, "no turn of its parent is known")
		return
	}
	started := agent.ChildStarted{
		Session: r.Mint.Session(), Turn: r.Mint.Turn(), Parent: l.parent.session, ParentTurn: parent.id,
		Call: agent.CallID(l.call), Title: l.title, Prompt: show.Input(l.prompt), AgentType: l.agentType(), Model: l.model,
		Handles: agent.Handles{ThreadID: l.id, ParentToolUseID: l.call},
	}
	applied, ok := r.Apply(started)
	if ok && applied.Verdict == agent.VerdictRefused && applied.Code == agent.CodeTurnSettled {
		// The root's turn is over: this is work of the agent's own.
		if parent = r.unasked(); parent != nil {
			if l.parent.isRoot() {
				started.ParentTurn = parent.id
			}
			applied, ok = r.Apply(started)
		}
	}
	if !ok || applied.Verdict == agent.VerdictRefused {
		r.shutOut(l, string(applied.Code))
		return
	}
	l.known, l.session = true, started.Session
	r.bySession[l.session] = l
	u := &turn{id: started.Turn, begun: true}
	l.add(u)
	l.live = u
	r.Apply(agent.TurnStarted{Session: l.session, Turn: u.id, Trigger: agent.TriggerDelegation})
	r.showLaunch(l)
	if len(r.open) > 0 {
		r.delivered(r.open[0])
	}
	r.release(l.id)
}

// beginTurn opens a later turn of a child that storage knows.
func (r *runtime) beginTurn(l *lane) {
	u := &turn{id: r.Mint.Turn(), begun: true}
	started := agent.TurnStarted{Session: l.session, Turn: u.id, Trigger: agent.TriggerGuidance}
	applied, ok := r.Apply(started)
	if ok && applied.Verdict == agent.VerdictRefused && applied.Code == agent.CodeTurnSettled && r.unasked() != nil {
		applied, ok = r.Apply(started)
		r.endUnasked()
	}
	if !ok || applied.Verdict == agent.VerdictRefused {
		u.dropped = true
		l.add(u)
		l.live = u
		r.Diagnose(provider.Refused, "turn", string(applied.Code)+" "+l.id)
		r.stopLoose(l)
		return
	}
	l.add(u)
	l.live = u
	l.launch, l.launchIn = nil, nil
	r.showLaunch(l)
	r.release(l.id)
}

// shutOut gives up a child that may not be: it is stopped, and nothing of it is shown.
func (r *runtime) shutOut(l *lane, why string) {
	l.shut = true
	r.Diagnose(provider.Refused, string(acp.UpdateSubagent), why+" "+l.id)
	r.stopLoose(l)
}

// endChild settles the turn of a child that has become idle.
func (r *runtime) endChild(l *lane, st *acp.StateUpdate) {
	if l.arriving {
		r.flushArrivals()
	}
	u := l.live
	if u == nil {
		return
	}
	l.live = nil
	u.ended = true
	if u.dropped || l.shut {
		r.withdrawOf(u)
		return
	}
	outcome, why := r.outcomeOf(st.StopReason, st.Error)
	r.expectContinuation(l)
	r.closeItems(u, outcome)
	r.endLaunch(l, outcome)
	r.withdrawOf(u)
	if st.Usage != nil {
		r.Apply(agent.UsageReported{Session: l.session, Turn: u.id, Usage: usageOf(st.Usage)})
	}
	r.Apply(agent.TurnSettled{Session: l.session, Turn: u.id, Outcome: outcome, Err: why})
	r.confirm(u, outcome)
	if r.idle() {
		r.dropHeld()
	}
}

// outcomeOf reads why work ended. A word nobody knows is no success.
func (r *runtime) outcomeOf(stop acp.StopReason, failure *acp.RPCError) (agent.Outcome, *agent.Error) {
	name := r.o.Title
	switch stop {
	case acp.StopEndTurn:
		return agent.OutcomeCompleted, nil
	case acp.StopCancelled:
		return agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The turn was stopped")
	case acp.StopMaxTokens:
		return agent.OutcomeFailed, agent.Errorf(agent.CodeProviderRefused, "%s reached the most tokens that an answer may have", name)
	case acp.StopMaxRequests:
		return agent.OutcomeFailed, agent.Errorf(agent.CodeProviderRefused, "%s reached the most requests to its model that a turn may make", name)
	case acp.StopRefusal:
		return agent.OutcomeFailed, agent.Errorf(agent.CodeProviderRefused, "The model refused to go on")
	case acp.StopError:
		if failure != nil && failure.Message != "" {
			return agent.OutcomeFailed, agent.Errorf(agent.CodeProviderRefused, "%s", failure.Message)
		}
		return agent.OutcomeFailed, agent.Errorf(agent.CodeProviderRefused, "%s failed and gave no reason", name)
	case "":
		return agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "%s did not tell how the work ended", name)
	}
	return agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "%s ended the work as %q", name, string(stop))
}

// passed handles a message between two sessions, on the stream of either. On the sender's
// it is a tool call that has given work to a child; on the recipient's it is what the child
// was told; and a child's message to its parent is that call's result.
func (r *runtime) passed(l *lane, m *acp.SessionMessage) {
	text := textOf(m.Content)
	child := r.byID[m.RecipientSessionID]
	switch {
	case child == l && !l.isRoot() && r.byID[m.SenderSessionID] == l.parent: // told
		r.flushArrivals()
		if u := r.shownIn(l); u != nil {
			r.putNew(u, agent.Message{Role: agent.RoleUser, Kind: agent.MessageText, Status: agent.MessageCompleted, Content: text})
		}
	case child != nil && child.parent == l: // given
		if child.arriving {
			child.call, child.prompt = m.MessageID, text
			r.flushArrivals()
			return
		}
		r.relaunch(child, m.MessageID, text)
	case child == l: // a result, or a message of another session
		if sender := r.byID[m.SenderSessionID]; sender != nil && sender.parent == l && sender.launch != nil {
			r.putItem(sender.launchIn, sender.launch, agent.Message{Output: show.Output(text)})
			return
		}
		r.flushArrivals()
		if u := r.shownIn(l); u != nil {
			r.putNew(u, agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Status: agent.MessageCompleted, Content: text})
		}
	default:
		r.Diagnose(provider.Ignored, string(acp.UpdateMessage), l.id)
	}
}

// showLaunch shows in its parent's transcript that a child has been given work.
func (r *runtime) showLaunch(l *lane) {
	u := r.workOf(l.parent)
	if u == nil || l.parent.shut {
		return
	}
	id := cmp.Or(l.call, fmt.Sprintf("%s#%d", l.id, l.runs))
	i := u.entry("launch:"+id, agent.RoleTool, agent.MessageToolCall)
	i.call, i.child = agent.CallID(id), l
	l.launch, l.launchIn = i, u
	r.putItem(u, i, agent.Message{
		Name: launchName, Title: show.Title(cmp.Or(l.title, l.about, "Agent")), Input: show.Input(l.prompt),
		ChildSessionID: l.session, Status: agent.MessageStreaming,
	})
	l.call = "" // of its first assignment alone
}

// launchName is the tool that gives work to a child, whatever the agent calls it.
const launchName = "agent"

// relaunch takes a message that gave a child its work when that had been told already.
func (r *runtime) relaunch(l *lane, call, text string) {
	if l.launch == nil || l.launch.ended {
		l.prompt = text
		return
	}
	r.putItem(l.launchIn, l.launch, agent.Message{Input: show.Input(text)})
	r.Apply(agent.SessionDescribed{Session: l.session, Prompt: show.Input(text), Handles: agent.Handles{ParentToolUseID: call}})
}

// endLaunch completes the entry of the parent that gave the work.
func (r *runtime) endLaunch(l *lane, outcome agent.Outcome) {
	if l.launch == nil || l.launch.ended {
		return
	}
	r.putItem(l.launchIn, l.launch, agent.Message{Status: statusOf(outcome)})
}

// statusOf is the end of an entry by that of what it stands for.
func statusOf(outcome agent.Outcome) agent.MessageStatus {
	switch outcome {
	case agent.OutcomeCompleted:
		return agent.MessageCompleted
	case agent.OutcomeFailed:
		return agent.MessageFailed
	case agent.OutcomeCanceled, agent.OutcomeInterrupted:
	}
	return agent.MessageInterrupted
}
