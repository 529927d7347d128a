package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// configureHuma sets what huma keeps in package variables. The daemon has one API, and
// every API of a test wants the same.
var configureHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
	huma.NewError = humaProblem
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		e := humaProblem(status, msg, errs...)
		if p, ok := e.(*Problem); ok {
			p.RequestID = requestID(ctx.Context())
		}
		return e
	}
})

const schemaPrefix = "#/components/schemas/"

func humaConfig() huma.Config {
	c := huma.DefaultConfig("Turnkeeper", "1")
	c.Info.Description = "Agent sessions whose root turn ends only when all its work has ended. " +
		"Errors are RFC 9457 problems with a stable code; unknown fields and parameters are refused; lists are never null."
	c.Info.License = &huma.License{Name: "MIT", Identifier: "MIT"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", "" // served by ourselves; no page that loads from elsewhere
	c.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	c.CreateHooks = nil // no $schema fields
	c.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "The daemon's token, from its 0600 file"},
		"cookie": {Type: "apiKey", In: "cookie", Name: "turnkeeper", Description: "What a browser gets for a one-time code; the name carries a suffix of its own for each daemon"},
	}
	c.Security = []map[string][]string{{"bearer": {}}, {"cookie": {}}}
	c.Tags = []*huma.Tag{
		{Name: tagSystem},
		{Name: tagWorkspaces},
		{Name: tagSessions},
		{Name: tagTurns},
		{Name: tagMessages},
		{Name: tagInteractions},
		{Name: tagOperations},
		{Name: tagEvents},
	}
	return c
}

// schemaNames are the names of the document where Go's own would be too general.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[agent.Session]():     "AgentSession",
	reflect.TypeFor[sessionDetail]():     "AgentSessionDetail",
	reflect.TypeFor[sessionPage]():       "AgentSessionPage",
	reflect.TypeFor[agent.GateReport]():  "Gate",
	reflect.TypeFor[agent.Error]():       "ErrorInfo",
	reflect.TypeFor[agent.Option]():      "InteractionOption",
	reflect.TypeFor[agent.Question]():    "InteractionQuestion",
	reflect.TypeFor[agent.Detail]():      "InteractionDetail",
	reflect.TypeFor[agent.Response]():    "InteractionResponse",
	reflect.TypeFor[agent.Target]():      "OperationTarget",
	reflect.TypeFor[agent.Operation]():   "Operation",
	reflect.TypeFor[provider.Info]():     "Provider",
	reflect.TypeFor[provider.Scenario](): "ProviderScenario",
	reflect.TypeFor[eventPage]():         "EventPage",
}

func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n, ok := schemaNames[t]; ok {
		return n
	}
	if inner, ok := strings.CutPrefix(t.Name(), "list["); ok { // list[…/agent.Workspace] → WorkspaceList
		inner = strings.TrimSuffix(inner[strings.LastIndexAny(inner, "./")+1:], "]")
		if inner == "Info" {
			inner = "Provider"
		}
		return inner + "List"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// Spec returns the document as it is committed: sorted, indented, with a last newline.
func Spec() ([]byte, error) {
	return New(http.NewServeMux(), Deps{}).spec()
}

func renderSpec(doc *huma.OpenAPI) ([]byte, error) {
	tolerate(doc)
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("api: encode the document: %w", err)
	}
	var sorted any // maps encode with sorted keys
	if err := json.Unmarshal(raw, &sorted); err != nil {
		return nil, fmt.Errorf("api: sort the document: %w", err)
	}
	b, err := json.MarshalIndent(sorted, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("api: indent the document: %w", err)
	}
	return append(b, '\n'), nil
}

// tolerate lets answers grow: "no other fields" is said of request bodies alone, where
// it is enforced. A client must skip what it does not know.
func tolerate(doc *huma.OpenAPI) {
	requests := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete, item.Put} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			for _, m := range op.RequestBody.Content {
				collect(doc, m.Schema, requests)
			}
		}
	}
	for name, s := range doc.Components.Schemas.Map() {
		if !requests[name] && s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
	}
}

// collect adds the names of every component that s reaches.
func collect(doc *huma.OpenAPI, s *huma.Schema, into map[string]bool) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok {
		if into[name] {
			return
		}
		into[name] = true
		collect(doc, doc.Components.Schemas.Map()[name], into)
	}
	for _, p := range s.Properties {
		collect(doc, p, into)
	}
	collect(doc, s.Items, into)
	if p, ok := s.AdditionalProperties.(*huma.Schema); ok {
		collect(doc, p, into)
	}
}
