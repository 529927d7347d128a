package agent

import "time"

// OperationKind is what a person asked for.
type OperationKind string

const (
	OperationCancel OperationKind = "cancel"
	OperationAnswer OperationKind = "answer"
	OperationGuide  OperationKind = "guide"
	OperationDelete OperationKind = "delete"
)

// OperationStatus is where an operation stands.
type OperationStatus string

const (
	OperationPending     OperationStatus = "pending"     // recorded, waiting for a worker or the next attempt
	OperationRunning     OperationStatus = "running"     // a worker holds its lease
	OperationSucceeded   OperationStatus = "succeeded"   // done, and confirmed
	OperationUnconfirmed OperationStatus = "unconfirmed" // done, but the provider did not confirm every target
	OperationFailed      OperationStatus = "failed"      // could not be delivered; error says why
)

// Open reports whether the operation is still to be carried out.
func (s OperationStatus) Open() bool { return s == OperationPending || s == OperationRunning }

// Target is one exact turn that an operation is about.
type Target struct {
	SessionID SessionID   `json:"agentSessionId"`
	TurnID    TurnID      `json:"turnId"`
	State     TargetState `json:"state" enum:"requested,acknowledged,canceled,interrupted,already_terminal"`
	Evidence  string      `json:"evidence,omitempty" doc:"What was heard last, in words"`
}

// Operation is a command made durable. It outlives the request, the worker and the
// daemon that began it.
type Operation struct {
	ID        OperationID     `json:"id"`
	SessionID SessionID       `json:"agentSessionId"`
	TurnID    TurnID          `json:"turnId,omitempty"`
	Kind      OperationKind   `json:"kind" enum:"cancel,answer,guide,delete"`
	Status    OperationStatus `json:"status" enum:"pending,running,succeeded,unconfirmed,failed"`
	Attempts  int             `json:"attempts"`
	Targets   []Target        `json:"targets"`
	// MessageID is the message of a guide, RequestID the interaction of an answer.
	MessageID MessageID  `json:"messageId,omitempty"`
	RequestID RequestID  `json:"requestId,omitempty"`
	Error     *Error     `json:"error,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Deadline  *time.Time `json:"deadline,omitempty" doc:"When a cancel completes with the evidence there is"`
}
