package store

import (
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func yesNo() []agent.Option {
	return []agent.Option{{ID: "yes", Label: "Yes", Role: agent.RoleAllow}, {ID: "no", Label: "No", Role: agent.RoleDeny}}
}

func (w *world) asks(session agent.SessionID, turn agent.TurnID, id agent.RequestID) {
	w.Helper()
	w.verdict(agent.InteractionAsked{Interaction: agent.Interaction{
		SessionID: session, TurnID: turn, RequestID: id, Kind: agent.InteractionApproval, Title: "May I?", Options: yesNo(),
	}},
		agent.VerdictApplied, "")
}

func (w *world) question(session agent.SessionID, turn agent.TurnID, id agent.RequestID) agent.Interaction {
	w.Helper()
	i, err := w.Interaction(background(w), w.ws, session, turn, id)
	w.must(err)
	return i
}

func yes(session agent.SessionID, turn agent.TurnID, id agent.RequestID) agent.NewAnswer {
	return agent.NewAnswer{Session: session, Turn: turn, Request: id, Response: agent.Response{OptionID: "yes"}, Client: "test"}
}

// From the moment a stop is recorded nobody can answer what its targets ask: the answer
// would let a turn go on that a person has stopped.
func TestCancelSupersedesTheQuestionsOfItsTargets(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	a, b := w.child("a"), w.child("b")
	n := w.below(a, "n")
	w.asks(w.root, w.turn, "root")
	for _, c := range []child{a, b, n} {
		w.verdict(agent.TurnStarted{Session: c.session, Turn: c.turn}, agent.VerdictApplied, "")
		w.asks(c.session, c.turn, "q")
	}
	_, sent, err := w.PrepareAnswer(background(t), yes(n.session, n.turn, "q"))
	w.must(err)
	w.events()

	w.cancels(a.session, a.turn) // a and what is below it; b and the root go on
	if s := w.session(); s.PendingInteractionCount != 2 {
		t.Errorf("%d questions are open, want those of the root and of b", s.PendingInteractionCount)
	}
	superseded := decoded[agent.Interaction](w.world, w.events(), agent.InteractionUpdated)
	if len(superseded) != 2 {
		t.Errorf("%d questions were told superseded, want 2", len(superseded))
	}
	for _, c := range []child{a, n} {
		if q := w.question(c.session, c.turn, "q"); q.Status != agent.InteractionSuperseded || q.Response != nil || q.AnsweredBy != "" {
			t.Errorf("the question of %s is %+v", c.session, q)
		}
		w.childIs(c, agent.PhaseSettling, "")
		_, _, err := w.PrepareAnswer(background(t), yes(c.session, c.turn, "q"))
		w.refuses(err, agent.CodeInteractionGone)
		s, err := w.Session(background(t), w.ws, c.session)
		w.must(err)
		if s.PendingInteractionCount != 0 {
			t.Errorf("%s counts %d open questions", c.session, s.PendingInteractionCount)
		}
	}
	w.answersNobody(sent)
	w.cancels(w.root, w.turn)
	if s := w.session(); s.PendingInteractionCount != 0 || s.Attention == agent.AttentionWaiting {
		t.Errorf("after the root's stop: %d open, attention %s", s.PendingInteractionCount, s.Attention)
	}
	_, _, err = w.PrepareAnswer(background(t), yes(w.root, w.turn, "root"))
	w.refuses(err, agent.CodeInteractionGone)
	w.is(agent.PhaseSettling, "")
	w.verdict(agent.InteractionEnded{Session: b.session, Turn: b.turn, Request: "q", Step: agent.AskWithdraw}, agent.VerdictUnchanged, "")
	if n := query[int64](w.world, "SELECT count(*) FROM turns WHERE prompts <> 0"); n != 0 {
		t.Errorf("%d turns still count questions", n)
	}
}

// answersNobody checks that an answer which was on its way when its question was superseded
// is delivered to nobody, and says so.
func (w *world) answersNobody(sent agent.Operation) {
	w.Helper()
	claimed, err := w.Claim(background(w), "w", time.Minute, 10)
	w.must(err)
	for _, c := range claimed {
		if c.Operation.ID == sent.ID && c.Interaction.Status != agent.InteractionSuperseded {
			w.Errorf("the worker is given %+v", c.Interaction)
		}
	}
	done, err := w.CompleteAnswer(background(w), sent.ID, nil)
	w.must(err)
	if done.Status != agent.OperationFailed || done.Error.Code != agent.CodeInteractionGone {
		w.Errorf("the answer ended %s %v", done.Status, done.Error)
	}
}

// The provider's word that a question is over comes before the call that delivered the
// answer returns: the answer was taken, whatever became of the call.
func TestAnswerTakenBeforeItsDeliveryFailed(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	w.asks(w.root, w.turn, "q")
	_, op, err := w.PrepareAnswer(background(t), yes(w.root, w.turn, "q"))
	w.must(err)
	w.verdict(agent.InteractionEnded{Session: w.root, Turn: w.turn, Request: "q", Step: agent.AskResolved}, agent.VerdictApplied, "")
	done, err := w.CompleteAnswer(background(t), op.ID, agent.Errorf(agent.CodeTimeout, "no reply in time"))
	w.must(err)
	if q := w.question(w.root, w.turn, "q"); q.Status != agent.InteractionAnswered || q.Error != nil {
		t.Errorf("the question is %+v", q)
	}
	if done.Status != agent.OperationSucceeded || done.Error != nil {
		t.Errorf("its answer ended %s %v, want succeeded", done.Status, done.Error)
	}
}

// What is known of a target is not talked down by what goes wrong later.
func TestEvidenceIsNotTalkedDown(t *testing.T) {
	w := open(t).begin()
	w.provider("p")
	a, b := w.child("a"), w.child("b")
	op := w.cancels(w.root, w.turn)
	hear := func(c child, s agent.TargetState, e *agent.Error) {
		w.must(w.Hear(background(t), op.ID, []agent.Evidence{{SessionID: c.session, TurnID: c.turn, State: s, Err: e}}))
	}
	late := agent.Errorf(agent.CodeTimeout, "no answer")
	hear(a, agent.TargetCanceled, nil)
	hear(a, "", late)
	hear(b, agent.TargetAcknowledged, nil)
	hear(b, "", late)
	want := map[agent.TurnID]agent.Target{
		a.turn: {SessionID: a.session, TurnID: a.turn, State: agent.TargetCanceled, Evidence: "the provider confirmed the end"},
		b.turn: {SessionID: b.session, TurnID: b.turn, State: agent.TargetAcknowledged, Evidence: "no answer"},
	}
	for _, got := range w.operation(op.ID).Targets {
		if w, ok := want[got.TurnID]; ok && got != w {
			t.Errorf("target is %+v, want %+v", got, w)
		}
	}
}
