package providertest

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// seeProcess notes a process that outlives its turn, or its end.
func (m *Model) seeProcess(p agent.Process) agent.Applied {
	if p.ID == "" || p.TurnID == "" || m.turn(p.SessionID, p.TurnID) == nil {
		return m.violate(agent.CodeInvalid, "process %q of turn %q", p.ID, p.TurnID)
	}
	at := slices.IndexFunc(m.processes, func(o agent.Process) bool { return o.SessionID == p.SessionID && o.ID == p.ID })
	switch {
	case at < 0 && p.Status == agent.ProcessEnded, at >= 0 && m.processes[at].Status == agent.ProcessEnded:
		return agent.Applied{Verdict: agent.VerdictUnchanged}
	case at < 0:
		m.processes = append(m.processes, p)
	case m.processes[at].Status == p.Status:
		return agent.Applied{Verdict: agent.VerdictUnchanged}
	default:
		m.processes[at].Status = p.Status
	}
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: p.TurnID}
}
