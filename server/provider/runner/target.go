package runner

import (
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
)

// Target is one exact turn to stop, and who hears of it. It is embedded in what an adapter
// keeps of one.
type Target struct {
	provider.CancelTarget
	Done  bool // confirmed, ended before, or given up
	loop  *serial.Loop
	heard func(agent.Evidence)
}

// Target follows one target of a cancel.
func (r *Runner) Target(t provider.CancelTarget, heard func(agent.Evidence)) Target {
	return Target{CancelTarget: t, loop: r.Loop, heard: heard}
}

// Hear passes evidence on, after the lock is released and in order. What ends a target is the
// last that is heard of it.
func (t *Target) Hear(state agent.TargetState, err *agent.Error) {
	if t.Done {
		return
	}
	t.Done = state == agent.TargetCanceled || state == agent.TargetAlreadyTerminal
	e := agent.Evidence{SessionID: t.Session, TurnID: t.Turn, State: state, Err: err}
	t.loop.Later(func() { t.heard(e) })
}
