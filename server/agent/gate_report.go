package agent

import "time"

// GateReport answers "why is this turn still open?" (decisions.md 7). It is computed
// when asked, from the view that Gate itself decides on.
type GateReport struct {
	TurnID          TurnID        `json:"turnId"`
	Phase           Phase         `json:"phase" enum:"submitted,running,waiting,settling,settled"`
	Outcome         Outcome       `json:"outcome,omitempty" enum:"completed,failed,canceled,interrupted"`
	HeldBy          HeldBy        `json:"heldBy,omitempty" enum:"provider,children,prompt,cancel,continuation" doc:"Absent once settled"`
	RetainedOutcome Outcome       `json:"retainedOutcome,omitempty" enum:"completed,failed,canceled,interrupted" doc:"The main agent's own outcome, kept until its children end"`
	OpenChildren    []OpenChild   `json:"openChildren"`
	Continuation    *Continuation `json:"continuation,omitempty"`
}

// OpenChild is one descendant turn that has not settled.
type OpenChild struct {
	SessionID    SessionID  `json:"agentSessionId"`
	TurnID       TurnID     `json:"turnId"`
	Title        string     `json:"title"`
	Phase        Phase      `json:"phase" enum:"submitted,running,waiting,settling"`
	WaitingFor   string     `json:"waitingFor,omitempty" enum:"answer,stop,start" doc:"What it waits for, if anything"`
	Since        time.Time  `json:"since"`
	StalledSince *time.Time `json:"stalledSince,omitempty" doc:"Silent since; never a terminal"`
}

// Continuation is a reserved provider turn that has not spoken.
type Continuation struct {
	Deadline time.Time `json:"deadline"`
}
