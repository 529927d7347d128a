package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// sink is what one runtime reports to. It belongs to that runtime alone: facts of one
// that has ended never mix with those of its successor.
type sink struct {
	a *actor

	order chan struct{} // facts and text go one at a time
	// The rest is read and written while order is held.
	run     *run // nil until the runtime is adopted
	broken  *agent.Error
	over    bool // nothing is taken any more
	lost    bool // SessionLost was reported
	last    time.Time
	streams map[agent.MessageID]*stream
	stop    func() bool // of the timer that flushes text
	turns   map[agent.TurnID]*providerTurn
	outlive map[processKey]bool // processes that run, though no turn may
}

// processKey names a process within the tree.
type processKey struct {
	session agent.SessionID
	id      agent.ProcessID
}

// providerTurn is the newest provider turn of one root turn.
type providerTurn struct {
	key   agent.ProviderTurnID
	ended bool
}

// providerTurnState says how far a root turn's provider turn has come.
type providerTurnState int

const (
	neverStarted providerTurnState = iota
	stillRuns
	hasEnded
)

func newSink(a *actor) *sink {
	return &sink{
		a: a, order: make(chan struct{}, 1), last: a.l.Clock.Now(),
		streams: map[agent.MessageID]*stream{}, turns: map[agent.TurnID]*providerTurn{},
		outlive: map[processKey]bool{},
	}
}

func (s *sink) hold() func() {
	s.order <- struct{}{}
	return func() { <-s.order }
}

// own ties the sink to its runtime, and ends that at once if storage failed while it
// opened.
func (s *sink) own(r *run) {
	defer s.hold()()
	s.run = r
	if s.broken != nil {
		r.fail(s.broken)
	}
}

// Apply implements provider.Sink.
func (s *sink) Apply(f agent.Fact) (agent.Applied, error) {
	defer s.hold()()
	if err := s.refuses(); err != nil {
		return agent.Applied{}, err
	}
	s.last = s.a.l.Clock.Now()
	if err := s.flushBefore(f); err != nil {
		return agent.Applied{}, err
	}
	if turn, drop := s.outOfBounds(f); drop {
		s.a.diagnose(provider.Diagnostic{Kind: provider.Late, Method: "root output after cancel"})
		return agent.Applied{Verdict: agent.VerdictLate, Turn: turn}, nil
	}
	return s.commit(f)
}

// refuses says why nothing is taken any more, or nil.
func (s *sink) refuses() error {
	switch {
	case s.over:
		return gone()
	case s.broken != nil:
		return s.broken
	}
	return nil
}

// commit records a fact and notes what routing needs of it.
func (s *sink) commit(f agent.Fact) (agent.Applied, error) {
	applied, err := s.a.l.record(s.a.l.ctx, f)
	if err != nil {
		s.breakDown(err)
		return applied, err
	}
	s.note(f, applied)
	return applied, nil
}

// breakDown ends the runtime: what it says can no longer be kept.
func (s *sink) breakDown(err error) {
	if s.broken != nil {
		return
	}
	s.a.l.Logger.Error("storage does not take a provider's facts; its runtime is closed", "session", s.a.root, "error", err)
	s.broken = agent.Errorf(agent.CodeUnavailable, "what the agent did could not be stored, so it was stopped")
	if s.run != nil {
		s.run.fail(s.broken)
	}
}

func (s *sink) note(f agent.Fact, applied agent.Applied) {
	switch f := f.(type) {
	case agent.ProviderTurnStarted:
		if t := s.turns[applied.Turn]; applied.Verdict != agent.VerdictRefused && (t == nil || t.key != f.Key) {
			s.turns[applied.Turn] = &providerTurn{key: f.Key}
		}
	case agent.ProviderTurnEnded:
		for _, t := range s.turns {
			if t.key == f.Key {
				t.ended = true
			}
		}
	case agent.MessagePut:
		s.follow(f.Message, applied.Verdict)
	case agent.TurnSettled:
		s.unfollow(f.Turn)
	case agent.SessionLost:
		s.lost = true
	case agent.ProcessSeen:
		switch p := (processKey{f.Process.SessionID, f.Process.ID}); {
		case f.Process.Status == agent.ProcessEnded:
			delete(s.outlive, p)
		case applied.Verdict == agent.VerdictApplied:
			s.outlive[p] = true
		}
	case agent.SessionDescribed, agent.ChildStarted, agent.TurnStarted, agent.TextAppended,
		agent.InteractionAsked, agent.InteractionEnded, agent.UsageReported:
	}
	if applied.RootSettled { // one root turn is open at a time, and nothing lives below a settled one
		clear(s.turns)
		clear(s.streams)
	}
}

