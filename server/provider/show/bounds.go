package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of what one tool call keeps, in bytes.
const (
	maxInput   = 16 << 10
	keepHead   = 16 << 10
	keepTail   = 48 << 10
	cutComment = "\n… %d bytes left out …\n"
)

// OutputLength is how much of an output is kept, in bytes.
const OutputLength = keepHead + keepTail

// TitleLength bounds a title, in bytes.
const TitleLength = 120

// Tail keeps the beginning and the end of a text that may be endless.
type Tail struct {
	head, end []byte
	cut       int64
}

// Add appends a piece.
func (t *Tail) Add(s string) {
	if room := keepHead - len(t.head); room > 0 && len(t.end) == 0 {
		n := min(room, len(s))
		for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		t.head = append(t.head, s[:n]...)
		s = s[n:]
	}
	t.end = append(t.end, s...)
	if over := len(t.end) - keepTail; over > keepTail { // move seldom, not with every piece
		t.drop(over)
	}
}

// Size is how long the whole text is.
func (t *Tail) Size() int64 { return int64(len(t.head)+len(t.end)) + t.cut }

// drop forgets the first n bytes of the end, up to the next whole character.
func (t *Tail) drop(n int) {
	for n < len(t.end) && !utf8.RuneStart(t.end[n]) {
		n++
	}
	t.cut += int64(n)
	t.end = append(t.end[:0], t.end[n:]...)
}

// String is the head and the end, with a note where the middle was left out.
func (t *Tail) String() string {
	if over := len(t.end) - keepTail; over > 0 {
		t.drop(over)
	}
	if t.cut == 0 {
		return string(t.head) + string(t.end)
	}
	return string(t.head) + fmt.Sprintf(cutComment, t.cut) + string(t.end)
}

// Output cuts the middle of a result that is too long.
func Output(s string) string {
	var t Tail
	t.Add(s)
	return t.String()
}

// Input cuts the end of arguments that are too long.
func Input(s string) string { return Bounded(s, maxInput) }

// Bounded cuts s to at most n bytes at a character's border, and says so with an
// ellipsis.
func Bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ") + "…"
}

// Title is the first line of a text.
func Title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Bounded(strings.TrimSpace(line), TitleLength)
}

// JSON is a JSON value on one line; null is nothing, a string is its text.
func JSON(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
