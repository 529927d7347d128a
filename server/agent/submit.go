package agent

// NewSession is a person's wish for a new root session.
type NewSession struct {
	Workspace      WorkspaceID
	Key            string // Idempotency-Key; "" for none
	Provider       string
	Title          string
	Cwd            string
	Model          string
	PermissionMode string
	Scenario       string
	Capabilities   Capabilities // what the provider's card says, until the runtime says more
	Message        *NewMessage  // the first message, if any; its Session is ignored
}

// SessionPatch is what a person changes of a session; nil leaves it. PermissionMode and
// Model are choices of the beginning: they can be changed until the first turn.
type SessionPatch struct {
	Title          *string
	Pinned         *bool
	PermissionMode *string
	Model          *string
}

// NewMessage is a person's message to a root session. ClientMessageID makes it
// idempotent within the session.
type NewMessage struct {
	Session         SessionID
	ClientMessageID string
	Text            string
	Client          string // web, cli, acp …
}

// Delivery says how a message is on its way.
type Delivery string

const (
	DeliveryStarted Delivery = "started" // it began a new root turn
	DeliveryGuided  Delivery = "guided"  // it joined the open root turn
	DeliveryQueued  Delivery = "queued"  // the provider takes it later, under the same root turn
)

// Submitted is what became of a message or a new session, as committed.
type Submitted struct {
	Session   Session
	Turn      *Turn
	Message   *Message
	Delivery  Delivery
	Operation *Operation // of a guided message
	Repeated  bool       // the same request was taken before; nothing was done again
}

// PlaceView is what decides where a message goes.
type PlaceView struct {
	Kind         Kind
	RootOpen     bool // the session has a root turn that has not settled
	CancelOpen   bool // a cancel of that turn is under way
	LiveProvider bool // its provider turn runs
	Capabilities Capabilities
}

// PlaceMessage decides where a person's message goes: to a new turn, to the open one,
// or nowhere, with the reason. It never starts a second turn beside an open one (spec,
// "Sending While Children Run").
func PlaceMessage(v PlaceView) (Delivery, Code) {
	switch {
	case v.Kind == KindChild:
		return "", CodeChildInput
	case !v.RootOpen:
		return DeliveryStarted, ""
	case v.CancelOpen:
		return "", CodeTurnCanceling
	case v.LiveProvider && !v.Capabilities.Guide, !v.LiveProvider && !v.Capabilities.GuideWhileChildrenRun:
		return "", CodeGuidanceUnsupported
	}
	return DeliveryGuided, ""
}

// NewAnswer is a person's answer to one exact question.
type NewAnswer struct {
	Session  SessionID
	Turn     TurnID
	Request  RequestID
	Response Response
	Client   string
}

// CheckAnswer says what is wrong with an answer to i, or nil.
func CheckAnswer(i Interaction, r Response) error {
	if r.OptionID != "" {
		for _, o := range i.Options {
			if o.ID == r.OptionID {
				return nil
			}
		}
		return Errorf(CodeInvalidAnswer, "%q is not one of the choices offered", r.OptionID)
	}
	if r.Text == "" && r.Action == "" && len(r.Answers) == 0 {
		return Errorf(CodeInvalidAnswer, "an answer needs an optionId, answers, a text or an action")
	}
	if i.Kind == InteractionApproval && i.Chosen(r) == "" {
		return Errorf(CodeInvalidAnswer, "choose one of the options offered")
	}
	return nil
}

// Chosen is the option that an answer takes: the one it names, or the first whose role
// does what its action says. "" if it takes none.
func (i *Interaction) Chosen(r Response) string {
	if r.OptionID != "" {
		return r.OptionID
	}
	roles := map[string][]string{"accept": {RoleAllow}, "decline": {RoleDeny, RoleAbort}, "cancel": {RoleAbort, RoleDeny}}
	for _, role := range roles[r.Action] {
		for _, o := range i.Options {
			if o.Role == role {
				return o.ID
			}
		}
	}
	return ""
}

// Claimed is an open operation that a worker holds the lease of, with all it needs to
// carry it out.
type Claimed struct {
	Operation   Operation
	Workspace   WorkspaceID
	Root        Session      // whose runtime is asked
	RootTurn    TurnID       // under which every target runs
	RootTarget  bool         // the root turn itself is among the targets
	Interaction *Interaction // of an answer, with its Response
	Message     *Message     // of a guide
}

// Deleted says what a deletion left to do outside storage.
type Deleted struct {
	Root     Session     // of the tree
	WasRoot  bool        // the whole tree went: close its runtime
	Sessions []SessionID // tombstoned, parents first
}

// Remembered is what storage knows of one tree, so that a runtime which opens again
// binds the events of old children to them.
type Remembered struct {
	Root          Session
	Children      []Session // every depth, each with its LatestTurn
	ProviderTurns []RememberedProviderTurn
}

// RememberedProviderTurn is one provider turn of one root turn.
type RememberedProviderTurn struct {
	Turn     TurnID
	Key      ProviderTurnID
	NativeID string
}
