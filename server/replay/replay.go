package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// End is what a recording came to: the entities as the API gives them, each kind in
// the order of creation.
type End struct {
	Sessions     []agent.Session     `json:"sessions"`
	Turns        []agent.Turn        `json:"turns"`
	Messages     []agent.Message     `json:"messages"`
	Interactions []agent.Interaction `json:"interactions"`
	Operations   []agent.Operation   `json:"operations"`
	Processes    []agent.Process     `json:"processes,omitempty"`
	Grants       []Grant             `json:"grants,omitempty"`
	Diagnostics  Diagnostics         `json:"diagnostics"`
	Invariants   Invariants          `json:"invariants"`
}

// Grant says that from then on a child could, or could not, be stopped alone, in the order
// in which that changed. Providers that can always do it, or never, say nothing.
type Grant struct {
	Session agent.SessionID `json:"session"`
	Given   bool            `json:"given"`
}

// Diagnostics counts what could not become, or change, an entity.
type Diagnostics struct {
	Unrouted int `json:"unrouted"` // frames without an owner
	Held     int `json:"held"`     // frames that came before their owner
	Late     int `json:"late"`     // facts and frames of turns that had ended
	Refused  int `json:"refused"`  // what the fence turned away, and requests nobody owns
	// Truncated is 1 if the recording ended in the middle of its last line, as that of a
	// recorder that was killed does: the line was left out.
	Truncated int `json:"truncated,omitempty"`
}

// Invariants must all be 0.
type Invariants struct {
	OpenBelowSettled int `json:"openBelowSettled"` // commits after which a turn lived below a settled root turn
	SettledTwice     int `json:"settledTwice"`     // turns that settled again, or another way
}

// Directions of a line: from the provider, and to it. Others are notes.
const (
	dirIn  = "in"
	dirOut = "out"
)

// maxLine bounds one line of a recording, in bytes.
const maxLine = 64 << 20

// Hold reports whether they are.
func (i Invariants) Hold() bool { return i == Invariants{} }

// Run replays a recording of the named provider. Errors: CodeInvalid for a provider or
// a recording that cannot be read; anything else is a fault of the replay itself. A
// recording that breaks off in its last line is replayed up to there.
func Run(ctx context.Context, providerName string, recording io.Reader) (*End, error) {
	speak, ok := dialects[providerName]
	if !ok {
		known := slices.Sorted(maps.Keys(dialects))
		return nil, agent.Errorf(agent.CodeInvalid, "no recordings of %q can be replayed; there are: %s", providerName, strings.Join(known, ", "))
	}
	lines, truncated, err := readLines(recording)
	if err != nil {
		return nil, err
	}
	still := newStill()
	e, err := newEngine(ctx, providerName, speak(lines, still), still)
	if err != nil {
		return nil, err
	}
	defer e.close()
	if err := e.play(lines); err != nil {
		return nil, err
	}
	end, err := e.collect()
	if err == nil && truncated {
		end.Diagnostics.Truncated = 1
	}
	return end, err
}

// readLines reads a whole recording. truncated says that it broke off in its last line,
// which is not among lines. Errors name the line by its place in the file.
func readLines(recording io.Reader) (lines []line, truncated bool, err error) {
	scan := bufio.NewScanner(recording)
	scan.Buffer(nil, maxLine)
	scan.Split(wholeLines)
	at, spoken := 0, false
	for scan.Scan() {
		at++
		text := bytes.TrimSpace(scan.Bytes())
		if len(text) == 0 {
			continue
		}
		l, err := parseLine(text)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) && !bytes.HasSuffix(scan.Bytes(), []byte{'\n'}):
			truncated = true
			continue // no newline: nothing comes after it
		case err != nil:
			return nil, false, agent.Errorf(agent.CodeInvalid, "line %d is no line of a recording", at)
		}
		spoken = spoken || l.Dir == dirIn || l.Dir == dirOut
		lines = append(lines, l)
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, false, agent.Errorf(agent.CodeInvalid, "line %d is longer than %d bytes", at+1, maxLine)
	case err != nil:
		return nil, false, fmt.Errorf("read the recording: %w", err)
	case len(lines) == 0:
		return nil, false, agent.Errorf(agent.CodeInvalid, "the recording is empty: it has no whole line")
	case !spoken:
		return nil, false, agent.Errorf(agent.CodeInvalid, "this is no recording: none of its %d lines is to or from a provider (dir \"out\" or \"in\")", len(lines))
	}
	return lines, truncated, nil
}

// wholeLines is bufio.ScanLines that keeps the newline: a last line without one may have
// been cut off.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// parseLine decodes one line and nothing besides. io.ErrUnexpectedEOF: its end is missing.
func parseLine(text []byte) (line, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&l); err != nil {
		return l, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return l, errors.New("more than one value")
	}
	return l, nil
}
