package acpagent

import (
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// load takes a session up again with its history, in the way of the version.
func (e *editor) load(session, cwd string) string {
	e.t.Helper()
	p := map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}
	if e.version == acp.V1 {
		return e.send(acp.MethodLoadSession, p)
	}
	p["replayFrom"] = map[string]string{"type": "start"}
	return e.send(acp.MethodResumeSession, p)
}

func isAnswer(id string) func(line) bool {
	return func(l line) bool { return l.Method == "" && string(l.ID) == id }
}

// answered waits for a successful answer and returns its place.
func (e *editor) answered(id string) int {
	e.t.Helper()
	l, at := e.from(0, "the answer to "+id, isAnswer(id))
	if l.Error != nil {
		e.t.Fatal(l.raw)
	}
	return at
}

// Rows 29, 30, 31: a setup that is admitted suspends every grant, gives none before its
// answer, and restores those of what still runs after it.
func TestLoadSuspendsAndRestoresGrants(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha, done := root.spawn("alpha"), root.spawn("done")
		alpha.say("alpha works")
		e.grant(alpha)
		done.end(agent.OutcomeCompleted)
		e.from(0, "the end", isRevoked(done.session))

		at := e.since()
		reached, pass := w.hold("GET " + w.path(session) + "/messages")
		loading := e.load(session, w.dir)
		receive(t, "the load to be under way", reached)
		e.cancel(string(alpha.session))
		e.fence()
		pass()
		answered := e.answered(loading)
		none(t, "a stop while it loaded", w.fake.cancels)
		for _, l := range e.all()[at:answered] {
			if isGrant(alpha.session)(l) || l.state(string(alpha.session)).State != "" || l.state(string(done.session)).State != "" {
				t.Errorf("before the answer: %s", l.raw)
			}
		}
		e.order(at, isText(session, "go"), isAnnounced(alpha.session), isText(string(alpha.session), "alpha works"), isAnswer(loading))
		e.order(answered, isState(alpha.session, acp.StateRunning, ""), isGrant(alpha.session))
		e.from(answered, "the state of the one that ended", isState(done.session, acp.StateIdle, acp.StopEndTurn))

		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		e.order(answered, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn) // the prompt of before is held all the while
		e.absent(answered, "a grant for what had ended", isGrant(done.session))
	})
}

// Row 31: an answer that waits for a slow editor restores nothing yet.
func TestGrantsWaitForTheAnswerToBeWritten(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{backlog: 1})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.fence()
		e.pause()
		alpha.say("one line more, which the reader takes and then rests")
		loading := e.load(session, w.dir)
		for range 3 {
			e.cancel(string(alpha.session))
		}
		none(t, "a stop", w.fake.cancels)
		e.resume()
		answered := e.answered(loading)
		e.from(answered, "the grant", isGrant(alpha.session))
		none(t, "a stop of before", w.fake.cancels)
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		e.from(answered, "the end", isRevoked(alpha.session))
	})
}

// Row 31: what is current, grants above all, follows the answer only when that has left.
func TestNothingFollowsAnAnswerThatHasNotLeft(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{backlog: 1})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.fence()
		e.pause()
		alpha.say("the last line that is read")
		e.from(0, "the line", isText(string(alpha.session), "the last line that is read"))
		providers, pass := w.hold("GET /v1/providers") // what a setup asks for last
		next, passNext := w.hold("GET " + w.path(session) + "/interactions")
		resuming := e.send(acp.MethodResumeSession, map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}})
		receive(t, "the setup to be nearly done", providers)
		pass()
		for range 3 { // whenever it comes before the answer has left, it counts for nothing
			e.cancel(string(alpha.session))
			select {
			case <-next:
				t.Error("what follows the answer began before the answer was written")
			case <-w.fake.cancels:
				t.Error("a stop was carried out before the answer was written")
			case <-time.After(100 * time.Millisecond):
			}
		}
		e.resume()
		passNext()
		answered := e.answered(resuming)
		e.from(answered, "the grant", isGrant(alpha.session))
		none(t, "a stop", w.fake.cancels)
	})
}

// Row 32: of two setups in flight only the latest restores.
func TestOnlyTheLatestSetupRestores(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		reached, pass := w.hold("GET " + w.path(session) + "/messages")
		first := e.load(session, w.dir)
		receive(t, "the first to be under way", reached)
		second := e.load(session, w.dir)
		e.fence()
		pass()
		one, two := e.answered(first), e.answered(second)
		for _, l := range e.all()[one:two] {
			if isGrant(alpha.session)(l) || l.state(string(alpha.session)).State != "" {
				t.Errorf("after the first: %s", l.raw)
			}
		}
		e.order(two, isState(alpha.session, acp.StateRunning, ""), isGrant(alpha.session))
	})
}

