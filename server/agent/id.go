package agent

import "strings"

// Ids are opaque strings to clients. Their prefix tells a reader of a log what
// they name; no code may depend on more of them than equality.
type (
	WorkspaceID string
	SessionID   string
	TurnID      string
	MessageID   string
	OperationID string
	// RequestID names an interaction within its turn. It is ours: providers reuse
	// theirs after a restart (Codex counts from 0 per process).
	RequestID string
	// CallID names a tool call within its session, as the provider named it.
	CallID string
	// ProviderTurnID names one provider turn within its root turn. It is the
	// adapter's key, known before the provider has answered; the provider's own id
	// is kept beside it as ProviderTurn.NativeID.
	ProviderTurnID string
)

// Prefixes of minted ids.
const (
	prefixWorkspace = "ws_"
	prefixSession   = "ses_"
	prefixTurn      = "trn_"
	prefixMessage   = "msg_"
	prefixOperation = "op_"
	prefixRequest   = "req_"
)

// Minter mints ids from a source of unique, sortable strings. The source is
// injected so that a replay mints the same ids each time.
type Minter struct{ source func() string }

// NewMinter returns a Minter over source, which must be safe for concurrent use
// and never repeat itself.
func NewMinter(source func() string) Minter { return Minter{source} }

func (m Minter) Workspace() WorkspaceID { return WorkspaceID(prefixWorkspace + m.source()) }
func (m Minter) Session() SessionID     { return SessionID(prefixSession + m.source()) }
func (m Minter) Turn() TurnID           { return TurnID(prefixTurn + m.source()) }
func (m Minter) Message() MessageID     { return MessageID(prefixMessage + m.source()) }
func (m Minter) Operation() OperationID { return OperationID(prefixOperation + m.source()) }
func (m Minter) Request() RequestID     { return RequestID(prefixRequest + m.source()) }

// maxIDLength bounds ids that clients and providers choose.
const maxIDLength = 200

// ValidClientID reports whether an id that a client chose (clientMessageId,
// Idempotency-Key) can be stored: 1 to 200 visible ASCII characters.
func ValidClientID(s string) bool {
	return s != "" && len(s) <= maxIDLength && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
