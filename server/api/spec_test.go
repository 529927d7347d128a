package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var update = flag.Bool("update", false, "rewrite openapi/openapi.json")

const committed = "../../openapi/openapi.json"

func TestSpecIsCommitted(t *testing.T) {
	b, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(committed, b, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Fatal("the document differs from openapi/openapi.json; run: go test ./server/api -run SpecIsCommitted -update")
	}
}

func TestSpecIsDeterministic(t *testing.T) {
	first, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if again, err := Spec(); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("two documents of one build differ (%v)", err)
		}
	}
}

func document(t *testing.T) map[string]any {
	t.Helper()
	b, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func object(t *testing.T, v any, keys ...string) map[string]any {
	t.Helper()
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no object above %s", k)
		}
		v = m[k]
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("no object at %v", keys)
	}
	return m
}

func TestEveryOperationIsNamedTaggedAndCanRefuse(t *testing.T) {
	seen := map[string]bool{}
	for path, item := range object(t, document(t), "paths") {
		for method, v := range object(t, item) {
			op := object(t, v)
			id, _ := op["operationId"].(string)
			if id == "" || seen[id] {
				t.Errorf("%s %s: operationId %q is missing or taken", method, path, id)
			}
			seen[id] = true
			if tags, _ := op["tags"].([]any); len(tags) != 1 {
				t.Errorf("%s: tags %v", id, op["tags"])
			}
			if op["summary"] == nil {
				t.Errorf("%s has no summary", id)
			}
			schema := object(t, op, "responses", "default", "content", problemType, "schema")
			if schema["$ref"] != schemaPrefix+"Problem" {
				t.Errorf("%s refuses with %v", id, schema)
			}
			for status := range object(t, op, "responses") {
				if status >= "400" && status != "default" {
					t.Errorf("%s names %s beside the default", id, status)
				}
			}
			for _, name := range pathParameters(path) {
				if !slices.ContainsFunc(op["parameters"].([]any), func(p any) bool { return object(t, p)["name"] == name }) { //nolint:forcetypeassert // fails the test as it should
					t.Errorf("%s does not say what {%s} is", id, name)
				}
			}
		}
	}
	if len(seen) < 27 {
		t.Errorf("only %d operations", len(seen))
	}
}

func pathParameters(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// walk calls f for every object of the document.
func walk(v any, at string, f func(at string, m map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(at, v)
		for k, e := range v {
			walk(e, at+"/"+k, f)
		}
	case []any:
		for _, e := range v {
			walk(e, at+"[]", f)
		}
	}
}

func TestNothingIsNullable(t *testing.T) {
	walk(document(t), "", func(at string, m map[string]any) {
		if types, ok := m["type"].([]any); ok {
			t.Errorf("%s is one of %v", at, types)
		}
		if enum, ok := m["enum"].([]any); ok && slices.Contains(enum, nil) {
			t.Errorf("%s may be null", at)
		}
		if _, ok := m["nullable"]; ok {
			t.Errorf("%s is nullable", at)
		}
		if props, ok := m["properties"].(map[string]any); ok && props["$schema"] != nil {
			t.Errorf("%s has a $schema", at)
		}
		if m["type"] == "array" && m["items"] == nil {
			t.Errorf("%s is a list of nothing", at)
		}
	})
}

func TestOnlyRequestBodiesAreClosed(t *testing.T) {
	doc := document(t)
	schemas := object(t, doc, "components", "schemas")
	for _, name := range []string{"NewMessage", "ContentBlock", "NewAgentSession", "FirstMessage", "NewWorkspace", "AgentSessionPatch", "InteractionResponse"} {
		if object(t, schemas, name)["additionalProperties"] != false {
			t.Errorf("%s takes unknown fields", name)
		}
	}
	for _, name := range []string{"AgentSession", "Turn", "Message", "Operation", "Problem", "StreamReady"} {
		if object(t, schemas, name)["additionalProperties"] == false {
			t.Errorf("%s cannot grow", name)
		}
	}
}

// Every kind of event that is ever told has a variant with its entity, and no other.
func TestEventIsAUnionByKind(t *testing.T) {
	event := object(t, document(t), "components", "schemas", "Event")
	mapping := object(t, event, "discriminator", "mapping")
	var want []string
	for _, k := range agent.EventKinds {
		want = append(want, string(k))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(mapping)); !slices.Equal(got, want) {
		t.Errorf("variants of %v, want %v", got, want)
	}
	if variants, _ := event["oneOf"].([]any); len(variants) != len(want) {
		t.Errorf("%d variants", len(variants))
	}
}

// Printing the document needs a mux and nothing else.
func TestNewTouchesNoDependency(t *testing.T) {
	a := New(http.NewServeMux(), Deps{})
	if _, err := a.spec(); err != nil {
		t.Error(err)
	}
}
