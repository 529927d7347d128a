package claude

import (
	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// nativeSession is the id under which a new conversation is begun: the same each time, so
// that a start which failed half-way leaves nothing behind that nobody knows.
func nativeSession(root agent.SessionID) string {
	return uuid.NewSHA1(messageSpace, []byte("session:"+root)).String()
}

// remember binds what storage knows of the tree, so that a child of an earlier process is
// found again when its task is spoken of. A program that is resumed tells, unasked, of the
// agents that did not finish: by their task ids alone.
func (r *runtime) remember(m agent.Remembered) {
	for _, p := range m.ProviderTurns {
		r.keys.Note(p.Key)
		r.current = p.Turn
	}
	for _, c := range m.Children {
		l := &lane{
			parent: r.root, session: c.ID, call: c.Handles.ParentToolUseID, task: c.Handles.TaskID,
			naming: naming{description: c.Title, prompt: c.Prompt, agentType: c.AgentType}, model: c.Model,
		}
		r.enter(l)
		if last := c.LatestTurn; last != nil {
			u := &turn{id: last.ID, under: last.RootTurnID, trigger: last.Trigger, run: last.NativeID, begun: true, ended: true}
			l.add(u)
			l.byRun[u.run] = u
		}
	}
	for i, c := range m.Children { // parents may come in any order
		if l := r.bySession[c.ParentSessionID]; l != nil {
			r.children[i].parent = l
		}
	}
	last := m.Root.LatestTurn
	if last != nil {
		r.current = last.ID
		r.root.add(&turn{id: last.ID, under: last.ID, reported: true, begun: true, ended: true})
	}
	r.boundary = last != nil && last.Outcome == agent.OutcomeCanceled
}

// reconcile reads the program's own list of the children of a resumed conversation. A
// child that died before its task was told is bound by the call that launched it.
func (r *runtime) reconcile() {
	if r.params.Root.ProviderSessionID == "" || r.o.index == nil {
		return
	}
	kept, err := r.o.index(r.params, r.sessionID)
	if err != nil {
		r.Diagnose(provider.Ignored, "index", "it cannot be read")
		return
	}
	for _, k := range kept {
		l := r.byCall[k.ToolUseID]
		switch {
		case r.byTask[k.TaskID] != nil:
		case l == nil:
			r.Diagnose(provider.Unrouted, "index", k.TaskID)
		default:
			r.bind(l, k.TaskID)
		}
	}
}

// sayForgotten tells the person that the agent starts anew, if there was anything that it
// could have remembered.
func (r *runtime) sayForgotten(p provider.OpenParams) {
	if notice, had := provider.Forgotten(p, "Claude", r.Mint.Message()); had {
		r.Apply(notice)
	}
}
