package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// recordings are what agents really sent, by file.
func recordings(t *testing.T) map[string][]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	out := map[string][]json.RawMessage{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var l Recorded
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			if l.Dir == "in" {
				out[filepath.Base(name)] = append(out[filepath.Base(name)], l.Msg)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Every update and every permission that was recorded is understood.
func TestRecordedMessagesAreUnderstood(t *testing.T) {
	n := 0
	for name, lines := range recordings(t) {
		for _, raw := range lines {
			var m line
			if json.Unmarshal(raw, &m) != nil {
				continue // of the HTTP interface, or a batch
			}
			switch m.Method {
			case acp.MethodUpdate:
				var u acp.SessionNotification
				if err := json.Unmarshal(m.Params, &u); err != nil || u.Update.Variant == nil {
					t.Errorf("%s: %.200s: %v %v", name, raw, err, u.Update.Err)
				}
				n++
			case acp.MethodRequestPermission:
				var q acp.PermissionRequest
				if err := json.Unmarshal(m.Params, &q); err != nil || q.Call() == nil || describePermission(&q).Detail.Command == "" {
					t.Errorf("%s: %.200s: %v", name, raw, err)
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d updates were read", n)
	}
}

// Whatever lines come, in whatever order, cut, doubled or changed: nothing panics, the
// contract holds, and the session can be stopped and closed.
func TestLinesInAnyOrderAndShape(t *testing.T) {
	seed := uint64(1)
	for name, lines := range recordings(t) {
		if strings.HasPrefix(name, "oc-http") {
			continue
		}
		for range 3 {
			seed++
			synctest.Test(t, func(t *testing.T) { spoil(t, lines, rand.New(rand.NewPCG(seed, 1))) })
		}
	}
}

func spoil(t *testing.T, lines []json.RawMessage, rng *rand.Rand) {
	s := newStage(t, acp.V1+rng.IntN(2))
	s.p.onTurn = turns(func(string) {})
	s.Sink = providertest.NewSink(t, s.root)
	s.open()
	s.start()
	root := rootSession
	for range len(lines) {
		raw := string(lines[rng.IntN(len(lines))])
		raw = strings.ReplaceAll(raw, "uuid-001", root)
		raw = strings.ReplaceAll(raw, "ses_001", root)
		switch rng.IntN(12) {
		case 0:
			raw = raw[:rng.IntN(len(raw))]
		case 1:
			at := rng.IntN(len(raw))
			raw = raw[:at] + string(rune('!'+rng.IntN(90))) + raw[at+1:]
		case 2:
			raw = strings.Replace(raw, `"running"`, `"idle"`, 1)
		}
		s.line(raw)
		if rng.IntN(20) == 0 {
			s.pass(time.Duration(rng.IntN(3000)) * time.Millisecond)
		}
	}
	if turn := s.View().RootTurn(); turn.Live() {
		s.in.Turn = turn.ID
		s.cancel(turn.ID).completes()
	}
	for _, c := range s.View().Children() {
		if c.LatestTurn.Live() && s.View().Turn(c.LatestTurn.RootTurnID).Phase == agent.PhaseSettled {
			t.Errorf("child %s lives below a settled root\n%s", c.ID, s.View())
		}
	}
	if err := s.rt.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}
