package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// NewWorkspace is the body of createWorkspace.
type NewWorkspace struct {
	Path string `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute path of a directory on the daemon's machine; the same path gives the same workspace"`
	Name string `json:"name,omitempty" maxLength:"200" doc:"Default: the directory's name"`
}

// WorkspacePatch is the body of updateWorkspace.
type WorkspacePatch struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
}

func (a *API) registerWorkspaces() {
	register(a, huma.Operation{
		OperationID: "listProviders", Method: http.MethodGet, Path: "/v1/providers", Tags: []string{tagSystem},
		Summary:     "List the providers",
		Description: "Each with what it can and cannot confirm, and why it cannot be used where that is so.",
	}, a.listProviders)
	register(a, huma.Operation{
		OperationID: "listWorkspaces", Method: http.MethodGet, Path: "/v1/workspaces", Tags: []string{tagWorkspaces},
		Summary: "List the workspaces",
	}, a.listWorkspaces)
	register(a, huma.Operation{
		OperationID: "createWorkspace", Method: http.MethodPost, Path: "/v1/workspaces", Tags: []string{tagWorkspaces},
		DefaultStatus: http.StatusCreated,
		Summary:       "Open a directory as a workspace",
		Description:   "The same path gives the same workspace, under the name it has; 201 then too.",
	}, a.createWorkspace)
	register(a, huma.Operation{
		OperationID: "getWorkspace", Method: http.MethodGet, Path: pathWorkspace, Tags: []string{tagWorkspaces},
		Summary: "Read one workspace",
	}, a.getWorkspace)
	register(a, huma.Operation{
		OperationID: "updateWorkspace", Method: http.MethodPatch, Path: pathWorkspace, Tags: []string{tagWorkspaces},
		Summary: "Rename a workspace",
	}, a.updateWorkspace)
	register(a, huma.Operation{
		OperationID: "deleteWorkspace", Method: http.MethodDelete, Path: pathWorkspace, Tags: []string{tagWorkspaces},
		DefaultStatus: http.StatusNoContent,
		Summary:       "Delete a workspace with all its sessions",
		Description:   "What still runs is stopped. The directory itself is not touched.",
	}, a.deleteWorkspace)
}

func (a *API) listProviders(ctx context.Context, _ *struct{}) (*out[list[provider.Info]], error) {
	items := a.deps.Providers(ctx)
	for i := range items {
		p := &items[i]
		p.Notes, p.Models = some(p.Notes), some(p.Models)
		p.PermissionModes, p.Scenarios = some(p.PermissionModes), some(p.Scenarios)
	}
	return &out[list[provider.Info]]{listOf(items)}, nil
}

func (a *API) listWorkspaces(ctx context.Context, _ *struct{}) (*out[list[agent.Workspace]], error) {
	items, err := a.deps.Reader.Workspaces(ctx)
	return &out[list[agent.Workspace]]{listOf(items)}, err
}

func (a *API) createWorkspace(ctx context.Context, in *struct {
	SpareKey
	Body NewWorkspace
},
) (*out[agent.Workspace], error) {
	w, err := a.deps.Commands.CreateWorkspace(ctx, in.Body.Name, in.Body.Path)
	return &out[agent.Workspace]{w}, err
}

func (a *API) getWorkspace(ctx context.Context, in *WorkspacePath) (*out[agent.Workspace], error) {
	w, err := a.deps.Reader.Workspace(ctx, in.Workspace)
	return &out[agent.Workspace]{w}, err
}

func (a *API) updateWorkspace(ctx context.Context, in *struct {
	WorkspacePath
	Body WorkspacePatch
},
) (*out[agent.Workspace], error) {
	w, err := a.deps.Commands.RenameWorkspace(ctx, in.Workspace, in.Body.Name)
	return &out[agent.Workspace]{w}, err
}

func (a *API) deleteWorkspace(ctx context.Context, in *WorkspacePath) (*struct{}, error) {
	if err := a.deps.Commands.DeleteWorkspace(ctx, in.Workspace); err != nil {
		return nil, err
	}
	a.deps.Hub.Close(in.Workspace)
	return nil, nil
}
