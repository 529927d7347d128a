package command

import (
	"context"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Store is the storage that commands stand on. Its errors are *agent.Error where they
// have a meaning; CodeUnavailable means that trying again helps.
type Store interface {
	CreateWorkspace(ctx context.Context, name, path string) (agent.Workspace, error)
	Workspace(ctx context.Context, id agent.WorkspaceID) (agent.Workspace, error)
	RenameWorkspace(ctx context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error)
	DeleteWorkspace(ctx context.Context, id agent.WorkspaceID) ([]agent.Deleted, error)

	CreateSession(ctx context.Context, s agent.NewSession) (agent.Submitted, error)
	// RepeatSession looks up what an earlier request with the same Key made.
	RepeatSession(ctx context.Context, s agent.NewSession) (agent.Submitted, bool, error)
	Session(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (agent.Session, error)
	UpdateSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error)
	Delete(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (agent.Deleted, error)
	Turn(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (agent.Turn, error)
	Interaction(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID, request agent.RequestID) (agent.Interaction, error)

	Process(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, process agent.ProcessID) (agent.Process, error)

	Submit(ctx context.Context, m agent.NewMessage) (agent.Submitted, error)
	PrepareCancel(ctx context.Context, session agent.SessionID, turn agent.TurnID, client string) (agent.Operation, bool, error)
	PrepareAnswer(ctx context.Context, a agent.NewAnswer) (agent.Interaction, agent.Operation, error)

	Claim(ctx context.Context, worker string, lease time.Duration, limit int) ([]agent.Claimed, error)
	NextDue(ctx context.Context) (time.Time, bool, error)
	Hear(ctx context.Context, op agent.OperationID, heard []agent.Evidence) error
	CompleteCancel(ctx context.Context, op agent.OperationID, failure *agent.Error) (agent.Operation, error)
	CompleteAnswer(ctx context.Context, op agent.OperationID, failure *agent.Error) (agent.Operation, error)
	CompleteGuide(ctx context.Context, op agent.OperationID, failure *agent.Error) (agent.Operation, error)
	Retry(ctx context.Context, op agent.OperationID, failure *agent.Error, notBefore time.Time) error
}

// Live is where agents run. Every call ends at the latest when its ctx does.
// CodeProviderGone means that no runtime is there to be asked.
type Live interface {
	// Start gives the message that began a root turn to the session's runtime, and
	// itself ends that turn as failed if it cannot.
	Start(ctx context.Context, session agent.Session, m agent.Message) error
	// Guide adds a person's message to the open root turn.
	Guide(ctx context.Context, root agent.SessionID, m agent.Message) error
	// Cancel asks for the stop of the operation's targets; it returns nil when all is
	// confirmed.
	Cancel(ctx context.Context, c agent.Claimed, heard func(agent.Evidence)) error
	// Answer delivers the response recorded in i.
	Answer(ctx context.Context, root agent.SessionID, i agent.Interaction) error
	// StopProcess ends one process that outlived its turn.
	StopProcess(ctx context.Context, root, session agent.SessionID, process agent.ProcessID) error
	// Forget stops what runs of deleted sessions.
	Forget(ctx context.Context, root agent.SessionID, sessions []agent.SessionID)
	// CloseSession ends a root session's runtime.
	CloseSession(ctx context.Context, root agent.SessionID) error
}
