//go:build providers

package codex

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
)

// What protocol.go says of the app-server is held against the schema that the real binary
// gives of itself: a method that went, a member that went or changed its type, a member
// that a request now needs, a word that we look for and that is not said any more.

// node is a piece of a JSON schema.
type node map[string]any

// schema is one generated file.
type schema struct {
	t    *testing.T
	root node
}

func (s schema) resolve(n node) node {
	for range 20 {
		ref, ok := n["$ref"].(string)
		if !ok {
			return n
		}
		defs, _ := s.root["definitions"].(map[string]any)
		next, ok := defs[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any)
		if !ok {
			s.t.Fatalf("schema: %s leads nowhere", ref)
		}
		n = next
	}
	return n
}

// variants are the node and everything that it may be instead or besides.
func (s schema) variants(n node) []node {
	n = s.resolve(n)
	out := []node{n}
	for _, how := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := n[how].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				out = append(out, s.variants(m)...)
			}
		}
	}
	return out
}

// member are the schemas that a member may have.
func (s schema) member(of node, name string) []node {
	var out []node
	for _, v := range s.variants(of) {
		props, _ := v["properties"].(map[string]any)
		switch p := props[name].(type) {
		case map[string]any:
			out = append(out, p)
		case bool: // anything
			out = append(out, node{})
		}
	}
	return out
}

// words are the values that a string may have, if they are listed.
func (s schema) words(n node) []string {
	var out []string
	for _, v := range s.variants(n) {
		list, _ := v["enum"].([]any)
		for _, w := range list {
			if word, ok := w.(string); ok {
				out = append(out, word)
			}
		}
	}
	return out
}

func (s schema) is(n node, kind string) bool {
	for _, v := range s.variants(n) {
		switch t := v["type"].(type) {
		case string:
			if t == kind || kind == "integer" && t == "number" {
				return true
			}
		case []any:
			if slices.Contains(t, any(kind)) {
				return true
			}
		}
		if v["type"] == nil && v["enum"] != nil && kind == "string" {
			return true
		}
	}
	return false
}

// fits checks that a Go type can hold what the schema describes.
func (s schema) fits(at string, t reflect.Type, n node) {
	switch t.Kind() {
	case reflect.Pointer:
		s.fits(at, t.Elem(), n)
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			s.memberFits(at+"."+name, t.Field(i).Type, s.member(n, name))
		}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return // read where it is used
		}
		for _, v := range s.variants(n) {
			if items, ok := v["items"].(map[string]any); ok {
				s.fits(at+"[]", t.Elem(), items)
				return
			}
		}
		s.t.Errorf("%s is no array any more", at)
	case reflect.Map:
		for _, v := range s.variants(n) {
			if values, ok := v["additionalProperties"].(map[string]any); ok {
				s.fits(at+"{}", t.Elem(), values)
				return
			}
		}
		s.t.Errorf("%s is no map any more", at)
	case reflect.String:
		s.wants(at, n, "string")
	case reflect.Bool:
		s.wants(at, n, "boolean")
	case reflect.Int, reflect.Int64:
		s.wants(at, n, "integer")
	default:
		s.t.Errorf("%s: nobody knows how to check a %s", at, t)
	}
}

// memberFits: where a member stands in several variants, it must fit one of them; the
// others are of items that we read differently.
func (s schema) memberFits(at string, t reflect.Type, in []node) {
	if len(in) == 0 {
		s.t.Errorf("%s is gone", at)
		return
	}
	kind := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer",
		reflect.Slice: "array", reflect.Struct: "object", reflect.Map: "object",
	}
	of := t
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[json.RawMessage]() {
		return
	}
	for _, n := range in {
		if s.is(n, kind[of.Kind()]) || of.Kind() == reflect.Struct && len(s.variants(n)) > 1 {
			s.fits(at, of, n)
			return
		}
	}
	s.t.Errorf("%s is no %s any more", at, kind[of.Kind()])
}

func (s schema) wants(at string, n node, kind string) {
	if !s.is(n, kind) {
		s.t.Errorf("%s is no %s any more", at, kind)
	}
}

// complete checks that we send all that is required.
func (s schema) complete(at string, t reflect.Type, n node) {
	var has []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		has = append(has, name)
	}
	required, _ := s.resolve(n)["required"].([]any)
	for _, name := range required {
		if !slices.Contains(has, fmt.Sprint(name)) {
			s.t.Errorf("%s now needs %s", at, name)
		}
	}
}

// params is the schema of a method's parameters in a file that lists methods.
func (s schema) params(method string) (node, bool) {
	list, _ := s.root["oneOf"].([]any)
	for _, v := range list {
		entry, _ := v.(map[string]any)
		if m := s.member(entry, "method"); len(m) == 0 || !slices.Contains(s.words(m[0]), method) {
			continue
		}
		if p := s.member(entry, "params"); len(p) > 0 {
			return s.resolve(p[0]), true
		}
		return node{}, true
	}
	return nil, false
}

