package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// engine is one replay: the parts of a daemon, and the driver that moves them.
type engine struct {
	ctx      context.Context
	provider string
	dialect  dialect
	clock    *clock
	still    *still

	store    *store.Store
	live     *live.Live
	commands *command.Service
	judge    *judge
	recorder *recorder
	worker   *worker
	bounds   *bounds
	witness  *witness

	workspace agent.WorkspaceID
	roots     map[string]agent.SessionID // by the provider's name of the conversation
}

// never is longer than any recording: a session that has nothing to do stays open.
const never = 10_000 * time.Hour

func newEngine(ctx context.Context, providerName string, d dialect, s *still) (*engine, error) {
	e := &engine{
		ctx: ctx, provider: providerName, dialect: d, clock: &clock{now: epoch}, still: s,
		judge: newJudge(), roots: map[string]agent.SessionID{},
	}
	var serial atomic.Int64
	mint := agent.NewMinter(func() string { return fmt.Sprintf("%04d", serial.Add(1)) })
	silent := slog.New(slog.DiscardHandler)
	var err error
	e.store, err = store.Open(ctx, store.Options{
		Path: store.Memory, Synchronous: "normal", Now: e.clock.Now, Mint: mint, Logger: silent, OnCommit: e.judge.watch,
	})
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	e.recorder = &recorder{Store: e.store}
	e.witness = &witness{Adapter: d.adapter()}
	e.live = live.New(live.Options{
		Adapters: map[string]provider.Adapter{providerName: e.witness}, Recorder: e.recorder,
		Clock: e.clock, Mint: mint, Logger: silent, IdleClose: never,
	})
	e.bounds = &bounds{clock: e.clock, still: s, calls: map[*bounded]bool{}}
	e.worker = &worker{engine: e, lanes: map[agent.SessionID]int{}}
	e.commands = command.New(command.Options{
		Store: e.store, Live: (*runtimes)(e), Logger: silent, Clock: e.bounds,
		// What the provider can do is told by its runtime when it opens.
		Card: func(context.Context, string) (agent.Capabilities, error) { return agent.Capabilities{}, nil },
	})
	ws, err := e.store.CreateWorkspace(ctx, "replay", "/workspace")
	if err != nil {
		e.close()
		return nil, fmt.Errorf("create a workspace: %w", err)
	}
	e.workspace = ws.ID
	return e, nil
}

func (e *engine) close() {
	ctx, stop := context.WithTimeout(context.WithoutCancel(e.ctx), patience)
	defer stop()
	// The end has been read; what cannot be closed is the process's own end to clean up.
	_ = e.commands.Close(ctx)
	_ = e.live.Close(ctx)
	_ = e.store.Close()
}

// play drives a whole recording.
func (e *engine) play(lines []line) error {
	for at, l := range lines {
		if err := e.advance(epoch.Add(time.Duration(l.At) * time.Millisecond)); err != nil {
			return fmt.Errorf("before line %d: %w", at+1, err)
		}
		if unwritten(lines, at) {
			e.die("the process had ended")
			if err := e.rest(); err != nil {
				return fmt.Errorf("line %d: %w", at+1, err)
			}
		}
		if err := e.turn(at, l); err != nil {
			return fmt.Errorf("line %d: %w", at+1, err)
		}
	}
	return e.runOut()
}

// turn is one line's moment.
func (e *engine) turn(at int, l line) error {
	switch l.Dir {
	case dirIn:
		e.dialect.feed(at, l.Msg)
	case dirOut:
		if err := e.obey(at, e.dialect.read(at, l.Msg)); err != nil {
			return err
		}
	case "meta", "note":
		e.note(l.Msg)
	}
	return e.rest()
}

// remark is what the recorder wrote about the process, in the words of either recorder.
type remark struct {
	Event  string          `json:"event"`
	Status string          `json:"status"`
	Signal json.RawMessage `json:"signal"` // its number or its name
	RC     int             `json:"rc"`     // below 0 for a signal
	Text   string          `json:"text"`   // of a recorder that writes nothing but remarks
	Code   int             `json:"code"`
}

