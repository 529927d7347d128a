package agent

import "time"

// MaxTitle is how many characters a name that a person gives has at most.
const MaxTitle = 200

// Kind tells a conversation that people see from an agent below one of its turns.
type Kind string

const (
	KindRoot  Kind = "root"
	KindChild Kind = "child"
)

// Attention says what a person should look at first in a list of sessions.
type Attention string

const (
	AttentionNone    Attention = "none"
	AttentionWaiting Attention = "waiting" // a question is open, here or in a child
	AttentionFailed  Attention = "failed"  // the latest turn failed
	// AttentionStalled: live, but silent for longer than the stall time. Nothing happens when
	// that time has passed, so no event tells it: it is worked out when a session is read, and
	// an event of a session that was silent says none.
	AttentionStalled Attention = "stalled"
)

// Relation is a child's creator edge. It is written once, with the child, and
// never changes (spec: "immutable creator relationship").
type Relation struct {
	ParentSessionID  SessionID `json:"parentAgentSessionId,omitempty" doc:"Session whose turn delegated to this one; children only"`
	ParentTurnID     TurnID    `json:"parentTurnId,omitempty"`
	ParentToolCallID CallID    `json:"parentToolCallId,omitempty" doc:"Tool call of the parent turn that created this session, where the provider named one"`
	RootSessionID    SessionID `json:"rootAgentSessionId,omitempty"`
	RootTurnID       TurnID    `json:"rootTurnId,omitempty" doc:"Root turn under which the session was created"`
}

// Handles are the provider's own names for a session. They are aliases: rows in
// storage, so that a fact which arrives after a restart still finds its owner.
type Handles struct {
	ThreadID        string `json:"threadId,omitempty"`
	TaskID          string `json:"taskId,omitempty"`
	AgentID         string `json:"agentId,omitempty"`
	AgentPath       string `json:"agentPath,omitempty"`
	ParentToolUseID string `json:"parentToolUseId,omitempty"`
}

// Merge returns h with every handle that other knows taken over.
func (h Handles) Merge(other Handles) Handles {
	take := func(mine *string, theirs string) {
		if theirs != "" {
			*mine = theirs
		}
	}
	take(&h.ThreadID, other.ThreadID)
	take(&h.TaskID, other.TaskID)
	take(&h.AgentID, other.AgentID)
	take(&h.AgentPath, other.AgentPath)
	take(&h.ParentToolUseID, other.ParentToolUseID)
	return h
}

// Capabilities says what the provider can really do with this session, now.
type Capabilities struct {
	Cancel                bool `json:"cancel" doc:"The running turn can be stopped, with confirmation"`
	ChildCancel           bool `json:"childCancel" doc:"One child can be stopped while the rest goes on"`
	Guide                 bool `json:"guide" doc:"A message can be added to the running provider turn"`
	GuideWhileChildrenRun bool `json:"guideWhileChildrenRun" doc:"A message can be sent while only children run"`
	ConfirmsCancel        bool `json:"confirmsCancel" doc:"The provider confirms a stop; else it is shown as interrupted"`
	ConfirmsChildCancel   bool `json:"confirmsChildCancel"`
	Resume                bool `json:"resume" doc:"The conversation can go on after the provider process ended"`
}

// Usage counts tokens and money. Sums are exact; CostMicros is in millionths of a
// US dollar, 0 where the provider reports no cost.
type Usage struct {
	InputTokens       int64 `json:"inputTokens"`
	CachedInputTokens int64 `json:"cachedInputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	ReasoningTokens   int64 `json:"reasoningTokens"`
	CostMicros        int64 `json:"costMicros"`
}

// Add returns the sum of u and other.
func (u Usage) Add(other Usage) Usage {
	u.InputTokens += other.InputTokens
	u.CachedInputTokens += other.CachedInputTokens
	u.OutputTokens += other.OutputTokens
	u.ReasoningTokens += other.ReasoningTokens
	u.CostMicros += other.CostMicros
	return u
}

// Session is one agent: a root conversation or a child below one of its turns.
//
// ActiveTurn and LatestTurn follow from turn events: a client that applies those
// needs no session event for them. A session event is sent when the session's own
// fields, its two counters or its attention change. [AttentionStalled] comes by no event.
type Session struct {
	ID          SessionID   `json:"id"`
	WorkspaceID WorkspaceID `json:"workspaceId"`
	Kind        Kind        `json:"kind" enum:"root,child"`
	Provider    string      `json:"provider"`
	Title       string      `json:"title"`
	Cwd         string      `json:"cwd"`
	Model       string      `json:"model,omitempty"`
	AgentType   string      `json:"agentType,omitempty" doc:"Role or type of a child as the provider names it"`
	Prompt      string      `json:"prompt,omitempty" doc:"What a child was asked to do, where the provider shows it"`
	// PermissionMode and Scenario are the person's choices at creation, kept so that
	// a resume restores the same policy.
	PermissionMode string `json:"permissionMode,omitempty"`
	Scenario       string `json:"scenario,omitempty" doc:"Built-in scenario of the demo provider"`
	Pinned         bool   `json:"pinned,omitempty"`

	Relation

	ProviderSessionID string  `json:"providerSessionId,omitempty"`
	Handles           Handles `json:"handles"`

	ActiveTurn              *Turn     `json:"activeTurn,omitempty" doc:"The turn that has not settled, if any"`
	LatestTurn              *Turn     `json:"latestTurn,omitempty"`
	PendingInteractionCount int       `json:"pendingInteractionCount" doc:"Open questions; of a root: those of every descendant too"`
	ActiveChildCount        int       `json:"activeChildCount" doc:"Of a root: live agents below it at any depth. Of a child always 0; count from the flat tree"`
	Attention               Attention `json:"attention" enum:"none,waiting,failed,stalled" doc:"stalled is worked out when a session is read: no event says it, nor that it is over"`

	Capabilities      Capabilities `json:"capabilities"`
	Usage             Usage        `json:"usage"`
	UsageWithChildren Usage        `json:"usageWithChildren"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// IsRoot reports whether the session is a conversation of its own.
func (s *Session) IsRoot() bool { return s.Kind == KindRoot }

// CheckChild says what is wrong with a new child's relation, or nil. Storage
// refuses the same rows once more.
func CheckChild(s Session) error {
	r := s.Relation
	switch {
	case s.Kind != KindChild:
		return Errorf(CodeInvalid, "session %s is not a child", s.ID)
	case r.ParentSessionID == "" || r.ParentTurnID == "" || r.RootSessionID == "" || r.RootTurnID == "":
		return Errorf(CodeInvalid, "child session %s has no whole parent edge", s.ID)
	case r.ParentSessionID == s.ID || r.RootSessionID == s.ID:
		return Errorf(CodeInvalid, "child session %s cannot be its own ancestor", s.ID)
	}
	return nil
}

// AttentionOf is the list mark of a session that has pending open questions and
// whose latest turn is t (nil before any).
func AttentionOf(pending int, t *Turn) Attention {
	switch {
	case pending > 0:
		return AttentionWaiting
	case t != nil && t.Outcome == OutcomeFailed:
		return AttentionFailed
	}
	return AttentionNone
}
