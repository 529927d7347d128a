package agent

// CancelStage is where a cancel that targets the root turn itself stands.
type CancelStage string

const (
	CancelNone CancelStage = ""     // no such cancel
	CancelOpen CancelStage = "open" // prepared or leased
	CancelDone CancelStage = "done" // completed, with or without confirmation
)

// GateView is everything that can hold a root turn open, read in one transaction.
type GateView struct {
	Phase        Phase       // of the root turn now
	Outcome      Outcome     // set once settled
	LiveProvider int         // provider turns on this root that have not ended
	Reserved     int         // of these, continuations that are expected but have not spoken
	Retained     Outcome     // of the provider turn that ended last and that no later one has replaced; "" if none
	LiveChildren bool        // any unsettled turn below the root, at any depth: EXISTS, never a count
	OwnPrompts   int         // unanswered interactions of the root turn itself
	Cancel       CancelStage // of a cancel that targets the root
}

// HeldBy is the first reason why a root turn is still open.
type HeldBy string

const (
	HeldByNothing      HeldBy = ""
	HeldByProvider     HeldBy = "provider"
	HeldByContinuation HeldBy = "continuation"
	HeldByPrompt       HeldBy = "prompt"
	HeldByChildren     HeldBy = "children"
	HeldByCancel       HeldBy = "cancel"
)

// Decision is what a root turn must be. It is stored only as the turn's phase and
// outcome; Held is computed again whenever somebody asks.
type Decision struct {
	Phase   Phase
	Outcome Outcome
	Held    HeldBy
}

// Gate decides what the root turn must be. It is total, pure and idempotent, and
// the only code that settles a root turn.
func Gate(v GateView) Decision {
	switch {
	case v.Phase == PhaseSettled: // nothing reopens a settled root
		return Decision{PhaseSettled, v.Outcome, HeldByNothing}
	case v.Cancel == CancelDone: // the person's intent outranks any retained outcome
		return settle(OutcomeCanceled)
	case v.Cancel == CancelOpen:
		return hold(PhaseSettling, HeldByCancel)
	case v.LiveProvider > v.Reserved && v.OwnPrompts > 0:
		return hold(PhaseWaiting, HeldByPrompt)
	case v.LiveProvider > v.Reserved:
		return hold(PhaseRunning, HeldByProvider)
	case v.LiveProvider > 0:
		return hold(PhaseWaiting, HeldByContinuation)
	case v.Retained == "":
		return hold(v.Phase, HeldByProvider)
	case v.LiveChildren:
		return hold(PhaseWaiting, HeldByChildren)
	default: // the provider's own outcome is kept and nothing below it lives
		return settle(v.Retained)
	}
}

func hold(p Phase, by HeldBy) Decision { return Decision{Phase: p, Held: by} }

func settle(o Outcome) Decision { return Decision{Phase: PhaseSettled, Outcome: o} }
