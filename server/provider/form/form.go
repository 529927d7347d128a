// Package form reads the flat JSON schema of a form that an MCP server asks a person to
// fill in, and turns the answers into the values that the schema asks for. It must not know
// any provider.
package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// schema is the flat schema of a form.
type schema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

// Field is one property of a form.
type Field struct {
	Name        string   `json:"-"`
	Required    bool     `json:"-"`
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []choice `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Fields are the properties of a schema in the order in which they stand; none without a
// schema. The error is that of a schema of another shape.
func Fields(raw json.RawMessage) ([]Field, error) {
	var form schema
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	if len(form.Properties) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(form.Properties))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var fields []Field
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := Field{Name: name.(string)} // a key of an object
		if err := d.Decode(&f); err != nil {
			return nil, err
		}
		f.Required = slices.Contains(form.Required, f.Name)
		fields = append(fields, f)
	}
	return fields, nil
}

// Content is what the answers say, by the names of the fields. A lone field takes the text
// of the answer, too. Errors: CodeInvalidAnswer, with what is missing or cannot be.
func Content(fields []Field, a agent.Response) (map[string]any, error) {
	given := a.Answers
	if len(given) == 0 && len(fields) == 1 {
		given = map[string]string{fields[0].Name: a.Text}
	}
	content := map[string]any{}
	for _, f := range fields {
		text := strings.TrimSpace(given[f.Name])
		if text == "" {
			if f.Required {
				return nil, agent.Errorf(agent.CodeInvalidAnswer, "%s is needed", f.label())
			}
			continue
		}
		v, err := f.value(text)
		if err != nil {
			return nil, err
		}
		content[f.Name] = v
	}
	return content, nil
}

func (f Field) label() string { return cmp.Or(f.Title, f.Name) }

// options are the choices of a field: the value that goes on the wire and its label.
func (f Field) options() []choice {
	switch {
	case f.Type == "boolean":
		return []choice{{"true", "Yes"}, {"false", "No"}}
	case len(f.OneOf) > 0:
		return f.OneOf
	case len(f.Items.AnyOf) > 0:
		return f.Items.AnyOf
	}
	var out []choice
	for n, v := range append(slices.Clone(f.Enum), f.Items.Enum...) {
		o := choice{v, v}
		if n < len(f.EnumNames) {
			o.Title = f.EnumNames[n]
		}
		out = append(out, o)
	}
	return out
}

// Question is the field as it is asked.
func (f Field) Question() agent.Question {
	text := f.label()
	if f.Description != "" {
		text += ": " + f.Description
	}
	if !f.Required {
		text += " (may be left open)"
	}
	q := agent.Question{ID: f.Name, Text: text, Options: []agent.Option{}, Multi: f.Type == "array"}
	for _, o := range f.options() {
		q.Options = append(q.Options, agent.Option{ID: o.Const, Label: cmp.Or(o.Title, o.Const), Role: agent.RoleOther})
	}
	return q
}

// value turns the text of an answer into the type that the form asks for. A choice may be
// given by its value or by its label.
func (f Field) value(text string) (any, error) {
	chosen := func(text string) (string, bool) {
		for _, o := range f.options() {
			if text == o.Const || text == o.Title {
				return o.Const, true
			}
		}
		return text, len(f.options()) == 0
	}
	bad := agent.Errorf(agent.CodeInvalidAnswer, "%q does not answer: %s", show.Bounded(text, show.TitleLength), f.label())
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
