package acpagent

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// texts joins what was told of one message.
func (e *editor) texts(session, message string) string {
	var b strings.Builder
	for _, l := range e.all() {
		if m, ok := l.note.Update.Variant.(*acp.MessageChunk); ok && l.note.SessionID == session && m.MessageID == message {
			b.WriteString(m.Content.Text)
		}
	}
	return b.String()
}

// Text that streams arrives as it comes, once; who takes the session up in the middle gets
// the rest, or with history all of it.
func TestStreamingText(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		m := root.put(agent.Message{Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming})
		write := func(s string) {
			if err := root.r.sink.Text(root.session, root.turn, m.ID, s); err != nil {
				t.Fatal(err)
			}
		}
		write("Grüße ")
		e.from(0, "the first piece before the message is whole", isText(session, "Grüße "))
		root.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c1", Name: "x", Status: agent.MessageCompleted}) // commits what has come
		e.from(0, "the call", func(l line) bool { return l.card(session) != nil })

		resumed, loaded := w.newEditor(version, editorOptions{}), w.newEditor(version, editorOptions{})
		resumed.answered(resumed.send(acp.MethodResumeSession, map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}}))
		loaded.answered(loaded.load(session, w.dir))
		resumed.fence()
		write("an alle")
		m.Status, m.Content = agent.MessageCompleted, "Grüße an alle"
		root.put(m)
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		for _, one := range []struct {
			e    *editor
			want string
		}{{e, "Grüße an alle"}, {resumed, "an alle"}, {loaded, "Grüße an alle"}} {
			one.e.from(0, "the last piece", func(line) bool { return strings.HasSuffix(one.e.textsLocked(session, string(m.ID)), "alle") })
			if got := one.e.texts(session, string(m.ID)); got != one.want {
				t.Errorf("told %q, want %q", got, one.want)
			}
		}
	})
}

// textsLocked is texts within a condition of from, which holds the lock.
func (e *editor) textsLocked(session, message string) string {
	var b strings.Builder
	for _, l := range e.lines {
		if m, ok := l.note.Update.Variant.(*acp.MessageChunk); ok && l.note.SessionID == session && m.MessageID == message {
			b.WriteString(m.Content.Text)
		}
	}
	return b.String()
}

// A connection that is lost is no end of anything: the stream goes on where it was.
func TestCutLineLosesNothing(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		w.cut()
		alpha.say("while the line was cut")
		e.from(at, "what was said meanwhile", isText(string(alpha.session), "while the line was cut"))
		e.absent(at, "an end", func(l line) bool { return l.child("") != nil })
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Where the daemon's log begins anew (its database was put back), what was missed is read
// from the transcripts: nothing is lost and nothing told twice.
func TestLogThatBeginsAnew(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha, done := root.spawn("alpha"), root.spawn("done")
		e.grant(alpha)
		e.grant(done)
		root.say("before")
		call := root.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c1", Name: "x", Title: "long", Status: agent.MessageStreaming})
		e.from(0, "the call", func(l line) bool { return l.card(session) != nil })
		at := e.since()
		mend := w.fail("/events/stream")
		w.cut()
		for n := range 10 {
			root.say(fmt.Sprint("line ", n))
		}
		call.Status, call.Output = agent.MessageCompleted, "done"
		root.put(call)
		done.end(agent.OutcomeCompleted)
		beta := root.spawn("beta")
		w.stop()
		w.newEpoch()
		w.start()
		mend()
		e.order(at, isText(session, "line 0"), isText(session, "line 9"))
		e.from(at, "the call's end", func(l line) bool {
			c := l.card(session)
			return c != nil && c.Status.Or("") == acp.ToolCompleted
		})
		e.order(at, isState(alpha.session, acp.StateUnknown, ""), isRevoked(alpha.session))
		e.order(at, isState(done.session, acp.StateIdle, acp.StopEndTurn), isRevoked(done.session))
		e.order(at, isAnnounced(beta.session), isState(beta.session, acp.StateUnknown, ""))
		if version == acp.V1 {
			e.response(prompt)
		} else {
			e.ended(session, prompt, acp.StopError)
		}
		for _, text := range []string{"before", "line 7"} {
			n := 0
			for _, l := range e.all() {
				if isText(session, text)(l) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%q was told %d times", text, n)
			}
		}
	})
}

// newEpoch is what a database that was put back from a copy has.
func (w *world) newEpoch() {
	w.t.Helper()
	d, err := sql.Open("sqlite", filepath.Join(w.home, "turnkeeper.db"))
	if err == nil {
		_, err = d.ExecContext(w.t.Context(), "UPDATE meta SET epoch = 'another'")
	}
	if err = errors.Join(err, d.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// A daemon that restarts ends what it ran, and says so: children are unknown, the prompt
// fails, nothing is "cancelled". The session goes on with the next prompt.
func TestDaemonRestart(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		w.stop()
		w.start()
		e.order(at, isState(alpha.session, acp.StateUnknown, ""), isRevoked(alpha.session))
		if version == acp.V1 {
			if l := e.response(prompt); l.Error == nil || !strings.Contains(l.raw, `"code":"daemon_`) {
				t.Errorf("the prompt ended with %s", l.raw)
			}
		} else {
			e.ended(session, prompt, acp.StopError)
		}
		e.prompt(session, "go on")
		r := receive(t, "the provider to be opened", w.fake.opened)
		next := r.main(receive(t, "the turn", w.fake.starts))
		next.say("on it goes")
		e.from(at, "the answer", isText(session, "on it goes"))
		next.end(agent.OutcomeCompleted)
	})
}

// What comes after a root turn has settled opens nothing again.
func TestLateTextOpensNothing(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		alpha.end(agent.OutcomeCompleted)
		root.end(agent.OutcomeCompleted)
		at := e.ended(session, prompt, acp.StopEndTurn)
		root.say("too late")
		alpha.say("too late as well")
		alpha.r.apply(agent.TurnStarted{Session: alpha.session, Turn: alpha.turn, NativeID: "again"})
		e.fence()
		e.absent(at+1, "a state", func(l line) bool {
			_, ok := l.note.Update.Variant.(*acp.StateUpdate)
			return ok || l.child("") != nil
		})
	})
}

// Nothing is said on a session's stream before the editor knows its id.
func TestUpdatesFollowTheSessionsID(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		root.say("hello")
		_, first := e.from(0, "the first update", func(l line) bool { return l.note.SessionID == session })
		_, known := e.from(0, "the answer", func(l line) bool { return strings.Contains(string(l.Result), session) })
		if first < known {
			t.Error("an update came before the session's id")
		}
	})
}

// An editor that goes without reading what was written to it holds nobody up, and what runs
// goes on.
func TestEditorLeavesInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{backlog: 1})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.pause()
		for n := range 20 {
			alpha.say(fmt.Sprint("line ", n))
		}
		e.load(session, w.dir)
		e.unread = true
		e.leave()
		none(t, "a stop", w.fake.cancels)
		if d := w.detail(session); d.Session.ActiveTurn == nil || d.Session.ActiveChildCount != 1 {
			t.Errorf("the work did not go on: %+v", d.Session)
		}
	})
}
