package acp

import (
	"fmt"
	"time"
)

// heardFrom begins the silence of the agent anew.
func (r *runtime) heardFrom() {
	r.heardAt = r.Clock.Now()
	if r.stopWatch == nil && len(r.open) > 0 && !r.Closing() {
		r.watch(r.o.Silence)
	}
}

// watch looks again after some time: one timer, however much is said.
func (r *runtime) watch(d time.Duration) {
	r.stopWatch = r.after(d, func() {
		r.stopWatch = nil
		if len(r.open) == 0 {
			return
		}
		if left := r.o.Silence - r.Clock.Now().Sub(r.heardAt); left > 0 {
			r.watch(left)
			return
		}
		r.silent() // the next word begins the watch again
	})
}

// silent tells the person once that an agent says nothing though nobody is asked anything:
// some lose the question of a child and wait for ever. It ends nothing.
func (r *runtime) silent() {
	if len(r.open) == 0 || len(r.asked) > 0 || r.open[0].dropped {
		return
	}
	what := "no question is open"
	if n := r.liveChildren(); n == 1 {
		what += " and one of its agents is still at work"
	} else if n > 1 {
		what += fmt.Sprintf(" and %d of its agents are still at work", n)
	}
	r.notice(fmt.Sprintf("%s has said nothing for %s, and %s. It may be busy, or wait for something that it never asked; stopping the turn works.", r.o.Title, r.o.Silence, what))
}
