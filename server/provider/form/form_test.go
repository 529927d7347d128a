package form

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const example = `{"type":"object","required":["colour","n"],"properties":{
	"colour":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Blue"}]},
	"n":{"type":"integer","title":"How many"},
	"share":{"type":"number"},
	"sure":{"type":"boolean","description":"think twice"},
	"tags":{"type":"array","items":{"enum":["x","y"]}},
	"note":{"type":"string"}}}`

func TestFieldsKeepTheirOrder(t *testing.T) {
	fields, err := Fields([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	if d := cmp.Diff([]string{"colour", "n", "share", "sure", "tags", "note"}, names); d != "" {
		t.Error(d)
	}
	q := fields[3].Question()
	if q.Text != "sure: think twice (may be left open)" || len(q.Options) != 2 || q.Multi {
		t.Errorf("%+v", q)
	}
	for _, raw := range []string{"", "null", "7", "{}"} {
		if f, err := Fields([]byte(raw)); f != nil || err != nil {
			t.Errorf("Fields(%q) = %v, %v", raw, f, err)
		}
	}
	if _, err := Fields([]byte(`{"required":7}`)); err == nil {
		t.Error("a schema of another shape was taken")
	}
}

func TestContent(t *testing.T) {
	fields, err := Fields([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answers map[string]string
		want    map[string]any
	}{
		"all":          {map[string]string{"colour": "Red", "n": " 3 ", "share": "0.5", "sure": "Yes", "tags": "x, y", "note": "hi"}, map[string]any{"colour": "r", "n": int64(3), "share": 0.5, "sure": true, "tags": []string{"x", "y"}, "note": "hi"}},
		"needed alone": {map[string]string{"colour": "b", "n": "0"}, map[string]any{"colour": "b", "n": int64(0)}},
		"one missing":  {map[string]string{"colour": "b"}, nil},
		"no number":    {map[string]string{"colour": "b", "n": "many"}, nil},
		"no choice":    {map[string]string{"colour": "green", "n": "1"}, nil},
		"half a list":  {map[string]string{"colour": "b", "n": "1", "tags": "x,z"}, nil},
	} {
		got, err := Content(fields, agent.Response{Answers: c.answers})
		if c.want == nil {
			if !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	lone := fields[5:]
	if got, err := Content(lone, agent.Response{Text: "typed"}); err != nil || got["note"] != "typed" {
		t.Errorf("%v, %v", got, err)
	}
}
