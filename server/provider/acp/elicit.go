package acp

import (
	"cmp"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/form"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Modes of an elicitation.
const (
	elicitForm = "form"
	elicitURL  = "url"
)

// elicit turns a form, or an address to visit, into an interaction. One that names no
// session belongs to a request of ours: it becomes the root's, marked as of an unknown
// owner (decisions.md 19).
func (r *runtime) elicit(f wire.Frame) {
	var q acp.ElicitRequest
	err := decode(f.Params, &q)
	var fields []form.Field
	if err == nil {
		fields, err = form.Fields(q.RequestedSchema)
	}
	if err != nil || q.Mode != elicitForm && q.Mode != elicitURL {
		r.Diagnose(provider.Malformed, f.Method, string(f.ID))
		r.refuse(f.ID, wire.CodeInvalidParams, "the request cannot be shown to a person")
		return
	}
	l, owner := r.root, agent.OwnerUnknown
	if q.SessionID != "" {
		if l, owner = r.byID[q.SessionID], agent.OwnerExact; l == nil {
			if !r.hold(q.SessionID, f.Method, held{request: &f}) {
				r.decline(f)
			}
			return
		}
	}
	i := agent.Interaction{Kind: agent.InteractionElicitation, Owner: owner, Title: show.Title(cmp.Or(q.Message, r.o.Title+" asks"))}
	i.Detail.Text = show.Input(strings.TrimSpace(q.Message + "\n\n" + q.URL))
	i.Detail.CallID = agent.CallID(q.ToolCallID)
	for _, field := range fields {
		i.Detail.Questions = append(i.Detail.Questions, field.Question())
	}
	if len(fields) == 0 {
		i.Options = append(i.Options, agent.Option{ID: "accept", Label: "Accept", Role: agent.RoleAllow})
	}
	i.Options = append(i.Options,
		agent.Option{ID: "decline", Label: "Decline", Role: agent.RoleDeny},
		agent.Option{ID: "cancel", Label: "Dismiss", Role: agent.RoleOther, Description: "Neither yes nor no"},
	)
	r.ask(f, &prompt{
		id: f.ID, lane: l, none: acp.ElicitResponse{Action: "cancel"}, elicits: q.ElicitationID,
		answer: func(a agent.Response) (any, error) { return elicitReply(a, fields) },
	}, i)
}

// elicitReply is the wire form of an answer.
func elicitReply(a agent.Response, fields []form.Field) (any, error) {
	action := cmp.Or(a.OptionID, a.Action, "accept") // answers alone are a yes
	switch {
	case action == "decline", action == "cancel":
		return acp.ElicitResponse{Action: action}, nil
	case action != "accept":
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", action)
	case len(fields) == 0:
		return acp.ElicitResponse{Action: action}, nil
	}
	content, err := form.Content(fields, a)
	if err != nil {
		return nil, err
	}
	return acp.ElicitResponse{Action: action, Content: content}, nil
}

// elicited ends the question whose address the person has been at.
func (r *runtime) elicited(id string) {
	for _, p := range r.asked {
		if p.elicits == id && id != "" {
			p.none = acp.ElicitResponse{Action: "accept"}
			r.endAsk(p, agent.AskResolved)
			return
		}
	}
}
