package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// recordedACP are the lines of a recording.
func recordedACP(t *testing.T, name string) (lines [][]byte) {
	t.Helper()
	order, _ := orderOfACP(t, name)
	for _, l := range order {
		lines = append(lines, l.raw)
	}
	return lines
}

func replayACP(t *testing.T, lines [][]byte) *End {
	t.Helper()
	end, err := Run(t.Context(), acpSuite.provider, bytes.NewReader(bytes.Join(lines, []byte("\n"))))
	if err != nil {
		t.Fatal(err)
	}
	if end.Invariants != (Invariants{}) {
		t.Errorf("invariants %+v", end.Invariants)
	}
	return end
}

// at is the first line that has all these words.
func lineWith(t *testing.T, lines [][]byte, words ...string) int {
	t.Helper()
	for at, l := range lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(l, []byte(w)) }) {
			return at
		}
	}
	t.Fatalf("no line with %q", words)
	return 0
}

// What a child says before it is announced is held for it, and comes to the same end.
func TestTrafficBeforeTheAnnouncementIsHeld(t *testing.T) {
	lines := recordedACP(t, "b-child.v1")
	announced := lineWith(t, lines, "subagent_update", `"title":"Alpha"`)
	var early, rest [][]byte
	for _, l := range lines[announced:] {
		if bytes.Contains(l, []byte("msg_3_1")) || bytes.Contains(l, []byte("rs_3_0")) {
			early = append(early, l)
		} else {
			rest = append(rest, l)
		}
	}
	made := slices.Concat(lines[:announced], early, rest)
	for at := range made { // the moments stay
		var l, when line
		if err := json.Unmarshal(made[at], &l); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(lines[at], &when); err != nil {
			t.Fatal(err)
		}
		l.At = when.At
		made[at], _ = json.Marshal(l)
	}
	end := replayACP(t, made)
	if diff := gocmp.Diff(endState(acpSuite.replay(t, "b-child.v1")), endState(end)); diff != "" {
		t.Errorf("another end (-recorded +early):\n%s", diff)
	}
	if len(early) == 0 || end.Diagnostics.Held < len(early) || end.Diagnostics.Unrouted != 0 {
		t.Errorf("%d early lines, diagnostics %+v", len(early), end.Diagnostics)
	}
}

// A load that fails takes every grant, with nothing on the wire that gives one back: the
// child cannot be stopped alone. Another load that succeeds restores that.
func TestLoadThatFailsTakesTheGrants(t *testing.T) {
	lines := recordedACP(t, "g-load.v1")
	load := lineWith(t, lines, `"out"`, "session/load")
	again := bytes.Replace(lines[load], []byte(`"id":4`), []byte(`"id":44`), 1)
	failed := []byte(`{"t":4805,"dir":"in","msg":{"jsonrpc":"2.0","id":44,"error":{"code":-32602,"message":"cwd is no absolute path"}}}`)
	stop := lineWith(t, lines, `"out"`, "session/cancel")
	before := slices.Concat(lines[:load], [][]byte{again, failed})
	exit := lines[len(lines)-1]

	end := replayACP(t, slices.Concat(before, [][]byte{lines[stop], exit}))
	want := []string{
		"root: user completed (provider completed)",
		"Alpha below root: delegation completed (granted once)",
		"Beta below root: delegation interrupted (granted once)",
		`said "go" completed`,
	}
	if diff := gocmp.Diff(want, told(end)); diff != "" {
		t.Errorf("another end (-want +got):\n%s", diff)
	}
	warned := false
	for _, m := range end.Messages {
		warned = warned || strings.Contains(m.Content, "cannot be stopped one by one")
	}
	if !warned {
		t.Error("nobody was told")
	}

	end = replayACP(t, slices.Concat(before, lines[load:]))
	if diff := gocmp.Diff(acpCodex["g-load.v1"], told(end)); diff != "" {
		t.Errorf("after another load (-want +got):\n%s", diff)
	}
}

// The root's part ends while its session is loaded: that is no history.
func TestTurnThatEndsWhileItsSessionIsLoaded(t *testing.T) {
	lines := recordedACP(t, "g-load.v2")
	ends := lineWith(t, lines, "state_update", `"usage"`, "end_turn")
	load := lineWith(t, lines, `"out"`, "session/resume")
	made := slices.Concat(lines[:ends], lines[ends+1:load+1], lines[ends:ends+1], lines[load+1:])
	if diff := gocmp.Diff(acpCodex["g-load.v2"], told(replayACP(t, made))); diff != "" {
		t.Errorf("another end (-want +got):\n%s", diff)
	}
}
