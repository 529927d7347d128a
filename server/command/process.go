package command

import (
	"context"
	"errors"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// StopProcess ends a process that outlived its turn and returns it as it then is; one that
// has ended already is returned as it is. It waits for the provider, for AnswerBound at
// most, because the answer is all that comes of it: nothing else waits for a process.
// Errors: CodeNotFound, CodeCancelUnsupported, CodeProviderRefused, CodeTimeout.
func (s *Service) StopProcess(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, process agent.ProcessID) (agent.Process, error) {
	p, err := s.Store.Process(ctx, ws, id, process)
	if err != nil || p.Status == agent.ProcessEnded {
		return p, err
	}
	if !p.Stoppable {
		return p, agent.Errorf(agent.CodeCancelUnsupported, "the provider cannot end this process alone; it ends with the session's runtime")
	}
	session, err := s.Store.Session(ctx, ws, id)
	if err != nil {
		return p, err
	}
	root := session.RootSessionID
	if session.IsRoot() {
		root = session.ID
	}
	bounded, cancel := context.WithTimeout(ctx, s.AnswerBound)
	defer cancel()
	err = s.Live.StopProcess(bounded, root, id, process)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return p, agent.Errorf(agent.CodeTimeout, "the provider did not end the process in time")
	case err != nil && !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}):
		return p, err
	}
	return s.Store.Process(ctx, ws, id, process)
}
