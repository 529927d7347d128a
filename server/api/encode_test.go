package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// The short way gives what encoding/json gives.
func TestStreamedAnswersAreTheSame(t *testing.T) {
	turn := agent.Turn{ID: "trn_1", Phase: agent.PhaseRunning, CreatedAt: time.Unix(1, 2000).UTC()}
	s := agent.Session{ID: "ses_1", Title: "<&> \"x\"", ActiveTurn: &turn, LatestTurn: &turn, Handles: agent.Handles{ThreadID: "t"}}
	for _, v := range []streamer{
		sessionDetail{Session: s, ChildSessions: []agent.Session{s, {ID: "ses_2"}}, Seq: 7, Epoch: "é"},
		sessionDetail{},
		sessionPage{Items: []agent.Session{s}, NextCursor: "c\"", Seq: 3},
		sessionPage{},
		sessionPage{Items: slices.Repeat([]agent.Session{s}, 200)}, // several pieces
	} {
		var got, slow bytes.Buffer
		if err := jsonFormat.Marshal(&got, v); err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(&slow)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		// A missing list is null for encoding/json, and [] on our wire.
		want := bytes.ReplaceAll(slow.Bytes(), []byte(":null"), []byte(":[]"))
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Error(d)
		}
	}
}
