package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// registerStream adds the WebSocket. Huma has no word for one, so the operation is
// written into the document by hand, with its frames.
func (a *API) registerStream() {
	a.mux.HandleFunc(routeStream, a.stream)
	doc := a.huma.OpenAPI()
	doc.AddOperation(&huma.Operation{
		OperationID: "streamEvents", Method: http.MethodGet, Path: pathStream, Tags: []string{tagEvents},
		Summary: "Follow the log of a workspace (WebSocket)",
		Description: "The client sends StreamHello first. The server answers ready and then sends events in order, without gaps; text deltas; and a heartbeat. " +
			"Close codes: 1012 the daemon restarts, 4401 no or bad token, 4403 foreign origin, 4404 no such workspace, 4409 another version of the contract.",
		Parameters: []*huma.Param{{Name: "workspaceID", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
		Responses: map[string]*huma.Response{
			"101": {
				Description: "The socket is open; what it then carries",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: registerFrames(doc.Components.Schemas)}},
			},
			"default": problemResponse(doc.Components.Schemas),
		},
	})
}
