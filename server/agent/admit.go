package agent

// The fence: what may still start below a root turn. Storage repeats each rule as a
// guard in SQL, so that a race between two writers is lost there too.

// AdmitView is what the fence needs to know, read in the transaction that would
// start the work.
type AdmitView struct {
	RootExists   bool // the root session is there and not deleted
	RootOpen     bool // it has a root turn that has not settled
	RootClosed   bool // a cancel that targets that root turn was prepared
	ParentClosed bool // a cancel that targets the parent turn was prepared
	SessionGone  bool // the session, or an ancestor of it, is a tombstone
	SessionBusy  bool // the session has a live turn already
	// UnaskedBarred: the last root turn was canceled and no user turn followed
	// (decisions.md 3).
	UnaskedBarred bool
}

// AdmitChild says whether a new child session may be created, "" if so.
func AdmitChild(v AdmitView) Code {
	switch {
	case !v.RootExists || v.SessionGone:
		return CodeSessionDeleted
	case !v.RootOpen:
		return CodeTurnSettled
	case v.RootClosed || v.ParentClosed:
		return CodeTurnCanceling
	}
	return ""
}

// AdmitTurn says whether an existing child may start another turn, "" if so
// (decisions.md 1 and 2: the fence is for turns as much as for sessions).
func AdmitTurn(v AdmitView) Code {
	if code := AdmitChild(v); code != "" {
		return code
	}
	if v.SessionBusy {
		return CodeSessionBusy
	}
	return ""
}

// Admission is what becomes of a provider turn on the root session that names no
// canonical turn.
type Admission string

const (
	AdmissionAttach Admission = "attach" // it runs under the open root turn
	AdmissionNew    Admission = "new"    // it becomes a root turn with trigger provider
	AdmissionRefuse Admission = "refuse" // the adapter must interrupt it
)

// AdmitProviderTurn places a provider turn that the provider started by itself: a
// continuation belongs to the open root turn; anything else is a new root turn of
// trigger provider, unless a cancel stands in between (decisions.md 3).
func AdmitProviderTurn(v AdmitView) (Admission, Code) {
	switch {
	case !v.RootExists || v.SessionGone:
		return AdmissionRefuse, CodeSessionDeleted
	case v.RootOpen && v.RootClosed:
		return AdmissionRefuse, CodeTurnCanceling
	case v.RootOpen:
		return AdmissionAttach, ""
	case v.UnaskedBarred:
		return AdmissionRefuse, CodeUnaskedAfterCancel
	}
	return AdmissionNew, ""
}