// A good setup that a later, bad one overtook: what is current is told, and nothing granted.
func TestALaterFailureLeavesGrantsSuspended(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		reached, pass := w.hold("GET " + w.path(session) + "/messages")
		first := e.load(session, w.dir)
		receive(t, "the first to be under way", reached)
		second := e.load(session, "somewhere")
		e.fence()
		pass()
		e.answered(first)
		if l := e.response(second); l.Error == nil || l.Error.Code != wire.CodeInvalidParams {
			t.Fatal(l.raw)
		}
		_, at := e.from(0, "the refusal", isAnswer(second))
		e.from(0, "the state", isState(alpha.session, acp.StateRunning, ""))
		alpha.end(agent.OutcomeCompleted)
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		e.absent(at, "a grant", isGrant(alpha.session))
	})
}

// Row 33: a setup that fails restores nothing, the work goes on, and a good one restores.
func TestFailedSetupReleasesNothing(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		bad := e.load(session, "relative/path")
		if l := e.response(bad); l.Error == nil || l.Error.Code != wire.CodeInvalidParams {
			t.Fatal(l.raw)
		}
		e.cancel(string(alpha.session))
		beta := root.spawn("beta") // begun while grants are suspended
		alpha.say("still at it")
		e.from(at, "the work to go on", isText(string(alpha.session), "still at it"))
		e.from(at, "beta to run", isState(beta.session, acp.StateRunning, ""))
		e.fence()
		none(t, "a stop", w.fake.cancels)
		e.absent(at, "a grant", func(l line) bool { return isGrant(alpha.session)(l) || isGrant(beta.session)(l) })
		good := e.send(acp.MethodResumeSession, map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}})
		answered := e.answered(good)
		e.from(answered, "the grant", isGrant(alpha.session))
		e.from(answered, "the other's grant", isGrant(beta.session))
		e.absent(answered, "history in a resume", isText(string(alpha.session), "still at it"))
		e.cancel(session)
		receive(t, "the stop", w.fake.cancels).confirm(root, alpha, beta)
		e.ended(session, prompt, acp.StopCancelled)
	})
}

// A setup that the editor takes back is no success.
func TestWithdrawnSetupReleasesNothing(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		reached, pass := w.hold("GET " + w.path(session) + "/messages")
		loading := e.load(session, w.dir)
		receive(t, "the load to be under way", reached)
		e.write(map[string]any{"jsonrpc": "2.0", "method": "$/cancel_request", "params": map[string]any{"requestId": 4}})
		if loading != "4" {
			t.Fatalf("the load is request %s", loading)
		}
		if l := e.response(loading); l.Error == nil || l.Error.Code != wire.CodeWithdrawn {
			t.Fatal(l.raw)
		}
		pass()
		e.cancel(string(alpha.session))
		e.fence()
		none(t, "a stop", w.fake.cancels)
		e.absent(at, "a grant", isGrant(alpha.session))
		alpha.say("goes on")
		e.from(at, "the work to go on", isText(string(alpha.session), "goes on"))
	})
}

// Rows 7 and 30: history in another process has no grants, asks nothing, and comes in order,
// children announced first. States follow the answer.
func TestReplayInAFreshProcess(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		root.say("I send alpha")
		alpha := root.spawn("alpha")
		alpha.put(agent.Message{Role: agent.RoleUser, Kind: agent.MessageText, Content: "do alpha", Status: agent.MessageCompleted})
		inner := alpha.spawn("inner")
		inner.say("inner works")
		inner.end(agent.OutcomeCompleted)
		alpha.say("alpha works")
		alpha.end(agent.OutcomeCompleted)
		root.say("done")
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		e.leave()

		f := w.newEditor(version, editorOptions{})
		loading := f.load(session, w.dir)
		answered := f.answered(loading)
		task := func(l line) bool {
			m, ok := l.note.Update.Variant.(*acp.SessionMessage)
			return ok && l.note.SessionID == session && m.RecipientSessionID == string(alpha.session) && m.SenderSessionID == session
		}
		f.order(0, isText(session, "go"), isText(session, "I send alpha"), isAnnounced(alpha.session), task, isAnnounced(inner.session),
			isText(string(inner.session), "inner works"), isText(string(alpha.session), "alpha works"), isText(session, "done"), isAnswer(loading))
		f.from(answered, "the state", isState(inner.session, acp.StateIdle, acp.StopEndTurn))
		f.fence()
		f.absent(0, "a grant", func(l line) bool { return isGrant(alpha.session)(l) || isGrant(inner.session)(l) })
		for _, l := range f.all()[:answered] {
			if l.child("") != nil && l.child("").State.Said() {
				t.Errorf("a state in history: %s", l.raw)
			}
		}
		f.cancel(string(alpha.session))
		f.fence()
		none(t, "a stop", w.fake.cancels)
	})
}

