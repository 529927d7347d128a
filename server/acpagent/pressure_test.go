package acpagent

import (
	"errors"
	"fmt"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Row 25: stops in flight are one operation, with one ending.
func TestStopsInFlightAreOne(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.cancel(string(alpha.session))
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		e.cancel(string(alpha.session))
		e.fence()
		stop.confirm(alpha)
		e.from(0, "the end", isRevoked(alpha.session))
		e.cancel(string(alpha.session))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		none(t, "a second stop", w.fake.cancels)
		n := 0
		for _, l := range e.all() {
			if l.state(string(alpha.session)).State == acp.StateIdle {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d endings", n)
		}
	})
}

// A stop that joins one on its way to an older turn is carried out all the same.
func TestStopThatJoinsAnOlderOne(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		reached, pass := w.hold("/cancel")
		e.cancel(string(alpha.session))
		receive(t, "the stop to be under way", reached)
		alpha.end(agent.OutcomeCompleted)
		_, at := e.from(0, "its end", isRevoked(alpha.session))
		alpha.again()
		e.from(at, "the next grant", isGrant(alpha.session))
		e.cancel(string(alpha.session))
		e.fence()
		pass()
		stop := receive(t, "the stop of the newer turn", w.fake.cancels)
		if !stop.targets()[alpha.turn] {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(alpha)
		e.from(at, "the end", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
	})
}

// Row 26: a provider that fails leaves the child running with its grant; the next try works.
func TestStopIsTriedAgainAfterAFailure(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		at := e.since()
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).done <- errors.New("the interrupt failed")
		alpha.say("still here")
		e.from(at, "the child to go on", isText(string(alpha.session), "still here"))
		e.absent(at, "an end", func(l line) bool {
			return isRevoked(alpha.session)(l) || l.state(string(alpha.session)).State == acp.StateIdle
		})
		e.cancel(string(alpha.session))
		receive(t, "the second try", w.fake.cancels).confirm(alpha)
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
	})
}

// Row 26: where the daemon itself cannot be reached, questions are asked again and the next
// stop is as good as the first.
func TestStopThatDidNotReachTheDaemon(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		alpha.ask("Run it?")
		first := e.await("the question", isRequest(acp.MethodRequestPermission))
		broken := w.fail("/cancel")
		e.cancel(string(alpha.session))
		e.from(0, "the withdrawal", isWithdrawal(first))
		second := e.await("the question again", isRequest(acp.MethodRequestPermission))
		broken()
		e.cancel(string(alpha.session))
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		e.from(0, "the withdrawal", isWithdrawal(second))
		e.order(0, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
	})
}

// Row 27: the newest turn is the target though the editor has only seen the first.
func TestNewestTurnIsTheTargetWhenTellingLags(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{backlog: 1})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		e.pause()
		for n := range 20 { // more than fits between the daemon and the editor's eyes
			alpha.say(fmt.Sprint("line ", n))
		}
		old := alpha.turn
		alpha.end(agent.OutcomeCompleted)
		alpha.again()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		if targets := stop.targets(); !targets[alpha.turn] || targets[old] {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(alpha)
		e.resume()
		e.order(0, isText(string(alpha.session), "line 19"), isState(alpha.session, acp.StateIdle, acp.StopEndTurn), isRevoked(alpha.session),
			isState(alpha.session, acp.StateIdle, acp.StopCancelled))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
	})
}

// Row 28: what has ended when the stop is received is not stopped, though the editor has not
// seen its end.
func TestStopOfWhatHasEndedWhenTellingLags(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{backlog: 1})
		session, prompt, root := e.work()
		alpha, beta := root.spawn("alpha"), root.spawn("beta")
		e.grant(alpha)
		e.grant(beta)
		e.pause()
		for n := range 20 {
			alpha.say(fmt.Sprint("line ", n))
		}
		alpha.end(agent.OutcomeCompleted)
		e.cancel(string(alpha.session))
		e.cancel(string(beta.session)) // lives: this one is carried out
		stop := receive(t, "the stop", w.fake.cancels)
		if !stop.targets()[beta.turn] || len(stop.Targets) != 1 {
			t.Fatalf("stopped %+v", stop.Cancel)
		}
		stop.confirm(beta)
		e.resume()
		e.order(0, isState(alpha.session, acp.StateIdle, acp.StopEndTurn), isRevoked(alpha.session), isState(beta.session, acp.StateIdle, acp.StopCancelled))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		none(t, "another stop", w.fake.cancels)
	})
}

// A stop is heard while the prompt before it is on its way to the daemon, and meets the
// turn that the prompt begins.
func TestStopRightAfterThePrompt(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session := e.begin()
		reached, pass := w.hold("POST " + w.path(session) + "/messages")
		prompt := e.prompt(session, "go")
		receive(t, "the message to be under way", reached)
		e.cancel(session)
		e.fence()
		pass()
		receive(t, "the provider to be opened", w.fake.opened)
		stopped := make(chan struct{})
		go func() { // the turn may be stopped before or after the provider has it
			defer close(stopped)
			for {
				select {
				case stop := <-w.fake.cancels:
					stop.confirm()
				case <-t.Context().Done():
					return
				}
			}
		}()
		e.ended(session, prompt, acp.StopCancelled)
	})
}

// Taking a prompt back is stopping its turn.
func TestWithdrawnPromptStopsItsTurn(t *testing.T) {
	w := newWorld(t, newFake())
	e := w.newEditor(acp.V1, editorOptions{})
	session, prompt, root := e.work()
	e.write(map[string]any{"jsonrpc": "2.0", "method": "$/cancel_request", "params": map[string]any{"requestId": 3}})
	if prompt != "3" {
		t.Fatalf("the prompt is request %s", prompt)
	}
	receive(t, "the stop", w.fake.cancels).confirm(root)
	e.ended(session, prompt, acp.StopCancelled)
}

// A prompt during a stop waits for its end and is a turn of its own.
func TestPromptDuringAStop(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		e.cancel(session)
		stop := receive(t, "the stop", w.fake.cancels)
		next := e.prompt(session, "and now this")
		e.fence()
		stop.confirm(root)
		at := e.ended(session, prompt, acp.StopCancelled)
		in := receive(t, "the next turn", w.fake.starts)
		if in.Text != "and now this" {
			t.Errorf("the provider got %q", in.Text)
		}
		second := root.r.main(in)
		second.end(agent.OutcomeCompleted)
		if version == acp.V1 {
			e.ended(session, next, acp.StopEndTurn)
			return
		}
		e.from(at, "the second end", func(l line) bool {
			s, ok := l.note.Update.Variant.(*acp.StateUpdate)
			return ok && l.note.SessionID == session && s.StopReason == acp.StopEndTurn
		})
	})
}
