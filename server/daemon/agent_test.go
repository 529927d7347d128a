package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// roleAgent makes the test binary an agent that speaks the Agent Client Protocol.
const roleAgent = "agent"

// playAgent has one child, which works until it is stopped alone; then the root ends.
func playAgent() int {
	var peer *wire.Peer
	var prompt wire.RawID
	say := func(session string, kind acp.UpdateKind, variant any) {
		_ = peer.Notify(acp.MethodUpdate, acp.SessionNotification{SessionID: session, Update: acp.Say(kind, variant)})
	}
	child := func(u acp.SubagentUpdate) {
		u.SessionID = "child"
		say("root", acp.UpdateSubagent, &u)
	}
	peer = wire.NewPeer(os.Stdin, os.Stdout, wire.Options{Version: "2.0", Handler: func(f wire.Frame) {
		switch f.Method {
		case acp.MethodInitialize:
			_ = peer.Reply(f.ID, acp.InitializeResponse{ProtocolVersion: acp.V1})
		case acp.MethodNewSession:
			_ = peer.Reply(f.ID, acp.SessionResponse{SessionID: "root"})
		case acp.MethodPrompt:
			prompt = f.ID
			child(acp.SubagentUpdate{Title: acp.Some("alpha"), Capabilities: acp.Ungranted()})
			child(acp.SubagentUpdate{State: acp.Some(acp.StateUpdate{State: acp.StateRunning})})
			child(acp.SubagentUpdate{Capabilities: acp.Granted()})
			say("child", acp.UpdateAgentChunk, &acp.MessageChunk{Content: acp.Text("at work")})
		case acp.MethodCancel:
			child(acp.SubagentUpdate{State: acp.Some(acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopCancelled})})
			child(acp.SubagentUpdate{Capabilities: acp.Revoked()})
			_ = peer.Reply(prompt, acp.PromptResponse{StopReason: acp.StopEndTurn})
		}
	}})
	if peer.Run() != nil {
		return 1
	}
	return 0
}

// Any command line is an agent by the name that the configuration gives it: it begins
// sessions, its children are shown, and what it grants can be asked for.
func TestAnyCommandLineIsAnAgent(t *testing.T) {
	home := t.TempDir()
	table := fmt.Sprintf("[providers.acp.mine]\ntitle = \"Mine\"\ncommand = [%q]\nset = { %s = %q }\n", os.Args[0], roleEnv, roleAgent)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, home, nil)
	ws := c.workspace()
	var created struct{ Session agent.Session }
	c.must("POST", "/v1/workspaces/"+string(ws.ID)+"/agent-sessions", map[string]any{
		"provider": "mine",
		"message":  map[string]any{"clientMessageId": "m1", "content": []map[string]string{{"type": "text", "text": "Go."}}},
	}, &created)

	var child agent.Session
	can := func(want bool) func(agent.Event) bool {
		return func(e agent.Event) bool {
			var s agent.Session
			if e.Kind != agent.SessionUpdated && e.Kind != agent.SessionCreated || json.Unmarshal(e.Data, &s) != nil || s.Kind != agent.KindChild {
				return false
			}
			child = s
			return s.Capabilities.ChildCancel == want && (want || e.Kind == agent.SessionUpdated)
		}
	}
	c.await(ws.ID, "a child that can be stopped alone", can(true))
	d := c.detail(created.Session)
	if len(d.ChildSessions) != 1 || d.ChildSessions[0].Title != "alpha" || d.ChildSessions[0].ActiveTurn == nil {
		t.Fatalf("the tree is %+v", d)
	}
	c.must("POST", fmt.Sprintf("/v1/workspaces/%s/agent-sessions/%s/turns/%s/cancel", ws.ID, child.ID, d.ChildSessions[0].ActiveTurn.ID), nil, nil)
	c.await(ws.ID, "the end of the root turn", rootSettled)
	d = c.detail(created.Session)
	if got := d.Session.LatestTurn.Outcome; got != agent.OutcomeCompleted {
		t.Errorf("the root turn is %s", got)
	}
	if s := d.ChildSessions[0]; s.LatestTurn.Outcome != agent.OutcomeCanceled || s.Capabilities.ChildCancel {
		t.Errorf("the child is %+v", s)
	}
}
