package acpagent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A question of the root is asked of the editor, and its answer reaches the provider. The
// web view sees who answered.
func TestPermissionIsAskedAndAnswered(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		id := root.ask("Run it?")
		req := e.await("the question", isRequest(acp.MethodRequestPermission))
		var p acp.PermissionRequest
		if err := json.Unmarshal(req.Params, &p); err != nil || p.SessionID != session || len(p.Options) != 2 || p.Options[0].Kind != acp.AllowOnce || p.Options[1].Kind != acp.RejectOnce {
			t.Errorf("asked %s", req.raw)
		}
		if c := p.Call(); c == nil || c.Title.Or("") != "Run it?" || c.Kind.Or("") != acp.ToolExecute {
			t.Errorf("asked %s", req.raw)
		}
		e.answer(req, acp.Selected("yes"))
		if a := receive(t, "the answer", w.fake.answers); a.Interaction.RequestID != id || a.Response.OptionID != "yes" {
			t.Errorf("answered %+v", a)
		}
		e.from(0, "the end of the question's card", func(l line) bool {
			c := l.card(session)
			return c != nil && c.ToolCallID == string(id) && c.Status.Or("") == acp.ToolCompleted
		})
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)
		var all list[agent.Interaction]
		w.web("GET", w.path(session)+"/interactions", nil, &all)
		if len(all.Items) != 1 || all.Items[0].AnsweredBy != clientName || all.Items[0].Status != agent.InteractionAnswered {
			t.Errorf("the web view sees %+v", all.Items)
		}
		e.absent(0, "a withdrawal", isWithdrawal(req))
	})
}

// Rows 19, 21, 22: stopping a child takes its question back, a late answer has no effect,
// and a new question of the same child works.
func TestChildCancelWithdrawsItsQuestion(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha, beta := root.spawn("alpha"), root.spawn("beta")
		e.grant(alpha)
		alpha.ask("Run it?")
		req := e.await("the question", isRequest(acp.MethodRequestPermission))
		beta.ask("And this?")
		others := e.await("the other's question", isRequest(acp.MethodRequestPermission))
		e.order(0, isState(alpha.session, acp.StateRequires, ""), func(l line) bool { return l.raw == req.raw })
		at := e.since()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		e.from(at, "the withdrawal", isWithdrawal(req))
		e.answer(req, acp.Selected("yes")) // too late
		e.fence()
		stop.confirm(alpha)
		e.order(at, isWithdrawal(req), isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		none(t, "an answer", w.fake.answers)
		e.absent(at, "the sibling's question is taken back", isWithdrawal(others))

		alpha.again()
		alpha.ask("Run it now?")
		second := e.await("the second question", isRequest(acp.MethodRequestPermission))
		e.answer(second, acp.Selected("no"))
		if a := receive(t, "the answer", w.fake.answers); a.Response.OptionID != "no" || a.Interaction.SessionID != alpha.session {
			t.Errorf("answered %+v", a)
		}
		e.answer(others, acp.Selected("yes"))
		receive(t, "the sibling's answer", w.fake.answers)
		var all list[agent.Interaction]
		w.web("GET", w.path(session)+"/interactions", nil, &all)
		if len(all.Items) != 3 || all.Items[0].Status != agent.InteractionSuperseded {
			t.Errorf("the web view sees %+v", all.Items)
		}
	})
}

// Row 23: the editor's own "cancelled" may cross the withdrawal; one ending, no answer. Row
// 21: nor does an approval that comes after the stop on the wire, however early.
func TestAnswersAfterTheStopCrossTheWithdrawal(t *testing.T) {
	for name, root := range map[string]bool{"child": false, "root": true} {
		t.Run(name+"/cancelled", func(t *testing.T) { answerAfterTheStop(t, root, acp.NotAsked()) })
		t.Run(name+"/approved", func(t *testing.T) { answerAfterTheStop(t, root, acp.Selected("yes")) })
	}
}

func answerAfterTheStop(t *testing.T, whole bool, late acp.PermissionResponse) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		alpha.ask("Run it?")
		req := e.await("the question", isRequest(acp.MethodRequestPermission))
		target, stopped := string(alpha.session), []*fakeAgent{alpha}
		if whole {
			target, stopped = session, []*fakeAgent{root, alpha}
		}
		delivered, passAnswer := w.hold("/response")
		defer passAnswer()
		reached, pass := w.hold("GET " + w.path(target))
		e.cancel(target)
		receive(t, "the stop to be under way", reached)
		e.answer(req, late)
		e.fence()
		pass()
		at := e.since()
		receive(t, "the stop", w.fake.cancels).confirm(stopped...)
		e.order(at, isState(alpha.session, acp.StateIdle, acp.StopCancelled), isRevoked(alpha.session))
		none(t, "an answer on its way", delivered)
		n := 0
		for _, l := range e.all() {
			if isState(alpha.session, acp.StateIdle, acp.StopCancelled)(l) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d endings", n)
		}
		none(t, "an answer", w.fake.answers)
	})
}

// An answer that is none of the choices, or that does not reach the daemon, is asked for
// again.
func TestAnswerThatWasNotTaken(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		root.ask("Run it?")
		e.answer(e.await("the question", isRequest(acp.MethodRequestPermission)), acp.Selected("perhaps"))
		again := e.await("the question again", isRequest(acp.MethodRequestPermission))
		mend := w.fail("/response")
		e.answer(again, acp.Selected("yes"))
		third := e.await("the question once more", isRequest(acp.MethodRequestPermission))
		mend()
		e.answer(third, acp.Selected("yes"))
		if a := receive(t, "the answer", w.fake.answers); a.Response.OptionID != "yes" {
			t.Errorf("answered %+v", a)
		}
	})
}

