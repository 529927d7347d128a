package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// NewMessage is the body of sendMessage.
type NewMessage struct {
	ClientMessageID string         `json:"clientMessageId" minLength:"1" maxLength:"200" pattern:"^[!-~]+$" patternDescription:"visible ASCII characters" doc:"Chosen by the client; the same id gives the same answer"`
	Content         []ContentBlock `json:"content" minItems:"1" maxItems:"64"`
}

// SentMessage is the answer of sendMessage.
type SentMessage struct {
	Turn      agent.Turn       `json:"turn"`
	Message   agent.Message    `json:"message"`
	Delivery  agent.Delivery   `json:"delivery" enum:"started,guided,queued" doc:"Whether it began a turn, joined the open one, or waits for the provider under the open one"`
	Operation *agent.Operation `json:"operation,omitempty" doc:"Of a guided message: its delivery to the provider"`
}

func (a *API) registerMessages() {
	register(a, huma.Operation{
		OperationID: "listMessages", Method: http.MethodGet, Path: pathMessages, Tags: []string{tagMessages},
		Summary:     "Read a part of a session's transcript",
		Description: "In ascending order of seq. Without after and before: the newest. With before: the newest ones below it.",
	}, a.listMessages)
	register(a, huma.Operation{
		OperationID: "getMessage", Method: http.MethodGet, Path: pathMessages + "/{messageID}", Tags: []string{tagMessages},
		Summary: "Read one message, with the text that is committed so far",
	}, a.getMessage)
	register(a, huma.Operation{
		OperationID: "sendMessage", Method: http.MethodPost, Path: pathMessages, Tags: []string{tagMessages},
		DefaultStatus: http.StatusAccepted, MaxBodyBytes: messageBody,
		Summary:     "Send a message to a root session",
		Description: "It begins a new turn, or joins the open one where the provider can take it. Where it cannot: 409 guidance_unsupported, never a second turn beside the open one.",
	}, a.sendMessage)
}

func (a *API) listMessages(ctx context.Context, in *struct {
	SessionPath
	After  int64 `query:"after" minimum:"0" doc:"Messages with a greater seq"`
	Before int64 `query:"before" minimum:"0" doc:"Messages with a smaller seq"`
	Limit  int   `query:"limit" minimum:"1" maximum:"500" default:"100"`
},
) (*out[agent.MessagePage], error) {
	if in.After > 0 && in.Before > 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "Give after or before, not both.")
	}
	page, err := a.deps.Reader.Messages(ctx, in.Workspace, in.Session, agent.MessageRange{
		After: in.After, Before: in.Before, Limit: in.Limit,
	})
	page.Items = some(page.Items)
	return &out[agent.MessagePage]{page}, err
}

func (a *API) getMessage(ctx context.Context, in *struct {
	SessionPath
	Message agent.MessageID `path:"messageID" maxLength:"200"`
},
) (*out[agent.Message], error) {
	m, err := a.deps.Reader.Message(ctx, in.Workspace, in.Session, in.Message)
	return &out[agent.Message]{m}, err
}

func (a *API) sendMessage(ctx context.Context, in *struct {
	SessionPath
	SpareKey // the client's message id is the key
	Body     NewMessage
},
) (*out[SentMessage], error) {
	done, err := a.deps.Commands.Send(ctx, in.Workspace, agent.NewMessage{
		Session: in.Session, ClientMessageID: in.Body.ClientMessageID,
		Text: textOf(in.Body.Content), Client: clientOf(ctx),
	})
	if err != nil {
		return nil, err
	}
	sent := SentMessage{Delivery: done.Delivery}
	if done.Turn != nil {
		sent.Turn = *done.Turn
	}
	if done.Message != nil {
		sent.Message = *done.Message
	}
	if done.Operation != nil {
		op := wholeOperation(*done.Operation)
		sent.Operation = &op
	}
	return &out[SentMessage]{sent}, nil
}
