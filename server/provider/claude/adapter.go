package claude

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/runner"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// Options of an adapter. The zero value finds the user's own Claude Code.
type Options struct {
	Binary string        // the executable; "" looks for it, see [Find]
	Args   []string      // further arguments
	Owner  string        // marks the processes, see proc.Config
	Getenv Getenv        // os.Getenv by default
	Logger *slog.Logger  // slog.Default by default
	Grace  time.Duration // how long a process has to end by itself; 0 is a second

	// Continuation is how long the root agent may take to its first word after its last
	// child has ended; 30 s by default (decisions.md 16).
	Continuation time.Duration
	// SettingSources are the files of settings that a session reads, see [SettingsUser];
	// nil leaves it to the program, which reads all of them, and an empty list means none.
	SettingSources []string
	// PermissionMode is that of sessions which name none; "" leaves it to the user's own
	// settings.
	PermissionMode string

	// Connect replaces the process: tests and replays bring their own.
	Connect func(ctx context.Context, p provider.OpenParams) (Transport, error)
	// Record sees every line, "in" or "out", in the order of the wire. It must not keep
	// the line.
	Record func(dir string, line []byte)
	// Park hears when a call begins (+1) and ceases (-1) to wait for the provider. A
	// replay in virtual time needs to know that nothing else moves.
	Park func(change int)

	// index reads the program's list of a conversation's children; nil where there is no
	// program.
	index func(p provider.OpenParams, session string) ([]indexed, error)
}

// Getenv reads one variable of the environment, "" if it is not set.
type Getenv func(string) string

// Adapter opens root sessions with the claude program. It is safe for concurrent use.
type Adapter struct{ o Options }

// New returns an adapter.
func New(o Options) *Adapter {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Continuation <= 0 {
		o.Continuation = continuationWindow
	}
	a := &Adapter{o}
	if a.o.Connect == nil {
		a.o.Connect, a.o.index = a.connect, a.index
	}
	return a
}

// Name implements provider.Adapter.
func (a *Adapter) Name() string { return "claude" }

// capabilities are what the program really does, as recorded.
func capabilities() agent.Capabilities {
	return agent.Capabilities{
		Cancel: true, ConfirmsCancel: true, ChildCancel: true, ConfirmsChildCancel: true,
		Guide: true, GuideWhileChildrenRun: true, Resume: true,
	}
}

// Open implements provider.Adapter.
func (a *Adapter) Open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
	if p.Root.PermissionMode == "" {
		p.Root.PermissionMode = a.o.PermissionMode
	}
	r, err := a.open(ctx, p, sink)
	if err == nil || !errors.Is(err, errNothingKept) {
		return asRuntime(r), err
	}
	// The program has nothing of the conversation: the agent begins anew, and the person
	// is told so.
	was := p.Root.ProviderSessionID
	p.Root.ProviderSessionID = ""
	if r, err = a.open(ctx, p, sink); err != nil {
		return nil, err
	}
	r.Do(func() {
		r.Diagnose(provider.Refused, "resume", was)
		r.sayForgotten(p)
	})
	return r, nil
}

// asRuntime keeps a nil a plain nil.
func asRuntime(r *runtime) provider.Runtime {
	if r == nil {
		return nil
	}
	return r
}

func (a *Adapter) open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (*runtime, error) {
	if ctx.Err() != nil {
		return nil, givenUp()
	}
	link, err := a.o.Connect(ctx, p)
	if err != nil {
		return nil, err
	}
	r := newRuntime(sink, link, a.o, p)
	provider.Go(sink, r.run)
	if err := r.handshake(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), runner.CloseBound)
		defer cancel()
		if e := r.Close(stop); e != nil {
			a.o.Logger.Warn("claude did not end after a failed start", "err", e)
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, givenUp()
		}
		return nil, r.whyNotOpen(err)
	}
	return r, nil
}

func givenUp() error {
	return agent.Errorf(agent.CodeTimeout, "opening Claude was given up before it was ready")
}

// errNothingKept: the conversation to be resumed is not there.
var errNothingKept = errors.New("claude: the conversation is not there")

// whyNotOpen adds how the process ended to why it could not be opened. A program that
// cannot resume says so in a result, and ends without answering.
func (r *runtime) whyNotOpen(err error) error {
	var said string
	r.Do(func() { said = r.startError })
	var e *agent.Error
	switch how := r.Link.Explain(); {
	case said != "" && r.params.Root.ProviderSessionID != "" && strings.Contains(said, "No conversation found"):
		return errNothingKept
	case !errors.As(err, &e) || e.Code != agent.CodeProviderGone:
		return err
	case said != "":
		return agent.Errorf(agent.CodeProviderUnavailable, "Claude ended while it started: %s", said)
	case how != "":
		return agent.Errorf(agent.CodeProviderUnavailable, "Claude ended while it started: %s", how)
	}
	return e
}

// handshake is initialize. A resumed program tells what became of its agents before it
// answers: the tree is known by then.
func (r *runtime) handshake(ctx context.Context) error {
	w := serial.NewWaiter()
	r.Do(func() {
		hello := initializeRequest{Subtype: reqInitialize, ForwardSubagentText: true}
		r.send(hello, handshakeBound, func(a answer) {
			var who initializeAnswer
			if err := a.decode(&who); err != nil {
				r.Finish(w, callError("start up", err))
				return
			}
			r.Finish(w, r.begin(who))
		})
	})
	return r.Await(ctx, w)
}
