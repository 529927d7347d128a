package agent

import "time"

// Phase is where a turn stands. Settled is the only end and is never left.
type Phase string

const (
	PhaseSubmitted Phase = "submitted" // recorded, not yet seen running
	PhaseRunning   Phase = "running"
	PhaseWaiting   Phase = "waiting"  // for a person or, a root, for its children
	PhaseSettling  Phase = "settling" // a stop is under way
	PhaseSettled   Phase = "settled"
)

// Outcome is how a turn ended. A turn has one exactly when it is settled.
type Outcome string

const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeFailed      Outcome = "failed"
	OutcomeCanceled    Outcome = "canceled"    // a person asked, and it was confirmed (or it is the root)
	OutcomeInterrupted Outcome = "interrupted" // ended without its own end being seen
)

// Trigger is what began a turn (decisions.md 4).
type Trigger string

const (
	TriggerUser       Trigger = "user"
	TriggerDelegation Trigger = "delegation"
	TriggerGuidance   Trigger = "guidance"
	TriggerProvider   Trigger = "provider" // work nobody asked for (decisions.md 3)
)

// ProviderTurn is what a provider says of one turn of its own on a root session.
// It never is the canonical turn: several may run under one root turn.
type ProviderTurn struct {
	ID       ProviderTurnID `json:"id"`
	NativeID string         `json:"nativeId,omitempty" doc:"The provider's own id, once it has told it"`
	Phase    string         `json:"phase" enum:"reserved,running,ended"`
	Outcome  Outcome        `json:"outcome,omitempty" enum:"completed,failed,canceled,interrupted"`
	EndedAt  *time.Time     `json:"endedAt,omitempty" doc:"Present exactly when ended"`
}

// Phases of a ProviderTurn.
const (
	ProviderReserved = "reserved" // a continuation is expected and has not spoken yet
	ProviderRunning  = "running"
	ProviderEnded    = "ended"
)

