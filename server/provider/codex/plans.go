package codex

import (
	"encoding/json"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// A turn's plan and the diff of all that it changed are of the whole turn, and told anew
// with every change. Each is one entry of the transcript, which changes in its place.

const (
	notePlan = "turn/plan/updated"
	noteDiff = "turn/diff/updated"
)

type planParams struct {
	Explanation string     `json:"explanation"`
	Plan        []planStep `json:"plan"`
}

type planStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, inProgress, completed
}

type diffParams struct {
	Diff string `json:"diff"`
}

// standing is the diff of a turn, as it was told last and as it was shown last.
type standing struct {
	latest, shown string
	at            time.Time
	written       int // bytes, by every showing of it
}

// due says whether the diff may be shown before its turn's end. In all, that writes a few
// times what the diff is by then, however often it changes.
func (s *standing) due(now time.Time) bool {
	cost := min(len(s.latest), show.OutputLength)
	return now.Sub(s.at) >= outputEvery && s.written+cost <= 4*len(s.latest)+show.OutputLength/4
}

// turnNote handles what is told of a turn as a whole.
func (r *runtime) turnNote(t *thread, u *turn, f frame) {
	var err error
	switch f.method {
	case notePlan:
		var p planParams
		if err = json.Unmarshal(f.params, &p); err == nil && len(p.Plan) > 0 {
			r.putNote(t, u, "plan", show.PlanTitle(p.steps()), show.PlanText(p.Explanation, p.steps()))
		}
	case noteDiff:
		var p diffParams
		if err = json.Unmarshal(f.params, &p); err == nil {
			u.diff.latest = p.Diff
			if u.ended || u.diff.due(r.Clock.Now()) {
				r.showDiff(t, u)
			}
		}
	}
	if err != nil {
		r.Diagnose(provider.Malformed, f.method, t.id)
	}
}

// showDiff shows a turn's diff if it has changed since. What is told in between is shown
// when the turn ends: each telling repeats the whole.
func (r *runtime) showDiff(t *thread, u *turn) {
	if u.diff.latest == u.diff.shown {
		return
	}
	u.diff.shown, u.diff.at = u.diff.latest, r.Clock.Now()
	output := show.Output(u.diff.latest)
	u.diff.written += len(output)
	r.putNote(t, u, "diff", show.DiffTitle(u.diff.latest), output)
}

// putNote shows one of the entries of a whole turn. It never streams: it stands as it is,
// whatever becomes of the turn.
func (r *runtime) putNote(t *thread, u *turn, name, title, output string) {
	if u.items == nil {
		u.items = map[string]*item{}
	}
	i := u.entry(name+":"+u.native, agent.RoleTool, agent.MessageToolCall)
	r.putItem(t, u, i, agent.Message{Name: name, Title: show.Bounded(title, show.TitleLength), Output: output, Status: agent.MessageCompleted})
}

// steps are the plan's steps as they are shown.
func (p planParams) steps() []show.Step {
	var out []show.Step
	for _, s := range p.Plan {
		out = append(out, show.Step{Text: s.Step, Done: s.Status == statusCompleted, Active: s.Status == statusInProgress})
	}
	return out
}
