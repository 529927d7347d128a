package daemon

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A client that comes back a hundred times during a run of fifty agents, each time with
// the last number it saw, sees every event once and in order.
func TestReconnectingLosesAndDoublesNothing(t *testing.T) {
	t.Setenv("TURNKEEPER_DEMO_SPEED", "2")
	c := start(t, t.TempDir(), nil)
	ws := c.workspace()
	s := c.play(ws, "fifty")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()

	var seen []agent.Event
	var after int64
	connections, epoch, settled := 0, "", int64(0)
	for settled == 0 {
		stream, err := c.follow(ctx, ws.ID, after, epoch)
		if err != nil {
			t.Fatalf("connection %d after %d: %v", connections, after, err)
		}
		connections++
		epoch = stream.epoch
		for range 1 + connections%4 { // short and of different lengths
			e, err := stream.event(ctx)
			if err != nil {
				t.Fatalf("connection %d after %d: %v", connections, after, err)
			}
			if e.Seq != after+1 {
				t.Fatalf("connection %d: after %d came %d", connections, after, e.Seq)
			}
			after = e.Seq
			seen = append(seen, e)
			if rootSettled(e) {
				settled = e.Seq
				break
			}
		}
		if err := stream.conn.CloseNow(); err != nil {
			t.Fatal(err)
		}
	}
	if connections < 100 {
		t.Errorf("only %d connections", connections)
	}
	children := map[agent.SessionID]bool{}
	for i, e := range c.log(ws.ID)[:len(seen)] {
		if seen[i].Seq != e.Seq || seen[i].Kind != e.Kind || string(seen[i].Data) != string(e.Data) {
			t.Fatalf("event %d came as %s %s, the log has %s %s", e.Seq, seen[i].Kind, seen[i].Data, e.Kind, e.Data)
		}
		var child agent.Session
		if e.Kind == agent.SessionCreated && json.Unmarshal(e.Data, &child) == nil && !child.IsRoot() {
			children[child.ID] = true
		}
	}
	if d := c.detail(s); len(children) != 50 || d.Session.LatestTurn.Outcome != agent.OutcomeCompleted {
		t.Errorf("%d children, root %+v", len(children), d.Session.LatestTurn)
	}
	t.Logf("%d events over %d connections", len(seen), connections)
}
