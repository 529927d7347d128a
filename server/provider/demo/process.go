package demo

import (
	"context"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// stays reports the command of a tool call as a process: it runs on until somebody ends it,
// or the provider process ends.
func (p *player) stays(m agent.Message) {
	process := agent.Process{
		ID: agent.ProcessID(m.CallID), SessionID: p.session, TurnID: p.turn, CallID: m.CallID, Command: m.Input,
		Status: agent.ProcessRunning, Stoppable: true,
	}
	p.rt.processes[process.ID] = process
	p.report(agent.ProcessSeen{Process: process})
}

// StopProcess implements provider.ProcessStopper.
func (r *runtime) StopProcess(_ context.Context, session agent.SessionID, process agent.ProcessID) error {
	defer r.hold()()
	if r.over {
		return gone()
	}
	p, runs := r.processes[process]
	if !runs || p.SessionID != session {
		return nil // it has ended
	}
	delete(r.processes, process)
	p.Status = agent.ProcessEnded
	r.apply(agent.ProcessSeen{Process: p})
	return nil
}
