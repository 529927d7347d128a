package runner

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// storage is a sink that fails when told to, and remembers what reached it.
type storage struct {
	provider.Sink
	fails error
	facts []agent.Fact
	odd   []provider.Diagnostic
}

func (s *storage) Clock() provider.Clock { return provider.RealClock{} }
func (s *storage) Mint() agent.Minter    { return agent.Minter{} }

func (s *storage) Apply(f agent.Fact) (agent.Applied, error) {
	s.facts = append(s.facts, f)
	return agent.Applied{Verdict: agent.VerdictApplied}, s.fails
}

func (s *storage) Text(agent.SessionID, agent.TurnID, agent.MessageID, string) error { return s.fails }

func (s *storage) Diagnose(d provider.Diagnostic) { s.odd = append(s.odd, d) }

// process says nothing until it is closed.
type process struct {
	io.Writer
	once  sync.Once
	ended chan struct{}
}

func (p *process) Read([]byte) (int, error) { <-p.ended; return 0, io.EOF }
func (p *process) Explain() string          { return "" }
func (p *process) Close(context.Context) error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

type desk struct {
	*Runner
	store  *storage
	hungUp []error
	reason error
}

// serve runs f while the process is read, and returns when the runtime has ended.
func serve(t *testing.T, f func(d *desk)) *desk {
	t.Helper()
	d := &desk{store: &storage{}}
	link := &process{ended: make(chan struct{})}
	d.Runner = New(d.store, link, nil, func(err error) { d.hungUp = append(d.hungUp, err) })
	read := func() error { _, err := link.Read(nil); return err }
	go d.Serve(read, func(reason error) {
		d.Do(func() {
			d.reason = reason
			if d.Losing() {
				d.Lose("ses", agent.Errorf(agent.CodeProviderGone, "gone"))
			}
		})
	})
	d.Do(func() { d.Ready = true })
	f(d)
	<-d.Done()
	return d
}

func TestStorageThatFailsEndsTheRuntime(t *testing.T) {
	full := errors.New("disk full")
	tries := map[string]func(d *desk){
		"a fact": func(d *desk) {
			if _, ok := d.Apply(agent.SessionDescribed{Session: "ses"}); ok {
				t.Error("a fact was taken that storage refused")
			}
		},
		"text": func(d *desk) { d.Text("ses", "trn", "msg", "hello") },
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			d := serve(t, func(d *desk) {
				d.Do(func() {
					d.store.fails = full
					try(d)
					before := len(d.store.facts)
					if applied, ok := d.Apply(agent.SessionDescribed{}); ok || applied.Verdict != agent.VerdictRefused || applied.Code != agent.CodeProviderGone {
						t.Errorf("after that: %+v %v", applied, ok)
					}
					d.Text("ses", "trn", "msg", "more")
					if len(d.store.facts) != before || !d.Broken() || !d.Over() || d.Closing() {
						t.Error("the runtime goes on")
					}
				})
			})
			if !slices.Equal(d.hungUp, []error{full}) || !errors.Is(d.reason, io.EOF) {
				t.Errorf("hung up %v, read until %v", d.hungUp, d.reason)
			}
			lost, ok := d.store.facts[len(d.store.facts)-1].(agent.SessionLost)
			if !ok || lost.Session != "ses" || len(d.store.odd) != 1 || d.store.odd[0].Method != "exit" {
				t.Errorf("the loss: %+v, diagnostics %+v", d.store.facts, d.store.odd)
			}
		})
	}
}

func TestNothingIsReportedOfARuntimeThatIsClosed(t *testing.T) {
	d := serve(t, func(d *desk) {
		d.Do(func() {
			d.Hush()
			d.Diagnose(provider.Late, "a", "")
			if _, ok := d.Apply(agent.SessionDescribed{}); ok || !d.Over() || !d.Closing() || d.Losing() {
				t.Error("it is not closed")
			}
		})
		_ = d.Link.Close(t.Context())
	})
	if len(d.store.facts) != 0 || len(d.store.odd) != 0 {
		t.Errorf("reported %+v %+v", d.store.facts, d.store.odd)
	}
}

// A process that ends before it was of use takes nothing with it.
func TestEndBeforeReadyIsNoLoss(t *testing.T) {
	d := serve(t, func(d *desk) {
		d.Do(func() { d.Ready = false })
		_ = d.Link.Close(t.Context())
	})
	if len(d.store.facts) != 0 {
		t.Errorf("reported %+v", d.store.facts)
	}
}

// After half a line nothing can be written any more; any other error is the call's.
func TestOnlyAFailedWriteEndsTheRuntime(t *testing.T) {
	broken := &wire.WriteError{Err: io.ErrShortWrite}
	d := serve(t, func(d *desk) {
		d.Unwritten(nil)
		d.Unwritten(wire.ErrMessageTooLong)
		if len(d.hungUp) != 0 {
			t.Errorf("hung up %v", d.hungUp)
		}
		d.Unwritten(broken)
	})
	if !slices.Equal(d.hungUp, []error{broken}) {
		t.Errorf("hung up %v", d.hungUp)
	}
}

// What ends a target is the last that is heard of it, and nobody is called under the lock.
func TestEvidenceOfATarget(t *testing.T) {
	var heard []agent.TargetState
	serve(t, func(d *desk) {
		target := provider.CancelTarget{Session: "ses", Turn: "trn"}
		ct := d.Target(target, func(e agent.Evidence) {
			if e.SessionID != "ses" || e.TurnID != "trn" {
				t.Errorf("evidence %+v", e)
			}
			d.Do(func() { heard = append(heard, e.State) }) // the lock is free
		})
		d.Do(func() {
			for _, s := range []agent.TargetState{agent.TargetAcknowledged, "", agent.TargetCanceled, agent.TargetAlreadyTerminal} {
				ct.Hear(s, nil)
			}
			if len(heard) != 0 || !ct.Done {
				t.Errorf("heard %v under the lock, done %v", heard, ct.Done)
			}
		})
		_ = d.Link.Close(t.Context())
	})
	if want := []agent.TargetState{agent.TargetAcknowledged, "", agent.TargetCanceled}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}
