package acpagent

import (
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// order needs the given lines in this order, and returns their places.
func (e *editor) order(at int, steps ...func(line) bool) []int {
	e.t.Helper()
	var places []int
	for n, is := range steps {
		_, i := e.from(at, "step "+string(rune('1'+n)), is)
		places = append(places, i)
		at = i + 1
	}
	return places
}

// absent needs that no line from a place on satisfies the condition.
func (e *editor) absent(at int, what string, is func(line) bool) {
	e.t.Helper()
	for _, l := range e.all()[at:] {
		if is(l) {
			e.t.Errorf("%s: %s", what, l.raw)
		}
	}
}

// Rows 1 to 5, 16: announced first and without a grant, granted while it runs, its real end,
// revoked after that. Version 2 mirrors the states on the child's own stream (39).
func TestChildIsAnnouncedGrantedAndRevoked(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := newWorld(t, newFake()).newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.announce("alpha")
		_, at := e.from(0, "the announcement", isAnnounced(alpha.session))
		e.fence()
		e.absent(at, "a state before the turn runs", func(l line) bool { return l.state(string(alpha.session)).State != "" })
		e.absent(at, "a grant before the turn runs", isGrant(alpha.session))
		alpha.r.apply(agent.TurnStarted{Session: alpha.session, Turn: alpha.turn, NativeID: "n1"})
		e.grant(alpha)
		alpha.say("alpha works")
		e.from(0, "the child's text", isText(string(alpha.session), "alpha works"))
		alpha.end(agent.OutcomeCompleted)
		e.order(0, isAnnounced(alpha.session), isState(alpha.session, acp.StateRunning, ""), isGrant(alpha.session),
			isText(string(alpha.session), "alpha works"), isState(alpha.session, acp.StateIdle, acp.StopEndTurn), isRevoked(alpha.session))
		if u := e.all()[at].child(string(alpha.session)); u.Title.Or("") != "alpha" || u.Description.Or("") != "worker" || e.all()[at].note.SessionID != session {
			t.Errorf("announced as %s", e.all()[at].raw)
		}
		if version == acp.V2 {
			own := func(state acp.SessionState) func(line) bool {
				return func(l line) bool {
					s, ok := l.note.Update.Variant.(*acp.StateUpdate)
					return ok && l.note.SessionID == string(alpha.session) && s.State == state
				}
			}
			e.order(0, own(acp.StateRunning), own(acp.StateIdle))
		}
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		for _, l := range e.all() {
			if strings.Contains(l.raw, `"cancel":true`) {
				t.Errorf("a grant that is no object: %s", l.raw)
			}
		}
	})
}

