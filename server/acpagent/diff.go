package acpagent

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
)

// change is one file of a unified diff.
type change struct {
	from, to string // absolute; "" for a file that is not there before or after
	hunks    []hunk
	text     string // as it came
	numbered bool   // every hunk says where it is
}

// hunk is one stretch, before and after.
type hunk struct{ before, after string }

var numbered = regexp.MustCompile(`^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

// parseDiff reads a unified diff, nil if the text is none. Names in it have lost the slash
// of an absolute path: they are completed from the directory the agent works in.
func parseDiff(text, cwd string) []change {
	if !strings.HasPrefix(text, "--- ") && !strings.HasPrefix(text, "diff --git ") {
		return nil
	}
	var out []change
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "":
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			out = append(out, change{
				from: diffPath(line[4:], "a/", cwd), to: diffPath(lines[i+1][4:], "b/", cwd),
				text: line + lines[i+1], numbered: true,
			})
			i++
		case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "index "), len(out) == 0:
		default:
			out[len(out)-1].line(line)
		}
	}
	return out
}

func (c *change) line(line string) {
	c.text += line
	if strings.HasPrefix(line, "@@") {
		c.numbered = c.numbered && numbered.MatchString(line)
		c.hunks = append(c.hunks, hunk{})
		return
	}
	if len(c.hunks) == 0 {
		c.hunks = append(c.hunks, hunk{}) // a whole file, without a head
		c.numbered = false
	}
	h := &c.hunks[len(c.hunks)-1]
	switch line[0] {
	case '+':
		h.after += line[1:]
	case '-':
		h.before += line[1:]
	case '\\': // no newline at the end of the file
	case ' ':
		h.before += line[1:]
		h.after += line[1:]
	default:
		h.before += line
		h.after += line
	}
}

func diffPath(name, prefix, cwd string) string {
	name, _, _ = strings.Cut(strings.TrimRight(name, "\r\n"), "\t")
	if name == "/dev/null" {
		return ""
	}
	name = strings.TrimPrefix(name, prefix)
	switch {
	case filepath.IsAbs(name):
		return name
	case cwd == "", strings.HasPrefix("/"+name, strings.TrimSuffix(cwd, "/")+"/"):
		return "/" + name
	}
	return filepath.Join(cwd, name)
}

// changes shows changed files as the version spoken has it: version 1 as texts before and
// after, a stretch each; version 2 as what happened to which file, with the patch where it
// is one that could be applied.
func (s *session) changes(all []change) shownContent {
	var out shownContent
	v2 := s.c.version() == acp.V2
	for _, c := range all {
		path := c.to
		if path == "" {
			path = c.from
		}
		out.files = append(out.files, acp.Location{Path: path})
		if v2 {
			out.blocks = append(out.blocks, c.second(path))
			continue
		}
		for _, h := range c.hunks {
			block := acp.ToolContent{Type: acp.ToolContentDiff, Path: path, NewText: &h.after}
			if c.from != "" {
				block.OldText = &h.before
			}
			out.blocks = append(out.blocks, block)
		}
	}
	return out
}

func (c change) second(path string) acp.ToolContent {
	d := acp.DiffChange{Operation: "modify", Path: path, FileType: "text"}
	switch {
	case c.from == "":
		d.Operation = "add"
	case c.to == "":
		d.Operation = "delete"
	case c.from != c.to:
		d.Operation, d.OldPath = "move", c.from
	}
	block := acp.ToolContent{Type: acp.ToolContentDiff, Changes: []acp.DiffChange{d}}
	if c.numbered && len(c.hunks) > 0 {
		block.Patch = &acp.DiffPatch{Format: "git_patch", Text: c.text}
	}
	return block
}
