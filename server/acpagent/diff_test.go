package acpagent

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestParseDiff(t *testing.T) {
	diff := "diff --git a/w/a.go b/w/a.go\nindex 1..2 100644\n--- a/w/a.go\n+++ b/w/a.go\n@@ -1,3 +1,3 @@ func\n one\n-two\n+zwei\n three\n@@ -9 +9 @@\n-nine\n+neun\n\\ No newline at end of file\n" +
		"--- a/old.txt\n+++ b/new.txt\n@@ -1 +1 @@\n-x\n+y\n--- a/gone\n+++ /dev/null\n-was\n"
	got := parseDiff(diff, "/w")
	if len(got) != 3 {
		t.Fatalf("%d files", len(got))
	}
	a, moved, gone := got[0], got[1], got[2]
	if a.from != "/w/a.go" || a.to != "/w/a.go" || len(a.hunks) != 2 || !a.numbered || a.hunks[0] != (hunk{"one\ntwo\nthree\n", "one\nzwei\nthree\n"}) || a.hunks[1] != (hunk{"nine\n", "neun\n"}) {
		t.Errorf("%+v", a)
	}
	if moved.from != "/w/old.txt" || moved.to != "/w/new.txt" || moved.second(moved.to).Changes[0].Operation != "move" {
		t.Errorf("%+v", moved)
	}
	if gone.to != "" || gone.numbered || gone.hunks[0].before != "was\n" || gone.second(gone.from).Changes[0].Operation != "delete" {
		t.Errorf("%+v", gone)
	}
	for _, text := range []string{"", "hello", "-- a\n++ b", "- --- a\n+++ b"} {
		if got := parseDiff(text, "/w"); got != nil {
			t.Errorf("%q is no diff: %+v", text, got)
		}
	}
}

// Whatever comes out of a tool is shown and harms nobody.
func TestParseDiffTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"--- a/x\n", "+++ b/x\n", "--- /dev/null\n", "+++ /dev/null", "@@", "@@ -1 +1 @@\n", "+", "-", "\n", " x\n", "\\", "diff --git ", "é\r\n"})).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		for _, c := range parseDiff(text, "/w") {
			if !strings.Contains(text, strings.TrimSuffix(c.text, "\n")) && len(c.text) > len(text) {
				t.Fatalf("made up %q", c.text)
			}
		}
	})
}

func TestPlanOf(t *testing.T) {
	m := agent.Message{Title: "Plan: 1 of 2 steps done", Output: "because\n\n[x] one\n[ ] two\n[\n"}
	if got := planOf(m); len(got) != 2 || got[0].Status != "completed" || got[1].Content != "two" {
		t.Errorf("%+v", got)
	}
	if got := planOf(agent.Message{Title: "Read", Output: "[x] no plan\n"}); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestFencesAndKinds(t *testing.T) {
	if got := fenced("execute", "a ``` b\n"); got != "````\na ``` b\n````" {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{
		"Bash": "execute", "commandExecution": "execute", "shell": "execute", "Edit": "edit", "fileChange": "edit", "apply_patch": "edit",
		"Read": "read", "Grep": "search", "Glob": "search", "WebSearch": "fetch", "webSearch": "fetch", "WebFetch": "fetch",
		"Agent": "think", "spawn_agent": "think", "TodoWrite": "think", "server/tool": "other", "": "other",
	} {
		if got := toolKind(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