// Rows 8, 12, 13: the opaque id stops one child; its sibling and its parent go on, and the
// sibling keeps its grant.
func TestCancelStopsOneChild(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha, beta := root.spawn("alpha"), root.spawn("beta")
		e.grant(alpha)
		e.grant(beta)
		at := e.since()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		if targets := stop.targets(); len(targets) != 1 || !targets[alpha.turn] || stop.Root {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		e.absent(at, "an end that is only acknowledged", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
		stop.confirm(alpha)
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		beta.say("beta goes on")
		e.from(at, "the sibling's text", isText(string(beta.session), "beta goes on"))
		e.absent(at, "the sibling lost its grant", isRevoked(beta.session))
		beta.end(agent.OutcomeCompleted)
		e.order(at, isState(beta.session, acp.StateIdle, acp.StopEndTurn), isRevoked(beta.session))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Rows 9, 10, 11: the provider's own id, another root's, unknown, empty and ended ones do
// nothing, and nobody is told.
func TestCancelIgnoresForeignAndStaleIDs(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha, done := root.spawn("alpha"), root.spawn("done")
		e.grant(alpha)
		e.grant(done)
		done.end(agent.OutcomeCompleted)
		e.from(0, "the end", isRevoked(done.session))
		other := w.newEditor(version, editorOptions{})
		_, _, foreign := other.work()
		beta := foreign.spawn("beta")
		other.grant(beta)

		at := e.since()
		for _, id := range []string{alpha.thread, "thread-root", string(foreign.session), string(beta.session), "ses_unknown", "", string(done.session)} {
			e.cancel(id)
		}
		e.notify(acp.MethodCancel, "nonsense")
		e.fence()
		none(t, "a stop", w.fake.cancels)
		e.absent(at, "a line about it", func(l line) bool { return l.child("") != nil || l.Error != nil })

		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		if !stop.targets()[alpha.turn] || len(stop.Targets) != 1 {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(alpha)
		e.from(at, "the end", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
		e.absent(at, "a second end", func(l line) bool { return l.state(string(done.session)).State != "" })
	})
}

// Row 14: what a child waits for ends with it, the inner one first. Row 15: an inner one
// alone leaves the outer.
func TestCancelNested(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		outer := root.spawn("outer")
		inner, first := outer.spawn("inner"), outer.spawn("first")
		for _, a := range []*fakeAgent{outer, inner, first} {
			e.grant(a)
		}
		if l, _ := e.from(0, "the inner announcement", isAnnounced(inner.session)); l.note.SessionID != string(outer.session) {
			t.Errorf("the inner one was announced on %s", l.note.SessionID)
		}
		at := e.since()
		e.cancel(string(first.session))
		stop := receive(t, "the stop", w.fake.cancels)
		if len(stop.Targets) != 1 {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(first)
		e.from(at, "the end of the first", isRevoked(first.session))
		e.absent(at, "the outer one ended", func(l line) bool { return l.state(string(outer.session)).State != "" })

		at = e.since()
		e.cancel(string(outer.session))
		stop = receive(t, "the stop", w.fake.cancels)
		if targets := stop.targets(); len(targets) != 2 || !targets[inner.turn] || !targets[outer.turn] {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(inner, outer)
		e.order(at, isState(inner.session, acp.StateIdle, acp.StopCancelled), isState(outer.session, acp.StateIdle, acp.StopCancelled))
		e.from(at, "the inner grant's end", isRevoked(inner.session))
		e.from(at, "the outer grant's end", isRevoked(outer.session))
	})
}

// Row 16: in a tool the tool ends first, and the end is the provider's, not the interrupt's
// acknowledgement.
func TestCancelWithinATool(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		call := alpha.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c1", Name: "bash", Title: "sleep 100", Input: "sleep 100", Status: agent.MessageStreaming})
		e.grant(alpha)
		at := e.since()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		stop.heard(agent.Evidence{SessionID: alpha.session, TurnID: alpha.turn, State: agent.TargetAcknowledged})
		e.fence()
		e.absent(at, "an end that nobody has seen", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
		call.Status = agent.MessageFailed
		alpha.put(call)
		stop.confirm(alpha)
		e.order(at, func(l line) bool {
			c, ok := l.note.Update.Variant.(*acp.ToolCall)
			return ok && l.note.SessionID == string(alpha.session) && c.Status.Or("") == acp.ToolFailed
		}, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
	})
}

// Row 17: an end of its own that comes first stays.
func TestCancelTooLateChangesNoOutcome(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		alpha.end(agent.OutcomeCompleted)
		stop.heard(agent.Evidence{SessionID: alpha.session, TurnID: alpha.turn, State: agent.TargetAlreadyTerminal})
		stop.done <- nil
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopEndTurn), isRevoked(alpha.session))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		e.absent(at, "a cancelled end", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
	})
}

// Row 18: another assignment is the same child with a fresh grant.
func TestLaterAssignmentGetsAFreshGrant(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		alpha.end(agent.OutcomeFailed)
		_, at := e.from(0, "the end of the first", isRevoked(alpha.session))
		if l, _ := e.from(0, "the failure", isState(alpha.session, acp.StateIdle, acp.StopError)); l.state(string(alpha.session)).Error == nil {
			t.Errorf("a failure without a reason: %s", l.raw)
		}
		alpha.again()
		e.order(at, isState(alpha.session, acp.StateRunning, ""), isGrant(alpha.session))
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		if !stop.targets()[alpha.turn] {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(alpha)
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
	})
}

