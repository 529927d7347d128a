package codex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// stuck is a server that lives, and takes nothing more from some moment on.
type stuck struct {
	*server
	full atomic.Bool
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.full.Load() {
		return 0, fmt.Errorf("write |1: %w", os.ErrDeadlineExceeded)
	}
	return s.server.Write(b)
}

// stuckStage is a stage whose server has just ceased to read.
func stuckStage(t *testing.T, prepare func(*stage)) *stage {
	t.Helper()
	s := newStage(t)
	s.close()
	s.Reopened()
	link := &stuck{server: newServer()}
	s.srv = link.server
	a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return link, nil }})
	opened := make(chan error, 1)
	go func() {
		rt, err := a.Open(t.Context(), s.OpenParams(), s.Sink)
		s.rt = rt
		opened <- err
	}()
	s.answer(s.expect(methodInitialize), `{"userAgent":"x/0.171.0 (test)"}`)
	s.answer(s.expect("thread/"), `{"thread":{"id":"`+rootThread+`"},"model":"m"}`)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(s)
	}
	link.full.Store(true)
	return s
}

// ends waits for the runtime's own end.
func (s *stage) ends() {
	s.t.Helper()
	select {
	case <-s.rt.Done():
	case <-time.After(20 * time.Second):
		s.t.Fatal("the runtime does not end")
	}
	if s.Lost() != 1 {
		s.t.Errorf("%d losses", s.Lost())
	}
}

func wantGone(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
		t.Errorf("the call ended with %v", err)
	}
}

func TestFailedWriteOfAStartEndsTheRuntime(t *testing.T) {
	s := stuckStage(t, nil)
	in := s.Submit(s.Root, "hello")
	wantGone(t, s.rt.Start(t.Context(), in))
	s.ends()
	turn := s.View().RootTurn()
	wantOutcome(t, turn, agent.OutcomeInterrupted)
	if want := "Codex stopped reading what it was told, so it was ended"; turn.Error == nil || turn.Error.Message != want {
		t.Errorf("the turn ended with %v, want %q", turn.Error, want)
	}
}

func TestFailedWriteOfAnAnswerEndsTheRuntime(t *testing.T) {
	s := stuckStage(t, func(s *stage) {
		s.begin("go", "r1")
		s.send(approval(0, rootThread, "r1", "x"))
	})
	a, err := s.PrepareAnswer(s.View().Pending()[0], agent.Response{OptionID: "accept"})
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, s.rt.Answer(t.Context(), a))
	s.ends()
}

// A refusal that cannot be written is a failed write like any other.
func TestFailedWriteOfARefusalEndsTheRuntime(t *testing.T) {
	s := stuckStage(t, func(s *stage) { s.begin("go", "r1") })
	s.srv.push(approval(0, "nobody", "n1", "x"))
	s.ends()
}

func TestBrokenStorageEndsTheRuntime(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	broken := errors.New("disk full")
	s.Fail = func(f agent.Fact) error {
		if _, loss := f.(agent.SessionLost); loss {
			return nil
		}
		return broken
	}
	s.srv.push(said(rootThread, "r1", "m", "hello")[1])
	s.ends()
	if e := s.View().RootTurn().Error; e == nil || e.Code != agent.CodeUnavailable {
		t.Errorf("the turn ended with %v", e)
	}
}

// What was not written at all leaves the conversation, and the question, as they were.
func TestAnswerThatIsTooLongIsNotTheEnd(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(`{"id":0,"method":"` + askInput + `","params":{"threadId":"` + rootThread + `","turnId":"r1","itemId":"x",` +
		`"questions":[{"id":"q","header":"Name","question":"Which?"}]}}`)
	i := s.View().Pending()[0]
	long := provider.Answer{Interaction: i, Response: agent.Response{Text: strings.Repeat("x", wire.DefaultMaxLine)}}
	if err := s.rt.Answer(t.Context(), long); !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) {
		t.Errorf("the long answer ended with %v", err)
	}
	if err := s.rt.Answer(t.Context(), provider.Answer{Interaction: i, Response: agent.Response{Text: "that"}}); err != nil {
		t.Error(err)
	}
	s.expect("answer")
}
