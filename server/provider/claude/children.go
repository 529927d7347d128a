package claude

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// naming is what is known of a child for people.
type naming struct {
	description string
	prompt      string
	agentType   string
	name        string
}

func namingOf(input json.RawMessage) naming {
	in := readInput(input) // while it streams there is none yet
	return naming{description: in.Description, prompt: in.Prompt, agentType: in.SubagentType, name: in.Name}
}

// merge takes over what other knows and n does not, and says whether that was anything.
func (n *naming) merge(other naming) bool {
	before := *n
	n.description = cmp.Or(n.description, other.description)
	n.prompt = cmp.Or(n.prompt, other.prompt)
	n.agentType = cmp.Or(n.agentType, other.agentType)
	n.name = cmp.Or(n.name, other.name)
	return *n != before
}

// title is the most specific thing there is.
func (n *naming) title() string {
	first, _, _ := strings.Cut(strings.TrimSpace(n.prompt), "\n")
	return show.Bounded(strings.TrimSpace(cmp.Or(n.description, n.name, first, n.agentType, "Agent")), show.TitleLength)
}

// launch registers the child that a tool call asks for, with its first turn, at the
// earliest sign of that call. What is learned later is added to it (decisions.md 17).
func (r *runtime) launch(parent *lane, by *turn, call string, n naming) *lane {
	if l := r.byCall[call]; l != nil {
		r.describe(l, n)
		return l
	}
	l := &lane{session: r.Mint.Session(), parent: parent, call: call, by: by, naming: n}
	u := &turn{id: r.Mint.Turn(), under: by.under, trigger: agent.TriggerDelegation}
	l.shut = parent.shut || by.dropped
	if !l.shut {
		applied, ok := r.Apply(agent.ChildStarted{
			Session: l.session, Turn: u.id, Parent: parent.session, ParentTurn: by.id, Call: agent.CallID(call),
			Title: n.title(), Prompt: n.prompt, AgentType: n.agentType, Handles: agent.Handles{ParentToolUseID: call},
		})
		l.shut = !ok || applied.Verdict == agent.VerdictRefused
	}
	u.dropped = l.shut
	r.enter(l)
	l.add(u)
	l.live = u
	r.release(l)
	return l
}

// describe adds to what is known of a child.
func (r *runtime) describe(l *lane, n naming) {
	if !l.naming.merge(n) || l.shut {
		return
	}
	r.Apply(agent.SessionDescribed{Session: l.session, Title: l.naming.title(), Prompt: l.naming.prompt, AgentType: l.naming.agentType})
}

// taskFrame handles a word about a task: a child's, or a process's.
func (r *runtime) taskFrame(f *taskFrame) {
	switch {
	case f.Subtype == subTaskStarted && f.isAgent():
		r.runStarted(f)
	case f.Subtype == subTaskStarted:
		r.processStarted(f)
	case r.isProcess(f.TaskID):
		r.processFrame(f)
	default:
		r.childFrame(f)
	}
}

// runStarted begins a run of a child: its first, or a later one of the same task.
func (r *runtime) runStarted(f *taskFrame) {
	l, call := r.byTask[f.TaskID], f.ToolUseID
	if l == nil {
		l = r.byCall[call]
	}
	if l != nil && l.task != "" && l.task != f.TaskID { // the call is another agent's
		l, call = nil, ""
	}
	if l == nil {
		if l = r.launchUnseen(f, call); l == nil {
			return
		}
	}
	r.bind(l, f.TaskID)
	r.describe(l, naming{description: f.Description, prompt: f.Prompt, agentType: f.SubagentType})
	l.background = f.IsBackgrounded
	if l.byRun[f.RunID] == nil || f.RunID == "" {
		r.beginRun(l, f)
	}
	r.release(l)
}

// launchUnseen registers a child whose call was not seen. Its parent is told by its task,
// or it stands at the first depth; if the parent is not known either, the line waits.
func (r *runtime) launchUnseen(f *taskFrame, call string) *lane {
	parent := r.root
	if f.ParentTaskID != "" {
		parent = r.byTask[f.ParentTaskID]
	}
	if parent == nil {
		r.hold(f.ParentTaskID, f)
		return nil
	}
	by := r.workOf(parent)
	if by == nil {
		r.Diagnose(provider.Unrouted, f.name(), f.TaskID)
		return nil
	}
	return r.launch(parent, by, call, naming{description: f.Description, prompt: f.Prompt, agentType: f.SubagentType})
}

