package api

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Limits of request bodies.
const (
	bodyTimeout = 30 * time.Second // a message of full size over a slow line
	defaultBody = 1 << 20
	messageBody = 4 << 20
)

// Tags group the operations in the document.
const (
	tagSystem       = "System"
	tagWorkspaces   = "Workspaces"
	tagSessions     = "Sessions"
	tagTurns        = "Turns"
	tagMessages     = "Messages"
	tagInteractions = "Interactions"
	tagOperations   = "Operations"
	tagEvents       = "Events"
)

// Paths that several operations share.
const (
	pathWorkspace = "/v1/workspaces/{workspaceID}"
	pathSessions  = pathWorkspace + "/agent-sessions"
	pathSession   = pathSessions + "/{agentSessionID}"
	pathTurn      = pathSession + "/turns/{turnID}"
	pathMessages  = pathSession + "/messages"
	pathStream    = pathWorkspace + "/events/stream"
)

// Path parameters, embedded by inputs. They are exported because huma looks into
// exported fields alone.
type (
	// WorkspacePath names a workspace.
	WorkspacePath struct {
		Workspace agent.WorkspaceID `path:"workspaceID" maxLength:"200"`
	}
	// SessionPath names a session of it.
	SessionPath struct {
		WorkspacePath
		Session agent.SessionID `path:"agentSessionID" maxLength:"200"`
	}
	// TurnPath names a turn of that.
	TurnPath struct {
		SessionPath
		Turn agent.TurnID `path:"turnID" maxLength:"200"`
	}
)

// IdempotencyKey is the header that makes a repeated call give the first one's answer.
type IdempotencyKey struct {
	Key string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]*$" patternDescription:"visible ASCII characters" doc:"Chosen by the client: the same request with the same key gives the first one's answer and does nothing again"`
}

// SpareKey is the same header where a call is idempotent by what it says, so that the key
// adds nothing: it is taken, for clients that send one with every call, and not looked at.
type SpareKey struct {
	Key string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]*$" patternDescription:"visible ASCII characters" doc:"Taken and not looked at: the same request gives the same result here with any key, or without one"`
}

// out is an answer that is only a body.
type out[T any] struct{ Body T }

// list is an answer of a whole, short list.
type list[T any] struct {
	Items []T `json:"items"`
}

// listOf never holds null.
func listOf[T any](items []T) list[T] { return list[T]{Items: some(items)} }

// some makes an empty list of a missing one: lists in answers are never null.
func some[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// register adds one operation whose errors all become problems. more are answers besides
// the usual one, in the document alone.
func register[I, O any](a *API, op huma.Operation, h func(context.Context, *I) (*O, error), more ...answer) {
	op.RejectUnknownQueryParameters = true
	op.BodyReadTimeout = bodyTimeout
	if op.MaxBodyBytes == 0 {
		op.MaxBodyBytes = defaultBody
	}
	if !takesBody(reflect.TypeFor[I]()) {
		op.Middlewares = append(op.Middlewares, refuseBody)
	}
	registry := a.huma.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"default": problemResponse(registry)}
	for _, m := range more {
		op.Responses[strconv.Itoa(m.status)] = m.response(registry)
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		o, err := h(ctx, in)
		if err != nil {
			p := problemOf(ctx, err)
			p.RequestID = requestID(ctx)
			a.logProblem(ctx, op.OperationID, p)
			return nil, p
		}
		return o, nil
	})
}

// answer is a second success of an operation.
type answer struct {
	status int
	text   string
	body   reflect.Type // nil for none
}

func (m answer) response(r huma.Registry) *huma.Response {
	res := &huma.Response{Description: m.text}
	if m.body != nil {
		res.Content = map[string]*huma.MediaType{"application/json": {Schema: r.Schema(m.body, true, "")}}
	}
	return res
}

func problemResponse(r huma.Registry) *huma.Response {
	return &huma.Response{
		Description: "Any refusal or failure; code says which",
		Content:     map[string]*huma.MediaType{problemType: {Schema: r.Schema(reflect.TypeFor[Problem](), true, "")}},
	}
}
