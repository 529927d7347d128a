package agent

// TargetState is what is known of one target of a cancel, and shown as it is
// (decisions.md 11).
type TargetState string

const (
	TargetRequested       TargetState = "requested"        // chosen and recorded; nothing heard yet
	TargetAcknowledged    TargetState = "acknowledged"     // the provider took the request
	TargetCanceled        TargetState = "canceled"         // the provider confirmed the end
	TargetInterrupted     TargetState = "interrupted"      // the bound ran out without a confirmation
	TargetAlreadyTerminal TargetState = "already_terminal" // it had ended by itself
)

// Evidence is what an adapter learned about one exact target. Err says what went
// wrong where the request could not be delivered; a failed write is never success.
type Evidence struct {
	SessionID SessionID
	TurnID    TurnID
	State     TargetState // acknowledged, canceled or already_terminal; "" with Err
	Err       *Error
}

// rank orders what can be learned while a cancel is open: evidence never weakens.
func (s TargetState) rank() int {
	switch s {
	case TargetRequested:
		return 0
	case TargetAcknowledged:
		return 1
	case TargetCanceled, TargetAlreadyTerminal, TargetInterrupted:
		return 2
	}
	return -1
}

// Stronger returns the state that says more; the first of two equals stands.
func (s TargetState) Stronger(other TargetState) TargetState {
	if other.rank() > s.rank() {
		return other
	}
	return s
}

// CancelTarget is one target as it stands when the operation completes.
type CancelTarget struct {
	Root     bool        // the root turn itself
	Settled  bool        // its turn has ended already, with Outcome
	Outcome  Outcome     // of a settled turn
	Evidence TargetState // the strongest state heard
}

// CancelOutcome says how a target's turn ends, and what its target row then reads.
// The root is canceled because the person said so; a child is canceled only with
// evidence, else interrupted: we asked, the provider did not confirm.
func CancelOutcome(t CancelTarget) (Outcome, TargetState) {
	switch {
	case t.Settled && t.Outcome == OutcomeCanceled:
		return OutcomeCanceled, TargetCanceled
	case t.Settled && t.Outcome == OutcomeInterrupted:
		// A provider that reports an interruption confirms the stop, so this one was lost
		// with its process: nobody saw it end.
		return OutcomeInterrupted, TargetInterrupted
	case t.Settled:
		return t.Outcome, TargetAlreadyTerminal
	case t.Root && t.Evidence.rank() >= TargetAcknowledged.rank():
		return OutcomeCanceled, TargetCanceled
	case t.Root:
		return OutcomeCanceled, TargetInterrupted
	case t.Evidence == TargetAcknowledged, t.Evidence == TargetCanceled:
		return OutcomeCanceled, TargetCanceled
	}
	return OutcomeInterrupted, TargetInterrupted
}

// CancelStatus is the operation's end: succeeded when every target is confirmed,
// unconfirmed when one is not.
func CancelStatus(targets []TargetState) OperationStatus {
	for _, s := range targets {
		if s == TargetInterrupted || s == TargetRequested {
			return OperationUnconfirmed
		}
	}
	return OperationSucceeded
}
