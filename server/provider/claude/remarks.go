package claude

import (
	"cmp"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// remark handles what the program says beside the work: retries, refusals without a
// question, compaction, limits.
func (r *runtime) remark(f frame) {
	if limit, ok := f.(*limitFrame); ok {
		r.limited(limit)
		return
	}
	h := f.head()
	l, text := r.ownerOf(h), remarkText(f)
	if p, ok := f.(*progressFrame); ok && p.Retry != nil { // its own members name a call that is none
		l = cmp.Or(r.byTask[p.Retry.AgentID], l)
	}
	if s, ok := f.(*statusFrame); ok {
		r.modeIs(s.PermissionMode, false)
	}
	if _, ok := f.(*compactFrame); ok && l != nil {
		l.compacted = true
	}
	if text == "" {
		r.Diagnose(provider.Ignored, h.name(), "")
		return
	}
	if l == nil {
		r.hold(cmp.Or(h.ParentToolUseID, h.AgentID), f)
		return
	}
	if l.isRoot() && !r.speaking() {
		r.Diagnose(provider.Ignored, h.name(), "no turn runs")
		return
	}
	if u := r.workWith(l, f); u != nil {
		r.putNew(u, agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Content: text, Status: agent.MessageCompleted})
	}
}

// speaking says whether a turn of the root runs and has said something: what is remarked
// beside it is not its first word.
func (r *runtime) speaking() bool {
	return r.open != nil && r.open.reported && !r.open.reserved && !r.open.dropped
}

// limited says once, in the root turn that runs, that a limit of the account is reached:
// whatever fails or waits then is no fault of the agents.
func (r *runtime) limited(f *limitFrame) {
	text := limitText(f.Info)
	if text == r.limit {
		return
	}
	if text != "" && !r.speaking() {
		return // said again with the next call
	}
	r.limit = text
	if text != "" {
		r.putNew(r.open, agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Content: text, Status: agent.MessageCompleted})
	}
}

// modelIs notes which model an agent runs on.
func (r *runtime) modelIs(l *lane, model string) {
	if model == "" || model == l.model || model[0] == '<' || l.shut {
		return
	}
	l.model = model
	r.Apply(agent.SessionDescribed{Session: l.session, Model: model})
}

// modeIs notes the permission mode that the session has come to, by an answer or a plan's
// end, so that its next process begins with it and does not go back to the first. What the
// process began with is no change.
func (r *runtime) modeIs(mode string, began bool) {
	before := r.mode
	r.mode = cmp.Or(mode, before)
	if r.mode == before || began && before == "" || !slices.Contains(permissionModes(), mode) {
		return
	}
	r.Apply(agent.SessionDescribed{Session: r.root.session, PermissionMode: mode})
}

// progress takes a child's count on the way; what it does is told by its own lines.
func (r *runtime) progress(_ *lane, u *turn, f *taskFrame) {
	if u == nil || u.ended {
		r.Diagnose(provider.Late, f.name(), f.TaskID)
	}
}

func sortItems(items []*item) {
	slices.SortFunc(items, func(a, b *item) int { return a.at - b.at })
}
