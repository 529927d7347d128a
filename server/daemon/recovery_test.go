package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Killed at any moment, again and again on one directory: what a client was told is in the
// log afterwards as it was told, and nothing is left that runs.
func TestRecovery(t *testing.T) {
	home := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var ws agent.Workspace
	var told []agent.Event
	for kill := range kills + 1 {
		p, c := spawnDaemon(t, home, "TURNKEEPER_DEMO_SPEED=20")
		if ws.ID == "" {
			c.must("POST", "/v1/workspaces", map[string]string{"name": "test", "path": t.TempDir()}, &ws)
		}
		for _, name := range []string{"turnkeeper_live_turns", "turnkeeper_open_below_settled"} {
			if n := c.metric(name); n != "0" {
				t.Fatalf("after kill %d: %s reads %s", kill, name, n)
			}
		}
		c.compare(ws.ID, told)
		if kill < kills {
			told = c.untilKilled(p, ws, c.head(ws.ID), 1+random.IntN(60))
		}
	}
}

// head is the newest number of a workspace.
func (c *client) head(ws agent.WorkspaceID) int64 {
	c.tb.Helper()
	var page agent.Log
	c.must("GET", "/v1/workspaces/"+string(ws)+"/events?after=0&limit=1", nil, &page)
	return page.Seq
}

// untilKilled starts sessions, collects what the stream tells, and kills the daemon after
// so many events.
func (c *client) untilKilled(p *process, ws agent.Workspace, after int64, events int) []agent.Event {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.follow(ctx, ws.ID, after, "")
	if err != nil {
		c.tb.Fatal(err)
	}
	defer s.conn.CloseNow() //nolint:errcheck // its peer is dead
	for _, scenario := range []string{"three-reviewers", "nested", "root-first"} {
		c.play(ws, scenario)
	}
	var told []agent.Event
	for range events {
		e, err := s.event(ctx)
		if err != nil {
			c.tb.Fatal(err)
		}
		told = append(told, e)
	}
	p.kill()
	return told
}

// compare holds what was told against the log.
func (c *client) compare(ws agent.WorkspaceID, told []agent.Event) {
	c.tb.Helper()
	if len(told) == 0 {
		return
	}
	var page agent.Log
	c.must("GET", fmt.Sprintf("/v1/workspaces/%s/events?after=%d&limit=%d", ws, told[0].Seq-1, len(told)), nil, &page)
	for i, e := range told {
		if i >= len(page.Items) || page.Items[i].Seq != e.Seq || string(page.Items[i].Data) != string(e.Data) {
			c.tb.Fatalf("event %d was told to a client and is not in the log as it was", e.Seq)
		}
	}
}
