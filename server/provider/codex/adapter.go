package codex

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Options of an adapter. The zero value finds the user's own Codex.
type Options struct {
	Binary string        // the executable; "" looks for it, see [Find]
	Args   []string      // further arguments of app-server
	Owner  string        // marks the processes, see proc.Config
	Getenv Getenv        // os.Getenv by default
	Env    []string      // what its processes will see, for the card; nil: what environ gives
	Logger *slog.Logger  // slog.Default by default
	Grace  time.Duration // how long a process has to end by itself; 0 is proc's default

	// Connect replaces the process: tests and replays bring their own.
	Connect func(ctx context.Context, p provider.OpenParams) (Transport, error)
	// Record sees every line, "in" or "out", in the order of the wire. It must not keep
	// the line.
	Record func(dir string, line []byte)
	// Park hears when a call begins (+1) and ceases (-1) to wait for the provider. A
	// replay in virtual time needs to know that nothing else moves.
	Park func(change int)
}

// Getenv reads one variable of the environment, "" if it is not set.
type Getenv func(string) string

// Adapter opens root sessions with `codex app-server`. It is safe for concurrent use.
type Adapter struct{ o Options }

// New returns an adapter.
func New(o Options) *Adapter {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	a := &Adapter{o}
	if a.o.Connect == nil {
		a.o.Connect = a.connect
	}
	return a
}

// Name implements provider.Adapter.
func (a *Adapter) Name() string { return "codex" }

// capabilities are what the app-server really does, as recorded.
func capabilities() agent.Capabilities {
	return agent.Capabilities{
		Cancel: true, ConfirmsCancel: true, ChildCancel: true, ConfirmsChildCancel: true,
		Guide: true, GuideWhileChildrenRun: true, Resume: true,
	}
}

// Permission modes of a session.
const (
	modeConfigured = "configured"
	modeReadOnly   = "read-only"
	modeAsk        = "ask"
	modeFull       = "full-access"
)

// policy is the approval policy and sandbox of a permission mode; "" leaves what the
// user's own configuration says.
func policy(mode string) (approval, sandbox string, err error) {
	switch mode {
	case "", modeConfigured:
		return "", "", nil
	case modeReadOnly:
		return "on-request", "read-only", nil
	case modeAsk:
		return "on-request", "workspace-write", nil
	case modeFull:
		return "never", "danger-full-access", nil
	}
	return "", "", agent.Errorf(agent.CodeInvalid, "Codex has no permission mode %q; there are: %s", mode, strings.Join(permissionModes(), ", "))
}

func permissionModes() []string {
	return []string{modeConfigured, modeReadOnly, modeAsk, modeFull}
}

// CheckChoice implements provider.Chooser.
func (a *Adapter) CheckChoice(c provider.Choice) error {
	if c.Scenario != "" {
		return agent.Errorf(agent.CodeInvalid, "Codex plays no scenarios: only the demo does")
	}
	_, _, err := policy(c.PermissionMode)
	return err
}

// Probe implements provider.Adapter.
func (a *Adapter) Probe(ctx context.Context) provider.Info {
	info := provider.Info{
		Name: a.Name(), DisplayName: "Codex", Capabilities: capabilities(),
		Models:          []string{},
		PermissionModes: permissionModes(),
		Scenarios:       []provider.Scenario{},
		Notes: []string{
			"A stop is confirmed for the main agent and for each child by the end of that exact turn.",
			"When only a child is stopped, the main agent is not told: it may sit in its own wait for 10 seconds or more.",
			"Commands that an agent has started can outlive its turn; they are listed as processes, each can be ended alone, and their late output is kept as history.",
			"A message is delivered when Codex shows it as taken; one that a stop overtakes is marked as not delivered.",
			"With version 2 of its multi-agent tools Codex does not show what a child was asked to do.",
			"Questions to the person can come from the main agent only; approvals come from children too.",
		},
	}
	path, version, err := a.locate(ctx)
	info.Path, info.Version = path, version
	if err != nil {
		info.Reason = err.Message
		return info
	}
	info.Found = true
	note, missing := a.account()
	if info.Reason = missing; note != "" { // first: it decides whether a turn can run at all
		info.Notes = slices.Insert(info.Notes, 0, note)
	}
	return info
}

// Open implements provider.Adapter.
func (a *Adapter) Open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
	approval, sandbox, err := policy(p.Root.PermissionMode)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, givenUp()
	}
	link, err := a.o.Connect(ctx, p)
	if err != nil {
		return nil, err
	}
	r := newRuntime(sink, link, a.o)
	provider.Go(sink, r.run)
	if err := r.open(ctx, p, approval, sandbox); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), runner.CloseBound)
		defer cancel()
		if e := r.Close(stop); e != nil {
			a.o.Logger.Warn("codex did not end after a failed start", "err", e)
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, givenUp()
		}
		if how := link.Explain(); how != "" {
			return nil, explained(err, how)
		}
		return nil, err
	}
	return r, nil
}

