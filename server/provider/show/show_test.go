package show

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// However a text comes in pieces, both ends are kept, whole characters, within the bound.
func TestTailKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tail Tail
		var all strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "pieces") {
			piece := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢", "line\n"}).Draw(t, "letter"), rapid.IntRange(0, 20000).Draw(t, "n"))
			tail.Add(piece)
			all.WriteString(piece)
		}
		got, want := tail.String(), all.String()
		if tail.Size() != int64(len(want)) {
			t.Fatalf("size %d of %d", tail.Size(), len(want))
		}
		if len(want) <= keepHead && got != want {
			t.Fatal("a short text was changed")
		}
		if len(got) > OutputLength+100 || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		n := min(len(want), 1000)
		if !strings.HasPrefix(got, strings.ToValidUTF8(want[:n], "")) || !strings.HasSuffix(got, strings.ToValidUTF8(want[len(want)-n:], "")) {
			t.Fatal("an end is missing")
		}
	})
}

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		" \n first \nsecond":     "first",
		strings.Repeat("é", 100): strings.Repeat("é", 58) + "…",
	} {
		if got := Title(text); got != want {
			t.Errorf("Title(%.20q) = %q", text, got)
		}
	}
	for raw, want := range map[string]string{"": "", "null": "", `"a\nb"`: "a\nb", "{ \"a\": [1, 2] }": `{"a":[1,2]}`, "{": "{"} {
		if got := JSON([]byte(raw)); got != want {
			t.Errorf("JSON(%q) = %q", raw, got)
		}
	}
}

func TestPlan(t *testing.T) {
	steps := []Step{{Text: "one", Done: true}, {Text: "two", Active: true}, {Text: "three"}}
	if got := PlanTitle(steps); got != "Plan: 1 of 3 steps done" {
		t.Error(got)
	}
	if got := PlanText("why", steps); got != "why\n\n[x] one\n[>] two\n[ ] three\n" {
		t.Errorf("%q", got)
	}
}

func TestDiff(t *testing.T) {
	diff := NewFile("/w/a", "x\ny\n") + DeletedFile("b", "old") + ChangedFile("c", "d", "@@ -1 +1 @@\n-1\n+2")
	want := "--- /dev/null\n+++ b/w/a\n+x\n+y\n--- a/b\n+++ /dev/null\n-old\n--- a/c\n+++ b/d\n@@ -1 +1 @@\n-1\n+2\n"
	if diff != want {
		t.Errorf("%q", diff)
	}
	if got := DiffTitle("diff --git a/c b/c\n" + diff); got != "Changed 1 file, 3 lines added, 2 removed" {
		t.Error(got)
	}
}
