package replay

import (
	"bufio"
	"context"
	"encoding/json"
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
}

// Invariants must all be 0.
type Invariants struct {
	OpenBelowSettled int `json:"openBelowSettled"` // commits after which a turn lived below a settled root turn
	SettledTwice     int `json:"settledTwice"`     // turns that settled again, or another way
}

// maxLine bounds one line of a recording, in bytes.
const maxLine = 64 << 20

// Run replays a recording of the named provider. Errors: CodeInvalid for a provider or
// a recording that cannot be read; anything else is a fault of the replay itself.
func Run(ctx context.Context, providerName string, recording io.Reader) (*End, error) {
	speak, ok := dialects[providerName]
	if !ok {
		known := slices.Sorted(maps.Keys(dialects))
		return nil, agent.Errorf(agent.CodeInvalid, "no recordings of %q can be replayed; there are: %s", providerName, strings.Join(known, ", "))
	}
	lines, err := readLines(recording)
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
	return e.collect()
}

func readLines(recording io.Reader) ([]line, error) {
	var lines []line
	scan := bufio.NewScanner(recording)
	scan.Buffer(nil, maxLine)
	for scan.Scan() {
		if len(strings.TrimSpace(scan.Text())) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, agent.Errorf(agent.CodeInvalid, "line %d is no line of a recording: %v", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(lines) == 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "the recording is empty")
	}
	return lines, nil
}
