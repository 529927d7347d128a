package codex

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// answerWith prepares and delivers an answer as the daemon does.
func (s *stage) answerWith(i agent.Interaction, r agent.Response) error {
	s.t.Helper()
	a, err := s.PrepareAnswer(i, r)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.rt.Answer(s.t.Context(), a)
	s.CompleteAnswer(a, err)
	return err
}

// withChild is a stage with one child T1 whose turn c1 runs.
func withChild(t *testing.T) *stage {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV1(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	return s
}

func (s *stage) asked(at int) agent.Interaction {
	s.t.Helper()
	v := s.View()
	if len(v.Interactions) <= at {
		s.t.Fatalf("%d interactions, want one more", len(v.Interactions))
	}
	return v.Interactions[at]
}

func TestApprovalOfAChildIsTheChilds(t *testing.T) {
	s := withChild(t)
	s.send(itemNote("started", "T1", "c1", `{"type":"commandExecution","id":"x1","command":"/bin/bash -lc 'touch x'","status":"inProgress"}`))
	s.send(approval(0, "T1", "c1", "x1"))
	v, i := s.View(), s.asked(0)
	c := child(t, v, "T1")
	if i.SessionID != c.ID || i.TurnID != turnsOf(v, c.ID)[0].ID || i.Owner != agent.OwnerExact || i.ProviderTurnID != "c1" {
		t.Errorf("owner %s %s", i.SessionID, i.TurnID)
	}
	if i.Detail.Command != "/bin/bash -lc 'touch x'" || i.Detail.Cwd != "/w" || i.Detail.Reason != "May I?" || i.Detail.CallID != "x1" || i.Title != "Run touch x" {
		t.Errorf("detail %+v, title %q", i.Detail, i.Title)
	}
	var offered []string
	for _, o := range i.Options {
		offered = append(offered, o.ID+"="+o.Role)
	}
	want := []string{"accept=allow", "acceptForSession=allow_always", "acceptWithExecpolicyAmendment=allow_always", "decline=deny", "cancel=abort"}
	if !slices.Equal(offered, want) {
		t.Errorf("offered %q", offered)
	}
	if v.RootTurn().Phase != agent.PhaseRunning || turnsOf(v, c.ID)[0].Phase != agent.PhaseWaiting {
		t.Errorf("root %s, child %s", v.RootTurn().Phase, turnsOf(v, c.ID)[0].Phase)
	}
	if err := s.answerWith(i, agent.Response{OptionID: "acceptWithExecpolicyAmendment"}); err != nil {
		t.Fatal(err)
	}
	m := s.expect("answer")
	if string(m.ID) != "0" || string(m.Result) != `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch","x"]}}}` {
		t.Errorf("answered %s with %s", m.ID, m.Result)
	}
	s.send(resolvedNote("T1", 0))
	if got := s.asked(0).Status; got != agent.InteractionAnswered {
		t.Errorf("interaction is %s", got)
	}
}

func TestAnswersGoWhereTheyWereAsked(t *testing.T) {
	s := withChild(t)
	s.send(spawnV1(rootThread, "r1", "call_b", "T2")...)
	s.send(started("T2", "d1", "r1"))
	// The server counts its requests per process: the same number as before a restart,
	// and three open at once on three threads.
	s.send(approval(0, rootThread, "r1", "x"), approval(1, "T1", "c1", "x"), approval(2, "T2", "d1", "x"))
	for _, want := range []struct {
		at     int
		r      agent.Response
		id     string
		result string
	}{
		{2, agent.Response{Action: "accept"}, "2", `{"decision":"accept"}`},
		{0, agent.Response{Action: "decline"}, "0", `{"decision":"decline"}`},
		{1, agent.Response{OptionID: "cancel"}, "1", `{"decision":"cancel"}`},
	} {
		if err := s.answerWith(s.asked(want.at), want.r); err != nil {
			t.Fatal(err)
		}
		if m := s.expect("answer"); string(m.ID) != want.id || string(m.Result) != want.result {
			t.Errorf("answered %s with %s, want %s with %s", m.ID, m.Result, want.id, want.result)
		}
	}
}

func TestResolvedInEveryOrder(t *testing.T) {
	s := withChild(t)
	s.send(approval(0, "T1", "c1", "x"), resolvedNote("T1", 0)) // another client answered
	if got := s.asked(0).Status; got != agent.InteractionSuperseded {
		t.Errorf("resolved without an answer: %s", got)
	}
	s.send(approval(1, "T1", "c1", "x"), resolvedNote(rootThread, 1)) // another thread's
	if got := s.asked(1).Status; got != agent.InteractionPending {
		t.Errorf("resolved on another thread: %s", got)
	}
	s.send(resolvedNote("T1", 1), resolvedNote("T1", 1))

	s.send(approval(2, "T1", "c1", "x"))
	s.send(completed("T1", "c1", "r1", "interrupted"), resolvedNote("T1", 2)) // its word comes last
	if got := s.asked(2).Status; got != agent.InteractionSuperseded {
		t.Errorf("its turn ended: %s", got)
	}
}

func TestQuestionOfAnEndedTurnCannotBeAnswered(t *testing.T) {
	s := withChild(t)
	s.send(approval(0, "T1", "c1", "x"))
	i := s.asked(0)
	a, err := s.PrepareAnswer(i, agent.Response{OptionID: "accept"})
	if err != nil {
		t.Fatal(err)
	}
	s.send(completed("T1", "c1", "r1", "interrupted"))
	if err := s.rt.Answer(t.Context(), a); !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
		t.Errorf("answer ended with %v", err)
	}
	s.quiet()
}