// note handles what the recorder wrote about the process.
func (e *engine) note(msg json.RawMessage) {
	var n remark
	_ = json.Unmarshal(msg, &n) // a note of another kind
	switch signal := strings.Trim(string(n.Signal), `"`); {
	case n.Event == "process_started", n.Event == "spawn":
		e.dialect.begin()
	case n.Event == "process_exited":
		e.die(n.Status)
	case n.Text == "agent exited" && signal == "null":
		e.die(fmt.Sprintf("exit %d", n.Code))
	case n.Text == "agent exited":
		e.die("signal: " + signal)
	case n.Event == "exit" && n.RC >= 0:
		e.die(fmt.Sprintf("exit %d", n.RC))
	case n.Event == "exit", n.Event == "kill" && (signal == "9" || signal == "SIGKILL"):
		e.die("signal: killed")
	}
}

// unwritten reports whether a line was meant for a process that had ended already, which
// the recorder found only when it wrote: its note follows.
func unwritten(lines []line, at int) bool {
	if lines[at].Dir != dirOut || at+1 == len(lines) || lines[at+1].Dir != "note" {
		return false
	}
	var n remark
	_ = json.Unmarshal(lines[at+1].Msg, &n) // a note of another kind
	return n.Event == "stdin_write_failed"
}

// die is the end of the recorded process. Whatever holds a session by it must say so
// before the replay goes on.
func (e *engine) die(why string) {
	if e.recorder.expectLoss(func() { e.still.work(-1) }) {
		e.still.work(1)
	}
	e.dialect.end(why)
}

// rest waits until nothing moves, and carries out what is due then.
func (e *engine) rest() error {
	for {
		if err := e.still.wait(); err != nil {
			return err
		}
		worked, err := e.worker.round()
		if err != nil || !worked {
			return err
		}
	}
}

// advance moves the clock, timer by timer.
func (e *engine) advance(then time.Time) error {
	for {
		f := e.clock.next(then)
		if f == nil {
			return nil
		}
		f()
		if err := e.rest(); err != nil {
			return err
		}
	}
}

// horizon is how long after its last line a recording can still have consequences.
const horizon = time.Hour

// runOut lets the clock run on until no timer is left.
func (e *engine) runOut() error {
	limit := e.clock.Now().Add(horizon)
	for {
		at, ok := e.clock.pending()
		if !ok || at.After(limit) {
			return nil
		}
		if err := e.advance(at); err != nil {
			return fmt.Errorf("after the last line: %w", err)
		}
	}
}

// recorder is storage as runtimes see it, with a look at what it says.
type recorder struct {
	*store.Store
	late, refused atomic.Int64

	mu   sync.Mutex
	open bool   // a runtime has said which conversation it holds
	loss func() // to be called when that runtime's end is recorded
}

// expectLoss has f called once, when the end of the open runtime has been recorded. It
// is false if none is open, or its end is expected already.
func (r *recorder) expectLoss(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || r.loss != nil {
		return false
	}
	r.loss = f
	return true
}

// Apply implements live.Recorder.
func (r *recorder) Apply(ctx context.Context, f agent.Fact) (agent.Applied, error) {
	applied, err := r.Store.Apply(ctx, f)
	if err != nil {
		return applied, err
	}
	switch applied.Verdict {
	case agent.VerdictLate:
		r.late.Add(1)
	case agent.VerdictRefused:
		r.refused.Add(1)
	case agent.VerdictApplied, agent.VerdictUnchanged:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch f := f.(type) {
	case agent.SessionDescribed:
		r.open = r.open || f.ProviderSessionID != ""
	case agent.SessionLost:
		r.open = false
		if r.loss != nil {
			r.loss()
			r.loss = nil
		}
	}
	return applied, nil
}
