package api

// What others' streams have lost, doubled or torn when a line broke (the field's faults of
// the class "stream"), tried on ours.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/coder/websocket"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// reader is a client as the contract asks for one: it keeps the number it has come to, and
// of each message the text by offset, until the committed message comes.
type reader struct {
	cursor int64
	text   map[string]string
	whole  map[string]string // of messages that have ended
}

func (r *reader) take(t *testing.T, f anyFrame) {
	t.Helper()
	switch f.Type {
	case "event":
		if f.Seq != r.cursor+1 {
			t.Fatalf("after %d came %d", r.cursor, f.Seq)
		}
		r.cursor = f.Seq
		var m agent.Message
		if f.Kind == string(agent.MessageUpdated) && json.Unmarshal(f.Data, &m) == nil && m.Status.Ended() {
			r.whole[string(m.ID)] = m.Content
		}
	case "delta":
		have := r.text[f.MessageID]
		if _, ended := r.whole[f.MessageID]; ended || f.Offset > int64(len(have)) {
			t.Fatalf("a piece at %d of %s after %d bytes, ended: %v", f.Offset, f.MessageID, len(have), ended)
		}
		if skip := int64(len(have)) - f.Offset; skip < int64(len(f.Text)) {
			r.text[f.MessageID] += f.Text[skip:]
		}
	case "reset":
		t.Fatalf("reset %+v", f)
	}
}

func newReader() *reader { return &reader{text: map[string]string{}, whole: map[string]string{}} }

func (r *reader) hello() string {
	return fmt.Sprintf(`{"type":"hello","v":1,"after":%d,"epoch":"e1"}`, r.cursor)
}

// A line breaks in the middle of a message: what was read of it, what was missed and the
// committed message are the same text, once.
func TestTextIsWholeOnceAfterALostLine(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	message := func(kind agent.EventKind, status agent.MessageStatus, content string) agent.Event {
		data, _ := json.Marshal(agent.Message{ID: "m", SessionID: "s", Status: status, Content: content})
		return agent.Event{Kind: kind, SessionID: "s", RootSessionID: "s", Data: data}
	}
	say := func(offset int64, text string) {
		f.hub.Delta(agent.Delta{WorkspaceID: "ws_1", SessionID: "s", RootSessionID: "s", MessageID: "m", Offset: offset, Text: text})
	}
	r := newReader()
	until := func(c *client, done func() bool) {
		for !done() {
			r.take(t, c.next())
		}
	}
	f.commit(f.hub, message(agent.MessageCreated, agent.MessageStreaming, ""))
	c := dial(t, url, r.hello())
	say(0, "Hello, ")
	until(c, func() bool { return r.text["m"] == "Hello, " })
	_ = c.conn.CloseNow()
	say(7, "wor")
	c = dial(t, url, r.hello())
	until(c, func() bool { return r.text["m"] == "Hello, wor" })
	say(10, "ld")
	until(c, func() bool { return r.text["m"] == "Hello, world" })
	f.commit(f.hub, message(agent.MessageUpdated, agent.MessageCompleted, "Hello, world"))
	until(c, func() bool { return r.whole["m"] == "Hello, world" })
	_ = c.conn.CloseNow()
	c = dial(t, url, newReader().hello()) // one that comes last has the message and no piece of it
	for range 3 {
		if e := c.next(); e.Type == "delta" {
			t.Errorf("a piece of a message that has ended: %+v", e)
		}
	}
}

// A hello that is said again replays nothing again.
func TestOneReplayForEachSocket(t *testing.T) {
	f := newFixture(t)
	f.commit(f.hub, make([]agent.Event, 20)...)
	c := dial(t, f.listen(t), helloFrom0)
	c.send(helloFrom0)
	c.next()
	c.send(helloFrom0)
	r := newReader()
	for r.cursor < 20 {
		r.take(t, c.next())
	}
	f.commit(f.hub, agent.Event{})
	r.take(t, c.next()) // 21, and nothing between
	if r.cursor != 21 {
		t.Errorf("after the replay came %d", r.cursor)
	}
}

// Five hundred runs over a line that breaks at every hundredth frame are all complete.
func TestEveryRunIsCompleteOverABadLine(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture, _ *pipes, dial func() *client) {
		const runs, each = 500, 30
		rnd := rand.New(rand.NewPCG(11, 12))
		lost := 0
		r := newReader()
		connect := func() *client {
			c := dial()
			c.send(r.hello())
			if e := c.next(); e.Type != "ready" || e.Mode != "replay" {
				t.Fatalf("%+v", e)
			}
			return c
		}
		c := connect()
		for run := range runs {
			end := int64(run+1) * each
			for n := int64(run) * each; n < end; n += 3 {
				f.commit(f.hub, make([]agent.Event, 3)...)
				for r.cursor < n+3 {
					if rnd.IntN(100) == 0 {
						lost++
						_ = c.conn.CloseNow()
						c = connect()
					}
					r.take(t, c.next())
				}
			}
			if r.cursor != end {
				t.Fatalf("run %d ended at %d", run, r.cursor)
			}
		}
		if lost < runs/10 {
			t.Errorf("only %d lines broke: the test tests nothing", lost)
		}
		_ = c.conn.CloseNow()
	})
}

