package agent

import "time"

// Fact is one thing a provider reported, in our words, with the canonical owner
// already resolved by the adapter. The set is closed: storage switches over it
// exhaustively, and a test names what is missing.
//
// Every fact may arrive twice and applying it twice equals applying it once. A fact
// whose owner is unknown or deleted is refused and counted; it never becomes the
// root's.
type Fact interface {
	isFact()
	// Owner is the session the fact is about.
	Owner() SessionID
}

// SessionDescribed merges what became known of a session: its provider id, aliases,
// a better title, the permission mode that a person has changed it to on the way. Empty
// fields say nothing.
type SessionDescribed struct {
	Session           SessionID
	Title             string
	Model             string
	PermissionMode    string
	AgentType         string
	Prompt            string
	ProviderSessionID string
	Handles           Handles
	Capabilities      *Capabilities // nil says nothing
}

// ProviderTurnStarted reports a provider turn on a root session.
//
// Turn is the canonical root turn it was started for; empty when the provider began
// it by itself, and then [AdmitProviderTurn] places it and Applied.Turn tells where. A
// second report of the same Key adds the native id or ends a reservation.
type ProviderTurnStarted struct {
	Session  SessionID
	Turn     TurnID
	Key      ProviderTurnID
	NativeID string
	// Reserved, if set, marks a continuation that is expected but has not spoken, and
	// when the wait for it ends.
	Reserved *time.Time
}

// ProviderTurnEnded reports a provider turn's terminal. It never says that the root
// turn has ended: the outcome is retained and [Gate] decides.
type ProviderTurnEnded struct {
	Session SessionID
	Turn    TurnID
	Key     ProviderTurnID
	Outcome Outcome
	Err     *Error
	// Silent marks a reservation that ends without having spoken: the outcome that
	// was retained before stays (decisions.md 16).
	Silent bool
}

// ChildStarted reports a delegation that was accepted: a new child session with its
// first turn, in one step.
type ChildStarted struct {
	Session    SessionID // minted by the adapter
	Turn       TurnID    // minted by the adapter
	Parent     SessionID
	ParentTurn TurnID
	Call       CallID
	Title      string
	Prompt     string
	AgentType  string
	Model      string
	Handles    Handles
}

// TurnStarted reports that a child's turn runs. A Turn that is not known yet is a new
// turn of an existing child and must pass [AdmitTurn].
type TurnStarted struct {
	Session  SessionID
	Turn     TurnID
	NativeID string
	Trigger  Trigger // of a new turn: delegation or guidance
}

// TurnSettled reports the terminal of exactly one child turn.
type TurnSettled struct {
	Session SessionID
	Turn    TurnID
	Outcome Outcome
	Err     *Error
}

// MessagePut creates a message or says more about it. For a message that is known,
// empty fields say nothing, Content that is not empty replaces what was appended, and
// an ended status is never left.
type MessagePut struct {
	Message Message // Seq and the times are storage's
}

// TextAppended adds to a streaming message. Offset is in bytes of UTF-8; text that is
// already there is dropped, so a repeated chunk is harmless.
type TextAppended struct {
	Session SessionID
	Turn    TurnID
	Message MessageID
	Offset  int64
	Text    string
}

// InteractionAsked reports a question of one exact turn.
type InteractionAsked struct {
	Interaction Interaction // Status, Response and the times are storage's
}

// InteractionEnded reports that a question is over at the provider: AskDelivered,
// AskResolved or AskWithdraw.
type InteractionEnded struct {
	Session SessionID
	Turn    TurnID
	Request RequestID
	Step    InteractionStep
}

// UsageReported is the total of one turn so far; the latest report counts.
type UsageReported struct {
	Session SessionID
	Turn    TurnID
	Usage   Usage
}

// SessionLost reports that the process which held a root session is gone. Every live
// turn and provider turn of the tree ends interrupted in one transaction; an outcome
// that was retained with no provider turn running stays (decisions.md 9).
type SessionLost struct {
	Session SessionID // the root
	Err     *Error
}

func (SessionDescribed) isFact()    {}
func (ProviderTurnStarted) isFact() {}
func (ProviderTurnEnded) isFact()   {}
func (ChildStarted) isFact()        {}
func (TurnStarted) isFact()         {}
func (TurnSettled) isFact()         {}
func (MessagePut) isFact()          {}
func (TextAppended) isFact()        {}
func (InteractionAsked) isFact()    {}
func (InteractionEnded) isFact()    {}
func (UsageReported) isFact()       {}
func (SessionLost) isFact()         {}

func (f SessionDescribed) Owner() SessionID    { return f.Session }
func (f ProviderTurnStarted) Owner() SessionID { return f.Session }
func (f ProviderTurnEnded) Owner() SessionID   { return f.Session }
func (f ChildStarted) Owner() SessionID        { return f.Session }
func (f TurnStarted) Owner() SessionID         { return f.Session }
func (f TurnSettled) Owner() SessionID         { return f.Session }
func (f MessagePut) Owner() SessionID          { return f.Message.SessionID }
func (f TextAppended) Owner() SessionID        { return f.Session }
func (f InteractionAsked) Owner() SessionID    { return f.Interaction.SessionID }
func (f InteractionEnded) Owner() SessionID    { return f.Session }
func (f UsageReported) Owner() SessionID       { return f.Session }
func (f SessionLost) Owner() SessionID         { return f.Session }

// Applied is what became of a fact, once it is committed.
type Applied struct {
	Verdict Verdict
	Code    Code   // of a refusal
	Turn    TurnID // the canonical turn it concerns; of a provider turn, where it was placed
	// RootSettled is set when this very fact settled its root turn.
	RootSettled bool
	Seq         int64 // of the last event it caused; 0 if none
}
