package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// entities says what the data of each kind of event is.
var entities = map[agent.EventKind]reflect.Type{
	agent.SessionCreated:     reflect.TypeFor[agent.Session](),
	agent.SessionUpdated:     reflect.TypeFor[agent.Session](),
	agent.SessionDeleted:     reflect.TypeFor[agent.Session](),
	agent.TurnCreated:        reflect.TypeFor[agent.Turn](),
	agent.TurnUpdated:        reflect.TypeFor[agent.Turn](),
	agent.MessageCreated:     reflect.TypeFor[agent.Message](),
	agent.MessageUpdated:     reflect.TypeFor[agent.Message](),
	agent.InteractionCreated: reflect.TypeFor[agent.Interaction](),
	agent.InteractionUpdated: reflect.TypeFor[agent.Interaction](),
	agent.OperationUpdated:   reflect.TypeFor[agent.Operation](),
	agent.ProcessUpdated:     reflect.TypeFor[agent.Process](),
}

// Schema implements huma.SchemaProvider: one variant for each kind, told apart by kind.
func (wireEvent) Schema(r huma.Registry) *huma.Schema {
	ref := &huma.Schema{Ref: schemaPrefix + "Event"}
	if _, done := r.Map()["Event"]; done {
		return ref
	}
	union := &huma.Schema{
		Description:   "One committed change. Data is the whole entity as the HTTP API gives it. A client must skip kinds it does not know.",
		Discriminator: &huma.Discriminator{PropertyName: "kind", Mapping: map[string]string{}},
	}
	r.Map()["Event"] = union
	for _, kind := range slices.Sorted(maps.Keys(entities)) {
		name := variantName(kind)
		r.Map()[name] = &huma.Schema{
			Type: huma.TypeObject,
			Properties: map[string]*huma.Schema{
				"type":           {Type: huma.TypeString, Enum: []any{"event"}},
				"seq":            {Type: huma.TypeInteger, Format: "int64", Description: "Number of the change in its workspace, without gaps"},
				"time":           {Type: huma.TypeString, Format: "date-time", Description: "For people; the order is seq"},
				"kind":           {Type: huma.TypeString, Enum: []any{string(kind)}},
				"agentSessionId": {Type: huma.TypeString},
				"turnId":         {Type: huma.TypeString},
				"data":           r.Schema(entities[kind], true, ""),
			},
			Required: []string{"type", "seq", "time", "kind", "agentSessionId", "data"},
		}
		union.OneOf = append(union.OneOf, &huma.Schema{Ref: schemaPrefix + name})
		union.Discriminator.Mapping[string(kind)] = schemaPrefix + name
	}
	return ref
}

// variantName makes EventSessionCreated of session.created.
func variantName(kind agent.EventKind) string {
	var b strings.Builder
	b.WriteString("Event")
	for part := range strings.SplitSeq(string(kind), ".") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// The other frames of the stream.
type (
	// StreamHello is the client's first frame.
	StreamHello struct {
		Type     string   `json:"type" enum:"hello"`
		V        int      `json:"v" doc:"Version of the contract: 1"`
		After    *int64   `json:"after,omitempty" doc:"Newest number that the client has; absent: from now on"`
		Epoch    string   `json:"epoch,omitempty" doc:"Epoch that after belongs to"`
		Sessions []string `json:"sessions,omitempty" doc:"Only these sessions; a root includes every session below it; an empty list: none; absent: the whole workspace"`
	}
	// StreamReady answers a hello.
	StreamReady struct {
		Type  string `json:"type" enum:"ready"`
		Epoch string `json:"epoch"`
		Seq   int64  `json:"seq" doc:"replay: newest number now; everything after the client's own follows. snapshot: the stream begins after this number"`
		Mode  string `json:"mode" enum:"replay,snapshot" doc:"snapshot: read the snapshot first, the events before seq are not sent"`
	}
	// StreamDelta is streaming text that is not committed yet.
	StreamDelta struct {
		Type      string `json:"type" enum:"delta"`
		SessionID string `json:"agentSessionId"`
		MessageID string `json:"messageId"`
		Offset    int64  `json:"offset" doc:"Where text begins, in bytes of UTF-8 from the message's start; drop what you have"`
		Text      string `json:"text"`
	}
	// StreamHeartbeat says that the connection lives and how far it has come.
	StreamHeartbeat struct {
		Type string `json:"type" enum:"heartbeat"`
		Seq  int64  `json:"seq" doc:"Everything up to this number was sent, or filtered out: a cursor to resume from"`
	}
	// StreamReset says that the client's cursor means nothing any more.
	StreamReset struct {
		Type   string `json:"type" enum:"reset"`
		Reason string `json:"reason" enum:"retention,epoch,ahead" doc:"The events are no longer kept, belong to another epoch, or have not happened yet"`
		Epoch  string `json:"epoch"`
		Seq    int64  `json:"seq" doc:"The stream goes on after this number; read the snapshot again"`
	}
)

// registerFrames puts the frames into the document, where no operation reaches them by
// itself, and returns the schema of a server frame. It has no discriminator: Event is a
// union of its own, and every variant has its type as a literal.
func registerFrames(r huma.Registry) *huma.Schema {
	r.Schema(reflect.TypeFor[StreamHello](), true, "")
	frame := &huma.Schema{
		Description: "What the server sends, one JSON object in each text message, told apart by type. A client must skip types it does not know.",
		OneOf:       []*huma.Schema{wireEvent{}.Schema(r)},
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[StreamReady](), reflect.TypeFor[StreamDelta](),
		reflect.TypeFor[StreamHeartbeat](), reflect.TypeFor[StreamReset](),
	} {
		frame.OneOf = append(frame.OneOf, r.Schema(t, true, ""))
	}
	r.Map()["StreamFrame"] = frame
	return &huma.Schema{Ref: schemaPrefix + "StreamFrame"}
}