func TestQuestionOfAClosedTargetCannotBeAnswered(t *testing.T) {
	s := withChild(t)
	s.send(approval(0, "T1", "c1", "x"))
	i := s.asked(0)
	a, err := s.PrepareAnswer(i, agent.Response{OptionID: "accept"})
	if err != nil {
		t.Fatal(err)
	}
	_, done := s.cancel(i.TurnID)
	stop := s.expectInterrupt("T1", "c1")
	if err := s.rt.Answer(t.Context(), a); !errors.Is(err, &agent.Error{Code: agent.CodeInteractionGone}) {
		t.Errorf("answer ended with %v", err)
	}
	s.send(approval(1, "T1", "c1", "y")) // asked while it is being stopped
	s.expect("refusal")
	s.answer(stop, `{}`)
	s.send(completed("T1", "c1", "r1", "interrupted"), resolvedNote("T1", 0))
	wait(t, done)
	if got := s.asked(0).Status; got != agent.InteractionSuperseded {
		t.Errorf("interaction is %s", got)
	}
}

func TestFileChangeShowsItsDiff(t *testing.T) {
	s := withChild(t)
	s.send(itemNote("started", "T1", "c1", `{"type":"fileChange","id":"p1","status":"inProgress","changes":[`+
		`{"path":"/w/new.txt","kind":{"type":"add"},"diff":"one\ntwo\n"},`+
		`{"path":"/w/old.txt","kind":{"type":"update","move_path":null},"diff":"@@ -1 +1 @@\n-a\n+b\n"}]}`))
	s.send(`{"id":0,"method":"` + askChange + `","params":{"threadId":"T1","turnId":"c1","itemId":"p1","reason":null,"grantRoot":null}}`)
	i := s.asked(0)
	want := "--- /dev/null\n+++ b/w/new.txt\n+one\n+two\n--- a/w/old.txt\n+++ b/w/old.txt\n@@ -1 +1 @@\n-a\n+b\n"
	if i.Detail.Diff != want {
		t.Errorf("diff %q", i.Detail.Diff)
	}
	if len(i.Options) != 4 {
		t.Errorf("options %+v", i.Options)
	}
}

func TestUserInput(t *testing.T) {
	s := newStage(t)
	in := s.begin("go", "r1")
	s.send(`{"id":0,"method":"` + askInput + `","params":{"threadId":"T0","turnId":"r1","itemId":"q","questions":[{"header":"Color","id":"color",` +
		`"question":"Which color?","options":[{"label":"Red","description":"warm"},{"label":"Blue","description":"cold"}]}]}}`)
	i := s.asked(0)
	if i.Kind != agent.InteractionQuestion || i.TurnID != in.Turn || len(i.Detail.Questions) != 1 || i.Detail.Questions[0].Options[1].ID != "Blue" {
		t.Errorf("interaction %+v", i)
	}
	if got := s.View().RootTurn().Phase; got != agent.PhaseWaiting {
		t.Errorf("root is %s", got)
	}
	if err := s.answerWith(i, agent.Response{Answers: map[string]string{"color": "Blue"}}); err != nil {
		t.Fatal(err)
	}
	if m := s.expect("answer"); string(m.Result) != `{"answers":{"color":{"answers":["Blue"]}}}` {
		t.Errorf("answered %s", m.Result)
	}
}

func TestRequestNobodyHandlesIsRefused(t *testing.T) {
	s := withChild(t)
	s.send(`{"id":5,"method":"item/tool/call","params":{"threadId":"T1","turnId":"c1"}}`)
	if m := s.expect("refusal"); string(m.ID) != "5" {
		t.Errorf("refused %s", m.ID)
	}
	s.send(`{"id":6,"method":"account/chatgptAuthTokens/refresh","params":{}}`)
	s.expect("refusal")
}

func TestAnswerAfterTheProcessEnded(t *testing.T) {
	s := withChild(t)
	s.send(approval(0, "T1", "c1", "x"))
	i := s.asked(0)
	a, err := s.PrepareAnswer(i, agent.Response{OptionID: "accept"})
	if err != nil {
		t.Fatal(err)
	}
	s.srv.end("signal: killed")
	<-s.rt.Done()
	if err := s.rt.Answer(context.Background(), a); !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
		t.Errorf("answer ended with %v", err)
	}
}
