package claude

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// asked are the requests of a recording that a person can answer.
func asked(t testing.TB, name string) []*inquiry {
	t.Helper()
	var out []*inquiry
	for _, f := range framesOf[*requestFrame](t, name) {
		if s := f.subtype(); s != reqCanUseTool && s != reqElicit {
			continue
		}
		q, err := inquire(f, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, q)
	}
	return out
}

func wireForm(t testing.TB, q *inquiry, r agent.Response) string {
	t.Helper()
	payload, err := q.reply(r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPermissionOfAChild(t *testing.T) {
	q := asked(t, "f_child_permission_allow")[0]
	if q.agentID != "a887653fbc6a23e6c" || q.id != "8bc96223-457d-4e66-9645-f40cae226df0" || q.call != "toolu_a1_b1" || q.unowned {
		t.Errorf("%+v", q)
	}
	want := agent.Interaction{
		Kind: agent.InteractionApproval, Title: "Run touch made-by-child.txt",
		Detail: agent.Detail{
			Command: "touch made-by-child.txt", CallID: "toolu_a1_b1",
			Text: "Create a file\n\nIt reaches `/workspace/made-by-child.txt`.",
		},
		Options: []agent.Option{
			{ID: "allow", Label: "Allow", Role: agent.RoleAllow},
			{
				ID: "always", Role: agent.RoleAllowAlways,
				Label:       "Always allow \"touch made-by-child.txt\" (local settings of this project), and work in /workspace for this session",
				Description: "\"touch made-by-child.txt\" (local settings of this project), and work in /workspace for this session",
			},
			{ID: "mode:acceptEdits", Label: "Allow, and accept all edits for this session", Role: agent.RoleAllowAlways},
			{ID: "deny", Label: "Decline", Role: agent.RoleDeny, Description: "The agent goes on without it"},
			{ID: "stop", Label: "Decline and stop", Role: agent.RoleAbort, Description: "Stops the agent that asks"},
		},
	}
	if d := cmp.Diff(want, q.interaction); d != "" {
		t.Error(d)
	}
	input := `"updatedInput":{"command":"touch made-by-child.txt","description":"Create a file"}`
	rule := `{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch made-by-child.txt"}],"behavior":"allow","destination":"localSettings"}`
	dir := `{"type":"addDirectories","directories":["/workspace"],"destination":"session"}`
	mode := `{"type":"setMode","mode":"acceptEdits","destination":"session"}`
	for _, c := range []struct {
		answer agent.Response
		want   string
	}{
		{agent.Response{OptionID: "allow"}, `{"behavior":"allow",` + input + `,"toolUseID":"toolu_a1_b1"}`},
		{agent.Response{Action: "accept"}, `{"behavior":"allow",` + input + `,"toolUseID":"toolu_a1_b1"}`},
		{agent.Response{OptionID: "always"}, `{"behavior":"allow",` + input + `,"updatedPermissions":[` + rule + `,` + dir + `],"toolUseID":"toolu_a1_b1"}`},
		{agent.Response{OptionID: "mode:acceptEdits"}, `{"behavior":"allow",` + input + `,"updatedPermissions":[` + mode + `],"toolUseID":"toolu_a1_b1"}`},
		{agent.Response{OptionID: "deny", Text: " use rm "}, `{"behavior":"deny","message":"use rm","toolUseID":"toolu_a1_b1"}`},
		{agent.Response{Action: "decline"}, `{"behavior":"deny","message":"The user declined this.","toolUseID":"toolu_a1_b1"}`},
		{agent.Response{Action: "cancel"}, `{"behavior":"deny","message":"The user declined this.","interrupt":true,"toolUseID":"toolu_a1_b1"}`},
	} {
		if got := wireForm(t, q, c.answer); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.answer, got, c.want)
		}
	}
	for _, r := range []agent.Response{{}, {OptionID: "mode:plan"}, {Action: "perhaps"}, {Text: "yes"}, {OptionID: "no", Action: "accept"}} {
		if _, err := q.reply(r); !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A rule that would be written to a file which the binary does not read holds for the
// session instead: else it would ask again at once.
func TestRulesAreKeptWhereTheyAreRead(t *testing.T) {
	f := framesOf[*requestFrame](t, "f_child_permission_allow")[0]
	for name, c := range map[string]struct {
		sources     []string
		destination string
	}{
		"all":   {nil, "localSettings"},
		"local": {[]string{SettingsLocal}, "localSettings"},
		"user":  {[]string{SettingsUser}, "session"},
		"none":  {[]string{}, "session"},
	} {
		q, err := inquire(f, c.sources)
		if err != nil {
			t.Fatal(err)
		}
		var got allowAnswer
		if err := json.Unmarshal([]byte(wireForm(t, q, agent.Response{OptionID: "always"})), &got); err != nil {
			t.Fatal(err)
		}
		if u := got.UpdatedPermissions[0]; u.Destination != c.destination || u.Rules[0].Content != "touch made-by-child.txt" || u.Behavior != "allow" {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// Every prompt that was recorded can be answered by each of its options, and names the
// child that asks: the owner of the tool call (B076).
func TestEveryRecordedPrompt(t *testing.T) {
	prompts := 0
	for _, name := range recordings(t) {
		owner := map[string]string{}
		for _, f := range framesOf[*messageFrame](t, name) {
			for _, b := range f.Message.Content {
				if b.Type == blockToolUse {
					owner[b.ID] = f.AgentID
				}
			}
		}
		for _, q := range asked(t, name) {
			prompts++
			if o, known := owner[string(q.call)]; !q.unowned && (!known || o != q.agentID) {
				t.Errorf("%s: %s asks for the call %s of %q", name, q.agentID, q.call, o)
			}
			if q.interaction.Title == "" || strings.Contains(q.interaction.Title, "\n") {
				t.Errorf("%s: title %q", name, q.interaction.Title)
			}
			for _, o := range q.interaction.Options {
				if q.unowned && o.ID == "accept" || len(q.interaction.Detail.Questions) > 0 && o.Role == agent.RoleAllow {
					continue
				}
				wireForm(t, q, agent.Response{OptionID: o.ID})
			}
		}
	}
	if prompts != 49 {
		t.Errorf("%d prompts", prompts)
	}
}

func promptOf(t fataler, tool, input, more string) *inquiry {
	t.Helper()
	line := `{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"` + tool + `","input":` + input + `,"tool_use_id":"t"` + more + `}}`
	f, err := decodeFrame([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	q, err := inquire(f.(*requestFrame), nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPromptsOfTools(t *testing.T) {
	for _, c := range []struct {
		name, tool, input, more string
		title                   string
		detail                  agent.Detail
		options                 string
	}{
		{
			"edit", "Edit", `{"file_path":"/w/a.go","old_string":"x\ny","new_string":"z"}`, `,"blocked_path":"/w/a.go"`,
			"Edit a.go",
			agent.Detail{CallID: "t", Diff: "--- a/w/a.go\n+++ b/w/a.go\n@@ @@\n-x\n-y\n+z\n"},
			"allow deny stop",
		},
		{
			"write", "Write", `{"file_path":"/w/b","content":"1\n2\n"}`, "",
			"Write b",
			agent.Detail{CallID: "t", Diff: "--- /dev/null\n+++ b/w/b\n+1\n+2\n"},
			"allow deny stop",
		},
		{
			"reason, and only once", "Bash", `{"command":"rm -r x"}`, `,"decision_reason":"it deletes","suppress_always_allow_rule":true,"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]`,
			"Run rm -r x",
			agent.Detail{CallID: "t", Command: "rm -r x", Reason: "it deletes"},
			"allow deny stop",
		},
		{
			"server", "mcp__files__read", `{"a":[1, 2]}`, `,"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"mcp__files__read"}],"behavior":"allow","destination":"userSettings"}]`,
			"files: read",
			agent.Detail{CallID: "t", Text: "```json\n{\"a\":[1,2]}\n```"},
			"allow always deny stop",
		},
		{"no arguments", "Odd", `null`, "", "Odd", agent.Detail{CallID: "t"}, "allow deny stop"},
		{"agent", "Agent", `{"description":"Look","prompt":"Look around"}`, "", "Start agent: Look", agent.Detail{CallID: "t", Text: "Look around"}, "allow deny stop"},
	} {
		q := promptOf(t, c.tool, c.input, c.more)
		var ids []string
		for _, o := range q.interaction.Options {
			ids = append(ids, o.ID)
		}
		if q.interaction.Title != c.title || strings.Join(ids, " ") != c.options {
			t.Errorf("%s: %q, %v", c.name, q.interaction.Title, ids)
		}
		if d := cmp.Diff(c.detail, q.interaction.Detail); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	if got := wireForm(t, promptOf(t, "Odd", "null", ""), agent.Response{OptionID: "allow"}); got != `{"behavior":"allow","updatedInput":{},"toolUseID":"t"}` {
		t.Error(got)
	}
}

// Whatever a request holds, and whatever is answered: the answer has one of the two shapes
// that the binary takes, its input is the one that was asked for, and it allows nothing
// from now on that was not suggested.
func TestAnswersToAnyPrompt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "allow", "always", "deny", "stop", "accept", "decline", "cancel", "mode:plan", "q1", "x\n"})
		var suggestions []string
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			suggestions = append(suggestions, rapid.SampledFrom([]string{
				`{"type":"setMode","mode":"plan","destination":"session"}`, `{"type":"addRules"}`, `{"type":"of_tomorrow","x":1}`,
				`{"type":"addDirectories","directories":["/d"],"destination":"nowhere"}`,
			}).Draw(t, "suggestion"))
		}
		all := strings.Join(suggestions, ",")
		input := rapid.SampledFrom([]string{`{}`, `{"command":7}`, `{"questions":[{"question":"a"},{"question":"a"}]}`, `{"plan":"p"}`}).Draw(t, "input")
		q := promptOf(t, rapid.SampledFrom([]string{"Bash", "AskUserQuestion", "ExitPlanMode", "mcp__x"}).Draw(t, "tool"), input, `,"permission_suggestions":[`+all+`]`)
		answer := agent.Response{
			OptionID: word.Draw(t, "option"), Action: word.Draw(t, "action"), Text: word.Draw(t, "text"),
			Answers: rapid.MapOf(word, word).Draw(t, "answers"),
		}
		payload, err := q.reply(answer)
		if err != nil {
			if !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
				t.Fatal(err)
			}
			return
		}
		raw, err := json.Marshal(payload)
		var got struct {
			Behavior string
			Message  string
			Input    map[string]json.RawMessage `json:"updatedInput"`
			Updates  []json.RawMessage          `json:"updatedPermissions"`
		}
		if err != nil || json.Unmarshal(raw, &got) != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		switch {
		case got.Behavior == "deny" && got.Message != "" && got.Input == nil && got.Updates == nil:
		case got.Behavior == "allow" && got.Input != nil:
			for _, u := range got.Updates {
				if !strings.Contains(all, string(u)) && q.tool != toolExitPlan {
					t.Fatalf("nobody suggested %s", u)
				}
			}
		default:
			t.Fatalf("%+v is answered by %s", answer, raw)
		}
	})
}

// fataler is a test or one round of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
}