// Row 34: nothing is copied: a fork is refused, and what runs does not notice.
func TestForkIsRefused(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		p := map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}}
		e.refused(wire.CodeMethodNotFound, acp.MethodForkSession, p)
		p["sessionId"] = string(alpha.session)
		e.refused(wire.CodeInvalidRequest, acp.MethodForkSession, p)
		e.cancel(string(alpha.session)) // the grant is as good as before
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Row 35: another process that has not taken the session up controls nothing of it. When it
// has, it is one more client of the same runtime, with grants of its own.
func TestOtherProcessHasNoControls(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		other := w.newEditor(version, editorOptions{})
		other.cancel(session)
		other.cancel(string(alpha.session))
		other.fence()
		none(t, "a stop", w.fake.cancels)
		other.refused(wire.CodeInvalidRequest, "session/prompt", map[string]any{"sessionId": string(alpha.session), "prompt": []any{map[string]string{"type": "text", "text": "x"}}})
		answered := other.answered(other.load(session, w.dir))
		other.from(answered, "its own grant", isGrant(alpha.session))
		other.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		for _, one := range []*editor{e, other} {
			one.from(0, "the end", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
			one.from(0, "the grant's end", isRevoked(alpha.session))
		}
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Row 36: a child takes nothing but its cancel, by its own id or the provider's, known
// method or not. Row 37: a list has roots only.
func TestChildrenTakeNothingElse(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		for _, id := range []string{string(alpha.session), alpha.thread} {
			p := map[string]any{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}, "modeId": "auto", "configId": "mode", "value": "auto", "title": "x", "prompt": []any{map[string]string{"type": "text", "text": "x"}}}
			for _, method := range []string{
				acp.MethodPrompt, acp.MethodCloseSession, acp.MethodLoadSession, acp.MethodResumeSession, acp.MethodForkSession,
				acp.MethodDeleteSession, acp.MethodSetMode, acp.MethodSetConfigOption, acp.MethodSetTitle, "_private/steer",
			} {
				e.mu.Lock()
				asked := len(e.setupAt)
				e.mu.Unlock()
				e.refused(wire.CodeInvalidRequest, method, p)
				e.mu.Lock()
				if len(e.setupAt) > asked { // it was no setup of a root
					delete(e.roots, id)
					clear(e.setupAt)
				}
				e.mu.Unlock()
			}
		}
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		var l acp.ListSessionsResponse
		e.must(acp.MethodListSessions, map[string]any{}, &l)
		if len(l.Sessions) != 1 || l.Sessions[0].SessionID != session || l.Sessions[0].Cwd != w.dir || l.Sessions[0].Title == "" {
			t.Errorf("listed %+v", l)
		}
		e.must(acp.MethodListSessions, map[string]any{"cwd": "/elsewhere"}, &l)
		if len(l.Sessions) != 0 {
			t.Errorf("listed %+v", l)
		}
	})
}

// Row 43: batches are refused, with id null. What is no JSON too, and the connection lives.
func TestBatchesAreRefused(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := newWorld(t, newFake()).newEditor(version, editorOptions{})
		e.write([]any{map[string]any{"jsonrpc": "2.0", "id": 90, "method": "session/list", "params": map[string]any{}}})
		l := e.await("the refusal", func(l line) bool { return l.Error != nil })
		if string(l.ID) != "null" && l.ID != nil || l.Error.Code != wire.CodeInvalidRequest {
			t.Errorf("refused with %s", l.raw)
		}
		if !strings.Contains(l.raw, `"id":null`) {
			t.Errorf("refused with %s", l.raw)
		}
		e.fence()
	})
}

// Deleting a session ends it for everybody.
func TestDelete(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.must(acp.MethodDeleteSession, map[string]string{"sessionId": session}, nil)
		if version == acp.V1 {
			if l := e.response(prompt); l.Error == nil {
				t.Errorf("the prompt ended with %s", l.raw)
			}
		}
		var l acp.ListSessionsResponse
		e.must(acp.MethodListSessions, map[string]any{}, &l)
		if len(l.Sessions) != 0 {
			t.Errorf("listed %+v", l)
		}
		e.refused(acp.CodeResourceNotFound, "session/resume", map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}})
	})
}

// A session that runs and was taken up again is stopped like any other, with everything in
// it; the prompt of before the load ends with it.
func TestRootCancelAfterALoad(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		answered := e.answered(e.load(session, w.dir))
		e.from(answered, "the grant", isGrant(alpha.session))
		e.cancel(session)
		stop := receive(t, "the stop", w.fake.cancels)
		if len(stop.Targets) != 2 {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(root, alpha)
		e.order(answered, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		e.ended(session, prompt, acp.StopCancelled)
	})
}
