package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Health is the answer of health and ready.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// LoginCode is the answer of createLoginCode.
type LoginCode struct {
	Code      string    `json:"code"`
	Path      string    `json:"path" doc:"Where a browser exchanges it, once, for its cookie"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// open marks an operation that needs no token.
var open = []map[string][]string{{}}

func (a *API) registerSystem() {
	register(a, huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/healthz", Tags: []string{tagSystem}, Security: open,
		Summary: "Say that the process answers",
	}, func(context.Context, *struct{}) (*out[Health], error) { return &out[Health]{Health{"ok"}}, nil })
	register(a, huma.Operation{
		OperationID: "ready", Method: http.MethodGet, Path: "/readyz", Tags: []string{tagSystem}, Security: open,
		Summary: "Say whether recovery has run and requests are served",
	}, a.ready)
	register(a, huma.Operation{
		OperationID: "version", Method: http.MethodGet, Path: "/version", Tags: []string{tagSystem}, Security: open,
		Summary: "Say which build answers",
	}, func(context.Context, *struct{}) (*out[Version], error) { return &out[Version]{a.deps.Version}, nil })
	register(a, huma.Operation{
		OperationID: "createLoginCode", Method: http.MethodPost, Path: "/v1/login-codes", Tags: []string{tagSystem},
		DefaultStatus: http.StatusCreated,
		Summary:       "Mint a one-time code with which a browser signs in",
		Description:   "Only with the bearer token: a signed-in browser cannot invite others.",
	}, a.createLoginCode)
}

func (a *API) ready(context.Context, *struct{}) (*out[Health], error) {
	if a.closing.Err() != nil {
		return nil, agent.Errorf(agent.CodeDaemonStopping, "The daemon is stopping.")
	}
	if a.deps.Ready != nil {
		if err := a.deps.Ready(); err != nil {
			return nil, newProblem(codeNotReady, "The daemon is still starting.")
		}
	}
	return &out[Health]{Health{"ok"}}, nil
}

func (a *API) createLoginCode(ctx context.Context, _ *struct{}) (*out[LoginCode], error) {
	if principalOf(ctx).kind != byBearer {
		return nil, newProblem(codeUnauthorized, "A login code is given for the bearer token alone.")
	}
	code, err := a.auth.current.Load().mintCode()
	if err != nil {
		return nil, err
	}
	return &out[LoginCode]{LoginCode{
		Code: code, Path: "/login?code=" + code, ExpiresAt: a.now().Add(loginCodeLife).UTC().Truncate(time.Second),
	}}, nil
}
