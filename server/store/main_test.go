package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		crashChild() // never returns
	}
	goleak.VerifyTestMain(m)
}

// clock is a time that tests move.
type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.us.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }

func counter(prefix string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s%06d", prefix, n.Add(1)) }
}

func code(c agent.Code) error        { return &agent.Error{Code: c} }
func quiet() *slog.Logger            { return slog.New(slog.DiscardHandler) }
func failed(msg string) *agent.Error { return agent.Errorf(agent.CodeProviderRefused, "%s", msg) }

func pathIn(tb testing.TB) string           { tb.Helper(); return filepath.Join(tb.TempDir(), "turnkeeper.db") }
func background(testing.TB) context.Context { return context.Background() }

// world is a store with one workspace and what its OnCommit has heard.
type world struct {
	testing.TB
	*Store
	clock *clock
	ws    agent.WorkspaceID
	path  string

	mu    sync.Mutex
	heard []agent.Event
}

type option func(*Options)

func onDisk(path string) option     { return func(o *Options) { o.Path = path } }
func withDriver(name string) option { return func(o *Options) { o.driver = name } }
func synchronous(s string) option   { return func(o *Options) { o.Synchronous = s } }
func retaining(n int64) option      { return func(o *Options) { o.RetainEvents = n } }

// open gives a store in a file of its own; options come last.
func open(tb testing.TB, options ...option) *world {
	tb.Helper()
	w := &world{TB: tb, clock: newClock()}
	o := Options{Path: pathIn(tb), Synchronous: "normal", Now: w.clock.now, Mint: agent.NewMinter(counter("")), Logger: quiet(), OnCommit: w.hear}
	for _, set := range options {
		set(&o)
	}
	w.path = o.Path
	w.start(o)
	ws, err := w.CreateWorkspace(background(tb), "w", "/w")
	w.must(err)
	w.ws = ws.ID
	return w
}

func (w *world) start(o Options) {
	w.Helper()
	s, err := Open(background(w), o)
	if err != nil {
		w.Fatal(err)
	}
	w.Store = s
	w.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.Error(err)
		}
	})
}

// reopen closes the file and opens it again, as a daemon that was started again does.
func (w *world) reopen() {
	w.Helper()
	w.must(w.Close())
	o := w.opt
	o.Mint = agent.NewMinter(counter("again"))
	w.start(o)
}

func (w *world) hear(events []agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, events...)
}

// events returns what OnCommit has heard since the last call.
func (w *world) events() []agent.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.heard
	w.heard = nil
	return out
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refuses checks that err has a code.
func (w *world) refuses(err error, c agent.Code) {
	w.Helper()
	if !errors.Is(err, code(c)) {
		w.Fatalf("got %v, want code %s", err, c)
	}
}

// apply applies a fact that must not be an error.
func (w *world) apply(f agent.Fact) agent.Applied {
	w.Helper()
	a, err := w.Apply(background(w), f)
	w.must(err)
	return a
}

// verdict applies a fact and checks its verdict.
func (w *world) verdict(f agent.Fact, want agent.Verdict, c agent.Code) agent.Applied {
	w.Helper()
	a := w.apply(f)
	if a.Verdict != want || a.Code != c {
		w.Fatalf("%T: got %s %q, want %s %q", f, a.Verdict, a.Code, want, c)
	}
	return a
}

// tree is a root session with an open root turn.
type tree struct {
	*world
	root agent.SessionID
	turn agent.TurnID
}

var allCaps = agent.Capabilities{Cancel: true, ChildCancel: true, Guide: true, GuideWhileChildrenRun: true}

// begin creates a root session and submits a message.
func (w *world) begin() *tree {
	w.Helper()
	out, err := w.CreateSession(background(w), agent.NewSession{
		Workspace: w.ws, Provider: "demo", Cwd: "/w", Capabilities: allCaps,
		Message: &agent.NewMessage{ClientMessageID: "first", Text: "do it", Client: "test"},
	})
	w.must(err)
	return &tree{world: w, root: out.Session.ID, turn: out.Turn.ID}
}

func (t *tree) provider(key string) {
	t.Helper()
	t.verdict(agent.ProviderTurnStarted{Session: t.root, Turn: t.turn, Key: agent.ProviderTurnID(key)}, agent.VerdictApplied, "")
}

func (t *tree) providerEnds(key string, o agent.Outcome) agent.Applied {
	t.Helper()
	return t.apply(agent.ProviderTurnEnded{Session: t.root, Turn: t.turn, Key: agent.ProviderTurnID(key), Outcome: o})
}

// child is one child session with its first turn.
type child struct {
	session agent.SessionID
	turn    agent.TurnID
}

func named(root agent.SessionID, name string) child {
	return child{agent.SessionID(string(root) + "." + name), agent.TurnID("trn." + string(root) + "." + name)}
}

func (t *tree) start(name string, parent agent.SessionID, turn agent.TurnID) (child, agent.ChildStarted) {
	c := named(t.root, name)
	return c, agent.ChildStarted{Session: c.session, Turn: c.turn, Parent: parent, ParentTurn: turn, Call: agent.CallID("call-" + name), Title: name}
}

// child starts a child of the root.
func (t *tree) child(name string) child {
	t.Helper()
	c, f := t.start(name, t.root, t.turn)
	t.verdict(f, agent.VerdictApplied, "")
	return c
}

// below starts a child of a child.
func (t *tree) below(parent child, name string) child {
	t.Helper()
	c, f := t.start(name, parent.session, parent.turn)
	t.verdict(f, agent.VerdictApplied, "")
	return c
}

func (t *tree) ends(c child, o agent.Outcome) agent.Applied {
	t.Helper()
	return t.apply(agent.TurnSettled{Session: c.session, Turn: c.turn, Outcome: o})
}

func (t *tree) rootTurn() agent.Turn {
	t.Helper()
	turn, err := t.Turn(background(t), t.ws, t.root, t.turn)
	t.must(err)
	return turn
}

func (t *tree) childTurn(c child) agent.Turn {
	t.Helper()
	turn, err := t.Turn(background(t), t.ws, c.session, c.turn)
	t.must(err)
	return turn
}

// is checks a root turn's phase and outcome.
func (t *tree) is(p agent.Phase, o agent.Outcome) {
	t.Helper()
	if turn := t.rootTurn(); turn.Phase != p || turn.Outcome != o {
		t.Fatalf("root turn is %s %q, want %s %q", turn.Phase, turn.Outcome, p, o)
	}
}

func (t *tree) childIs(c child, p agent.Phase, o agent.Outcome) {
	t.Helper()
	if turn := t.childTurn(c); turn.Phase != p || turn.Outcome != o {
		t.Fatalf("child turn is %s %q, want %s %q", turn.Phase, turn.Outcome, p, o)
	}
}

func (t *tree) session() agent.Session {
	t.Helper()
	s, err := t.Session(background(t), t.ws, t.root)
	t.must(err)
	return s
}

// kinds are an event list in short.
func kinds(events []agent.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e.Kind) + " " + string(e.SessionID)
	}
	return out
}