func givenUp() error {
	return agent.Errorf(agent.CodeTimeout, "opening Codex was given up before it was ready")
}

// explained adds how the process ended to why it could not be opened.
func explained(err error, how string) error {
	var e *agent.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Code == agent.CodeProviderGone {
		return agent.Errorf(agent.CodeProviderUnavailable, "Codex ended while it started: %s", how)
	}
	return e
}

// open is the handshake: initialize, and the root thread.
func (r *runtime) open(ctx context.Context, p provider.OpenParams, approval, sandbox string) error {
	hello := initializeParams{
		ClientInfo:   clientInfo{Name: "turnkeeper", Title: "Turnkeeper", Version: "1"},
		Capabilities: clientCapabilities{ExperimentalAPI: true},
	}
	var who initializeResult
	if err := r.call(ctx, methodInitialize, hello, &who); err != nil {
		return callError("start up", err)
	}
	if v := serverVersion(who.UserAgent); proc.OlderThan(v, minVersion) {
		return agent.Errorf(agent.CodeProviderUnavailable,
			"Codex %s is too old, %s or newer is needed: npm install -g @openai/codex", v, minVersion)
	}
	if err := r.peer.Notify(methodInitialized, nil); err != nil {
		return callError("start up", err)
	}
	params := threadParams{Cwd: p.Root.Cwd, Model: p.Root.Model, ApprovalPolicy: approval, Sandbox: sandbox}
	method := methodThreadStart
	if p.Root.ProviderSessionID != "" {
		method, params.ThreadID, params.ExcludeTurns = methodThreadResume, p.Root.ProviderSessionID, true
	}
	return r.openThread(ctx, method, params, p)
}

// openThread starts or resumes the root thread. It is registered at the answer's place
// in the order of the wire, so that nothing that follows it finds the root unknown.
func (r *runtime) openThread(ctx context.Context, method string, params threadParams, p provider.OpenParams) error {
	w := serial.NewWaiter()
	r.Do(func() { r.askForThread(method, params, p, w) })
	return r.Await(ctx, w)
}

func (r *runtime) askForThread(method string, params threadParams, p provider.OpenParams, w *serial.Waiter) {
	r.send(method, params, handshakeBound, func(a wire.Answer) {
		if method == methodThreadResume && nothingKept(a.Err) {
			r.Diagnose(provider.Refused, method, params.ThreadID)
			params.ThreadID, params.ExcludeTurns = "", false
			r.askForThread(methodThreadStart, params, p, w)
			return
		}
		var res threadResult
		err := a.Decode(&res)
		if err == nil && res.Thread.ID == "" {
			err = errors.New("codex: no thread id")
		}
		if err != nil {
			r.Finish(w, callError("open the conversation", err))
			return
		}
		r.Finish(w, r.adoptRoot(res, p))
	})
}

// nothingKept says whether a thread cannot be resumed because the server has nothing of
// it: it writes a thread down with its first turn and not before.
func nothingKept(err error) bool {
	var refused *wire.Error
	return errors.As(err, &refused) && strings.Contains(refused.Message, "no rollout found")
}

// adoptRoot makes an opened thread the root session's.
func (r *runtime) adoptRoot(res threadResult, p provider.OpenParams) error {
	r.root = r.own(res.Thread.ID, p.Root.ID)
	r.remember(p.Remembered)
	able := capabilities()
	_, ok := r.Apply(agent.SessionDescribed{
		Session: p.Root.ID, ProviderSessionID: res.Thread.ID, Model: res.Model,
		Handles: agent.Handles{ThreadID: res.Thread.ID}, Capabilities: &able,
	})
	if !ok {
		return agent.Errorf(agent.CodeUnavailable, "storage did not take the session")
	}
	if was := p.Root.ProviderSessionID; was != "" && was != res.Thread.ID {
		r.sayForgotten(p)
	}
	r.Ready = true
	r.release(r.root)
	return nil
}

// sayForgotten tells the person that the agent starts anew, if there was anything that it
// could have remembered.
func (r *runtime) sayForgotten(p provider.OpenParams) {
	if notice, had := provider.Forgotten(p, "Codex", r.Mint.Message()); had {
		r.Apply(notice)
	}
}

// call is a request of the handshake, bounded on the sink's clock.
func (r *runtime) call(ctx context.Context, method string, params, result any) error {
	w := serial.NewWaiter()
	r.Do(func() {
		r.send(method, params, handshakeBound, func(a wire.Answer) { r.Finish(w, a.Decode(result)) })
	})
	return r.Await(ctx, w)
}
