package store

import (
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// activity remembers when each live turn and each live tree was last heard of. It is
// memory only: a row per frame would cost a page per frame, and after a restart nothing
// is live that it could be about. Silence is shown and never decides anything
// (decisions.md 8).
type activity struct {
	mu    sync.Mutex
	turns map[int64]int64 // turn key → micros
	trees map[int64]int64 // root session key → micros
}

func (a *activity) init() {
	a.turns, a.trees = map[int64]int64{}, map[int64]int64{}
}

// heard notes a sign of life of a turn and of its tree.
func (a *activity) heard(turn, root, now int64) {
	a.mu.Lock()
	a.turns[turn], a.trees[root] = now, now
	a.mu.Unlock()
}

// drop forgets turns that have settled.
func (a *activity) drop(turns ...int64) {
	a.mu.Lock()
	for _, t := range turns {
		delete(a.turns, t)
	}
	a.mu.Unlock()
}

// dropTree forgets a root session whose turn has settled.
func (a *activity) dropTree(root int64) {
	a.mu.Lock()
	delete(a.trees, root)
	a.mu.Unlock()
}

// lastOf is when a live turn was last heard of.
func (a *activity) lastOf(t *dbgen.Turn) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.turns[t.PK], t.StartedAt, t.CreatedAt)
}

// silent returns since when a session with the live turn t has been silent, 0 if it is not:
// of a root, its whole tree counts.
func (a *activity) silent(t *dbgen.Turn, s *dbgen.Session, after time.Duration, now time.Time) int64 {
	last := a.lastOf(t)
	if s.Kind == agent.KindRoot {
		a.mu.Lock()
		last = max(last, a.trees[s.PK])
		a.mu.Unlock()
	}
	if now.Sub(timeOf(last)) < after {
		return 0
	}
	return last
}

// stalledTrees lists the root sessions that have been silent for longer than after.
func (a *activity) stalledTrees(after time.Duration, now time.Time) []int64 {
	before := micros(now.Add(-after))
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []int64
	for root, last := range a.trees {
		if last <= before {
			out = append(out, root)
		}
	}
	return out
}
