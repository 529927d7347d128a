package proc

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// maxComplaint bounds how much of the last line on stderr [Link.Explain] repeats.
const maxComplaint = 300

// Link is a process as one end of a conversation: Read is its output, Write its input.
type Link struct{ *Process }

func (l Link) Read(b []byte) (int, error)  { return l.Stdout().Read(b) }
func (l Link) Write(b []byte) (int, error) { return l.Stdin().Write(b) }

// SetWriteDeadline bounds a write to a process that has stopped reading.
func (l Link) SetWriteDeadline(t time.Time) error { return l.Stdin().SetWriteDeadline(t) }

// Close walks the stop ladder, see [Process.Stop].
func (l Link) Close(ctx context.Context) error {
	_, err := l.Stop(ctx)
	return err
}

// Explain says how the process ended and what it complained of last; "" while it runs.
func (l Link) Explain() string {
	exit := l.Exit()
	if errors.Is(exit.Err, ErrRunning) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(l.StderrTail()), "\n")
	last := lines[len(lines)-1]
	if last == "" {
		return exit.String()
	}
	if n := maxComplaint; len(last) > n {
		for n > 0 && !utf8.RuneStart(last[n]) {
			n--
		}
		last = last[:n] + "…"
	}
	return exit.String() + ": " + last
}
