package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Case is one situation that every adapter must handle. Script says, in words, what
// the provider must do; a harness makes its provider do that, by a script of its own.
//
// In every script, what the root agent says holds the mark "[root]", what its child
// "one" says holds "[one]", and so on for "two", "nested" and "stray": the suite tells
// by them whose words are whose. "holds at X" means that the agent waits there until
// [Play.Release] is called with X, or, where a script goes by time, for five seconds.
type Case struct {
	Name   string
	Script string
	run    func(s *stage)
}

// Cases lists every case, in the order in which they run.
func Cases() []Case {
	return slices.Concat(basicCases, askCases, cancelCases, lifeCases, faultCases)
}

// Play is a provider that is ready to play one case.
type Play struct {
	Adapter provider.Adapter
	Root    agent.Session // what the adapter needs of the session: Cwd, Model, Scenario …
	Env     []string
	// Release lets an agent go on that holds at a point. nil where the script goes by time.
	Release func(point string)
	// Kill ends the provider's process from outside. nil where the script dies by itself
	// in the death cases, at the point "kill".
	Kill func()
}

// Harness says how to make a provider play.
type Harness struct {
	// New prepares the provider for one case. What it starts must end with t.
	New func(t *testing.T, name string) Play
	// Without declares the cases that this provider cannot play, each with the reason.
	Without map[string]string
	// Bubble runs each case in virtual time. It needs a provider without real I/O.
	Bubble bool
	// Reserves: the provider goes on by itself after its last child, so its adapter holds the
	// root for that before it reports the child's end, and gives up when nothing comes.
	Reserves bool
	// Limit is how long anything is awaited; 20 s if 0.
	Limit time.Duration
}

// Run runs the whole suite against an adapter.
func Run(t *testing.T, h Harness) {
	known := map[string]bool{}
	for _, c := range Cases() {
		known[c.Name] = true
		if reason, ok := h.Without[c.Name]; ok {
			if reason == "" {
				t.Errorf("case %s is left out without a reason", c.Name)
			}
			t.Logf("not played: %s: %s", c.Name, reason)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if h.Bubble {
				synctest.Test(t, func(t *testing.T) { h.play(t, c) })
				return
			}
			h.play(t, c)
		})
	}
	for name := range h.Without {
		if !known[name] {
			t.Errorf("there is no case %q to leave out", name)
		}
	}
}

// stage is one case being played.
type stage struct {
	*Sink
	t    *testing.T
	play Play
	rt   provider.Runtime
	in   provider.Input // of the latest root turn
	lim  time.Duration
	// reserves is the harness's.
	reserves bool
	// roots is how many root turns there may be in the end.
	roots int
}

func (h Harness) play(t *testing.T, c Case) {
	p := h.New(t, c.Name)
	if p.Root.Provider == "" {
		p.Root.Provider = p.Adapter.Name()
	}
	s := &stage{Sink: NewSink(t, p.Root), t: t, play: p, lim: h.Limit, reserves: h.Reserves, roots: 1}
	if s.lim <= 0 {
		s.lim = waitLimit
	}
	c.run(s)
	s.end()
}

// open opens the session's runtime.
func (s *stage) open() {
	s.t.Helper()
	params := s.OpenParams()
	params.Env = s.play.Env
	rt, err := s.play.Adapter.Open(s.t.Context(), params, s.Sink)
	if err != nil {
		s.t.Fatalf("Open: %v", err)
	}
	s.rt = rt
	s.t.Cleanup(func() { _ = rt.Close(context.Background()) }) // of a case that failed half-way
}

// start opens the runtime if need be and begins a root turn.
func (s *stage) start(text string) {
	s.t.Helper()
	if s.rt == nil {
		s.open()
	}
	s.in = s.Submit(s.Root, text)
	if err := s.rt.Start(s.t.Context(), s.in); err != nil {
		s.t.Fatalf("Start: %v", err)
	}
}

// again begins a further root turn.
func (s *stage) again() {
	s.t.Helper()
	s.roots++
	s.start("Again.")
}

func (s *stage) await(what string, cond func(View) bool) View {
	s.t.Helper()
	return s.AwaitFor(s.t, s.lim, what, cond)
}

// says waits until somebody has said text, and returns who.
func (s *stage) says(text string) agent.Session {
	s.t.Helper()
	v := s.await("somebody says "+text, func(v View) bool { return v.Holder(text).ID != "" })
	who := v.Holder(text)
	if (who.ID == s.Root) != strings.HasPrefix(text, "[root]") || who.LatestTurn == nil {
		s.t.Fatalf("%q is in the transcript of %s %s\n%s", text, who.Kind, who.ID, v)
	}
	return who
}