// workOf is the turn that new work of an agent belongs to: the one that runs, or the last
// one; nil if there never was one.
func (r *runtime) workOf(l *lane) *turn {
	switch {
	case l.live != nil:
		return l.live
	case !l.isRoot():
		return l.last()
	case r.open != nil:
		r.speak(r.open)
		return r.open
	}
	for _, u := range slices.Backward(l.order) {
		if u.reported { // what was empty never was a turn
			return u
		}
	}
	return nil
}

// beginRun binds the announced first turn of a child to its run, or begins a later turn.
func (r *runtime) beginRun(l *lane, f *taskFrame) {
	u := l.live
	if u != nil && u.begun {
		// Its end was never told; the next run proves it.
		r.Diagnose(provider.Unrouted, f.name(), "run "+u.run+" has no end")
		r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "Claude did not tell how this run ended"))
		u = nil
	}
	first := u != nil
	if u := l.first(); !first && u != nil && u.run == "" && f.ToolUseID == l.call {
		u.run, l.byRun[f.RunID] = f.RunID, u // its end was told before its start
		r.Diagnose(provider.Late, f.name(), f.TaskID)
		return
	}
	if !first {
		u = &turn{id: r.Mint.Turn(), trigger: agent.TriggerGuidance, under: r.current, dropped: l.shut}
		l.add(u)
		l.live = u
	}
	u.run, u.begun = f.RunID, true
	l.byRun[f.RunID] = u
	l.listed = r.onLevel[f.TaskID] // the level names a task just before it starts
	if u.dropped {
		r.stopLoose(l)
		return
	}
	started := agent.TurnStarted{Session: l.session, Turn: u.id, NativeID: f.RunID, Trigger: u.trigger}
	applied, ok := r.Apply(started)
	if ok && applied.Verdict == agent.VerdictRefused && applied.Code == agent.CodeTurnSettled && !first {
		applied, ok = r.beginUnasked(started, u)
	}
	switch {
	case !ok:
	case applied.Verdict == agent.VerdictRefused:
		u.dropped, l.live = true, nil
		r.Diagnose(provider.Refused, f.name(), f.TaskID)
		r.stopLoose(l)
	case !first && f.Prompt != "":
		r.putNew(u, agent.Message{Role: agent.RoleUser, Kind: agent.MessageText, Content: f.Prompt, Status: agent.MessageCompleted})
	}
	if u.closed {
		r.stopLoose(l) // it was to be stopped before it had begun
	}
}

// beginUnasked begins a child's run under a root turn of its own: nothing was open, and
// nobody asked for it (decisions.md 3). The provider turn that opens it has said nothing;
// the root agent's own word comes when the child has ended.
func (r *runtime) beginUnasked(started agent.TurnStarted, child *turn) (agent.Applied, bool) {
	refused := agent.Applied{Verdict: agent.VerdictRefused, Code: agent.CodeUnaskedAfterCancel}
	if r.barred() {
		return refused, true
	}
	opener := r.newTurn("")
	if !r.report(opener) {
		return refused, !r.Broken()
	}
	child.under = opener.id
	applied, ok := r.Apply(started)
	r.endSilently(opener, nil)
	return applied, ok
}

// childFrame handles progress, a patch, or the terminal of a child.
func (r *runtime) childFrame(f *taskFrame) {
	l := r.byTask[f.TaskID]
	if l == nil && f.ToolUseID != "" {
		if l = r.byCall[f.ToolUseID]; l != nil && l.task != "" {
			l = nil
		}
	}
	if l == nil {
		// A generic notice is not enough to invent a child. It may have come before its edge.
		if f.Subtype == subTaskNotice && f.ToolUseID != "" && !r.barred() {
			r.hold(f.ToolUseID, f)
			return
		}
		r.Diagnose(provider.Unrouted, f.name(), f.TaskID)
		return
	}
	u := l.byRun[f.RunID]
	if u == nil && f.RunID == "" {
		u = l.last()
	}
	switch f.Subtype {
	case subTaskUpdated:
		r.patch(l, u, f.Patch)
	case subTaskNotice:
		r.notice(l, u, f)
	default:
		r.progress(l, u, f)
	}
}

// bindRun names the announced first turn of a child by its run.
func (r *runtime) bindRun(u *turn, run string) {
	if run == "" {
		return
	}
	u.run, u.begun = run, true
	u.lane.byRun[run] = u
	if !u.dropped {
		r.Apply(agent.TurnStarted{Session: u.lane.session, Turn: u.id, NativeID: run, Trigger: u.trigger})
	}
}

// patch notes what was changed. A status in it is no terminal: the notice follows, and a
// hook may still send the child back to work.
func (r *runtime) patch(l *lane, u *turn, p taskPatch) {
	if p.IsBackgrounded != nil {
		l.background = *p.IsBackgrounded
	}
	if u != nil && p.Error != "" {
		u.why = p.Error
	}
}

