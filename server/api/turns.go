package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// OperationAnswer is the answer of a command that goes on in the background.
type OperationAnswer struct {
	Operation agent.Operation `json:"operation"`
}

// SettledTurn is the answer of cancelTurn where there was nothing left to stop.
type SettledTurn struct {
	Turn      agent.Turn       `json:"turn" doc:"As it stands; its outcome says how it ended"`
	Operation *agent.Operation `json:"operation,omitempty" doc:"The stop that ended it, where one did"`
}

func (a *API) registerTurns() {
	register(a, huma.Operation{
		OperationID: "listTurns", Method: http.MethodGet, Path: pathSession + "/turns", Tags: []string{tagTurns},
		Summary: "List the turns of a session, newest first",
	}, a.listTurns)
	register(a, huma.Operation{
		OperationID: "getTurn", Method: http.MethodGet, Path: pathTurn, Tags: []string{tagTurns},
		Summary: "Read one turn",
	}, a.getTurn)
	register(a, huma.Operation{
		OperationID: "getTurnGate", Method: http.MethodGet, Path: pathTurn + "/gate", Tags: []string{tagTurns},
		Summary:     "Say why a turn is still open",
		Description: "Of a root turn: the retained outcome of the main agent, every agent below it that has not ended and what it waits for, and an expected continuation with its deadline.",
	}, a.getGate)
	register(a, huma.Operation{
		OperationID: "cancelTurn", Method: http.MethodPost, Path: pathTurn + "/cancel", Tags: []string{tagTurns},
		DefaultStatus: http.StatusAccepted,
		Summary:       "Stop a turn and every turn below it",
		Description:   "202 with a durable operation whose targets show what the provider confirmed. On a turn that has settled: 200 with the turn as it stands, and nothing has changed.",
	}, a.cancelTurn,
		answer{http.StatusAccepted, "The stop is recorded and will be carried out", reflect.TypeFor[OperationAnswer]()},
		answer{http.StatusOK, "The turn had settled already; nothing has changed", reflect.TypeFor[SettledTurn]()})
	register(a, huma.Operation{
		OperationID: "listOperations", Method: http.MethodGet, Path: pathSession + "/operations", Tags: []string{tagOperations},
		Summary:     "List what was asked for about a session, newest first; of a root session, about every session below it too",
		Description: "Stops with the evidence of each target, answers and guided messages with their delivery. Of a child session: what is about it, and every stop that had a turn of it among its targets. True at seq.",
	}, a.listOperations)
	register(a, huma.Operation{
		OperationID: "getOperation", Method: http.MethodGet, Path: pathWorkspace + "/operations/{operationID}", Tags: []string{tagOperations},
		Summary: "Read one operation",
	}, a.getOperation)
}

func (a *API) listTurns(ctx context.Context, in *struct {
	SessionPath
	Cursor string `query:"cursor" maxLength:"1000" doc:"nextCursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
},
) (*out[agent.TurnPage], error) {
	page, err := a.deps.Reader.Turns(ctx, in.Workspace, in.Session, in.Cursor, in.Limit)
	page.Items = some(page.Items)
	return &out[agent.TurnPage]{page}, err
}

func (a *API) getTurn(ctx context.Context, in *TurnPath) (*out[agent.Turn], error) {
	t, err := a.deps.Reader.Turn(ctx, in.Workspace, in.Session, in.Turn)
	return &out[agent.Turn]{t}, err
}

func (a *API) getGate(ctx context.Context, in *TurnPath) (*out[agent.GateReport], error) {
	g, err := a.deps.Reader.Gate(ctx, in.Workspace, in.Session, in.Turn)
	g.OpenChildren = some(g.OpenChildren)
	return &out[agent.GateReport]{g}, err
}

type cancelOut struct {
	Status int
	Body   any // OperationAnswer or SettledTurn
}

func (a *API) cancelTurn(ctx context.Context, in *struct {
	TurnPath
	SpareKey // a cancel is idempotent by its turn
},
) (*cancelOut, error) {
	op, settled, err := a.deps.Commands.Cancel(ctx, in.Workspace, in.Session, in.Turn, clientOf(ctx))
	if err != nil {
		return nil, err
	}
	op = wholeOperation(op)
	if !settled {
		return &cancelOut{http.StatusAccepted, OperationAnswer{op}}, nil
	}
	found := SettledTurn{}
	if op.ID != "" {
		found.Operation = &op
	}
	found.Turn, err = a.deps.Reader.Turn(ctx, in.Workspace, in.Session, in.Turn)
	return &cancelOut{http.StatusOK, found}, err
}

func (a *API) listOperations(ctx context.Context, in *struct {
	SessionPath
	Kind   string `query:"kind" enum:"cancel,answer,guide,delete" doc:"Default: all"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"nextCursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
},
) (*out[agent.OperationPage], error) {
	page, err := a.deps.Reader.Operations(ctx, in.Workspace, in.Session, agent.OperationFilter{
		Kind: agent.OperationKind(in.Kind), Cursor: in.Cursor, Limit: in.Limit,
	})
	page.Items = some(page.Items)
	for i := range page.Items {
		page.Items[i] = wholeOperation(page.Items[i])
	}
	return &out[agent.OperationPage]{page}, err
}

func (a *API) getOperation(ctx context.Context, in *struct {
	WorkspacePath
	Operation agent.OperationID `path:"operationID" maxLength:"200"`
},
) (*out[agent.Operation], error) {
	op, err := a.deps.Reader.Operation(ctx, in.Workspace, in.Operation)
	return &out[agent.Operation]{wholeOperation(op)}, err
}

func wholeOperation(op agent.Operation) agent.Operation {
	op.Targets = some(op.Targets)
	return op
}