func TestProtocolIsWhatTheServerSaysOfItself(t *testing.T) {
	binary, dir := codextest.Binary(t), t.TempDir()
	for _, args := range [][]string{{"--version"}, {"app-server", "generate-json-schema", "--experimental", "--out", dir}} {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		if args[0] == "--version" {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Log("schema of ", lines[len(lines)-1], "; protocol.go was written for codex-cli ", minVersion)
		}
	}
	load := func(name string) schema {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s := schema{t: t}
		if err := json.Unmarshal(raw, &s.root); err != nil {
			t.Fatal(err)
		}
		return s
	}
	checkRequests(t, load)
	checkNotifications(t, load("ServerNotification.json"))
	checkServerRequests(t, load)
}

// checkRequests: what we send, and what we read of its answer.
func checkRequests(t *testing.T, load func(string) schema) {
	all := load("ClientRequest.json")
	for _, c := range []struct {
		method         string
		params, result any
		answer         string // the file of the answer
	}{
		{methodInitialize, initializeParams{}, initializeResult{}, "v1/InitializeResponse.json"},
		{methodThreadStart, threadParams{}, threadResult{}, "v2/ThreadStartResponse.json"},
		{methodThreadResume, threadParams{}, threadResult{}, "v2/ThreadResumeResponse.json"},
		{methodThreadRead, threadReadParams{}, struct {
			Thread threadInfo `json:"thread"`
		}{}, "v2/ThreadReadResponse.json"},
		{methodTurnStart, turnStartParams{}, turnStartResult{}, "v2/TurnStartResponse.json"},
		{methodTurnSteer, turnSteerParams{}, turnSteerResult{}, "v2/TurnSteerResponse.json"},
		{methodShells, threadReadParams{}, shellsResult{}, "v2/ThreadBackgroundTerminalsListResponse.json"},
		{methodEndShell, endShellParams{}, endShellResult{}, "v2/ThreadBackgroundTerminalsTerminateResponse.json"},
		{methodTurnInterrupt, turnInterruptParams{}, struct{}{}, "v2/TurnInterruptResponse.json"},
	} {
		params, ok := all.params(c.method)
		if !ok {
			t.Errorf("the server has no %s any more", c.method)
			continue
		}
		at := c.method
		sent := reflect.TypeOf(c.params)
		if c.method == methodThreadStart { // one type serves both, and these two only the other
			sent = reflect.TypeOf(struct {
				Cwd            string `json:"cwd"`
				Model          string `json:"model"`
				ApprovalPolicy string `json:"approvalPolicy"`
				Sandbox        string `json:"sandbox"`
			}{})
		}
		all.fits(at, sent, params)
		all.complete(at, sent, params)
		answer := load(c.answer)
		answer.fits(at+" →", reflect.TypeOf(c.result), answer.root)
	}
	start, _ := all.params(methodThreadStart)
	for _, mode := range []string{modeReadOnly, modeAsk, modeFull} {
		approval, sandbox, err := policy(mode)
		if err != nil {
			t.Fatal(err)
		}
		for member, word := range map[string]string{"approvalPolicy": approval, "sandbox": sandbox} {
			if !slices.Contains(all.words(all.member(start, member)[0]), word) {
				t.Errorf("%s %q is not taken any more", member, word)
			}
		}
	}
}

