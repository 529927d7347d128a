package replay

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var deaths = flag.Int("deaths", 2, "at how many moments of each recording the process is killed")

// death is what each recorder writes when the process is killed.
var death = map[string]string{
	"codex":  `{"t":%d,"dir":"meta","msg":{"event":"kill","signal":9}}`,
	"acp":    `{"t":%d,"dir":"note","msg":{"text":"agent exited","code":null,"signal":"SIGKILL"}}`,
	"claude": `{"t":%d,"dir":"note","msg":{"event":"kill","signal":"SIGKILL"}}`,
}

var wireLineOf = regexp.MustCompile(`"dir": ?"(in|out)"`)

// A process can be killed at any moment: that ends everything that lives, and nothing is
// left open (decisions.md 9).
func TestDeathAtAnyMoment(t *testing.T) {
	eachRecording(t, func(t *testing.T, s suite, name string) {
		t.Parallel()
		raw, err := os.ReadFile(filepath.Join(s.dir(), name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
		// Before the first line of the wire there is no recording to read.
		first := 1 + slices.IndexFunc(lines, func(l []byte) bool { return wireLineOf.Match(l) })
		r := rand.New(rand.NewPCG(uint64(len(lines)), 3))
		for range *deaths {
			at := first + r.IntN(len(lines)-first+1)
			text := append(bytes.Join(lines[:at], []byte("\n")), fmt.Appendf(nil, "\n"+death[s.provider], 3600_000)...)
			end, err := Run(context.Background(), s.provider, bytes.NewReader(text))
			if err != nil {
				t.Fatalf("killed after line %d: %v", at, err)
			}
			if left := stillOpen(end); len(left) > 0 {
				t.Errorf("killed after line %d, and there is left %v", at, left)
			}
		}
	})
}

// stillOpen is everything of an end that has not ended, or ended wrongly.
func stillOpen(end *End) (left []string) {
	for _, u := range end.Turns {
		runs := u.ProviderTurn != nil && u.ProviderTurn.Phase != agent.ProviderEnded
		if u.Phase != agent.PhaseSettled || runs {
			left = append(left, fmt.Sprintf("turn %s %s %+v", u.ID, u.Phase, u.ProviderTurn))
		}
	}
	for _, m := range end.Messages {
		if !m.Status.Ended() {
			left = append(left, fmt.Sprintf("message %s %s %s", m.ID, m.Kind, m.Status))
		}
	}
	for _, i := range end.Interactions {
		if i.Status.Open() {
			left = append(left, fmt.Sprintf("question %s %s", i.RequestID, i.Status))
		}
	}
	for _, o := range end.Operations {
		if o.Status.Open() {
			left = append(left, fmt.Sprintf("operation %s %s", o.ID, o.Status))
		}
	}
	for _, p := range end.Processes {
		if p.Status != agent.ProcessEnded {
			left = append(left, fmt.Sprintf("process %s %s", p.ID, p.Status))
		}
	}
	granted := map[agent.SessionID]bool{}
	for _, g := range end.Grants {
		granted[g.Session] = g.Given
	}
	for id, still := range granted {
		if still {
			left = append(left, fmt.Sprintf("the grant of %s", id))
		}
	}
	if end.Invariants != (Invariants{}) {
		left = append(left, fmt.Sprintf("invariants %+v", end.Invariants))
	}
	return left
}