// A dialogue that is closed without a stop is a refusal: nobody is left waiting.
func TestClosedDialogueRefuses(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		_, _, root := e.work()
		root.ask("Run it?")
		e.answer(e.await("the question", isRequest(acp.MethodRequestPermission)), acp.NotAsked())
		if a := receive(t, "the answer", w.fake.answers); a.Response.OptionID != "no" {
			t.Errorf("answered %+v", a)
		}
	})
}

// Row 24: stopping the root takes back the questions of its children.
func TestRootCancelWithdrawsQuestionsOfChildren(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha := root.spawn("alpha")
		alpha.ask("Run it?")
		req := e.await("the question", isRequest(acp.MethodRequestPermission))
		at := e.since()
		e.cancel(session)
		stop := receive(t, "the stop", w.fake.cancels)
		e.from(at, "the withdrawal", isWithdrawal(req))
		e.answer(req, acp.Selected("yes"))
		stop.confirm(root, alpha)
		e.ended(session, prompt, acp.StopCancelled)
		none(t, "an answer", w.fake.answers)
	})
}

// Row 20: the same for what is asked with a form.
func TestElicitationIsAskedAndWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{forms: true})
		_, _, root := e.work()
		alpha := root.spawn("alpha")
		e.grant(alpha)
		question := agent.Interaction{Kind: agent.InteractionQuestion, Title: "Some questions", Detail: agent.Detail{Questions: []agent.Question{
			{ID: "size", Text: "How big?", Options: []agent.Option{{ID: "s", Label: "Small", Role: agent.RoleOther}, {ID: "l", Label: "Large", Role: agent.RoleOther}}},
			{ID: "parts", Text: "Which parts?", Multi: true, Options: []agent.Option{{ID: "a", Label: "A", Role: agent.RoleOther}, {ID: "b", Label: "B", Role: agent.RoleOther}}},
			{ID: "name", Text: "Its name?", Options: []agent.Option{}},
		}}}
		alpha.askWith(question)
		req := e.await("the form", isRequest(acp.MethodElicit))
		if !strings.Contains(req.raw, `"sessionId":"`+string(alpha.session)+`"`) {
			t.Errorf("asked %s", req.raw)
		}
		e.answer(req, acp.ElicitResponse{Action: "accept", Content: map[string]any{"size": "Small", "parts": []string{"A", "B"}, "name": "it"}})
		a := receive(t, "the answer", w.fake.answers).Response
		if a.Answers["size"] != "Small" || a.Answers["parts"] != "A, B" || a.Answers["name"] != "it" {
			t.Errorf("answered %+v", a)
		}
		alpha.askWith(agent.Interaction{Kind: agent.InteractionElicitation, Title: "Sign in?", Detail: agent.Detail{Text: "with a name"}})
		req = e.await("the second form", isRequest(acp.MethodElicit))
		at := e.since()
		e.cancel(string(alpha.session))
		stop := receive(t, "the stop", w.fake.cancels)
		e.from(at, "the withdrawal", isWithdrawal(req))
		e.answer(req, acp.ElicitResponse{Action: "accept", Content: map[string]any{"text": "me"}})
		e.fence()
		stop.confirm(alpha)
		e.from(at, "the end", isState(alpha.session, acp.StateIdle, acp.StopCancelled))
		none(t, "an answer", w.fake.answers)
	})
}

// An editor without forms is asked one choice as a permission, and told of what it cannot
// ask.
func TestQuestionsWithoutForms(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		root.askWith(agent.Interaction{Kind: agent.InteractionQuestion, Title: "How big?", Detail: agent.Detail{Questions: []agent.Question{
			{ID: "size", Text: "How big?", Options: []agent.Option{{ID: "s", Label: "Small", Role: agent.RoleOther}}},
		}}})
		e.answer(e.await("the question", isRequest(acp.MethodRequestPermission)), acp.Selected("s"))
		if a := receive(t, "the answer", w.fake.answers).Response; a.Answers["size"] != "Small" {
			t.Errorf("answered %+v", a)
		}
		root.askWith(agent.Interaction{Kind: agent.InteractionElicitation, Title: "What name?"})
		e.await("the hint", func(l line) bool { return l.note.SessionID == session && strings.Contains(l.raw, "What name?") })
	})
}

// What the web view answers is taken back at the editor, whose own answer then comes too
// late.
func TestAnsweredInTheWebViewIsWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		id := root.ask("Run it?")
		req := e.await("the question", isRequest(acp.MethodRequestPermission))
		w.web("POST", w.path(session)+"/turns/"+string(root.turn)+"/interactions/"+string(id)+"/response", map[string]string{"optionId": "no"}, nil)
		if a := receive(t, "the answer", w.fake.answers); a.Response.OptionID != "no" {
			t.Errorf("answered %+v", a)
		}
		e.from(0, "the withdrawal", isWithdrawal(req))
		e.answer(req, acp.Selected("yes"))
		e.fence()
		none(t, "a second answer", w.fake.answers)
	})
}

// A question that is open when a session is taken up is asked after the answer, of the
// child that asks.
func TestOpenQuestionIsAskedAfterALoad(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, _, root := e.work()
		alpha := root.spawn("alpha")
		alpha.ask("Run it?")
		e.await("the question", isRequest(acp.MethodRequestPermission))
		other := w.newEditor(version, editorOptions{})
		answered := other.answered(other.load(session, w.dir))
		req, at := other.from(0, "the question", isRequest(acp.MethodRequestPermission))
		if at < answered {
			t.Error("asked within history")
		}
		other.answer(req, acp.Selected("yes"))
		receive(t, "the answer", w.fake.answers)
		e.from(0, "the withdrawal at the other editor", func(l line) bool { return l.Method == "$/cancel_request" })
	})
}
