package agent

import "time"

// InteractionKind is what kind of answer is asked for.
type InteractionKind string

const (
	InteractionApproval    InteractionKind = "approval"
	InteractionQuestion    InteractionKind = "question"
	InteractionPlan        InteractionKind = "plan"
	InteractionElicitation InteractionKind = "elicitation"
)

// InteractionStatus is where a question stands (decisions.md 24).
type InteractionStatus string

const (
	InteractionPending    InteractionStatus = "pending"
	InteractionAnswering  InteractionStatus = "answering" // an answer is recorded, the provider has not taken it
	InteractionAnswered   InteractionStatus = "answered"
	InteractionSuperseded InteractionStatus = "superseded" // withdrawn: nobody can answer it any more
)

// Owner says whether the wire told whose question it is (decisions.md 19).
type Owner string

const (
	OwnerExact   Owner = "exact"
	OwnerUnknown Owner = "unknown"
)

// Option is one choice that the provider offers.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Role lets a client draw the choice without knowing the provider.
	Role        string `json:"role" enum:"allow,allow_always,deny,abort,other"`
	Description string `json:"description,omitempty"`
}

// Roles of an Option.
const (
	RoleAllow       = "allow"
	RoleAllowAlways = "allow_always"
	RoleDeny        = "deny"
	RoleAbort       = "abort" // deny and stop the turn that asks
	RoleOther       = "other"
)

// Question is one of the things asked in an interaction of kind question.
type Question struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Options []Option `json:"options"`
	Multi   bool     `json:"multi,omitempty"`
}

// Detail is what a person needs in order to decide.
type Detail struct {
	Command   string     `json:"command,omitempty"`
	Cwd       string     `json:"cwd,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Diff      string     `json:"diff,omitempty" doc:"Unified diff of the files that would change"`
	Text      string     `json:"text,omitempty"`
	CallID    CallID     `json:"callId,omitempty"`
	Questions []Question `json:"questions,omitempty"`
}

// Response is an answer as it was given.
type Response struct {
	OptionID string            `json:"optionId,omitempty"`
	Text     string            `json:"text,omitempty"`
	Action   string            `json:"action,omitempty" enum:"accept,decline,cancel"`
	Answers  map[string]string `json:"answers,omitempty" doc:"By question id"`
}

// Equal reports whether two answers say the same.
func (r Response) Equal(o Response) bool {
	if r.OptionID != o.OptionID || r.Text != o.Text || r.Action != o.Action || len(r.Answers) != len(o.Answers) {
		return false
	}
	for k, v := range r.Answers {
		if w, ok := o.Answers[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Interaction is one question of one exact turn. Its identity is the tuple of
// session, turn and request; the provider's correlation (ProviderTurnID) is kept
// apart from it.
type Interaction struct {
	SessionID      SessionID         `json:"agentSessionId"`
	TurnID         TurnID            `json:"turnId"`
	RequestID      RequestID         `json:"requestId"`
	Kind           InteractionKind   `json:"kind" enum:"approval,question,plan,elicitation"`
	Title          string            `json:"title"`
	Detail         Detail            `json:"detail"`
	Options        []Option          `json:"options"`
	Status         InteractionStatus `json:"status" enum:"pending,answering,answered,superseded"`
	AnsweredBy     string            `json:"answeredBy,omitempty" doc:"Client that answered: web, cli, acp, provider …"`
	Response       *Response         `json:"response,omitempty"`
	Error          *Error            `json:"error,omitempty" doc:"Why the last delivery failed; the question is open again"`
	ProviderTurnID string            `json:"providerTurnId,omitempty"`
	Owner          Owner             `json:"owner" enum:"exact,unknown"`
	CreatedAt      time.Time         `json:"createdAt"`
	UpdatedAt      time.Time         `json:"updatedAt"`
}

// Open reports whether the question can hold a turn waiting.
func (s InteractionStatus) Open() bool {
	return s == InteractionPending || s == InteractionAnswering
}

// InteractionStep is what happened to one question.
type InteractionStep string

const (
	AskAnswer    InteractionStep = "answer"    // a person answered
	AskDelivered InteractionStep = "delivered" // the provider took the answer
	AskFailed    InteractionStep = "failed"    // the answer could not be delivered
	AskResolved  InteractionStep = "resolved"  // the provider says it is over
	AskWithdraw  InteractionStep = "withdraw"  // its turn ended, was canceled, or the provider took it back
)

// InteractionSteps lists every step, for tests that enumerate.
var InteractionSteps = []InteractionStep{AskAnswer, AskDelivered, AskFailed, AskResolved, AskWithdraw}

// InteractionChange is one step with the answer that goes with AskAnswer.
type InteractionChange struct {
	Step     InteractionStep
	Response Response
}

// InteractionState is the part of an interaction that NextInteraction decides about.
type InteractionState struct {
	Status   InteractionStatus
	Response *Response
}

// NextInteraction moves one question. The first answer wins: the same answer again
// is unchanged, another one is refused. An answer counts as given only when the
// provider has taken it; a failed delivery opens the question again.
func NextInteraction(s InteractionState, c InteractionChange) (InteractionState, Verdict, Code) {
	switch s.Status {
	case InteractionPending:
		return pendingStep(s, c)
	case InteractionAnswering:
		return answeringStep(s, c)
	case InteractionAnswered:
		if c.Step == AskAnswer {
			return sameAnswer(s, c)
		}
		return s, VerdictUnchanged, ""
	case InteractionSuperseded:
		if c.Step == AskAnswer {
			return s, VerdictRefused, CodeInteractionGone
		}
		return s, VerdictUnchanged, ""
	}
	return s, VerdictRefused, CodeInvalid
}

func pendingStep(s InteractionState, c InteractionChange) (InteractionState, Verdict, Code) {
	switch c.Step {
	case AskAnswer:
		r := c.Response
		return InteractionState{InteractionAnswering, &r}, VerdictApplied, ""
	case AskResolved, AskWithdraw: // over without an answer of ours
		return InteractionState{Status: InteractionSuperseded}, VerdictApplied, ""
	case AskDelivered, AskFailed:
		return s, VerdictUnchanged, ""
	}
	return s, VerdictRefused, CodeInvalid
}

func answeringStep(s InteractionState, c InteractionChange) (InteractionState, Verdict, Code) {
	switch c.Step {
	case AskAnswer:
		return sameAnswer(s, c)
	case AskDelivered, AskResolved:
		return InteractionState{InteractionAnswered, s.Response}, VerdictApplied, ""
	case AskFailed:
		return InteractionState{Status: InteractionPending}, VerdictApplied, ""
	case AskWithdraw:
		return InteractionState{Status: InteractionSuperseded}, VerdictApplied, ""
	}
	return s, VerdictRefused, CodeInvalid
}

func sameAnswer(s InteractionState, c InteractionChange) (InteractionState, Verdict, Code) {
	if s.Response != nil && s.Response.Equal(c.Response) {
		return s, VerdictUnchanged, ""
	}
	return s, VerdictRefused, CodeInteractionAnswered
}
