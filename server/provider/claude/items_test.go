package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// resultsOf are the results of tools in a recording, by call, as they are shown.
func resultsOf(t *testing.T, name string) map[string]agent.Message {
	t.Helper()
	out := map[string]agent.Message{}
	for _, f := range framesOf[*messageFrame](t, name) {
		for i := range f.Message.Content {
			if b := &f.Message.Content[i]; b.Type == blockToolResult {
				out[b.ToolUseID] = resultMessage(f, b)
			}
		}
	}
	return out
}

func TestRecordedResults(t *testing.T) {
	for _, c := range []struct {
		recording, call string
		status          agent.MessageStatus
		output          string
	}{
		{"b_foreground_agent", "toolu_a1_b1", agent.MessageCompleted, "child-a1"},
		{"b_foreground_agent", "toolu_root_a1", agent.MessageCompleted, "Child report: fine."},
		{"d_background_no_forward", "toolu_root_a1", agent.MessageCompleted, "The agent works in the background."},
		{"f_child_permission_deny", "toolu_a1_b1", agent.MessageFailed, "User said no."},
		{"f_child_permission_deny_interrupt", "toolu_root_a1", agent.MessageInterrupted, "[Request interrupted by user for tool use]"},
		{"l_ask_user_question_child", "toolu_a1_q1", agent.MessageFailed, "Error: No such tool available: AskUserQuestion."},
		{"k_unknown_agent_type", "toolu_root_a1", agent.MessageFailed, "Agent type 'nope' not found."},
		{"k_child_error_400_foreground", "toolu_root_a1", agent.MessageFailed, "Agent terminated early due to an API error: API Error: 400"},
		{"i_background_bash", "toolu_root_b1", agent.MessageCompleted, "Command running in background with ID: bu9tcng3o."},
		{"l_ask_user_question_root", "toolu_root_q1", agent.MessageCompleted, "Your questions have been answered:"},
	} {
		got, ok := resultsOf(t, c.recording)[c.call]
		if !ok || got.Status != c.status || !strings.HasPrefix(got.Output, c.output) || strings.Contains(got.Output, "tool_use_error") {
			t.Errorf("%s %s: %v %s %q", c.recording, c.call, ok, got.Status, got.Output)
		}
	}
}

// Every call in every recording has a title of one line and a bounded input.
func TestEveryRecordedCall(t *testing.T) {
	for _, name := range recordings(t) {
		for _, f := range framesOf[*messageFrame](t, name) {
			for _, b := range f.Message.Content {
				if b.Type != blockToolUse {
					continue
				}
				if c := describeCall(b.Name, b.Input); c.title == "" || strings.Contains(c.title, "\n") {
					t.Errorf("%s: %s %s: %q", name, b.Name, b.Input, c.title)
				}
			}
		}
	}
}

func TestCallsAsTheyAreShown(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        callText
	}{
		{"Bash", `{"command":"ls -l\npwd","description":"Look"}`, callText{title: "ls -l", input: "ls -l\npwd"}},
		{"Bash", `{}`, callText{title: "Bash"}},
		{"Agent", `{"description":"Inspect files","prompt":"Inspect the files"}`, callText{title: "Start agent: Inspect files", input: "Inspect the files"}},
		{"Task", `{"prompt":"First line\nsecond"}`, callText{title: "Start agent: First line", input: "First line\nsecond"}},
		{"Read", `{"file_path":"/w/dir/a.go"}`, callText{title: "Read a.go", input: `{"file_path":"/w/dir/a.go"}`}},
		{"Grep", `{"pattern":"x"}`, callText{title: "Search for x", input: `{"pattern":"x"}`}},
		{"SendMessage", `{"to":"helper","message":"go on"}`, callText{title: "Message to agent helper", input: `{"to":"helper","message":"go on"}`}},
		{"TaskUpdate", `{"taskId":"1","status":"in_progress"}`, callText{title: "To-do #1: in progress", input: `{"taskId":"1","status":"in_progress"}`}},
		{"mcp__elicit__ask", `{}`, callText{title: "elicit: ask"}},
		{"mcp__odd", `{"command":7}`, callText{title: "mcp__odd", input: `{"command":7}`}},
		{
			"MultiEdit", `{"file_path":"a","edits":[{"old_string":"1","new_string":"2"},{"old_string":"","new_string":"3"}]}`,
			callText{title: "Edit a", input: "--- a/a\n+++ b/a\n@@ @@\n-1\n+2\n@@ @@\n+3\n", diff: "--- a/a\n+++ b/a\n@@ @@\n-1\n+2\n@@ @@\n+3\n"},
		},
		{
			"NotebookEdit", `{"notebook_path":"C:\\w\\n.ipynb","new_source":"x"}`,
			callText{title: "Edit n.ipynb", input: "--- a/C:\\w\\n.ipynb\n+++ b/C:\\w\\n.ipynb\n@@ @@\n+x\n", diff: "--- a/C:\\w\\n.ipynb\n+++ b/C:\\w\\n.ipynb\n@@ @@\n+x\n"},
		},
	} {
		if d := cmp.Diff(c.want, describeCall(c.tool, json.RawMessage(c.input)), cmp.AllowUnexported(callText{})); d != "" {
			t.Errorf("%s %s: %s", c.tool, c.input, d)
		}
	}
	todos := describeCall("TodoWrite", json.RawMessage(`{"todos":[{"content":"one","status":"completed"},{"content":"two","status":"in_progress"},{"content":"three","status":"pending"}]}`))
	if todos.title != "Plan: 1 of 3 steps done" || todos.output != "[x] one\n[>] two\n[ ] three\n" {
		t.Errorf("%+v", todos)
	}
	long := describeCall("Write", json.RawMessage(`{"file_path":"a","content":"`+strings.Repeat("é", 1<<20)+`"}`))
	if len(long.input) > 17<<10 {
		t.Errorf("an input of %d bytes", len(long.input))
	}
}