// checkNotifications: everything of interest exists, and its members are what we read.
func checkNotifications(t *testing.T, s schema) {
	read := map[string][]any{
		"turn/started": {header{}}, "turn/completed": {header{}},
		"item/started": {itemParams{}}, "item/completed": {itemParams{}},
		"item/agentMessage/delta": {}, "item/plan/delta": {}, "item/commandExecution/outputDelta": {},
		"item/reasoning/summaryTextDelta": {deltaParams{}},
		"thread/tokenUsage/updated":       {tokenUsageParams{}}, "serverRequest/resolved": {resolvedParams{}},
		"error": {errorParams{}}, notePlan: {planParams{}}, noteDiff: {diffParams{}},
	}
	for method := range ofInterest {
		params, ok := s.params(method)
		if !ok {
			t.Errorf("the server sends no %s any more", method)
			continue
		}
		types, known := read[method]
		if !known {
			t.Errorf("%s is of interest, and nobody checks it", method)
		}
		for _, v := range types {
			if _, routes := v.(header); routes {
				v = struct {
					ThreadID string    `json:"threadId"`
					Turn     *turnInfo `json:"turn"`
				}{}
			}
			s.fits(method, reflect.TypeOf(v), params)
		}
		if len(s.member(params, "threadId")) == 0 {
			t.Errorf("%s does not say whose it is", method)
		}
		if strings.HasSuffix(method, "elta") {
			for _, name := range []string{"turnId", "itemId", "delta"} {
				if len(s.member(params, name)) == 0 {
					t.Errorf("%s has no %s", method, name)
				}
			}
		}
	}
	if limits, ok := s.params(noteLimits); ok {
		s.fits(noteLimits, reflect.TypeOf(limitsParams{}), limits)
	} else {
		t.Errorf("the server sends no %s any more", noteLimits)
	}
	started, _ := s.params("item/started")
	item := s.member(started, "item")[0]
	has := func(member string, words ...string) {
		var said []string
		for _, m := range s.member(item, member) {
			said = append(said, s.words(m)...)
		}
		for _, w := range words {
			if !slices.Contains(said, w) {
				t.Errorf("no item has %s %q any more, but %q", member, w, said)
			}
		}
	}
	has("type", itemUserMessage, itemAgentMessage, itemReasoning, itemCommand, itemFileChange, itemMCP, itemWebSearch, itemCollab, itemActivity, itemPlan, itemCompaction)
	has("tool", toolSpawnAgent, toolSendInput)
	has("kind", activityStarted, activityCompleted, activityInteracted)
	has("status", statusInProgress, statusCompleted, statusFailed, statusDeclined)
	completed, _ := s.params("turn/completed")
	words := s.words(s.member(s.member(completed, "turn")[0], "status")[0])
	for _, w := range []string{statusInProgress, statusCompleted, statusFailed, statusTurnInterrupted} {
		if !slices.Contains(words, w) {
			t.Errorf("no turn has status %q any more, but %q", w, words)
		}
	}
	plan, _ := s.params(notePlan)
	for _, v := range s.variants(s.member(plan, "plan")[0]) {
		if items, ok := v["items"].(map[string]any); ok {
			if got := s.words(s.member(items, "status")[0]); !slices.Contains(got, statusInProgress) {
				t.Errorf("steps of a plan are %q", got)
			}
		}
	}
}

// checkServerRequests: what the server asks, and what it takes for an answer.
func checkServerRequests(t *testing.T, load func(string) schema) {
	s := load("ServerRequest.json")
	for method, v := range map[string]any{
		askCommand: struct {
			ItemID             string            `json:"itemId"`
			Command            string            `json:"command"`
			CommandActions     []commandAction   `json:"commandActions"`
			Cwd                string            `json:"cwd"`
			Reason             string            `json:"reason"`
			AvailableDecisions []json.RawMessage `json:"availableDecisions"`
		}{},
		askChange: struct {
			ItemID    string `json:"itemId"`
			Reason    string `json:"reason"`
			GrantRoot string `json:"grantRoot"`
		}{},
		askInput: struct {
			ItemID    string          `json:"itemId"`
			Questions []inputQuestion `json:"questions"`
		}{},
		askPermit: permissionParams{}, askElicit: elicitation{},
	} {
		params, ok := s.params(method)
		if !ok {
			t.Errorf("the server does not ask %s any more", method)
			continue
		}
		s.fits(method, reflect.TypeOf(v), params)
		for _, name := range []string{"threadId", "turnId"} {
			if len(s.member(params, name)) == 0 {
				t.Errorf("%s has no %s", method, name)
			}
		}
	}
	for file, decisions := range map[string][]string{
		"CommandExecutionRequestApprovalResponse.json": {"accept", "acceptForSession", "decline", "cancel"},
		"FileChangeRequestApprovalResponse.json":       {"accept", "acceptForSession", "decline", "cancel"},
	} {
		r := load(file)
		decision := r.member(r.root, "decision")
		if len(decision) == 0 {
			t.Errorf("%s: no decision any more", file)
			continue
		}
		words := r.words(decision[0])
		for _, d := range decisions {
			if !slices.Contains(words, d) {
				t.Errorf("%s: %q is no decision any more, but %q", file, d, words)
			}
		}
	}
	permit := load("PermissionsRequestApprovalResponse.json")
	permit.fits(askPermit+" ←", reflect.TypeOf(permissionAnswer{}), permit.root)
	if words := permit.words(permit.member(permit.root, "scope")[0]); !slices.Contains(words, grantTurn) || !slices.Contains(words, grantSession) {
		t.Errorf("scopes of a grant are %q", words)
	}
	asked := permit.resolve(permit.member(permit.root, "permissions")[0])
	permit.fits(askPermit, reflect.TypeOf(permissionProfile{}), asked)
	elicit := load("McpServerElicitationRequestResponse.json")
	if words := elicit.words(elicit.member(elicit.root, "action")[0]); len(words) != 3 || len(elicit.member(elicit.root, "content")) > 1 {
		t.Errorf("actions of an elicitation are %q", words)
	}
}
