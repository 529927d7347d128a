package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// AnsweredInteraction is the answer of respondToInteraction.
type AnsweredInteraction struct {
	Interaction agent.Interaction `json:"interaction"`
	Operation   agent.Operation   `json:"operation" doc:"The delivery of the answer to the provider"`
}

func (a *API) registerInteractions() {
	register(a, huma.Operation{
		OperationID: "listInteractions", Method: http.MethodGet, Path: pathSession + "/interactions", Tags: []string{tagInteractions},
		Summary: "List what a session asks; of a root session, what every session below it asks too",
	}, a.listInteractions)
	register(a, huma.Operation{
		OperationID: "respondToInteraction", Method: http.MethodPost, Tags: []string{tagInteractions},
		Path:          pathTurn + "/interactions/{requestID}/response",
		DefaultStatus: http.StatusAccepted,
		Summary:       "Answer exactly one question",
		Description:   "The first answer wins. The same answer again gets the recorded result; another one 409 interaction_answered; a question that is no longer open 409 interaction_superseded.",
	}, a.respond)
}

func (a *API) listInteractions(ctx context.Context, in *struct {
	SessionPath
	Status string `query:"status" enum:"pending,answering,answered,superseded" doc:"Default: all"`
},
) (*out[list[agent.Interaction]], error) {
	items, err := a.deps.Reader.Interactions(ctx, in.Workspace, in.Session, agent.InteractionStatus(in.Status))
	for i := range items {
		items[i] = wholeInteraction(items[i])
	}
	return &out[list[agent.Interaction]]{listOf(items)}, err
}

func (a *API) respond(ctx context.Context, in *struct {
	TurnPath
	SpareKey                 // an answer is idempotent by what it says
	Request  agent.RequestID `path:"requestID" maxLength:"200"`
	Body     agent.Response
},
) (*out[AnsweredInteraction], error) {
	i, op, err := a.deps.Commands.Answer(ctx, in.Workspace, agent.NewAnswer{
		Session: in.Session, Turn: in.Turn, Request: in.Request, Response: in.Body, Client: clientOf(ctx),
	})
	return &out[AnsweredInteraction]{AnsweredInteraction{wholeInteraction(i), wholeOperation(op)}}, err
}

func wholeInteraction(i agent.Interaction) agent.Interaction {
	i.Options = some(i.Options)
	for q := range i.Detail.Questions {
		i.Detail.Questions[q].Options = some(i.Detail.Questions[q].Options)
	}
	return i
}
