package agent

// SessionDetail is one session with every session below it, flat, true at Seq: a client that
// reads it and then follows the log after Seq loses nothing and doubles nothing.
type SessionDetail struct {
	Session       Session   `json:"session"`
	ChildSessions []Session `json:"childSessions"`
	Seq           int64     `json:"seq"`
	Epoch         string    `json:"epoch"`
}

// SessionFilter narrows a list of root sessions. Zero fields match all.
type SessionFilter struct {
	Workspace WorkspaceID
	Query     string // substring of title or first message, case folded
	Provider  string
	Attention Attention
	Cursor    string // opaque; "" for the first page
	Limit     int    // 1 to 200
}

// SessionPage is one page of root sessions, most recently updated first.
type SessionPage struct {
	Items      []Session `json:"items"`
	NextCursor string    `json:"nextCursor,omitempty"`
	Seq        int64     `json:"seq"`
}

// TurnPage is one page of turns, newest first.
type TurnPage struct {
	Items      []Turn `json:"items"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// OperationFilter narrows a list of operations.
type OperationFilter struct {
	Kind   OperationKind // "" for all
	Cursor string        // opaque; "" for the first page
	Limit  int           // 1 to 100
}

// OperationPage is one page of operations, newest first, true at Seq.
type OperationPage struct {
	Items      []Operation `json:"items"`
	NextCursor string      `json:"nextCursor,omitempty"`
	Seq        int64       `json:"seq"`
}

// MessageRange asks for messages of one session by keyset: After in ascending order, or
// Before for the newest Limit messages below it. Neither means the newest.
type MessageRange struct {
	After  int64
	Before int64
	Limit  int // 1 to 500
}

// MessagePage is always in ascending order of Seq.
type MessagePage struct {
	Items     []Message `json:"items"`
	HasBefore bool      `json:"hasBefore" doc:"Older messages exist"`
	HasAfter  bool      `json:"hasAfter" doc:"Newer messages exist"`
}

// Log is one stretch of a workspace's events.
type Log struct {
	Items []Event `json:"items"`
	Seq   int64   `json:"seq" doc:"Newest number committed"`
	Epoch string  `json:"epoch"`
	// Oldest is the oldest number still kept; a cursor below Oldest-1 needs a snapshot.
	Oldest int64 `json:"oldest"`
}

// Counts are figures of the whole file, for metrics and doctor.
type Counts struct {
	Sessions         int64 // roots and children
	RootSessions     int64
	LiveTurns        int64
	PendingQuestions int64
	OpenOperations   int64
	// OpenBelowSettled counts turns that live below a settled root turn. It must be 0.
	OpenBelowSettled int64
}
