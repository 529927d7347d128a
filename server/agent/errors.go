package agent

import "fmt"

// Code is a stable word for what went wrong; clients switch on it. The HTTP
// status of each code is in one table of package api.
type Code string

const (
	CodeInvalid             Code = "invalid_request"         // the request itself is wrong
	CodeNotFound            Code = "not_found"               // no such thing, or it was deleted
	CodeConflict            Code = "conflict"                // the same key with another request
	CodeTurnSettled         Code = "turn_settled"            // nothing runs under a settled turn
	CodeTurnCanceling       Code = "turn_canceling"          // a stop is under way; wait for it to end
	CodeSessionBusy         Code = "session_busy"            // the session has a live turn already
	CodeSessionDeleted      Code = "session_deleted"         // a tombstone: late facts meet a closed door
	CodeUnknownOwner        Code = "unknown_owner"           // a fact of a session or turn nobody registered
	CodeRootSettlesByGate   Code = "root_settles_by_gate"    // a root turn has no terminal of its own
	CodeUnaskedAfterCancel  Code = "unasked_after_cancel"    // provider work nobody asked for, after a cancel
	CodeGuidanceUnsupported Code = "guidance_unsupported"    // the provider cannot take a message now
	CodeChildInput          Code = "child_input_unsupported" // people address the root, never one child
	CodeCancelUnsupported   Code = "cancel_unsupported"      // the provider cannot stop this one alone
	CodeInteractionAnswered Code = "interaction_answered"    // another answer came first
	CodeInteractionGone     Code = "interaction_superseded"  // the question is no longer open
	CodeInvalidAnswer       Code = "invalid_answer"          // not one of the choices offered
	CodeProviderUnavailable Code = "provider_unavailable"    // not installed, refused to start, wrong version
	CodeProviderGone        Code = "provider_gone"           // the process that held the session has ended
	CodeProviderRefused     Code = "provider_refused"        // the provider answered with an error
	CodeTimeout             Code = "timeout"                 // no answer within the bound
	CodeDaemonRestart       Code = "daemon_restart"          // the daemon ended while the turn ran
	CodeDaemonStopping      Code = "daemon_stopping"         // the daemon is shutting down
	CodeUnavailable         Code = "unavailable"             // storage is busy; try again
	CodeInternal            Code = "internal"                // our fault; the log has the details
)

// Error is the only error that crosses packages with a meaning. Message is shown
// to people: it says what happened and what they can do.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is makes errors.Is(err, &Error{Code: c}) compare by code alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf returns an *Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
