// Package provider is the contract between the daemon and the programs that run
// agents. It owns the interfaces that an adapter implements and those it is given,
// and knows no provider: what a frame means lives in the package of that provider.
//
// An adapter normalises. It names the exact owner of everything it reports, and it
// never decides that a root turn has ended, never guesses a terminal from silence,
// and never invents a child.
package provider

import (
	"context"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Adapter is one provider as the daemon knows it: how to find it and how to open a
// root session with it. It is safe for concurrent use.
type Adapter interface {
	// Name is the stable word for the provider in the API.
	Name() string
	// Probe finds the provider's program without starting an agent. It never fails:
	// what is wrong is said in Info.
	Probe(ctx context.Context) Info
	// Open starts (or resumes, when Root.ProviderSessionID is set) the runtime of one
	// root session. Errors: CodeProviderUnavailable, CodeTimeout, CodeProviderRefused.
	// Everything the runtime learns goes to sink, in order. ctx bounds the opening alone.
	Open(ctx context.Context, p OpenParams, sink Sink) (Runtime, error)
}

// Info is the honest card of one provider, shown before anyone relies on it.
type Info struct {
	Name            string             `json:"name"`
	DisplayName     string             `json:"displayName"`
	Found           bool               `json:"found"`
	Reason          string             `json:"reason,omitempty" doc:"Why it cannot be used, or that it was found and lacks an account; and what helps"`
	Path            string             `json:"path,omitempty"`
	Version         string             `json:"version,omitempty"`
	Capabilities    agent.Capabilities `json:"capabilities"`
	Notes           []string           `json:"notes" doc:"What it can and cannot confirm, in words"`
	Models          []string           `json:"models"`
	PermissionModes []string           `json:"permissionModes"`
	Scenarios       []Scenario         `json:"scenarios" doc:"Built-in scenarios of the demo provider"`
}

// Scenario is one thing the demo provider can play.
type Scenario struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// OpenParams says what to open: the root session and what storage remembers of its
// tree, so that events of old children bind to them after a restart. ProviderTurns are
// kept durably because Codex children carry one of them as turn.rootTurnId.
type OpenParams struct {
	agent.Remembered
	// Env is the allow-listed environment for the provider's process.
	Env []string
}

// Runtime is one open root session at a provider: its root agent and every child.
// Calls may come from several goroutines. A call returns when the provider has taken
// the request, or with the reason why it has not; what then happens comes as facts.
type Runtime interface {
	// Start begins the provider turn of a new root turn. The adapter reports
	// ProviderTurnStarted under its own key before it writes the request, so that the
	// turn is held from then on, and ProviderTurnEnded(failed) if the request is refused.
	Start(ctx context.Context, in Input) error
	// Guide adds a person's message to an open root turn: to the running provider turn,
	// or as a new one while only children run. CodeGuidanceUnsupported if it cannot.
	// Delivered, lost and refused are then reported by MessagePut of in.Message.
	Guide(ctx context.Context, in Input) error
	// Cancel asks the provider to stop exactly the given targets, root first, and
	// reports through heard whatever it learns of each, as it learns it. It returns when
	// everything is confirmed, ctx ends, or a request could not be written (the error). It
	// must have recorded the targets as closed before the first request is written.
	Cancel(ctx context.Context, c Cancel, heard func(agent.Evidence)) error
	// Answer delivers an answer to exactly the question it was asked in. It returns nil
	// only when the answer was written whole.
	Answer(ctx context.Context, a Answer) error
	// Forget stops, without asking for confirmation, whatever still runs of sessions that
	// were deleted, and drops what arrives of them later.
	Forget(ctx context.Context, sessions []agent.SessionID)
	// Close ends the runtime and every process it started, and waits for them. It is
	// idempotent. After it no fact is reported.
	Close(ctx context.Context) error
	// Done is closed when the runtime has ended, by Close or by itself. By then
	// SessionLost has been reported unless Close was called.
	Done() <-chan struct{}
}

// ProcessStopper is a Runtime that can end one process which outlived its turn, and no
// other. Only processes that were reported as stoppable are asked for.
type ProcessStopper interface {
	// StopProcess returns when the provider has ended the process, or with the reason why
	// it has not. The end is reported as a fact before.
	StopProcess(ctx context.Context, session agent.SessionID, process agent.ProcessID) error
}

// Input is a person's message on its way to the root agent.
type Input struct {
	Turn    agent.TurnID    // the canonical root turn
	Message agent.MessageID // its user message
	Text    string
}

// Cancel names the targets of one cancel operation, chosen by storage. Root is set
// when the root turn itself is among them.
type Cancel struct {
	Root    bool
	Turn    agent.TurnID // the root turn under which all targets run
	Targets []CancelTarget
}

// CancelTarget is one exact turn.
type CancelTarget struct {
	Session agent.SessionID
	Turn    agent.TurnID
}

// Answer is a person's answer on its way to the provider.
type Answer struct {
	Interaction agent.Interaction
	Response    agent.Response
}

// Sink takes what an adapter reports. Apply is synchronous and ordered: when it
// returns, the fact is committed and its verdict known. An adapter therefore reads
// its provider no faster than storage takes it; that is the backpressure.
type Sink interface {
	// Apply commits one fact. An error is a storage failure, after the sink's own
	// retries: the runtime must close. A refusal is not an error but a verdict.
	Apply(f agent.Fact) (agent.Applied, error)
	// Text appends streaming text to a message that MessagePut created. It is shown at
	// once and committed in chunks; any later Apply for that session commits it first.
	Text(session agent.SessionID, turn agent.TurnID, message agent.MessageID, text string) error
	// Diagnose counts something that could not become a fact.
	Diagnose(d Diagnostic)
	// Mint mints ids for children, turns, messages and requests.
	Mint() agent.Minter
	// Clock is the time that every timer of the adapter must use.
	Clock() Clock
}

// DiagnosticKind says why a frame did not become a fact.
type DiagnosticKind string

const (
	Unrouted  DiagnosticKind = "unrouted" // its owner is not known, and never was
	Held      DiagnosticKind = "held"     // came before its owner and was kept
	Late      DiagnosticKind = "late"     // its turn had ended
	Refused   DiagnosticKind = "refused"  // the fence, or a request without an owner
	Ignored   DiagnosticKind = "ignored"  // understood, and of no interest
	Malformed DiagnosticKind = "malformed"
)

// Diagnostic is one thing that could not become a fact. Detail holds identifiers and
// lengths, never a prompt or a person's text.
type Diagnostic struct {
	Kind   DiagnosticKind `json:"kind"`
	Method string         `json:"method"`
	Detail string         `json:"detail"`
}

// Clock is time as adapters see it: real in the daemon, the recording's in a replay.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d, and returns what stops it.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// RealClock is the machine's clock.
type RealClock struct{}

func (RealClock) Now() time.Time { return time.Now() }

func (RealClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
