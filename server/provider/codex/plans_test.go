package codex

import (
	"fmt"
	memory "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// toolsOf are the tool calls of a session by name.
func toolsOf(v providertest.View, session agent.SessionID) map[string][]agent.Message {
	out := map[string][]agent.Message{}
	for _, m := range v.Messages {
		if m.SessionID == session && m.Kind == agent.MessageToolCall {
			out[m.Name] = append(out[m.Name], m)
		}
	}
	return out
}

func planNote(thread, turn string, statuses ...string) string {
	var steps []string
	for n, s := range statuses {
		steps = append(steps, fmt.Sprintf(`{"step":"step %d","status":%q}`, n+1, s))
	}
	return note(notePlan, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"explanation":"why","plan":[%s]}`, thread, turn, strings.Join(steps, ",")))
}

func diffNote(thread, turn, diff string) string {
	return note(noteDiff, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"diff":%q}`, thread, turn, diff))
}

// A plan is one entry of its turn that changes in its place, a child's in the child.
func TestPlanIsOneEntryOfItsTurn(t *testing.T) {
	s := withChild(t)
	s.send(planNote("T1", "c1", "inProgress", "pending"), planNote("T1", "c1", "completed", "inProgress"))
	s.send(completed("T1", "c1", "r1", "interrupted"))
	v := s.View()
	plans := toolsOf(v, child(t, v, "T1").ID)["plan"]
	if len(plans) != 1 || len(toolsOf(v, s.Root)["plan"]) != 0 {
		t.Fatalf("plans %+v", plans)
	}
	p := plans[0]
	if p.Title != "Plan: 1 of 2 steps done" || p.Output != "why\n\n[x] step 1\n[>] step 2\n" || p.Status != agent.MessageCompleted {
		t.Errorf("plan %+v", p)
	}
}

// The diff of a turn is told anew with every change: it is shown now and then, and last
// when the turn ends.
func TestDiffOfATurnIsShownNowAndThenAndLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		const head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
		shown := func() string {
			d := toolsOf(s.View(), s.Root)["diff"]
			if len(d) != 1 {
				t.Fatalf("%d diffs", len(d))
			}
			return d[0].Output + "|" + d[0].Title
		}
		s.send(diffNote(rootThread, "r1", head+"-a\n+b\n"), diffNote(rootThread, "r1", head+"-a\n+c\n"))
		if got := shown(); !strings.HasPrefix(got, head+"-a\n+b\n|") {
			t.Errorf("at first %q", got)
		}
		<-time.After(outputEvery)
		s.send(diffNote(rootThread, "r1", head+"-a\n+d\n"))
		if got := shown(); !strings.HasPrefix(got, head+"-a\n+d\n|") {
			t.Errorf("later %q", got)
		}
		s.send(diffNote(rootThread, "r1", head+"-a\n+e\n+f\n"), completed(rootThread, "r1", "r1", "completed"))
		if got := shown(); got != head+"-a\n+e\n+f\n|Changed 1 file, 2 lines added, 1 removed" {
			t.Errorf("at last %q", got)
		}
		s.close()
	})
}

// A command that writes 50 MB leaves its two ends and takes no more memory than those, and
// is not written out again with every piece.
func TestFiftyMegabytesOfOutputAreBounded(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	item := `{"type":"commandExecution","id":"x1","command":"yes","status":%q}`
	s.send(itemNote("started", rootThread, "r1", fmt.Sprintf(item, statusInProgress)))
	piece := strings.Repeat("0123456789abcdef", 4<<10) // 64 KiB
	line := note("item/commandExecution/outputDelta", fmt.Sprintf(`{"threadId":"T0","turnId":"r1","itemId":"x1","delta":%q}`, piece))
	var before, after memory.MemStats
	memory.GC()
	memory.ReadMemStats(&before)
	records := len(s.Records())
	for range 50 << 20 / len(piece) {
		s.send(line)
	}
	memory.GC()
	memory.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more are in use", grown)
	}
	if n := len(s.Records()) - records; n > 20 {
		t.Errorf("%d facts", n)
	}
	s.send(itemNote("completed", rootThread, "r1", fmt.Sprintf(item, statusCompleted)))
	m := toolsOf(s.View(), s.Root)[itemCommand][0]
	if len(m.Output) > show.OutputLength+100 || !strings.Contains(m.Output, "bytes left out") || m.Status != agent.MessageCompleted {
		t.Errorf("%d bytes are kept, %s", len(m.Output), m.Status)
	}
}
