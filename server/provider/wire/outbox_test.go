package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// gated is a reader's side that takes a line only when it is let to.
type gated struct {
	gate chan struct{}
	buf  bytes.Buffer
}

func (g *gated) Write(b []byte) (int, error) {
	<-g.gate
	return g.buf.Write(b)
}

// A slow reader holds nobody up until the bound, and what is written is told when it has
// left and not before.
func TestOutboxUnderASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: make(chan struct{})}
		o := NewOutbox(g, 10, 0)
		told := make(chan error, 1)
		for _, line := range []string{"aaaa\n", "bbbb\n"} {
			if _, err := o.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		o.Written(func(err error) { told <- err })
		full := make(chan struct{})
		go func() { _, _ = o.Write([]byte("cccc\n")); close(full) }()
		synctest.Wait()
		select {
		case <-full:
			t.Fatal("a line went over the bound")
		case <-told:
			t.Fatal("told before anything was written")
		default:
		}
		g.gate <- struct{}{}
		<-full
		g.gate <- struct{}{}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		close(g.gate)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if got := g.buf.String(); got != "aaaa\nbbbb\ncccc\n" {
			t.Errorf("wrote %q", got)
		}
		if _, err := o.Write([]byte("x\n")); err == nil {
			t.Error("wrote after Close")
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutboxTellsAFailedWrite(t *testing.T) {
	o := NewOutbox(broken{}, 0, 0)
	told := make(chan error, 1)
	if _, err := o.Write([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	o.Written(func(err error) { told <- err })
	if err := <-told; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("told %v", err)
	}
	if err := o.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Close: %v", err)
	}
}

// Batches and lines that are no message are refused with id null where that is asked for,
// and a request that was withdrawn is still answered.
func TestRefusalsAndWithdrawal(t *testing.T) {
	in := strings.Join([]string{
		`[{"jsonrpc":"2.0","id":5,"method":"x"}]`, `nonsense`, `{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":0,"method":"ask"}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"withdrawn"}}`,
	}, "\n") + "\n"
	var out bytes.Buffer
	var got []string
	p := NewPeer(strings.NewReader(in), &out, Options{Version: "2.0", Refuse: true, Handler: func(f Frame) {
		got = append(got, f.Method+"|"+string(f.ID))
	}})
	var answer Answer
	id, err := p.Go("permission", map[string]int{}, func(a Answer) { answer = a })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Withdraw(id); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != "ask|0 $/cancel_request|" {
		t.Errorf("frames %v", got)
	}
	var refused *Error
	if !errors.As(answer.Err, &refused) || refused.Code != CodeWithdrawn {
		t.Errorf("answer %+v", answer)
	}
	if n := strings.Count(out.String(), `"id":null`); n != 3 || !strings.Contains(out.String(), "batches are not supported") ||
		!strings.Contains(out.String(), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`) {
		t.Errorf("wrote %s", out.String())
	}
}
