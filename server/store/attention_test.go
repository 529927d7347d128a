package store

import (
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// attentionTold is what the last event of each session said of it.
func (w *world) attentionTold() map[agent.SessionID]agent.Attention {
	w.Helper()
	log, err := w.Events(background(w), w.ws, 0, maxLogPage)
	w.must(err)
	out := map[agent.SessionID]agent.Attention{}
	for _, e := range log.Items {
		if e.Kind == agent.SessionCreated || e.Kind == agent.SessionUpdated {
			out[e.SessionID] = decode[agent.Session](w, e.Data).Attention
		}
	}
	return out
}

// Whoever follows the events knows what a reader is told.
func TestAttentionOfAChildIsTold(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	kid := w.child("kid")
	is := func(step string, want agent.Attention) {
		t.Helper()
		s, err := w.Session(background(t), w.ws, kid.session)
		w.must(err)
		if told := w.attentionTold()[kid.session]; s.Attention != want || told != want {
			t.Errorf("%s: a reader is told %q, the last event said %q, want %q", step, s.Attention, told, want)
		}
	}
	is("started", agent.AttentionNone)
	w.asks(kid.session, kid.turn, "q")
	is("asked", agent.AttentionWaiting)
	w.verdict(agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: agent.OutcomeFailed, Err: failed("no")}, agent.VerdictApplied, "")
	is("failed", agent.AttentionFailed)
	w.verdict(agent.TurnStarted{Session: kid.session, Turn: "second"}, agent.VerdictApplied, "")
	is("began again", agent.AttentionNone)
	w.verdict(agent.TurnSettled{Session: kid.session, Turn: "second", Outcome: agent.OutcomeFailed}, agent.VerdictApplied, "")
	is("failed without a question", agent.AttentionFailed)
	w.verdict(agent.TurnStarted{Session: kid.session, Turn: "third"}, agent.VerdictApplied, "")
	w.verdict(agent.TurnSettled{Session: kid.session, Turn: "third", Outcome: agent.OutcomeCompleted}, agent.VerdictApplied, "")
	is("completed", agent.AttentionNone)
}

// Silence is no event. A reader is told of it; an event that is about something else is not
// its herald, as none would say that it is over.
func TestStalledIsToldByReadsAlone(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	w.clock.advance(time.Hour)
	if a := w.session().Attention; a != agent.AttentionStalled {
		t.Fatalf("after an hour of silence attention is %q", a)
	}
	pin := true
	_, err := w.UpdateSession(background(t), w.ws, w.root, agent.SessionPatch{Pinned: &pin})
	w.must(err)
	if told := w.attentionTold()[w.root]; told != agent.AttentionNone {
		t.Errorf("the event says %q", told)
	}
	if a := w.session().Attention; a != agent.AttentionStalled {
		t.Errorf("a person's change is no sign of life, attention is %q", a)
	}
}
