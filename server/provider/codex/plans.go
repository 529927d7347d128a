package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
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
	cost := min(len(s.latest), keepHead+keepTail)
	return now.Sub(s.at) >= outputEvery && s.written+cost <= 4*len(s.latest)+keepHead
}

// turnNote handles what is told of a turn as a whole.
func (r *runtime) turnNote(t *thread, u *turn, f frame) {
	var err error
	switch f.method {
	case notePlan:
		var p planParams
		if err = json.Unmarshal(f.params, &p); err == nil && len(p.Plan) > 0 {
			r.putNote(t, u, "plan", planTitle(p.Plan), planText(p))
		}
	case noteDiff:
		var p diffParams
		if err = json.Unmarshal(f.params, &p); err == nil {
			u.diff.latest = p.Diff
			if u.ended || u.diff.due(r.clock.Now()) {
				r.showDiff(t, u)
			}
		}
	}
	if err != nil {
		r.diagnose(provider.Malformed, f.method, t.id)
	}
}

// showDiff shows a turn's diff if it has changed since. What is told in between is shown
// when the turn ends: each telling repeats the whole.
func (r *runtime) showDiff(t *thread, u *turn) {
	if u.diff.latest == u.diff.shown {
		return
	}
	u.diff.shown, u.diff.at = u.diff.latest, r.clock.Now()
	output := boundedOutput(u.diff.latest)
	u.diff.written += len(output)
	r.putNote(t, u, "diff", diffTitle(u.diff.latest), output)
}

// putNote shows one of the entries of a whole turn. It never streams: it stands as it is,
// whatever becomes of the turn.
func (r *runtime) putNote(t *thread, u *turn, name, title, output string) {
	if u.items == nil {
		u.items = map[string]*item{}
	}
	i := u.entry(name+":"+u.native, agent.RoleTool, agent.MessageToolCall)
	r.putItem(t, u, i, agent.Message{Name: name, Title: bounded(title, titleLength), Output: output, Status: agent.MessageCompleted})
}

func planTitle(plan []planStep) string {
	done := 0
	for _, s := range plan {
		if s.Status == statusCompleted {
			done++
		}
	}
	return fmt.Sprintf("Plan: %d of %d steps done", done, len(plan))
}

func planText(p planParams) string {
	var b strings.Builder
	if p.Explanation != "" {
		b.WriteString(p.Explanation + "\n\n")
	}
	for _, s := range p.Plan {
		mark := map[string]string{statusCompleted: "[x]", statusInProgress: "[>]"}[s.Status]
		if mark == "" {
			mark = "[ ]"
		}
		b.WriteString(mark + " " + s.Step + "\n")
	}
	return boundedOutput(b.String())
}

// diffTitle counts what a unified diff changes.
func diffTitle(diff string) string {
	files, added, removed := 0, 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "diff --git "):
			files++
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	noun := "files"
	if files == 1 {
		noun = "file"
	}
	return fmt.Sprintf("Changed %d %s, %d lines added, %d removed", files, noun, added, removed)
}
