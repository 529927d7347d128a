package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/hub"
)

// wireEvent is an event in the document's eyes: the same JSON, with a schema that ties
// each kind to its entity.
type wireEvent agent.Event

// MarshalJSON gives the bytes that the stream sends.
func (e wireEvent) MarshalJSON() ([]byte, error) {
	ev := agent.Event(e)
	return hub.AppendEvent(nil, &ev), nil
}

// eventPage is agent.Log with that schema.
type eventPage struct {
	Items  []wireEvent `json:"items"`
	Seq    int64       `json:"seq" doc:"Newest number committed"`
	Epoch  string      `json:"epoch" doc:"Changes when the log starts anew; a cursor of another epoch means nothing"`
	Oldest int64       `json:"oldest" doc:"Oldest number still kept; below oldest-1 read a snapshot again"`
}

func (a *API) registerEvents() {
	register(a, huma.Operation{
		OperationID: "listEvents", Method: http.MethodGet, Path: pathWorkspace + "/events", Tags: []string{tagEvents},
		Summary:     "Read the log of a workspace",
		Description: "The same events, with the same numbers, as the stream sends.",
	}, a.listEvents)
}

func (a *API) listEvents(ctx context.Context, in *struct {
	WorkspacePath
	After int64 `query:"after" minimum:"0" doc:"Events with a greater number"`
	Limit int   `query:"limit" minimum:"1" maximum:"1000" default:"200"`
},
) (*out[eventPage], error) {
	l, err := a.deps.Reader.Events(ctx, in.Workspace, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	page := eventPage{Items: make([]wireEvent, len(l.Items)), Seq: l.Seq, Epoch: l.Epoch, Oldest: l.Oldest}
	for i, e := range l.Items {
		page.Items[i] = wireEvent(e)
	}
	return &out[eventPage]{page}, nil
}
