package codex

import (
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

// tail keeps the beginning and the end of a text that may be endless.
type tail struct {
	head, end []byte
	cut       int64
}

func (t *tail) add(s string) {
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

// size is how long the whole text is.
func (t *tail) size() int64 { return int64(len(t.head)+len(t.end)) + t.cut }

// drop forgets the first n bytes of the end, up to the next whole character.
func (t *tail) drop(n int) {
	for n < len(t.end) && !utf8.RuneStart(t.end[n]) {
		n++
	}
	t.cut += int64(n)
	t.end = append(t.end[:0], t.end[n:]...)
}

// String is the head and the end, with a note where the middle was left out.
func (t *tail) String() string {
	if over := len(t.end) - keepTail; over > 0 {
		t.drop(over)
	}
	if t.cut == 0 {
		return string(t.head) + string(t.end)
	}
	return string(t.head) + fmt.Sprintf(cutComment, t.cut) + string(t.end)
}

// boundedOutput cuts the middle of a result that is too long.
func boundedOutput(s string) string {
	var t tail
	t.add(s)
	return t.String()
}

// boundedInput cuts the end of arguments that are too long.
func boundedInput(s string) string { return bounded(s, maxInput) }

// bounded cuts s to at most n bytes at a character's border, and says so with an
// ellipsis.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ") + "…"
}
