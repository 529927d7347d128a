package api

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Reader is what the API reads. Each call is one read transaction; errors are
// *agent.Error where they have a meaning.
type Reader interface {
	Workspaces(ctx context.Context) ([]agent.Workspace, error)
	Workspace(ctx context.Context, id agent.WorkspaceID) (agent.Workspace, error)
	Detail(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (agent.SessionDetail, error)
	List(ctx context.Context, f agent.SessionFilter) (agent.SessionPage, error)
	Turns(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, cursor string, limit int) (agent.TurnPage, error)
	Turn(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (agent.Turn, error)
	Gate(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (agent.GateReport, error)
	Messages(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, r agent.MessageRange) (agent.MessagePage, error)
	Message(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, message agent.MessageID) (agent.Message, error)
	Interactions(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, status agent.InteractionStatus) ([]agent.Interaction, error)
	Processes(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) ([]agent.Process, error)
	Operations(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, f agent.OperationFilter) (agent.OperationPage, error)
	Operation(ctx context.Context, ws agent.WorkspaceID, op agent.OperationID) (agent.Operation, error)
	Events(ctx context.Context, ws agent.WorkspaceID, after int64, limit int) (agent.Log, error)
	Head(ctx context.Context, ws agent.WorkspaceID) (seq int64, epoch string, oldest int64, err error)
	Counts(ctx context.Context) (agent.Counts, error)
}

// Commands is what a person can ask for. Each returns once the wish is durable; what
// comes of it arrives as events.
type Commands interface {
	// CreateWorkspace gives the workspace of a path; the same path gives the same one.
	CreateWorkspace(ctx context.Context, name, path string) (agent.Workspace, error)
	RenameWorkspace(ctx context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error)
	DeleteWorkspace(ctx context.Context, id agent.WorkspaceID) error

	CreateSession(ctx context.Context, s agent.NewSession) (agent.Submitted, error)
	UpdateSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error)
	// DeleteSession tombstones the tree; a second call is as good as the first.
	DeleteSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) error
	Send(ctx context.Context, ws agent.WorkspaceID, m agent.NewMessage) (agent.Submitted, error)
	// Cancel prepares a durable cancel. settled reports that the turn had ended already
	// and nothing was done; the operation is then the one that ended it, or none.
	Cancel(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID, client string) (op agent.Operation, settled bool, err error)
	Answer(ctx context.Context, ws agent.WorkspaceID, a agent.NewAnswer) (agent.Interaction, agent.Operation, error)
	// StopProcess ends a process that outlived its turn and returns it as it then is.
	StopProcess(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, process agent.ProcessID) (agent.Process, error)
}

// Version says which build answers.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	API     int    `json:"api" doc:"Version of the contract; the hello of the stream carries the same number"`
}

// Deps is everything the API stands on. The zero value is enough to print the document.
type Deps struct {
	Reader    Reader
	Commands  Commands
	Hub       *hub.Hub
	Providers func(context.Context) []provider.Info
	// Diagnostics counts provider frames that could not become facts, by kind.
	Diagnostics func() map[string]uint64
	// Ready returns nil once recovery has run and the daemon serves.
	Ready func() error

	Assets fs.FS // the built web view; without an index file a page says how to build it

	Token string // the bearer token; the browser's cookie is derived from it
	// Refresh is called when a request shows a token that is not ours: whoever keeps the
	// token looks again, and calls SetToken before it returns where there is a new one.
	Refresh func()
	Hosts   []string // names and addresses to answer to besides the loopback ones, without port
	Origins []string // origins of pages to accept besides our own, as scheme://host[:port]

	Version Version
	Logger  *slog.Logger     // default slog.Default()
	Now     func() time.Time // default time.Now
}
