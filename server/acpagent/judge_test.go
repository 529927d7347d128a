package acpagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// What the agents of all tests wrote, with the method that each answer answers.
var (
	recorded   [3][]json.RawMessage
	recordedMu sync.Mutex
)

// judged is one line with what it answers.
type judged struct {
	Version int             `json:"version"`
	Answers string          `json:"answers,omitempty"`
	Line    json.RawMessage `json:"line"`
}

func record(version int, e *editor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	recordedMu.Lock()
	defer recordedMu.Unlock()
	for _, l := range e.lines {
		raw, err := json.Marshal(judged{Version: version, Answers: e.idFor[string(l.ID)], Line: json.RawMessage(l.raw)})
		if err != nil {
			panic(err)
		}
		recorded[version] = append(recorded[version], raw)
	}
}

const sdkDir = "testdata/sdk"

// nodeRun runs a script of the published package's side. It is never left out: a machine that
// cannot run it has not run these tests.
func nodeRun(script string, args ...string) (*exec.Cmd, error) {
	if _, err := os.Stat(filepath.Join(sdkDir, "node_modules", "@agentclientprotocol", "sdk", "package.json")); err != nil {
		return nil, errors.New("the npm package @agentclientprotocol/sdk is not installed, which these tests need: make acp-sdk")
	}
	bin, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("these tests need Node.js 20 or newer: https://nodejs.org")
	}
	return exec.Command(bin, append([]string{filepath.Join(sdkDir, script)}, args...)...), nil
}

// judgeAll asks the package's own schemas about every line.
func judgeAll() error {
	cmd, err := nodeRun("judge.mjs")
	if err != nil {
		return err
	}
	var in strings.Builder
	n := 0
	for _, lines := range recorded {
		for _, l := range lines {
			in.Write(l)
			in.WriteByte('\n')
			n++
		}
	}
	if n == 0 {
		return nil // a run of tests without the wire
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the published schemas refuse what was written: %w\n%s", err, out)
	}
	fmt.Printf("judged by the published schemas: %s\n", strings.TrimSpace(string(out)))
	return nil
}
