package replay

import (
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// collect reads what the recording came to. Deleted things are gone.
func (e *engine) collect() (*End, error) {
	e.judge.mu.Lock()
	j := e.judge.findings
	e.judge.mu.Unlock()
	end := &End{Invariants: j.Invariants, Processes: j.processes, Grants: j.grants}
	var err error
	read := func(what string, f func() error) {
		if err == nil {
			if err = f(); err != nil {
				err = fmt.Errorf("read %s: %w", what, err)
			}
		}
	}
	read("sessions", func() (err error) {
		end.Sessions, err = gather(j.sessions, func(id agent.SessionID) (agent.Session, error) {
			return e.store.Session(e.ctx, e.workspace, id)
		})
		return err
	})
	read("turns", func() (err error) {
		end.Turns, err = gather(j.turns, func(id turnID) (agent.Turn, error) {
			return e.store.Turn(e.ctx, e.workspace, id.session, id.turn)
		})
		return err
	})
	read("messages", func() (err error) {
		end.Messages, err = gather(j.messages, func(id messageID) (agent.Message, error) {
			return e.store.Message(e.ctx, e.workspace, id.session, id.message)
		})
		return err
	})
	read("interactions", func() (err error) {
		end.Interactions, err = gather(j.interactions, func(id interactionID) (agent.Interaction, error) {
			return e.store.Interaction(e.ctx, e.workspace, id.session, id.turn, id.request)
		})
		return err
	})
	read("operations", func() (err error) {
		end.Operations, err = gather(j.operations, func(id agent.OperationID) (agent.Operation, error) {
			return e.store.Operation(e.ctx, e.workspace, id)
		})
		return err
	})
	counts := e.live.Diagnostics().Counts
	end.Diagnostics = Diagnostics{
		Unrouted: int(counts[string(provider.Unrouted)]),
		Held:     int(counts[string(provider.Held)]),
		Late:     int(counts[string(provider.Late)]) + int(e.recorder.late.Load()),
		Refused:  int(counts[string(provider.Refused)]) + int(e.recorder.refused.Load()),
	}
	return end, err
}

// gather reads each, leaving out what was deleted. It never is nil.
func gather[ID, T any](ids []ID, read func(ID) (T, error)) ([]T, error) {
	out := []T{}
	for _, id := range ids {
		v, err := read(id)
		if errors.Is(err, &agent.Error{Code: agent.CodeNotFound}) {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, v)
	}
	return out, nil
}