// notice is the terminal of one run.
func (r *runtime) notice(l *lane, u *turn, f *taskFrame) {
	if u == nil && l.live != nil && !l.live.begun {
		u = l.live // its start is still to come
		r.bindRun(u, f.RunID)
	}
	if u == nil || u.ended {
		r.Diagnose(provider.Late, f.name(), f.TaskID)
		return
	}
	r.bind(l, f.TaskID)
	switch f.Status {
	case taskCompleted:
		r.completeChild(u)
	case taskFailed:
		r.settleChild(u, agent.OutcomeFailed, cmp.Or(u.failure, failureOf(cmp.Or(u.why, f.Summary))))
	case taskStopped, taskKilled:
		r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The agent was stopped"))
	default:
		r.Diagnose(provider.Malformed, f.name(), "unknown status "+show.Bounded(f.Status, 40))
		r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "Claude ended the run with an unknown status"))
	}
}

// completeChild ends a child's run well, unless the last that its model said was an error.
func (r *runtime) completeChild(u *turn) {
	if u.failure != nil {
		r.settleChild(u, agent.OutcomeFailed, u.failure)
		return
	}
	r.settleChild(u, agent.OutcomeCompleted, nil)
}

func failureOf(text string) *agent.Error {
	return agent.Errorf(agent.CodeProviderRefused, "%s", show.Bounded(cmp.Or(text, "Claude gave no reason"), maxReason))
}

// maxReason bounds why something failed, in bytes.
const maxReason = 1000

// launchReturned takes the result of the call that launched a child. The call completes
// on its parent; for a child in the foreground it also is a terminal, the first or the
// second one, and without a task it is the refusal.
func (r *runtime) launchReturned(l *lane, b *block, result *toolResult) {
	u := l.live
	if result.async() {
		l.background = true
		r.bind(l, result.AgentID)
	}
	if u == nil || u != l.first() || l.background {
		return
	}
	switch {
	case !b.IsError && (u.begun || result.Status == taskCompleted):
		r.completeChild(u)
	case !b.IsError: // it says nothing of its task yet
	case result.rejected || u.closed:
		r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The agent was stopped"))
	default:
		r.settleChild(u, agent.OutcomeFailed, cmp.Or(u.failure, failureOf(cmp.Or(u.why, textOf(b.Content)))))
	}
}

// first is the turn that the launching call began, nil if it is long past.
func (l *lane) first() *turn {
	if len(l.order) > 0 && l.order[0].trigger == agent.TriggerDelegation {
		return l.order[0]
	}
	return nil
}

// settleChild ends a child's turn. What was open in it is closed, and a continuation of
// the root that this end will cause is reserved before the end is reported.
func (r *runtime) settleChild(u *turn, outcome agent.Outcome, why *agent.Error) {
	l := u.lane
	u.ended = true
	if l.live == u {
		l.live = nil
	}
	l.listed = false
	if !u.dropped {
		r.closeItems(u)
		r.reserve(u)
		r.Apply(agent.TurnSettled{Session: l.session, Turn: u.id, Outcome: outcome, Err: why})
	}
	r.withdrawAsked(func(q *prompt) bool { return q.turn == u })
	r.confirm(u, outcome)
	r.endUnlaunched(l, u)
}

// endUnlaunched ends children of a turn that has ended which never began: the call that
// was to launch them was cut off.
func (r *runtime) endUnlaunched(parent *lane, by *turn) {
	for _, l := range r.children {
		if u := l.live; u != nil && l.parent == parent && !u.begun && l.task == "" && l.by == by {
			r.settleChild(u, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "The agent was never started"))
		}
	}
}

// level compares what we hold with the list of background tasks that live. Whoever was
// listed and is no more has ended, whether its end was told or not.
func (r *runtime) level(f *tasksFrame) {
	if f.Tasks == nil { // no list is not an empty one
		r.Diagnose(provider.Malformed, f.name(), "no list")
		return
	}
	clear(r.onLevel)
	for _, t := range f.Tasks {
		r.onLevel[t.TaskID] = true
	}
	for _, l := range r.children {
		listed := r.onLevel[l.task]
		if l.listed && !listed && l.live != nil && l.live.begun && l.background {
			r.Diagnose(provider.Unrouted, f.name(), "no end was told of "+l.task)
			r.settleChild(l.live, agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderGone, "Claude did not tell how this agent ended"))
		}
		l.listed = listed
	}
	r.processLevel(f)
}
