package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// stage is an adapter's runtime in virtual time, a sink behind it and a puppet before it.
type stage struct {
	*providertest.Sink
	t    *testing.T
	p    *puppet
	root agent.Session
	o    Options
	rt   *runtime
	in   provider.Input
}

// play runs a test in virtual time, with the runtime open, for one version or both.
func play(t *testing.T, versions []int, f func(s *stage)) {
	t.Helper()
	for _, v := range versions {
		t.Run(map[int]string{acp.V1: "v1", acp.V2: "v2"}[v], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, v)
				s.p.onTurn = turns(func(string) {})
				s.open()
				f(s)
				s.close()
			})
		})
	}
}

var (
	one  = []int{acp.V1}
	two  = []int{acp.V2}
	both = []int{acp.V1, acp.V2}
)

// newStage is a stage that is not open yet.
func newStage(t *testing.T, version int) *stage {
	s := &stage{t: t, p: newPuppet(version), root: agent.Session{Provider: "puppet", Cwd: "/w"}}
	s.o = s.p.options()
	return s
}

func (s *stage) open() {
	s.t.Helper()
	if err := s.tryOpen(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) tryOpen() error {
	if s.Sink == nil {
		s.Sink = providertest.NewSink(s.t, s.root)
	}
	rt, err := New(s.o).Open(s.t.Context(), s.OpenParams(), s.Sink)
	if err != nil {
		return err
	}
	s.rt = rt.(*runtime)
	return nil
}

func (s *stage) close() {
	s.t.Helper()
	if s.rt == nil {
		return
	}
	if err := s.rt.Close(context.Background()); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.Closed()
}

// reopen closes the runtime and opens it again, with the same agent restarted.
func (s *stage) reopen() {
	s.t.Helper()
	s.close()
	s.Reopened()
	s.open()
}

// start begins a root turn.
func (s *stage) start() {
	s.t.Helper()
	s.in = s.Submit(s.Root, "Go.")
	if err := s.rt.Start(s.t.Context(), s.in); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// does lets the puppet do something, and waits until it was handled.
func (s *stage) does(f func(p *puppet)) {
	s.p.mu.Lock()
	f(s.p)
	s.p.mu.Unlock()
	synctest.Wait()
}

// pass lets time pass.
func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// child is the session of a child by the puppet's name for it.
func (s *stage) child(id string) agent.Session {
	s.t.Helper()
	for _, c := range s.View().Children() {
		if c.Handles.ThreadID == id {
			return c
		}
	}
	s.t.Fatalf("there is no child %s\n%s", id, s.View())
	return agent.Session{}
}

// ended checks how the latest turn of a child stands; "" is live.
func (s *stage) ended(id string, want agent.Outcome) {
	s.t.Helper()
	if got := s.child(id).LatestTurn.Outcome; got != want {
		s.t.Errorf("child %s is %q, want %q\n%s", id, got, want, s.View())
	}
}

// rooted checks how the root turn stands; "" is live.
func (s *stage) rooted(want agent.Outcome) {
	s.t.Helper()
	if got := s.View().Turn(s.in.Turn).Outcome; got != want {
		s.t.Errorf("the root turn is %q, want %q\n%s", got, want, s.View())
	}
}

// grantTold checks whether the API says that a child can be stopped alone.
func (s *stage) grantTold(id string, want bool) {
	s.t.Helper()
	if c := s.child(id).Capabilities; c.ChildCancel != want || c.ConfirmsChildCancel != want {
		s.t.Errorf("child %s has %+v, want %v", id, c, want)
	}
}

// cancelling is a stop under way.
type cancelling struct {
	s    *stage
	c    provider.Cancel
	err  error
	over chan struct{} // closed with err set
	from int           // of the evidence
}

// done reports whether it has returned.
func (x *cancelling) done() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}

// cancel begins a stop of a turn and everything below it, with the bound of the product.
func (s *stage) cancel(turn agent.TurnID) *cancelling {
	s.t.Helper()
	x := &cancelling{s: s, c: s.PrepareCancel(turn), from: len(s.Evidence()), over: make(chan struct{})}
	ctx, stop := context.WithTimeout(s.t.Context(), 15*time.Second)
	go func() {
		defer stop()
		x.err = s.rt.Cancel(ctx, x.c, s.Heard)
		close(x.over)
	}()
	synctest.Wait()
	return x
}

// completes waits for its end and returns what each target's row reads.
func (x *cancelling) completes() map[agent.SessionID]agent.TargetState {
	x.s.t.Helper()
	for range 20 {
		if x.done() {
			break
		}
		x.s.pass(time.Second)
	}
	if !x.done() {
		x.s.t.Fatal("the stop never returns")
	}
	out := map[agent.SessionID]agent.TargetState{}
	for i, state := range x.s.CompleteCancel(x.c, x.s.Evidence()[x.from:]) {
		out[x.c.Targets[i].Session] = state
	}
	synctest.Wait()
	return out
}

// asked is the one open question.
func (s *stage) asked() agent.Interaction {
	s.t.Helper()
	pending := s.View().Pending()
	if len(pending) != 1 {
		s.t.Fatalf("%d questions are open, want 1\n%s", len(pending), s.View())
	}
	return pending[0]
}

// answers gives an answer as a person does.
func (s *stage) answers(i agent.Interaction, r agent.Response) error {
	s.t.Helper()
	a, err := s.PrepareAnswer(i, r)
	if err != nil {
		return err
	}
	err = s.rt.Answer(s.t.Context(), a)
	s.CompleteAnswer(a, err)
	synctest.Wait()
	return err
}

// texts are what somebody said in a session, joined.
func (s *stage) texts(id agent.SessionID) string {
	var out []string
	for _, m := range s.View().MessagesOf(id) {
		if m.Kind != agent.MessageToolCall {
			out = append(out, string(m.Role)+":"+m.Content)
		}
	}
	return strings.Join(out, "|")
}

// calls are the tool calls of a session.
func (s *stage) calls(id agent.SessionID) []agent.Message {
	return slices.DeleteFunc(s.View().MessagesOf(id), func(m agent.Message) bool { return m.Kind != agent.MessageToolCall })
}

// line plays one line as it is.
func (s *stage) line(raw string) { s.does(func(p *puppet) { p.Play(json.RawMessage(raw)) }) }

// answersLoads makes the puppet hold every load until it is told what to answer.
func (p *puppet) holdLoads(ids *[]string) {
	p.onHeard = func(m line) bool {
		if m.Method == acp.MethodLoadSession || m.Method == acp.MethodResumeSession {
			*ids = append(*ids, string(m.ID))
			return true
		}
		return false
	}
}