// settles waits for the latest root turn's end and checks its outcome.
func (s *stage) settles(want agent.Outcome) View {
	s.t.Helper()
	v := s.await("the root turn settles", func(v View) bool { return v.Turn(s.in.Turn).Phase == agent.PhaseSettled })
	if got := v.Turn(s.in.Turn).Outcome; got != want {
		s.t.Fatalf("the root turn ended as %q, want %q\n%s", got, want, v)
	}
	return v
}

// ends waits until the latest turn of a child has ended, and checks how.
func (s *stage) ends(child agent.SessionID, want agent.Outcome) {
	s.t.Helper()
	v := s.await("the child's turn settles", func(v View) bool { return v.Session(child).LatestTurn.Phase == agent.PhaseSettled })
	if got := v.Session(child).LatestTurn.Outcome; got != want {
		s.t.Errorf("child %s ended as %q, want %q\n%s", child, got, want, v)
	}
}

func (s *stage) release(point string) {
	if s.play.Release != nil {
		s.play.Release(point)
	}
}

func (s *stage) kill() {
	if s.play.Kill != nil {
		s.play.Kill()
	} else {
		s.release("kill")
	}
}

// check fails the test when something that must hold does not.
func (s *stage) check(ok bool, format string, args ...any) {
	s.t.Helper()
	if !ok {
		s.t.Errorf("%s\n%s", fmt.Sprintf(format, args...), s.View())
	}
}

// end closes the runtime and checks what must hold of every case.
func (s *stage) end() {
	s.t.Helper()
	s.closeRuntime()
	v := s.View()
	s.checkOwners(v)
	s.checkTerminals()
	roots := 0
	for _, t := range v.Turns {
		if t.IsRoot() {
			roots++
		}
	}
	s.check(roots == s.roots, "there are %d root turns, want %d", roots, s.roots)
	for _, c := range v.Children() {
		s.check(v.Session(c.RootSessionID).Kind == agent.KindRoot && c.ParentTurnID != "", "child %s has no whole edge: %+v", c.ID, c.Relation)
	}
}

// closeRuntime closes the runtime, twice, and from then on nothing may be reported.
func (s *stage) closeRuntime() {
	s.t.Helper()
	if s.rt == nil {
		return
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), s.lim)
		if err := s.rt.Close(ctx); err != nil {
			s.t.Errorf("Close: %v", err)
		}
		cancel()
		s.Closed()
	}
	s.done()
}

// done waits for the runtime's Done.
func (s *stage) done() {
	s.t.Helper()
	timer := time.NewTimer(s.lim)
	defer timer.Stop()
	select {
	case <-s.rt.Done():
	case <-timer.C:
		s.t.Fatal("Done was never closed")
	}
}

// marks are the words by which the suite tells who speaks.
var marks = []string{"[root]", "[one]", "[two]", "[nested]", "[stray]"}

// checkOwners checks that each agent's words are in one session, and the root's own in
// the root alone.
func (s *stage) checkOwners(v View) {
	s.t.Helper()
	for _, mark := range marks {
		var holder agent.SessionID
		for _, m := range v.Messages {
			if m.Role == agent.RoleUser || (m.Kind != agent.MessageText && m.Kind != agent.MessageThinking) || !strings.Contains(m.Content, mark) {
				continue
			}
			s.check((m.SessionID == s.Root) == (mark == "[root]"), "words of %s are in session %s", mark, m.SessionID)
			s.check(holder == "" || holder == m.SessionID, "words of %s are in two sessions", mark)
			holder = m.SessionID
		}
	}
}

// checkTerminals checks that no child turn was given two different ends that both
// counted, and that each provider turn ended once.
func (s *stage) checkTerminals() {
	s.t.Helper()
	children, runs := map[agent.TurnID]int{}, map[agent.ProviderTurnID]int{}
	for _, r := range s.Records() {
		if r.Applied.Verdict != agent.VerdictApplied {
			continue
		}
		switch f := r.Fact.(type) {
		case agent.TurnSettled:
			children[f.Turn]++
		case agent.ProviderTurnEnded:
			runs[f.Key]++
		}
	}
	for turn, n := range children {
		s.check(n == 1, "child turn %s ended %d times", turn, n)
	}
	for key, n := range runs {
		s.check(n == 1, "provider turn %s ended %d times", key, n)
	}
}
