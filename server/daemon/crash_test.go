package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// What a killed daemon leaves behind is told as it is: nothing runs that no process holds,
// an outcome that was known is kept, and a stop that was asked for is carried out.
func TestKilledInMidTurn(t *testing.T) {
	home := t.TempDir()
	first, c := spawnDaemon(t, home)
	ws := c.workspace()
	ended := c.play(ws, "root-first")      // its main agent ends, its child runs on
	running := c.play(ws, "never-cancels") // its main agent waits for two children
	stopped := c.play(ws, "never-cancels")
	waiting := func(s agent.Session) func(agent.Event) bool {
		return func(e agent.Event) bool {
			turn, ok := turnEvent(e)
			return ok && turn.SessionID == s.ID && turn.Phase == agent.PhaseWaiting && turn.ProviderTurn != nil && turn.ProviderTurn.Phase == agent.ProviderEnded
		}
	}
	c.await(ws.ID, "a root that waits for its child", waiting(ended))
	for _, s := range []agent.Session{running, stopped} {
		c.awaitChildren(s, 2)
	}
	op := c.cancel(stopped)
	first.kill()

	_, c = spawnDaemon(t, home)
	for _, want := range []struct {
		name    string
		session agent.Session
		root    agent.Outcome
		code    agent.Code
	}{
		{"a retained outcome is kept", ended, agent.OutcomeCompleted, ""},
		{"what ran is interrupted", running, agent.OutcomeInterrupted, agent.CodeDaemonRestart},
	} {
		d := c.detail(want.session)
		if d.Session.ActiveTurn != nil || d.Session.LatestTurn.Outcome != want.root {
			t.Errorf("%s: the root reads %+v", want.name, d.Session.LatestTurn)
		}
		if e := d.Session.LatestTurn.Error; want.code != "" && (e == nil || e.Code != want.code) {
			t.Errorf("%s: its error is %+v", want.name, e)
		}
		for _, child := range d.ChildSessions {
			if child.ActiveTurn != nil || child.LatestTurn.Outcome != agent.OutcomeInterrupted {
				t.Errorf("%s: a child reads %+v", want.name, child.LatestTurn)
			}
		}
	}
	c.await(ws.ID, "the end of the stop", func(e agent.Event) bool {
		var done agent.Operation
		return e.Kind == agent.OperationUpdated && json.Unmarshal(e.Data, &done) == nil && done.ID == op.ID && !done.Status.Open()
	})
	if d := c.detail(stopped); d.Session.LatestTurn.Outcome != agent.OutcomeCanceled {
		t.Errorf("the stopped root reads %+v", d.Session.LatestTurn)
	}
	if n := c.metric("turnkeeper_open_below_settled"); n != "0" {
		t.Errorf("%s turns live below a settled root", n)
	}
	if n := c.metric("turnkeeper_live_turns"); n != "0" {
		t.Errorf("%s turns are still said to live", n)
	}
}

// A provider's descendant that outlived a killed daemon carries the directory's mark, and is
// ended by the next start. One of another directory is not ours to end.
func TestStraysOfAnEarlierRunAreEnded(t *testing.T) {
	home := t.TempDir()
	ours := spawn(t, roleStray, home, proc.OwnerEnv+"="+home)
	other := spawn(t, roleStray, home, proc.OwnerEnv+"="+t.TempDir())
	for _, p := range []*process{ours, other} {
		if _, said := p.listener(); said != "" {
			t.Fatal(said)
		}
	}
	start(t, home, nil)
	if code := ours.wait(); code != -1 {
		t.Errorf("it ended by itself with %d", code)
	}
	if err := other.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stray of another directory is gone: %v", err)
	}
}

// awaitChildren waits until a session has n children.
func (c *client) awaitChildren(s agent.Session, n int) {
	c.tb.Helper()
	seen := map[agent.SessionID]bool{}
	c.await(s.WorkspaceID, "its children", func(e agent.Event) bool {
		var child agent.Session
		if e.Kind == agent.SessionCreated && json.Unmarshal(e.Data, &child) == nil && child.RootSessionID == s.ID {
			seen[child.ID] = true
		}
		return len(seen) == n
	})
}

// cancel asks for a stop of the session's open turn.
func (c *client) cancel(s agent.Session) agent.Operation {
	c.tb.Helper()
	turn := c.detail(s).Session.ActiveTurn
	if turn == nil {
		c.tb.Fatal("there is no open turn to stop")
	}
	var answer struct{ Operation agent.Operation }
	c.must("POST", "/v1/workspaces/"+string(s.WorkspaceID)+"/agent-sessions/"+string(s.ID)+"/turns/"+string(turn.ID)+"/cancel", nil, &answer)
	return answer.Operation
}

// metric reads one figure without labels.
func (c *client) metric(name string) string {
	c.tb.Helper()
	req, err := http.NewRequestWithContext(c.tb.Context(), http.MethodGet, c.url+"/metrics", nil)
	if err != nil {
		c.tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.tb.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	c.tb.Fatalf("there is no metric %s", name)
	return ""
}
