package agent

import "time"

// ProcessID names a process within its session.
type ProcessID string

// ProcessStatus is where a process stands.
type ProcessStatus string

const (
	ProcessRunning ProcessStatus = "running"
	ProcessEnded   ProcessStatus = "ended"
)

// Process is a command that outlives the turn which started it, a server for one. It is
// never a child: it holds no turn open, it has no transcript, and its end starts nothing.
type Process struct {
	ID        ProcessID     `json:"id"`
	SessionID SessionID     `json:"agentSessionId"`
	TurnID    TurnID        `json:"turnId" doc:"Turn that started it"`
	CallID    CallID        `json:"callId,omitempty" doc:"Tool call that started it"`
	Command   string        `json:"command"`
	Cwd       string        `json:"cwd,omitempty"`
	Status    ProcessStatus `json:"status" enum:"running,ended"`
	Stoppable bool          `json:"stoppable" doc:"The provider can be asked to end this one alone"`
	CreatedAt time.Time     `json:"createdAt"`
	UpdatedAt time.Time     `json:"updatedAt"`
	EndedAt   *time.Time    `json:"endedAt,omitempty"`
}

// ProcessSeen reports a process that outlives its turn, and later that it has ended. An
// ended one never runs again.
type ProcessSeen struct {
	Process Process // the times are storage's
}

func (ProcessSeen) isFact() {}

// Owner implements Fact.
func (f ProcessSeen) Owner() SessionID { return f.Process.SessionID }
