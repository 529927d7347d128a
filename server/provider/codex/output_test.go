package codex

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

func output(text string) string {
	return note("item/commandExecution/outputDelta", fmt.Sprintf(`{"threadId":"T0","turnId":"r1","itemId":"x","delta":%q}`, text))
}

// A command that talks for hours writes about as much to the log as it has said, though
// each writing of its message holds all that is kept of the output.
func TestChattyCommandCostsAboutWhatItSays(t *testing.T) {
	const line = "a line of a server's log that says next to nothing, and that says it again and again\n"
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		s.send(itemNote("started", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"npm run dev","status":"inProgress"}`))
		before, seen := len(s.Records()), time.Now()
		said, written, puts, shown := 0, 0, 0, 0
		for range 2 * 60 * 60 { // two hours, ten lines a second
			s.send(output(strings.Repeat(line, 10)))
			said += 10 * len(line)
			records := s.Records()
			for _, r := range records[before:] {
				if m, ok := r.Fact.(agent.MessagePut); ok {
					if puts > 0 && (time.Since(seen) < outputEvery || said < 2*shown) {
						t.Errorf("shown after %v at %d bytes, last at %d", time.Since(seen), said, shown)
					}
					written += len(m.Message.Output)
					puts, seen, shown = puts+1, time.Now(), said
				}
			}
			before = len(records)
			time.Sleep(time.Second)
		}
		if puts < 10 || puts > 15 || written > said {
			t.Errorf("%d times %d bytes were written of %d", puts, written, said)
		}
		s.send(itemNote("completed", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"npm run dev","status":"completed","exitCode":0}`))
		if m := s.View().Messages[1]; !strings.HasPrefix(m.Output, line) || !strings.HasSuffix(m.Output, line) || !strings.Contains(m.Output, "bytes left out") {
			t.Errorf("at its end it shows %d bytes", len(m.Output))
		}
		s.close()
	})
}

// What an item needs no longer is not kept for the rest of its turn; an end that is said
// twice changes nothing.
func TestEndedItemKeepsNothing(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	command := `{"type":"commandExecution","id":"x","command":"make","status":%q,"exitCode":%s}`
	change := `{"type":"fileChange","id":"y","status":%q,"changes":[{"path":"a","kind":{"type":"add"},"diff":"whole text"}]}`
	s.send(
		itemNote("started", rootThread, "r1", fmt.Sprintf(command, statusInProgress, "null")), output("one\n"),
		itemNote("started", rootThread, "r1", fmt.Sprintf(change, statusInProgress)),
	)
	items := s.rt.(*runtime).root.turns["r1"].items
	if items["x"].output.Size() != 4 || items["y"].diff == "" {
		t.Fatalf("items %+v", items)
	}
	end := []string{
		itemNote("completed", rootThread, "r1", fmt.Sprintf(command, statusFailed, "2")),
		itemNote("completed", rootThread, "r1", fmt.Sprintf(change, statusCompleted)),
	}
	s.send(end...)
	s.send(end...)
	s.send(output("late\n"))
	if items["x"].output.Size() != 0 || items["y"].diff != "" {
		t.Errorf("items %+v", items)
	}
	m := s.View().Messages
	if m[1].Output != "one\n\n[exit code 2]" || m[2].Status != agent.MessageCompleted {
		t.Errorf("messages %+v", m[1:])
	}
}

// The turn's end is not the command's: what it says after a stop still reaches its
// message.
func TestCommandThatOutlivesItsTurnKeepsItsOutput(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(
		itemNote("started", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"make","status":"inProgress"}`),
		output("one\n"), completed(rootThread, "r1", "r1", "interrupted"), output("two\n"),
		itemNote("completed", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"make","status":"completed","exitCode":0}`),
	)
	if m := s.View().Messages[1]; m.Output != "one\ntwo\n" || m.Status != agent.MessageInterrupted {
		t.Errorf("message %+v", m)
	}
}

// A diff that is told again with each of many edits costs a few times what it comes to.
func TestDiffOfManyEditsCostsAboutWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		diff, before := "", len(s.Records())
		for n := range 400 {
			diff += fmt.Sprintf("diff --git a/f%d b/f%d\n--- a/f%d\n+++ b/f%d\n@@ -1 +1 @@\n-old\n+%s\n", n, n, n, n, strings.Repeat("new ", 20))
			s.send(note("turn/diff/updated", fmt.Sprintf(`{"threadId":%q,"turnId":"r1","diff":%q}`, rootThread, diff)))
			time.Sleep(5 * time.Second)
		}
		s.send(completed(rootThread, "r1", "r1", "completed"))
		written, title := 0, ""
		for _, r := range s.Records()[before:] {
			if m, ok := r.Fact.(agent.MessagePut); ok && m.Message.Name == "diff" {
				written, title = written+len(m.Message.Output), m.Message.Title
			}
		}
		if limit := 5*len(diff) + show.OutputLength/4; written > limit || title != "Changed 400 files, 400 lines added, 400 removed" {
			t.Errorf("%d bytes were written of a diff of %d, at last %q", written, len(diff), title)
		}
		s.close()
	})
}
