package claude

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// scene is one session with a puppet, in virtual time.
type scene struct {
	*providertest.Sink
	*puppet
	t  *testing.T
	rt provider.Runtime
	in provider.Input // of the latest root turn
}

// play opens a session with a puppet and has f happen.
func play(t *testing.T, f func(s *scene)) {
	t.Helper()
	playWith(t, agent.Session{}, f)
}

func playWith(t *testing.T, root agent.Session, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		root.Provider = "claude"
		s := &scene{Sink: providertest.NewSink(t, root), puppet: newPuppet(), t: t}
		s.open()
		f(s)
		s.close()
	})
}

func (s *scene) open() {
	s.t.Helper()
	adapter := New(Options{
		Logger:  slog.New(slog.DiscardHandler),
		Connect: func(context.Context, provider.OpenParams) (Transport, error) { return s.puppet, nil },
	})
	rt, err := adapter.Open(s.t.Context(), s.OpenParams(), s.Sink)
	if err != nil {
		s.t.Fatal(err)
	}
	s.rt = rt
}

func (s *scene) close() {
	s.t.Helper()
	if err := s.rt.Close(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	s.Closed()
}

// does has the puppet do something, and waits until it was handled.
func (s *scene) does(f func()) {
	s.t.Helper()
	s.mu.Lock()
	f()
	s.mu.Unlock()
	synctest.Wait()
}

// start begins a root turn in which the puppet does f.
func (s *scene) start(f func()) {
	s.t.Helper()
	s.does(func() { s.onTurn = append(s.onTurn, func(string) { f() }) })
	s.in = s.Submit(s.Root, "Go.")
	if err := s.rt.Start(s.t.Context(), s.in); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func (s *scene) guide() provider.Input {
	s.t.Helper()
	in := s.Guidance(s.Root, "And this.")
	if err := s.rt.Guide(s.t.Context(), in); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return in
}

// background begins a root turn that leaves a child in the background, and says idle for
// nobody.
func (s *scene) background(names ...string) {
	s.t.Helper()
	s.quiet = true
	s.start(func() {
		for _, name := range names {
			s.delegate(name, nil, true)
		}
		s.done("[root] launched")
	})
}

// ends has a child end, with nothing after it.
func (s *scene) ends(name string) {
	s.t.Helper()
	s.does(func() { s.finish(s.kids[name], taskCompleted) })
}

// cancel stops a turn with everything below it, and completes the operation.
func (s *scene) cancel(turn agent.TurnID) []agent.TargetState {
	s.t.Helper()
	c := s.PrepareCancel(turn)
	ctx, stop := context.WithTimeout(s.t.Context(), 15*time.Second)
	defer stop()
	if err := s.rt.Cancel(ctx, c, s.Heard); err != nil && ctx.Err() == nil {
		s.t.Errorf("Cancel: %v", err)
	}
	return s.CompleteCancel(c, s.Evidence())
}

func (s *scene) rootTurn() agent.Turn { return s.View().Turn(s.in.Turn) }

// child is a child by the call that launched it.
func (s *scene) child(name string) agent.Session {
	for _, c := range s.View().Children() {
		if c.ParentToolCallID == agent.CallID("toolu_"+name) {
			return c
		}
	}
	s.t.Fatalf("there is no child %s\n%s", name, s.View())
	return agent.Session{}
}

func (s *scene) check(ok bool, format string, args ...any) {
	s.t.Helper()
	if !ok {
		s.t.Errorf(format+"\n%s", append(args, s.View())...)
	}
}

// said says whether somebody other than a person has said a text.
func (s *scene) said(text string) bool { return s.View().Holder(text).ID != "" }

// status is what became of a person's message.
func (s *scene) status(id agent.MessageID) agent.MessageStatus {
	for _, m := range s.View().Messages {
		if m.ID == id {
			return m.Status
		}
	}
	return ""
}

func (s *scene) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