// Turn is one piece of work of one session.
type Turn struct {
	ID         TurnID    `json:"id"`
	SessionID  SessionID `json:"agentSessionId"`
	RootTurnID TurnID    `json:"rootTurnId" doc:"Root turn it runs under; its own id for a root turn"`
	Trigger    Trigger   `json:"trigger" enum:"user,delegation,guidance,provider"`
	Phase      Phase     `json:"phase" enum:"submitted,running,waiting,settling,settled"`
	Outcome    Outcome   `json:"outcome,omitempty" enum:"completed,failed,canceled,interrupted" doc:"Present exactly when settled"`
	Error      *Error    `json:"error,omitempty" doc:"Why it failed or was interrupted"`

	NativeID     string        `json:"nativeId,omitempty" doc:"A child's turn as the provider names it"`
	ProviderTurn *ProviderTurn `json:"providerTurn,omitempty" doc:"Root turns: the provider's latest word on its own turn"`

	Usage     Usage      `json:"usage"`
	CreatedAt time.Time  `json:"createdAt"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	SettledAt *time.Time `json:"settledAt,omitempty"`
}

// IsRoot reports whether the turn is a root turn.
func (t *Turn) IsRoot() bool { return t.RootTurnID == t.ID }

// Live reports whether the turn has not settled.
func (t *Turn) Live() bool { return t.Phase != PhaseSettled }

// Verdict is what became of a fact or a change.
type Verdict string

const (
	VerdictApplied   Verdict = "applied"
	VerdictUnchanged Verdict = "unchanged" // said before, or true already
	VerdictLate      Verdict = "late"      // its turn has settled: history at most
	VerdictRefused   Verdict = "refused"   // the fence, or no owner; Code says which
)

// Step is what happened to one exact turn.
type Step string

const (
	StepBegin  Step = "begin"  // the provider reports that it runs
	StepPrompt Step = "prompt" // it now has an unanswered interaction
	StepResume Step = "resume" // its last unanswered interaction has gone
	StepClose  Step = "close"  // a durable cancel that targets it was prepared
	StepEnd    Step = "end"    // its provider reports its terminal
	StepStop   Step = "stop"   // the cancel that targets it completed; Outcome is CancelOutcome's
	StepLose   Step = "lose"   // its provider process is gone
)

// Steps lists every Step, for tests that enumerate.
var Steps = []Step{StepBegin, StepPrompt, StepResume, StepClose, StepEnd, StepStop, StepLose}

// Change is one step with what goes with it.
type Change struct {
	Step    Step
	Outcome Outcome // of StepEnd and StepStop
	Err     *Error  // of StepEnd with failed or interrupted, and of StepLose
}

// TurnState is the part of a turn that NextTurn decides about.
type TurnState struct {
	Root    bool
	Phase   Phase
	Outcome Outcome
	Err     *Error
}

// NextTurn moves one exact turn by what happened to it. It is total: every state
// and step has a verdict, and applying a change twice equals applying it once.
//
// A root turn never ends by a step of its own (StepEnd and StepLose are refused):
// its provider's terminals are retained on its provider turns and [Gate] settles it.
// A target of a cancel that its provider then reports as interrupted was canceled:
// that report is the confirmation (decisions.md 12). A terminal that is not an
// interruption won the race against the cancel and stands as it is.
func NextTurn(t TurnState, c Change) (TurnState, Verdict, Code) {
	if t.Phase == PhaseSettled {
		return settledStep(t, c)
	}
	switch c.Step {
	case StepBegin:
		return moveFrom(t, PhaseRunning, PhaseSubmitted)
	case StepPrompt:
		if t.Phase == PhaseSettling {
			return t, VerdictRefused, CodeTurnCanceling
		}
		return moveFrom(t, PhaseWaiting, PhaseSubmitted, PhaseRunning)
	case StepResume:
		return moveFrom(t, PhaseRunning, PhaseWaiting)
	case StepClose:
		return moveFrom(t, PhaseSettling, PhaseSubmitted, PhaseRunning, PhaseWaiting)
	case StepEnd:
		if t.Root {
			return t, VerdictRefused, CodeRootSettlesByGate
		}
		if t.Phase == PhaseSettling && c.Outcome == OutcomeInterrupted {
			return Settle(t, OutcomeCanceled, nil), VerdictApplied, ""
		}
		return Settle(t, c.Outcome, c.Err), VerdictApplied, ""
	case StepStop:
		return Settle(t, c.Outcome, nil), VerdictApplied, ""
	case StepLose:
		if t.Root {
			return t, VerdictRefused, CodeRootSettlesByGate
		}
		return Settle(t, OutcomeInterrupted, c.Err), VerdictApplied, ""
	}
	return t, VerdictRefused, CodeInvalid
}

// settledStep answers every step on a turn that has ended: nothing moves it.
func settledStep(t TurnState, c Change) (TurnState, Verdict, Code) {
	switch c.Step {
	case StepEnd, StepStop:
		if c.Outcome == t.Outcome {
			return t, VerdictUnchanged, ""
		}
		return t, VerdictLate, ""
	case StepPrompt:
		return t, VerdictRefused, CodeTurnSettled
	case StepBegin:
		return t, VerdictLate, ""
	case StepResume, StepClose, StepLose:
		return t, VerdictUnchanged, ""
	}
	return t, VerdictRefused, CodeInvalid
}

func moveFrom(t TurnState, to Phase, from ...Phase) (TurnState, Verdict, Code) {
	for _, p := range from {
		if t.Phase == p {
			t.Phase = to
			return t, VerdictApplied, ""
		}
	}
	return t, VerdictUnchanged, ""
}

// Settle returns t ended with outcome. Only a failed or interrupted turn keeps an
// error: "context canceled" on a canceled turn says how we stopped, not what went
// wrong (spec, Cancellation).
func Settle(t TurnState, outcome Outcome, err *Error) TurnState {
	t.Phase, t.Outcome, t.Err = PhaseSettled, outcome, nil
	if outcome == OutcomeFailed || outcome == OutcomeInterrupted {
		t.Err = err
	}
	return t
}
