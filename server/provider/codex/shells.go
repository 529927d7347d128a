package codex

import (
	"context"
	"errors"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// A command can outlive the turn that started it: a server that was put into the
// background, or one whose turn was stopped. The server keeps a list of those for each
// thread (an experimental part of its protocol), under numbers of its own. It is asked for
// that list when a turn ends with a command open, and what it names is a process.

const (
	methodShells    = "thread/backgroundTerminals/list"
	methodEndShell  = "thread/backgroundTerminals/terminate"
	maxShellsOfTurn = 64
)

type shellsResult struct {
	Data []shell `json:"data"`
}

type shell struct {
	ItemID    string `json:"itemId"`
	ProcessID string `json:"processId"`
	Command   string `json:"command"`
	Cwd       string `json:"cwd"`
}

type endShellParams struct {
	ThreadID  string `json:"threadId"`
	ProcessID string `json:"processId"`
}

type endShellResult struct {
	Terminated bool `json:"terminated"`
}

// running is one process that was reported: its number at the server and its turn.
type running struct {
	number string
	turn   agent.TurnID
}

// findShells asks what outlives a turn that has just ended, if it left a command open.
func (r *runtime) findShells(t *thread, u *turn) {
	open := false
	for _, i := range u.items {
		open = open || i.command && !i.over
	}
	if !open {
		return
	}
	r.send(methodShells, threadReadParams{ThreadID: t.id}, requestBound, func(a wire.Answer) {
		var res shellsResult
		if a.Decode(&res) != nil || !t.owned() {
			return
		}
		for _, s := range res.Data[:min(len(res.Data), maxShellsOfTurn)] {
			if i := u.items[s.ItemID]; i != nil && i.command && !i.over {
				r.sawShell(t, u, s)
			}
		}
	})
}

// sawShell reports a process.
func (r *runtime) sawShell(t *thread, u *turn, s shell) {
	if t.shells == nil {
		t.shells = map[agent.ProcessID]running{}
	}
	id := agent.ProcessID(s.ItemID)
	t.shells[id] = running{s.ProcessID, u.id}
	r.Apply(agent.ProcessSeen{Process: agent.Process{
		ID: id, SessionID: t.session, TurnID: u.id, CallID: agent.CallID(s.ItemID), Command: show.Input(s.Command), Cwd: s.Cwd,
		Status: agent.ProcessRunning, Stoppable: true,
	}})
}

// shellEnded reports the end of a process, if the command was one.
func (r *runtime) shellEnded(t *thread, id agent.ProcessID) {
	s, known := t.shells[id]
	if !known {
		return
	}
	delete(t.shells, id)
	r.Apply(agent.ProcessSeen{Process: agent.Process{ID: id, SessionID: t.session, TurnID: s.turn, Status: agent.ProcessEnded}})
}

// StopProcess implements provider.ProcessStopper.
func (r *runtime) StopProcess(ctx context.Context, session agent.SessionID, process agent.ProcessID) error {
	w := serial.NewWaiter()
	r.Do(func() {
		t := r.bySession[session]
		if err := r.gone(); err != nil {
			r.Finish(w, err)
			return
		}
		if t == nil || !t.owned() {
			r.Finish(w, agent.Errorf(agent.CodeNotFound, "Codex does not run this agent"))
			return
		}
		s, known := t.shells[process]
		if !known {
			r.Finish(w, nil) // it has ended
			return
		}
		r.send(methodEndShell, endShellParams{t.id, s.number}, requestBound, func(a wire.Answer) {
			var res endShellResult
			if err := a.Decode(&res); err != nil {
				r.Finish(w, callError("end the process", err))
				return
			}
			r.shellEnded(t, process) // ended now, or not there any more
			r.Finish(w, nil)
		})
	})
	err := r.Await(ctx, w)
	if err != nil && errors.Is(err, ctx.Err()) {
		return agent.Errorf(agent.CodeTimeout, "Codex has not said yet that the process ended")
	}
	return err
}

var _ provider.ProcessStopper = (*runtime)(nil)
