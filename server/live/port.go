package live

import (
	"context"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Port is Live in the words of package agent alone: what package command, which knows
// no provider, is given.
type Port struct{ *Live }

// Start gives the message that began a root turn to the session's runtime.
func (p Port) Start(ctx context.Context, session agent.Session, m agent.Message) error {
	return p.Live.Start(ctx, session, input(m))
}

// Guide adds a person's message to the open root turn.
func (p Port) Guide(ctx context.Context, root agent.SessionID, m agent.Message) error {
	return p.Live.Guide(ctx, root, input(m))
}

// Cancel asks the provider to stop the targets of a claimed cancel.
func (p Port) Cancel(ctx context.Context, c agent.Claimed, heard func(agent.Evidence)) error {
	stop := provider.Cancel{Root: c.RootTarget, Turn: c.RootTurn}
	for _, t := range c.Operation.Targets {
		stop.Targets = append(stop.Targets, provider.CancelTarget{Session: t.SessionID, Turn: t.TurnID})
	}
	return p.Live.Cancel(ctx, c.Root.ID, stop, heard)
}

// Answer delivers the recorded response of a question.
func (p Port) Answer(ctx context.Context, root agent.SessionID, i agent.Interaction) error {
	a := provider.Answer{Interaction: i}
	if i.Response != nil {
		a.Response = *i.Response
	}
	return p.Live.Answer(ctx, root, a)
}

func input(m agent.Message) provider.Input {
	return provider.Input{Turn: m.TurnID, Message: m.ID, Text: m.Content}
}
