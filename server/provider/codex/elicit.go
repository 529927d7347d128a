package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
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

// formSchema is the flat schema of a form.
type formSchema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

// formField is one property of a form.
type formField struct {
	name        string
	required    bool
	Type        string        `json:"type"`
	Title       string        `json:"title"`
	Description string        `json:"description"`
	Enum        []string      `json:"enum"`
	EnumNames   []string      `json:"enumNames"`
	OneOf       []constOption `json:"oneOf"`
	Items       struct {
		Enum  []string      `json:"enum"`
		AnyOf []constOption `json:"anyOf"`
	} `json:"items"`
}

type constOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
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
	fields, err := e.fields()
	if err != nil {
		return err
	}
	i.Kind = agent.InteractionElicitation
	i.Title = bounded(cmp.Or(e.Title, e.ServerName+" asks"), titleLength)
	i.Detail.Text = boundedInput(strings.TrimSpace(cmp.Or(e.Message, e.Description) + "\n\n" + e.URL))
	for _, f := range fields {
		i.Detail.Questions = append(i.Detail.Questions, f.question())
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
func elicitationReply(a agent.Response, fields []formField, able bool) (any, error) {
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
	given := a.Answers
	if len(given) == 0 && len(fields) == 1 {
		given = map[string]string{fields[0].name: a.Text}
	}
	content := map[string]any{}
	for _, f := range fields {
		text := strings.TrimSpace(given[f.name])
		if text == "" {
			if f.required {
				return nil, agent.Errorf(agent.CodeInvalidAnswer, "%s is needed", f.label())
			}
			continue
		}
		v, err := f.value(text)
		if err != nil {
			return nil, err
		}
		content[f.name] = v
	}
	return elicitationAnswer{action, content}, nil
}

// fields are the properties of the form in the order in which they stand.
func (e elicitation) fields() ([]formField, error) {
	var schema formSchema
	if len(e.Schema) == 0 || e.Schema[0] != '{' {
		return nil, nil
	}
	if err := json.Unmarshal(e.Schema, &schema); err != nil {
		return nil, err
	}
	if len(schema.Properties) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(schema.Properties))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var fields []formField
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := formField{name: name.(string)} // a key of an object
		if err := d.Decode(&f); err != nil {
			return nil, err
		}
		f.required = slices.Contains(schema.Required, f.name)
		fields = append(fields, f)
	}
	return fields, nil
}

func (f formField) label() string { return cmp.Or(f.Title, f.name) }

// options are the choices of a field: the value that goes on the wire and its label.
func (f formField) options() []constOption {
	switch {
	case f.Type == "boolean":
		return []constOption{{"true", "Yes"}, {"false", "No"}}
	case len(f.OneOf) > 0:
		return f.OneOf
	case len(f.Items.AnyOf) > 0:
		return f.Items.AnyOf
	}
	var out []constOption
	for n, v := range append(slices.Clone(f.Enum), f.Items.Enum...) {
		o := constOption{v, v}
		if n < len(f.EnumNames) {
			o.Title = f.EnumNames[n]
		}
		out = append(out, o)
	}
	return out
}

func (f formField) question() agent.Question {
	text := f.label()
	if f.Description != "" {
		text += ": " + f.Description
	}
	if !f.required {
		text += " (may be left open)"
	}
	q := agent.Question{ID: f.name, Text: text, Options: []agent.Option{}, Multi: f.Type == "array"}
	for _, o := range f.options() {
		q.Options = append(q.Options, agent.Option{ID: o.Const, Label: cmp.Or(o.Title, o.Const), Role: agent.RoleOther})
	}
	return q
}

// value turns the text of an answer into the type that the form asks for. A choice may be
// given by its value or by its label.
func (f formField) value(text string) (any, error) {
	chosen := func(text string) (string, bool) {
		for _, o := range f.options() {
			if text == o.Const || text == o.Title {
				return o.Const, true
			}
		}
		return text, len(f.options()) == 0
	}
	bad := agent.Errorf(agent.CodeInvalidAnswer, "%q does not answer: %s", bounded(text, titleLength), f.label())
	switch f.Type {
	case "boolean":
		v, ok := chosen(text)
		if !ok {
			return nil, bad
		}
		return v == "true", nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, bad
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, bad
		}
		return n, nil
	case "array":
		values := []string{}
		for part := range strings.SplitSeq(text, ",") {
			v, ok := chosen(strings.TrimSpace(part))
			if !ok {
				return nil, bad
			}
			values = append(values, v)
		}
		return values, nil
	}
	v, ok := chosen(text)
	if !ok {
		return nil, bad
	}
	return v, nil
}
