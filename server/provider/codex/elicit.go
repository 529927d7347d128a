package codex

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/form"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// elicitation is what an MCP server asks of the person, passed on by Codex.
type elicitation struct {
	ServerName  string          `json:"serverName"`
	Mode        string          `json:"mode"` // form, url, openai/form, openai/userVerification
	Message     string          `json:"message"`
	URL         string          `json:"url"`
	Title       string          `json:"title"`       // of a verification
	Description string          `json:"description"` // of a verification
	Schema      json.RawMessage `json:"requestedSchema"`
}

type elicitationAnswer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content"`
}

// elicited finds the turn that an elicitation belongs to where the server names none: the
// one that runs on the thread; else the root's, and then nobody has said so (decisions.md
// 19). It is nil if no turn runs that could wait for an answer.
func (r *runtime) elicited(t *thread) (*thread, *turn, agent.Owner) {
	if t.active != nil {
		return t, t.active, agent.OwnerExact
	}
	return r.root, r.root.active, agent.OwnerUnknown
}

// askElicitation describes an elicitation and how its answer is written.
func (q *question) askElicitation(i *agent.Interaction, params json.RawMessage) error {
	var e elicitation
	if err := json.Unmarshal(params, &e); err != nil {
		return err
	}
	fields, err := form.Fields(e.Schema)
	if err != nil {
		return err
	}
	i.Kind = agent.InteractionElicitation
	i.Title = show.Bounded(cmp.Or(e.Title, e.ServerName+" asks"), show.TitleLength)
	i.Detail.Text = show.Input(strings.TrimSpace(cmp.Or(e.Message, e.Description) + "\n\n" + e.URL))
	for _, f := range fields {
		i.Detail.Questions = append(i.Detail.Questions, f.Question())
	}
	able := e.Mode != "openai/userVerification" // a proof that only a device of the person can give
	if able && len(fields) == 0 {
		i.Options = append(i.Options, agent.Option{ID: "accept", Label: "Accept", Role: agent.RoleAllow})
	}
	i.Options = append(i.Options,
		agent.Option{ID: "decline", Label: "Decline", Role: agent.RoleDeny},
		agent.Option{ID: "cancel", Label: "Dismiss", Role: agent.RoleOther, Description: "Neither yes nor no"},
	)
	q.answer = func(a agent.Response) (any, error) { return elicitationReply(a, fields, able) }
	return nil
}

// elicitationReply is the wire form of an answer.
func elicitationReply(a agent.Response, fields []form.Field, able bool) (any, error) {
	action := cmp.Or(a.OptionID, a.Action, "accept") // answers alone are a yes
	switch {
	case action == "decline", action == "cancel":
		return elicitationAnswer{Action: action}, nil
	case action != "accept":
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", action)
	case !able:
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "this can be confirmed in Codex's own applications only; decline it here")
	case len(fields) == 0:
		return elicitationAnswer{Action: action}, nil
	}
	content, err := form.Content(fields, a)
	if err != nil {
		return nil, err
	}
	return elicitationAnswer{action, content}, nil
}
