package acpagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// formText is the field of a form whose question has no fields of its own.
const (
	formText   = "text"
	formChoice = "choice"
)

type formSchema struct {
	Type       string               `json:"type"`
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required,omitempty"`
}

type formField struct {
	Type        string       `json:"type"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	OneOf       []formOption `json:"oneOf,omitempty"`
	Items       *formItems   `json:"items,omitempty"`
}

type formItems struct {
	AnyOf []formOption `json:"anyOf"`
}

type formOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// form asks with a form: a field for each thing asked.
func form(session string, i agent.Interaction) acp.ElicitRequest {
	schema := formSchema{Type: "object", Properties: map[string]formField{}}
	for _, q := range i.Detail.Questions {
		schema.Properties[q.ID] = fieldOf(q.Text, q.Options, q.Multi, byLabel)
		schema.Required = append(schema.Required, q.ID)
	}
	switch {
	case len(schema.Properties) > 0:
	case len(i.Options) > 0:
		schema.Properties[formChoice] = fieldOf(i.Title, i.Options, false, byID)
		schema.Required = []string{formChoice}
	default:
		schema.Properties[formText] = formField{Type: "string", Title: i.Title}
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings always encode
	}
	message := i.Title
	if i.Detail.Text != "" {
		message += "\n\n" + i.Detail.Text
	}
	return acp.ElicitRequest{SessionID: session, Mode: "form", Message: message, RequestedSchema: raw, ToolCallID: string(i.Detail.CallID)}
}

// fieldOf is a field with the given choices. The daemon takes the choice of a question by
// its label, that among the options of an interaction by its id.
func fieldOf(title string, options []agent.Option, multi bool, key func(agent.Option) string) formField {
	f := formField{Type: "string", Title: title}
	var choices []formOption
	for _, o := range options {
		choices = append(choices, formOption{Const: key(o), Title: cmp.Or(o.Label, o.ID)})
	}
	if multi && len(choices) > 0 {
		f.Type, f.Items = "array", &formItems{AnyOf: choices}
	} else {
		f.OneOf = choices
	}
	return f
}

// fromForm is a person's answer to a form. Several choices of one question are a list with
// commas, as every client of the daemon gives them.
func (a *ask) fromForm(p acp.ElicitResponse) goclient.InteractionResponse {
	action := goclient.InteractionResponseAction(p.Action)
	if p.Action != "accept" {
		return goclient.InteractionResponse{Action: &action}
	}
	answers := map[string]string{}
	for k, v := range p.Content {
		if many, ok := v.([]any); ok {
			var parts []string
			for _, one := range many {
				parts = append(parts, fmt.Sprint(one))
			}
			answers[k] = strings.Join(parts, ", ")
			continue
		}
		answers[k] = fmt.Sprint(v)
	}
	switch {
	case len(a.about.Detail.Questions) > 0:
		return goclient.InteractionResponse{Answers: &answers}
	case len(a.about.Options) > 0:
		option := answers[formChoice]
		return goclient.InteractionResponse{OptionID: &option}
	}
	text := answers[formText]
	return goclient.InteractionResponse{Action: &action, Text: &text}
}

func byLabel(o agent.Option) string { return cmp.Or(o.Label, o.ID) }
func byID(o agent.Option) string    { return o.ID }