// Row 6: a process that is lost makes its children unknown, without a reason to stop.
func TestProviderLossIsUnknown(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := newWorld(t, newFake()).newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		alpha.r.apply(agent.SessionLost{Session: alpha.r.root, Err: agent.Errorf(agent.CodeProviderGone, "the process ended")})
		e.order(at, isState(alpha.session, acp.StateUnknown, ""), isRevoked(alpha.session))
		if version == acp.V1 {
			if l := e.response(prompt); l.Error == nil || !strings.Contains(l.raw, "provider_gone") {
				t.Errorf("the prompt ended with %s", l.raw)
			}
		} else {
			e.ended(session, prompt, acp.StopError)
		}
	})
}

// Row 40: the root's end follows those of everything below it. Row 24 is in ask_test.go.
func TestRootCancelEndsAllBeforeItsAnswer(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		inner := alpha.spawn("inner")
		e.grant(alpha)
		e.grant(inner)
		e.cancel(session)
		stop := receive(t, "the stop", w.fake.cancels)
		if !stop.Root || len(stop.Targets) != 3 {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(root, inner, alpha)
		end := e.ended(session, prompt, acp.StopCancelled)
		for _, a := range []*fakeAgent{alpha, inner} {
			for _, is := range []func(line) bool{isState(a.session, acp.StateIdle, acp.StopCancelled), isRevoked(a.session)} {
				if _, at := e.from(0, "an end", is); at > end {
					t.Error("the root ended before its child")
				}
			}
		}
	})
}

// Row 41: the provider's end of the root's own turn ends no child, and not the prompt: the
// root turn lasts as long as what it began. The grant is good in between.
func TestRootsOwnEndLeavesChildren(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		root.say("off they go")
		root.end(agent.OutcomeCompleted)
		alpha.say("still here")
		_, at := e.from(0, "the child's text", isText(string(alpha.session), "still here"))
		e.absent(0, "an end", func(l line) bool {
			s, ok := l.note.Update.Variant.(*acp.StateUpdate)
			return l.Method == "" && string(l.ID) == prompt && version == acp.V1 || ok && s.State == acp.StateIdle
		})
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Row 42: closing ends everything before it is answered.
func TestCloseEndsAll(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		closing := e.send("session/close", map[string]string{"sessionId": session})
		receive(t, "the stop", w.fake.cancels).confirm(root, alpha)
		if l := e.response(closing); l.Error != nil {
			t.Fatal(l.raw)
		}
		end := e.ended(session, prompt, acp.StopCancelled)
		_, closed := e.from(0, "the answer", func(l line) bool { return l.Method == "" && string(l.ID) == closing })
		_, revoked := e.from(0, "the end of the grant", isRevoked(alpha.session))
		if end > closed || revoked > closed {
			t.Errorf("ended at %d, revoked at %d, closed at %d", end, revoked, closed)
		}
		e.cancel(string(alpha.session))
		e.refused(acp.CodeResourceNotFound, "session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": "x"}}})
		none(t, "a stop", w.fake.cancels)
		var again acp.SessionResponse
		e.must("session/resume", map[string]any{"sessionId": session, "cwd": w.dir, "mcpServers": []any{}}, &again)
	})
}

// A child that its provider cannot stop alone is never granted.
func TestNoGrantWithoutTheProvidersMeans(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		f := newFake()
		f.caps.ChildCancel, f.caps.ConfirmsChildCancel = false, false
		w := newWorld(t, f)
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.from(0, "running", isState(alpha.session, acp.StateRunning, ""))
		e.cancel(string(alpha.session))
		e.fence()
		none(t, "a stop", w.fake.cancels)
		// Its runtime learns of one: the grant follows at once, and goes with it.
		can := agent.Capabilities{ChildCancel: true}
		alpha.r.apply(agent.SessionDescribed{Session: alpha.session, Capabilities: &can})
		e.grant(alpha)
		alpha.r.apply(agent.SessionDescribed{Session: alpha.session, Capabilities: &agent.Capabilities{}})
		_, at := e.from(0, "the end of the grant", isRevoked(alpha.session))
		e.absent(at, "an end", func(l line) bool { return l.state(string(alpha.session)).State != "" })
		alpha.end(agent.OutcomeCompleted)
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}
