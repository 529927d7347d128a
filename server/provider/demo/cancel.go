package demo

import (
	"context"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// How long the provider takes to say that it heard a stop, and to have stopped.
const (
	ackAfter  = 120 * time.Millisecond
	stopAfter = 300 * time.Millisecond
)

// stop is one Cancel call: what of it is still unconfirmed.
type stop struct {
	heard func(agent.Evidence)
	open  int
	done  chan struct{}
}

// Cancel implements provider.Runtime.
func (r *runtime) Cancel(ctx context.Context, c provider.Cancel, heard func(agent.Evidence)) error {
	s := &stop{heard: heard, open: 1, done: make(chan struct{})}
	if !r.request(c, s) {
		return gone()
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return gone()
	}
}

// request records what is closed, then asks every target to stop, the root first. It
// reports false after the end.
func (r *runtime) request(c provider.Cancel, s *stop) bool {
	defer r.hold()()
	if r.over {
		return false
	}
	if c.Root {
		for _, pl := range r.plays {
			pl.canceled = pl.canceled || pl.turn == c.Turn
		}
	}
	for _, target := range rootFirst(c, r.root) {
		if target.Session == r.root {
			r.stopRoot(target, s)
		} else {
			r.stopChild(target, s)
		}
	}
	s.confirmed()
	return true
}

func rootFirst(c provider.Cancel, root agent.SessionID) []provider.CancelTarget {
	targets := make([]provider.CancelTarget, 0, len(c.Targets))
	for _, first := range []bool{true, false} {
		for _, t := range c.Targets {
			if (t.Session == root) == first {
				targets = append(targets, t)
			}
		}
	}
	return targets
}

func (s *stop) confirmed() {
	if s.open--; s.open == 0 {
		close(s.done)
	}
}

// hear passes on what is known of one target.
func (s *stop) hear(t provider.CancelTarget, state agent.TargetState) {
	s.heard(agent.Evidence{SessionID: t.Session, TurnID: t.Turn, State: state})
}

// await counts a target as open until what it returns is called, and says then how it
// ended. One that ignores the stop may still end by itself.
func (s *stop) await(t provider.CancelTarget, ended agent.TargetState) func() {
	s.open++
	return func() {
		s.hear(t, ended)
		s.confirmed()
	}
}

// stopRoot stops the running provider turn; one that has ended needs nothing.
func (r *runtime) stopRoot(t provider.CancelTarget, s *stop) {
	pl := r.playOf(t.Turn)
	if pl == nil || pl.provider == nil {
		s.hear(t, agent.TargetCanceled) // nothing of the root's own runs
		return
	}
	if pl.script.IgnoresCancel {
		pl.provider.waiters = append(pl.provider.waiters, s.await(t, agent.TargetAlreadyTerminal))
		return
	}
	pt := pl.provider
	pt.waiters = append(pt.waiters, s.await(t, agent.TargetCanceled))
	if pt.stopping {
		return
	}
	pt.stopping = true
	for _, p := range pt.players {
		p.halt()
	}
	r.timer(r.adapter.scaled(ackAfter), func() {
		if !pt.ended {
			s.hear(t, agent.TargetAcknowledged)
		}
	})
	r.timer(r.adapter.scaled(stopAfter), func() {
		pt.outcome, pt.err, pt.reserved = agent.OutcomeInterrupted, nil, nil
		r.endProviderTurn(pl, pt)
	})
}

// stopChild stops one exact turn of one agent.
func (r *runtime) stopChild(t provider.CancelTarget, s *stop) {
	p := r.playerOf(t)
	switch {
	case p == nil || p.ended:
		s.hear(t, agent.TargetAlreadyTerminal)
		return
	case p.play.script.IgnoresCancel || p.kind.IgnoresCancel:
		p.waiters = append(p.waiters, s.await(t, agent.TargetAlreadyTerminal))
		return
	}
	p.waiters = append(p.waiters, s.await(t, agent.TargetCanceled))
	if p.canceling {
		return
	}
	p.canceling = true
	p.halt()
	r.timer(r.adapter.scaled(ackAfter), func() {
		if !p.ended {
			s.hear(t, agent.TargetAcknowledged)
		}
	})
	r.timer(r.adapter.scaled(stopAfter), func() { p.finish(agent.OutcomeInterrupted, nil) })
}

// playOf returns the play of a root turn; of several, the one whose provider turn runs.
func (r *runtime) playOf(turn agent.TurnID) *play {
	var found *play
	for _, pl := range r.plays {
		if pl.turn == turn && (found == nil || pl.provider != nil) {
			found = pl
		}
	}
	return found
}

func (r *runtime) playerOf(t provider.CancelTarget) *player {
	for _, pl := range r.plays {
		for _, p := range pl.agents {
			if p.session == t.Session && p.turn == t.Turn {
				return p
			}
		}
	}
	return nil
}
