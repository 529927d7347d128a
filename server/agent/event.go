package agent

import (
	"encoding/json"
	"time"
)

// EventKind names what changed. The set is closed.
type EventKind string

const (
	SessionCreated     EventKind = "session.created"
	SessionUpdated     EventKind = "session.updated"
	SessionDeleted     EventKind = "session.deleted"
	TurnCreated        EventKind = "turn.created"
	TurnUpdated        EventKind = "turn.updated"
	MessageCreated     EventKind = "message.created"
	MessageUpdated     EventKind = "message.updated"
	InteractionCreated EventKind = "interaction.created"
	InteractionUpdated EventKind = "interaction.updated"
	OperationUpdated   EventKind = "operation.updated"
	ProcessUpdated     EventKind = "process.updated"
)

// EventKinds lists the closed set.
var EventKinds = []EventKind{
	SessionCreated, SessionUpdated, SessionDeleted, TurnCreated, TurnUpdated, MessageCreated, MessageUpdated,
	InteractionCreated, InteractionUpdated, OperationUpdated, ProcessUpdated,
}

// Event is one committed change. The outbox row, the replay record and the client
// frame are this one thing; Seq is its number in the workspace, without gaps.
// Data is the whole entity in the shape the HTTP API gives, encoded once.
type Event struct {
	Seq       int64           `json:"seq"`
	Time      time.Time       `json:"time"`
	Kind      EventKind       `json:"kind"`
	SessionID SessionID       `json:"agentSessionId"`
	TurnID    TurnID          `json:"turnId,omitempty"`
	Data      json.RawMessage `json:"data"`

	// Not on the wire: where the event is delivered.
	WorkspaceID   WorkspaceID `json:"-"`
	RootSessionID SessionID   `json:"-"` // the tree it belongs to
}

// Delta is streaming text that is not committed yet. It has no number: the committed
// message supersedes it, and Offset (bytes of UTF-8 from the message's start) lets a
// client drop what it has.
type Delta struct {
	WorkspaceID   WorkspaceID `json:"-"`
	RootSessionID SessionID   `json:"-"`
	SessionID     SessionID   `json:"agentSessionId"`
	MessageID     MessageID   `json:"messageId"`
	Offset        int64       `json:"offset"`
	Text          string      `json:"text"`
}