// What a client has made of the events alone equals a fresh snapshot, also when its line
// was gone while much happened.
func TestEventsComeToTheSnapshot(t *testing.T) {
	w := newWhole(t)
	base := "/v1/workspaces/" + id(t, w.call(201, "createWorkspace", "/v1/workspaces", map[string]any{"path": t.TempDir()}), "id")
	created := w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{
		"provider": "demo", "message": map[string]any{"clientMessageId": "c1", "content": text("Go")},
	})
	root, turn := agent.SessionID(id(t, created, "session", "id")), agent.TurnID(id(t, created, "turn", "id"))
	rootPath := base + "/agent-sessions/" + string(root)
	child := func(n int) agent.Fact {
		return agent.ChildStarted{
			Session: agent.SessionID(fmt.Sprintf("ses_%d", n)), Turn: agent.TurnID(fmt.Sprintf("trn_%d", n)), Parent: root, ParentTurn: turn,
			Call: agent.CallID(fmt.Sprintf("call_%d", n)), Title: fmt.Sprint("Child ", n),
		}
	}
	settled := func(n int, o agent.Outcome) agent.Fact {
		return agent.TurnSettled{Session: agent.SessionID(fmt.Sprintf("ses_%d", n)), Turn: agent.TurnID(fmt.Sprintf("trn_%d", n)), Outcome: o}
	}
	m := &model{sessions: map[string]map[string]any{}}
	c := w.follow(base, m.cursor)
	w.apply(agent.ProviderTurnStarted{Session: root, Turn: turn, Key: "p1"}, child(1), child(2))
	m.catchUp(w, c, base)
	m.compare(w, rootPath, "while it is connected")

	if err := c.conn.CloseNow(); err != nil {
		t.Fatal(err)
	}
	w.apply(
		child(3), settled(1, agent.OutcomeCompleted), settled(2, agent.OutcomeFailed),
		agent.InteractionAsked{Interaction: agent.Interaction{
			SessionID: "ses_3", TurnID: "trn_3", RequestID: "r", Kind: agent.InteractionApproval, Title: "May I?", Owner: agent.OwnerExact,
			Options: []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}},
		}},
		agent.ProviderTurnEnded{Session: root, Turn: turn, Key: "p1", Outcome: agent.OutcomeCompleted},
	)
	w.call(204, "deleteAgentSession", base+"/agent-sessions/ses_1", nil)
	c = w.follow(base, m.cursor)
	m.catchUp(w, c, base)
	m.compare(w, rootPath, "after a lost line")
	w.apply(settled(3, agent.OutcomeCompleted))
	m.catchUp(w, c, base)
	m.compare(w, rootPath, "at the end")
}

// A line that breaks takes no session with it, and none is made by coming back.
func TestComingBackMakesNoSession(t *testing.T) {
	w := newWhole(t)
	base := "/v1/workspaces/" + id(t, w.call(201, "createWorkspace", "/v1/workspaces", map[string]any{"path": t.TempDir()}), "id")
	s := id(t, w.call(201, "createAgentSession", base+"/agent-sessions", map[string]any{"provider": "demo"}), "session", "id")
	for range 3 {
		c := w.follow(base, 0)
		c.next()
		_ = c.conn.CloseNow() // 1006
	}
	sent := w.call(202, "sendMessage", base+"/agent-sessions/"+s+"/messages", map[string]any{"clientMessageId": "c1", "content": text("Still there?")})
	if got := id(t, sent, "message", "agentSessionId"); got != s {
		t.Errorf("the message went to %s, want %s", got, s)
	}
	if all, _ := w.call(200, "listAgentSessions", base+"/agent-sessions", nil)["items"].([]any); len(all) != 1 {
		t.Errorf("%d sessions", len(all))
	}
}

// A token that is good no more is told with a code of its own, not as a lost line: a client
// must not try for ever.
func TestARefusedTokenIsNoLostLine(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	cookie := f.signIn(t)
	rotated := newFixture(t, func(d *Deps) { d.Token = "another" })
	other := rotated.listen(t)
	h := map[string][]string{"Cookie": {cookie.Name + "=" + cookie.Value}}
	c := dialAs(t, url, h)
	c.send(helloFrom0)
	c.next()
	dialAs(t, other, h).wantClose(4401, "unauthorized")
	go func() { _ = f.api.Close(context.Background()) }()
	c.wantClose(websocket.StatusServiceRestart, "restart") // that one comes back
}
