package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/replay"
)

const recordings = "../provider/codex/testdata/"

func TestReplayForPeople(t *testing.T) {
	r := turnkeeper(t, t.TempDir(), "replay", "--provider", "codex", recordings+"f5-v1-two-children-approvals.jsonl")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	whole := turnkeeper(t, t.TempDir(), "replay", "--json", "--provider", "codex", recordings+"f5-v1-two-children-approvals.jsonl")
	var end replay.End
	if err := json.Unmarshal([]byte(whole.out), &end); err != nil || whole.code != 0 {
		t.Fatalf("exit %d: %v", whole.code, err)
	}
	if len(end.Sessions) < 3 || len(end.Interactions) < 2 {
		t.Fatalf("%d sessions and %d questions are too few to show anything", len(end.Sessions), len(end.Interactions))
	}
	lines := map[string]string{}
	for line := range strings.Lines(r.out) {
		fields := strings.Fields(line)
		if len(fields) > 0 {
			lines[fields[0]] = line
		}
	}
	says := func(id string, words ...string) {
		for _, w := range words {
			if !strings.Contains(lines[id], w) {
				t.Errorf("%s: %q lacks %q", id, lines[id], w)
			}
		}
	}
	for _, s := range end.Sessions {
		says(string(s.ID), string(s.Kind), string(s.ParentSessionID), string(s.ParentTurnID), string(s.ParentToolCallID))
	}
	for _, turn := range end.Turns {
		says(string(turn.ID), string(turn.SessionID), string(turn.Trigger), string(turn.Outcome))
	}
	for _, q := range end.Interactions {
		says(string(q.RequestID), string(q.SessionID), string(q.Kind), string(q.Status), q.AnsweredBy)
	}
	if !strings.Contains(r.out, "Diagnostics: unrouted 0") || !strings.Contains(r.out, "openBelowSettled 0, settledTwice 0: they hold") {
		t.Errorf("the end of it: %s", r.out)
	}
}

func TestReplayOfACutRecording(t *testing.T) {
	whole, err := os.ReadFile(recordings + "a-plain.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(file, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := turnkeeper(t, t.TempDir(), "replay", "--provider", "codex", file); r.code != 0 || !strings.Contains(r.out, "breaks off in its last line") {
		t.Errorf("for people: %+v", r)
	}
	var end replay.End
	r := turnkeeper(t, t.TempDir(), "replay", "--provider", "codex", "--json", file)
	if err := json.Unmarshal([]byte(r.out), &end); err != nil || r.code != 0 || end.Diagnostics.Truncated != 1 {
		t.Errorf("for programs: %+v, %v", r, err)
	}
}

func TestReplayOfWhatIsNoRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(file, []byte("{\"a\":1}\n<html>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, form := range [][]string{{"--json"}, nil} {
		r := turnkeeper(t, t.TempDir(), append([]string{"replay", "--provider", "codex", file}, form...)...)
		if r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "line 2") {
			t.Errorf("%v: %+v", form, r)
		}
	}
}

// A broken invariant is printed and told by the exit code, whoever reads it.
func TestReplayFailsWhereAnInvariantDoesNotHold(t *testing.T) {
	for _, broken := range []replay.Invariants{{OpenBelowSettled: 2}, {SettledTwice: 1}} {
		for _, asJSON := range []bool{true, false} {
			var out bytes.Buffer
			a := &app{out: &out, json: asJSON}
			end := &replay.End{Invariants: broken}
			if err := json.Unmarshal([]byte(`{"sessions":[{"id":"ses_1","kind":"root","title":"a\u001b[2Jb"}]}`), end); err != nil {
				t.Fatal(err)
			}
			err := a.printEnd(end)
			if err == nil || !strings.Contains(err.Error(), "invariants") {
				t.Errorf("%+v, json %v: %v", broken, asJSON, err)
			}
			if !strings.Contains(out.String(), "ses_1") || strings.Contains(out.String(), "\x1b") {
				t.Errorf("json %v printed %q", asJSON, out.String())
			}
		}
	}
}