// Images and documents are named, not kept; changes are shown as the diff that was made.
func TestResultsOfOtherShapes(t *testing.T) {
	read := func(content, result, meta string) agent.Message {
		line := `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t",` + content + `}]},"tool_use_result":` + result + `,"tool_result_meta":` + meta + `}`
		f, err := decodeFrame([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		m := f.(*messageFrame)
		return resultMessage(m, &m.Message.Content[0])
	}
	for _, c := range []struct {
		content, result, meta string
		status                agent.MessageStatus
		output                string
	}{
		{`"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8h"}}]`, `null`, `[]`, agent.MessageCompleted, "a\n[image: image/png, 6 bytes]"},
		{`"content":[{"type":"document","title":"T","source":{"type":"url","url":"https://example.org/d"}}]`, `"x"`, `null`, agent.MessageCompleted, "[document: T: https://example.org/d]"},
		{`"content":"done"`, `{"filePath":"/w/a","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":2,"lines":["-x","+y","+z"]}]}`, `[]`, agent.MessageCompleted, "--- a/w/a\n+++ b/w/a\n@@ -1,1 +1,2 @@\n-x\n+y\n+z\n"},
		{`"content":"Todos have been modified"`, `{"oldTodos":[],"newTodos":[{"content":"x","status":"pending"}]}`, `[]`, agent.MessageCompleted, ""},
		{`"content":"partly","is_error":false`, `{"stdout":"partly","interrupted":true}`, `[]`, agent.MessageInterrupted, "partly"},
		{`"content":"no","is_error":true`, `"Error: no"`, `[{"id":"t","non_execution_kind":"user-rejected"}]`, agent.MessageInterrupted, "no"},
		{`"content":"no","is_error":true`, `"Error: no"`, `[{"id":"other","non_execution_kind":"user-rejected"}]`, agent.MessageFailed, "no"},
		{`"content":null`, `7`, `null`, agent.MessageCompleted, ""},
		{`"content":[{"type":"tool_reference","name":"Grep"}]`, `{}`, `[]`, agent.MessageCompleted, "Grep"},
	} {
		if m := read(c.content, c.result, c.meta); m.Status != c.status || m.Output != c.output {
			t.Errorf("%s: %s %q", c.content, m.Status, m.Output)
		}
	}
}

func TestToDoList(t *testing.T) {
	var l todoList
	changed := 0
	for _, f := range framesOf[*messageFrame](t, "o_task_tools_hooks") {
		for i := range f.Message.Content {
			if b := &f.Message.Content[i]; b.Type == blockToolResult {
				if r := readResult(f, b); l.take(&r) {
					changed++
				}
			}
		}
	}
	if got := show.PlanText("", l.steps()); changed != 2 || got != "[x] Write the parser\n" {
		t.Errorf("%d changes, %q", changed, got)
	}
	for _, c := range []struct {
		result string
		want   bool
	}{
		{`{"task":{"id":"1","subject":"Write the parser","status":"completed"}}`, false},
		{`{"task":{"id":"2","subject":"Test it"}}`, true},
		{`{"taskId":"9","statusChange":{"to":"completed"}}`, false},
		{`{"taskId":"bi5imet8u","timeoutMs":60000}`, false}, // Monitor
		{`{"taskId":"1","statusChange":{"to":"deleted"}}`, true},
	} {
		var r toolResult
		if err := json.Unmarshal([]byte(c.result), &r); err != nil {
			t.Fatal(err)
		}
		if got := l.take(&r); got != c.want {
			t.Errorf("%s: %v", c.result, got)
		}
	}
	if got := show.PlanText("", l.steps()); got != "[ ] Test it\n" {
		t.Errorf("%q", got)
	}
}
