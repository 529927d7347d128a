package show

import (
	"fmt"
	"strings"
)

// NewFile is the unified diff of a file that was not there.
func NewFile(path, text string) string {
	return fileDiff("/dev/null", "b"+slashed(path), prefixed("+", text))
}

// DeletedFile is the unified diff of a file that is no more.
func DeletedFile(path, text string) string {
	return fileDiff("a"+slashed(path), "/dev/null", prefixed("-", text))
}

// ChangedFile is the unified diff of a file with the given hunks, which may have moved.
func ChangedFile(from, to, hunks string) string {
	return fileDiff("a"+slashed(from), "b"+slashed(to), hunks)
}

func fileDiff(from, to, body string) string {
	out := fmt.Sprintf("--- %s\n+++ %s\n%s", from, to, body)
	if !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return out
}

func slashed(p string) string { return "/" + strings.TrimPrefix(p, "/") }

func prefixed(mark, text string) string {
	text = strings.TrimSuffix(text, "\n")
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
}

// DiffTitle counts what a unified diff changes.
func DiffTitle(diff string) string {
	files, added, removed := 0, 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "diff --git "):
			files++
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	noun := "files"
	if files == 1 {
		noun = "file"
	}
	return fmt.Sprintf("Changed %d %s, %d lines added, %d removed", files, noun, added, removed)
}