// outOfBounds reports whether a fact is output of a canceled root execution, and of
// which turn.
func (s *sink) outOfBounds(f agent.Fact) (agent.TurnID, bool) {
	switch f := f.(type) {
	case agent.MessagePut:
		return f.Message.TurnID, s.a.dropped(f.Message.SessionID, f.Message.TurnID, f.Message.ID)
	case agent.TextAppended:
		return f.Turn, s.a.dropped(f.Session, f.Turn, f.Message)
	case agent.InteractionAsked:
		return f.Interaction.TurnID, s.a.dropped(f.Interaction.SessionID, f.Interaction.TurnID, "")
	case agent.SessionDescribed, agent.ProviderTurnStarted, agent.ProviderTurnEnded, agent.ChildStarted, agent.TurnStarted,
		agent.TurnSettled, agent.InteractionEnded, agent.UsageReported, agent.SessionLost, agent.ProcessSeen:
	}
	return "", false
}

// providerTurn says how far the provider turn of a root turn has come.
func (s *sink) providerTurn(turn agent.TurnID) (agent.ProviderTurnID, providerTurnState) {
	defer s.hold()()
	switch t := s.turns[turn]; {
	case t == nil:
		return "", neverStarted
	case t.ended:
		return t.key, hasEnded
	default:
		return t.key, stillRuns
	}
}

// lose reports that the runtime is gone, unless it has said so itself, and takes
// nothing more. It tries until it succeeds or the daemon gives up.
func (s *sink) lose(reason *agent.Error) {
	defer s.hold()()
	if s.broken == nil {
		_ = s.flush(func(*stream) bool { return true }) // a failure is logged; the loss below is what matters
	}
	for wait := 50 * time.Millisecond; !s.lost; wait = min(2*wait, time.Second) {
		_, err := s.a.l.record(s.a.l.ctx, agent.SessionLost{Session: s.a.root, Err: reason})
		if err == nil {
			s.lost = true
			break
		}
		s.a.l.Logger.Error("the end of a runtime could not be stored", "session", s.a.root, "error", err)
		if !permitsRetry(err) || !s.a.l.pause(s.a.l.ctx, wait) {
			break
		}
	}
	s.finish()
}

// end takes nothing more, and reports nothing.
func (s *sink) end() {
	defer s.hold()()
	s.finish()
}

func (s *sink) finish() {
	s.over = true
	s.stopTimer()
	clear(s.streams)
}

// touch notes that somebody wants something of the runtime.
func (s *sink) touch() {
	defer s.hold()()
	s.last = s.a.l.Clock.Now()
}

// active says when something last happened.
func (s *sink) active() time.Time {
	defer s.hold()()
	return s.last
}

// processes says how many processes run that closing the runtime would end.
func (s *sink) processes() int {
	defer s.hold()()
	return len(s.outlive)
}

// forget drops the processes of deleted sessions: nobody can want them any more.
func (s *sink) forget(sessions []agent.SessionID) {
	defer s.hold()()
	maps.DeleteFunc(s.outlive, func(p processKey, _ bool) bool { return slices.Contains(sessions, p.session) })
}

// Diagnose implements provider.Sink.
func (s *sink) Diagnose(d provider.Diagnostic) { s.a.diagnose(d) }

// Mint implements provider.Sink.
func (s *sink) Mint() agent.Minter { return s.a.l.Mint }

// Clock implements provider.Sink. A panic in a timer's function ends the runtime, not
// the daemon.
func (s *sink) Clock() provider.Clock { return guardedClock{s} }

// Go runs one of the adapter's own goroutines (see provider.Go). A panic in it ends the
// runtime, not the daemon.
func (s *sink) Go(f func()) { go s.guarded("goroutine", f) }

func (s *sink) guarded(what string, f func()) {
	if p, ok := guard(what, func() error { f(); return nil }).(*panicked); ok { //nolint:errorlint // guard returns it bare
		s.crashed(p)
	}
}

func (s *sink) crashed(p *panicked) {
	release := s.hold()
	r := s.run
	if r == nil { // it panicked while it opened: own ends it
		s.broken = p.coded()
	}
	release()
	if r != nil {
		r.crashed(p)
	}
}

type guardedClock struct{ s *sink }

func (c guardedClock) Now() time.Time { return c.s.a.l.Clock.Now() }

func (c guardedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.s.a.l.Clock.AfterFunc(d, func() { c.s.guarded("timer", f) })
}

// record commits one fact, again and again while storage is busy, within a bound.
func (l *Live) record(ctx context.Context, f agent.Fact) (agent.Applied, error) {
	wait := 10 * time.Millisecond
	for attempt := 0; ; attempt++ {
		applied, err := l.Recorder.Apply(ctx, f)
		if err == nil || attempt >= l.Retries || !permitsRetry(err) || !l.pause(ctx, wait) {
			return applied, err
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

func permitsRetry(err error) bool {
	return errors.Is(err, &agent.Error{Code: agent.CodeUnavailable})
}

// pause waits for d of the clock; false when ctx ended first.
func (l *Live) pause(ctx context.Context, d time.Duration) bool {
	done := make(chan struct{})
	stop := l.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
