package store

import (
	"fmt"
	"os"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Numbers are a workspace's own, without gaps, whatever happens in others; they and the epoch
// survive a restart.
func TestNumbersAreAWorkspacesOwn(t *testing.T) {
	w := open(t)
	other, err := w.CreateWorkspace(background(t), "other", "/other")
	w.must(err)
	for i := range 10 {
		ws := w.ws
		if i%2 == 1 {
			ws = other.ID
		}
		_, err := w.CreateSession(background(t), agent.NewSession{Workspace: ws, Provider: "demo"})
		w.must(err)
	}
	epoch := w.Epoch()
	w.reopen()
	for _, ws := range []agent.WorkspaceID{w.ws, other.ID} {
		log, err := w.Events(background(t), ws, 0, 100)
		w.must(err)
		if len(log.Items) != 5 || log.Seq != 5 || log.Oldest != 1 || log.Epoch != epoch {
			t.Errorf("%s: %d events to %d from %d", ws, len(log.Items), log.Seq, log.Oldest)
		}
		for i, e := range log.Items {
			if e.Seq != int64(i+1) || e.WorkspaceID != ws {
				t.Errorf("event %d is %d of %s", i+1, e.Seq, e.WorkspaceID)
			}
		}
		log, err = w.Events(background(t), ws, 3, 1)
		w.must(err)
		if len(log.Items) != 1 || log.Items[0].Seq != 4 {
			t.Errorf("after 3: %+v", log.Items)
		}
	}
	_, err = w.CreateSession(background(t), agent.NewSession{Workspace: w.ws, Provider: "demo"})
	w.must(err)
	if seq, _, _, err := w.Head(background(t), w.ws); err != nil || seq != 6 {
		t.Errorf("after the restart the newest is %d, %v", seq, err)
	}
	_, err = w.Events(background(t), "nowhere", 0, 1)
	w.refuses(err, agent.CodeNotFound)
}

// The log keeps what it was told to keep and the newest event always; what is older goes in
// batches, and a reader is told where the log begins.
func TestOldEventsAreTrimmed(t *testing.T) {
	w := open(t, retaining(3000), onDisk(Memory))
	tr := w.begin()
	tr.provider("p")
	const n = 9000
	for i := range n {
		tr.apply(agent.UsageReported{Session: tr.root, Turn: tr.turn, Usage: agent.Usage{InputTokens: int64(i + 1)}})
	}
	w.trimAll()
	seq, _, oldest, err := w.Head(background(t), w.ws)
	w.must(err)
	if seq < 2*n || oldest != seq-3000+1 {
		t.Errorf("the log goes from %d to %d", oldest, seq)
	}
	if kept := query[int64](w, "SELECT count(*) FROM events"); kept != 3000 {
		t.Errorf("%d events are kept", kept)
	}
}

// Whatever is written, the log of the file stays small: it is copied beside the writer, and
// the writer lets it start over.
func TestLogOfTheFileStaysSmall(t *testing.T) {
	w := open(t)
	tr := w.begin()
	tr.provider("p")
	for i := range 4000 {
		tr.apply(agent.MessagePut{Message: agent.Message{
			ID: agent.MessageID(fmt.Sprint("m", i)), SessionID: tr.root, TurnID: tr.turn, Role: agent.RoleAssistant, Kind: agent.MessageText,
			Status: agent.MessageCompleted, Content: payload400 + payload400 + payload400,
		}})
	}
	info, err := os.Stat(w.path + "-wal")
	w.must(err)
	t.Logf("%d KB", info.Size()>>10)
	if info.Size() > 16<<20 {
		t.Errorf("the log has %d bytes", info.Size())
	}
}
