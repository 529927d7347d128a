package providertest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Sink is a [provider.Sink] that records into a [Model]: what an adapter's unit tests
// open a runtime with. It commits text at once, piece by piece.
//
//	sink := providertest.NewSink(t, agent.Session{Provider: "x"})
//	rt, err := adapter.Open(t.Context(), sink.OpenParams(), sink)
//	in := sink.Submit(sink.Root, "hello")
//	err = rt.Start(t.Context(), in)
//	sink.Await(t, "the root settles", func(v providertest.View) bool { return v.RootTurn().Phase == agent.PhaseSettled })
//
// When the test ends, every violation that the model saw fails it.
type Sink struct {
	*Model
	Root agent.SessionID

	t     testing.TB
	clock provider.Clock
	mint  agent.Minter

	mu          sync.Mutex
	closed      bool
	diagnostics []provider.Diagnostic
	evidence    []agent.Evidence
	offsets     map[agent.MessageID]int64
}

// NewSink returns a sink with one root session and the machine's clock. Inside a
// synctest bubble that clock is virtual.
func NewSink(t testing.TB, root agent.Session) *Sink {
	return NewSinkClock(t, root, provider.RealClock{})
}

// NewSinkClock is NewSink with another clock.
func NewSinkClock(t testing.TB, root agent.Session, clock provider.Clock) *Sink {
	mint := Counter()
	s := &Sink{Model: NewModel(mint, clock), t: t, clock: clock, mint: mint, offsets: map[agent.MessageID]int64{}}
	s.Root = s.AddRoot(root).ID
	t.Cleanup(func() {
		for _, v := range s.Violations() {
			t.Errorf("the adapter broke its contract: %s", v)
		}
	})
	return s
}

// OpenParams returns what to open the root session with, as storage remembers it now.
func (s *Sink) OpenParams() provider.OpenParams {
	r, err := s.Remember(context.Background(), s.Root)
	if err != nil {
		s.t.Fatal(err)
	}
	return provider.OpenParams{Remembered: r}
}

// Apply implements provider.Sink.
func (s *Sink) Apply(f agent.Fact) (agent.Applied, error) {
	s.noteClosed("a fact")
	applied, err := s.Model.Apply(context.Background(), f)
	if put, ok := f.(agent.MessagePut); ok && put.Message.Content != "" {
		s.mu.Lock()
		s.offsets[put.Message.ID] = int64(len(put.Message.Content))
		s.mu.Unlock()
	}
	return applied, err
}

// Text implements provider.Sink.
func (s *Sink) Text(session agent.SessionID, turn agent.TurnID, message agent.MessageID, text string) error {
	s.noteClosed("text")
	s.mu.Lock()
	offset := s.offsets[message]
	s.offsets[message] = offset + int64(len(text))
	s.mu.Unlock()
	_, err := s.Model.Apply(context.Background(), agent.TextAppended{Session: session, Turn: turn, Message: message, Offset: offset, Text: text})
	return err
}

// Diagnose implements provider.Sink.
func (s *Sink) Diagnose(d provider.Diagnostic) {
	s.mu.Lock()
	s.diagnostics = append(s.diagnostics, d)
	s.mu.Unlock()
	s.Model.mu.Lock()
	s.bump() // so that Await can look at diagnostics too
	s.Model.mu.Unlock()
}

// Mint implements provider.Sink.
func (s *Sink) Mint() agent.Minter { return s.mint }

// Clock implements provider.Sink.
func (s *Sink) Clock() provider.Clock { return s.clock }

// Closed says that the runtime's Close has returned: whatever it reports from here on
// is a violation.
func (s *Sink) Closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Reopened undoes Closed, for a test that opens the session again.
func (s *Sink) Reopened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = false
}

func (s *Sink) noteClosed(what string) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.Model.mu.Lock()
		s.violate(agent.CodeProviderGone, "%s was reported after Close", what)
		s.Model.mu.Unlock()
	}
}

// Heard collects the evidence of a cancel; it is what goes to the runtime's Cancel.
func (s *Sink) Heard(e agent.Evidence) {
	s.mu.Lock()
	s.evidence = append(s.evidence, e)
	s.mu.Unlock()
	s.Model.mu.Lock()
	s.bump()
	s.Model.mu.Unlock()
}

// Evidence returns what was heard so far.
func (s *Sink) Evidence() []agent.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.evidence)
}

// EvidenceOf returns the strongest state heard of one exact turn, "" if nothing was.
func (s *Sink) EvidenceOf(turn agent.TurnID) agent.TargetState {
	var strongest agent.TargetState
	for _, e := range s.Evidence() {
		if e.TurnID == turn {
			strongest = strongest.Stronger(e.State)
		}
	}
	return strongest
}

// Diagnostics returns what could not become a fact, in order.
func (s *Sink) Diagnostics() []provider.Diagnostic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.diagnostics)
}

// Diagnosed counts the diagnostics of one kind.
func (s *Sink) Diagnosed(kind provider.DiagnosticKind) int {
	n := 0
	for _, d := range s.Diagnostics() {
		if d.Kind == kind {
			n++
		}
	}
	return n
}

// Lost counts the SessionLost facts.
func (s *Sink) Lost() int {
	n := 0
	for _, r := range s.Records() {
		if _, ok := r.Fact.(agent.SessionLost); ok {
			n++
		}
	}
	return n
}
