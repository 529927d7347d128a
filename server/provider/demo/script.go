package demo

import (
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Script is one scenario, parsed.
type Script struct {
	ID    string
	Title string
	About string

	Root     []Step
	Agents   map[string]*Agent
	Guidance []Step // nil: a short acknowledgement
	After    *After // nil: nothing follows the last agent

	IgnoresCancel bool
	Twice         bool // every fact is reported twice
}

// Agent is one kind of child agent.
type Agent struct {
	Name          string
	Title         string
	Type          string
	Model         string
	Prompt        string
	IgnoresCancel bool
	Steps         []Step
}

// After is the provider turn that follows the last agent.
type After struct {
	Reserved time.Duration // 0: it speaks at once
	Steps    []Step
}

// Step is one thing an agent does. The set is closed: these are the verbs of the
// language.
type Step interface {
	// play does the step and reports whether the next one may follow at once; if not,
	// the step itself goes on with [player.next] later.
	play(p *player) bool
}

type (
	// Say streams text, or thinking.
	Say struct {
		Kind agent.MessageKind
		Text string
	}
	// Tool is a tool call with its result.
	Tool struct {
		Name, Input, Output string
		Took                time.Duration
		Fails               bool
		Stays               bool // the command runs on, as a process
	}
	// Wait does nothing for a while.
	Wait struct{ For time.Duration }
	// Spawn starts agents.
	Spawn struct {
		Agent      string
		Times      int
		Foreground bool
		Late       time.Duration // how long the agents' own events precede the edge
		Orphan     bool          // the edge never comes
	}
	// Join waits for the agents that this one spawned.
	Join struct{}
	// Ask asks a person.
	Ask struct {
		Kind     agent.InteractionKind
		Title    string
		Detail   agent.Detail
		Choices  []Choice
		Withdraw time.Duration // 0: never
	}
	// Use adds to the usage of the turn.
	Use struct{ Usage agent.Usage }
	// Resume gives an agent that has ended another turn.
	Resume struct {
		Agent string
		Steps []Step
	}
	// Unasked is a root turn that nobody asked for.
	Unasked struct{ Steps []Step }
	// Garbage is a frame that means nothing.
	Garbage struct{}
	// Die ends the provider process.
	Die struct{}
	// End ends the turn; what follows it comes late.
	End struct {
		Outcome agent.Outcome
		Reason  string // of a failure
	}
)

// Choice is one answer that Ask offers, with what follows it.
type Choice struct {
	Option agent.Option
	Steps  []Step
}
