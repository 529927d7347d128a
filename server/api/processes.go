package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func (a *API) registerProcesses() {
	register(a, huma.Operation{
		OperationID: "listProcesses", Method: http.MethodGet, Path: pathSession + "/processes", Tags: []string{tagSessions},
		Summary:     "List commands that outlived the turn which started them; of a root session, those of every session below it too",
		Description: "They are never children and hold no turn open.",
	}, a.listProcesses)
	register(a, huma.Operation{
		OperationID: "stopProcess", Method: http.MethodPost, Path: pathSession + "/processes/{processID}/stop", Tags: []string{tagSessions},
		Summary:     "End one process and no other",
		Description: "Answers when the provider has ended it. One that has ended already is given as it is; one that the provider cannot end alone is 409 cancel_unsupported.",
	}, a.stopProcess)
}

func (a *API) listProcesses(ctx context.Context, in *struct{ SessionPath }) (*out[list[agent.Process]], error) {
	items, err := a.deps.Reader.Processes(ctx, in.Workspace, in.Session)
	return &out[list[agent.Process]]{listOf(items)}, err
}

func (a *API) stopProcess(ctx context.Context, in *struct {
	SessionPath
	Process agent.ProcessID `path:"processID" maxLength:"200"`
},
) (*out[agent.Process], error) {
	p, err := a.deps.Commands.StopProcess(ctx, in.Workspace, in.Session, in.Process)
	return &out[agent.Process]{p}, err
}
