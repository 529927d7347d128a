package agent_test

import (
	"errors"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestCancelOutcomeTable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		target  agent.CancelTarget
		outcome agent.Outcome
		state   agent.TargetState
	}{
		{"root, nothing heard", agent.CancelTarget{Root: true, Evidence: agent.TargetRequested}, agent.OutcomeCanceled, agent.TargetInterrupted},
		{"root, acknowledged", agent.CancelTarget{Root: true, Evidence: agent.TargetAcknowledged}, agent.OutcomeCanceled, agent.TargetCanceled},
		{"child, nothing heard", agent.CancelTarget{Evidence: agent.TargetRequested}, agent.OutcomeInterrupted, agent.TargetInterrupted},
		{"child, acknowledged", agent.CancelTarget{Evidence: agent.TargetAcknowledged}, agent.OutcomeCanceled, agent.TargetCanceled},
		{"child, confirmed", agent.CancelTarget{Evidence: agent.TargetCanceled}, agent.OutcomeCanceled, agent.TargetCanceled},
		{"child said to have ended, its terminal never came", agent.CancelTarget{Evidence: agent.TargetAlreadyTerminal}, agent.OutcomeInterrupted, agent.TargetInterrupted},
		{"child completed first", agent.CancelTarget{Settled: true, Outcome: agent.OutcomeCompleted, Evidence: agent.TargetAcknowledged}, agent.OutcomeCompleted, agent.TargetAlreadyTerminal},
		{"child lost with its process", agent.CancelTarget{Settled: true, Outcome: agent.OutcomeInterrupted, Evidence: agent.TargetAcknowledged}, agent.OutcomeInterrupted, agent.TargetInterrupted},
		{"child confirmed by its terminal", agent.CancelTarget{Settled: true, Outcome: agent.OutcomeCanceled}, agent.OutcomeCanceled, agent.TargetCanceled},
		{"root settled otherwise", agent.CancelTarget{Root: true, Settled: true, Outcome: agent.OutcomeFailed}, agent.OutcomeFailed, agent.TargetAlreadyTerminal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outcome, state := agent.CancelOutcome(tt.target)
			if outcome != tt.outcome || state != tt.state {
				t.Errorf("got %s %s, want %s %s", outcome, state, tt.outcome, tt.state)
			}
		})
	}
}

// A cancel is a success only when nothing about it is unconfirmed.
func TestCancelStatusNeverFlatters(t *testing.T) {
	for _, tt := range []struct {
		states []agent.TargetState
		want   agent.OperationStatus
	}{
		{[]agent.TargetState{agent.TargetCanceled, agent.TargetAlreadyTerminal}, agent.OperationSucceeded},
		{[]agent.TargetState{agent.TargetCanceled, agent.TargetInterrupted}, agent.OperationUnconfirmed},
		{[]agent.TargetState{agent.TargetRequested}, agent.OperationUnconfirmed},
		{nil, agent.OperationSucceeded},
	} {
		if got := agent.CancelStatus(tt.states); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.states, got, tt.want)
		}
	}
}

func TestEvidenceNeverWeakens(t *testing.T) {
	order := []agent.TargetState{agent.TargetRequested, agent.TargetAcknowledged, agent.TargetCanceled}
	for i, a := range order {
		for j, b := range order {
			if got, want := a.Stronger(b), order[max(i, j)]; got != want {
				t.Errorf("%s then %s: %s, want %s", a, b, got, want)
			}
		}
	}
	if got := agent.TargetCanceled.Stronger(agent.TargetAlreadyTerminal); got != agent.TargetCanceled {
		t.Errorf("the first end stands, got %s", got)
	}
	if got := agent.TargetRequested.Stronger(""); got != agent.TargetRequested {
		t.Errorf("no evidence is no evidence, got %s", got)
	}
}

// TestNextInteractionTable is the whole life of a question.
func TestNextInteractionTable(t *testing.T) {
	const (
		pend, ing, done, gone = agent.InteractionPending, agent.InteractionAnswering, agent.InteractionAnswered, agent.InteractionSuperseded
		app, same, no         = agent.VerdictApplied, agent.VerdictUnchanged, agent.VerdictRefused
	)
	allow, deny := agent.Response{OptionID: "allow"}, agent.Response{OptionID: "deny"}
	type cell struct {
		to agent.InteractionStatus
		v  agent.Verdict
	}
	table := map[agent.InteractionStep]map[agent.InteractionStatus]cell{
		agent.AskAnswer:    {pend: {ing, app}, ing: {ing, same}, done: {done, same}, gone: {gone, no}},
		agent.AskDelivered: {pend: {pend, same}, ing: {done, app}, done: {done, same}, gone: {gone, same}},
		agent.AskFailed:    {pend: {pend, same}, ing: {pend, app}, done: {done, same}, gone: {gone, same}},
		agent.AskResolved:  {pend: {gone, app}, ing: {done, app}, done: {done, same}, gone: {gone, same}},
		agent.AskWithdraw:  {pend: {gone, app}, ing: {gone, app}, done: {done, same}, gone: {gone, same}},
	}
	for _, step := range agent.InteractionSteps {
		for _, status := range []agent.InteractionStatus{pend, ing, done, gone} {
			want, ok := table[step][status]
			if !ok {
				t.Fatalf("no row for %s in %s", step, status)
			}
			state := agent.InteractionState{Status: status}
			if status == ing || status == done {
				state.Response = &allow
			}
			got, v, _ := agent.NextInteraction(state, agent.InteractionChange{Step: step, Response: allow})
			if got.Status != want.to || v != want.v {
				t.Errorf("%s in %s: %s %s, want %s %s", step, status, got.Status, v, want.to, want.v)
			}
			if step != agent.AskAnswer || status == pend {
				continue
			}
			if _, v, code := agent.NextInteraction(state, agent.InteractionChange{Step: step, Response: deny}); v != no || code == "" {
				t.Errorf("another answer in %s: %s %q; the first must win", status, v, code)
			}
		}
	}
	failed, _, _ := agent.NextInteraction(agent.InteractionState{Status: ing, Response: &allow}, agent.InteractionChange{Step: agent.AskFailed})
	if failed.Response != nil {
		t.Error("an answer that was not delivered is still recorded as given")
	}
}

func TestFence(t *testing.T) {
	open := agent.AdmitView{RootExists: true, RootOpen: true}
	for _, tt := range []struct {
		name        string
		view        func(*agent.AdmitView)
		child, turn agent.Code
		provider    agent.Admission
	}{
		{"open", func(*agent.AdmitView) {}, "", "", agent.AdmissionAttach},
		{"busy", func(v *agent.AdmitView) { v.SessionBusy = true }, "", agent.CodeSessionBusy, agent.AdmissionAttach},
		{"root closed", func(v *agent.AdmitView) { v.RootClosed = true }, agent.CodeTurnCanceling, agent.CodeTurnCanceling, agent.AdmissionRefuse},
		{"parent closed", func(v *agent.AdmitView) { v.ParentClosed = true }, agent.CodeTurnCanceling, agent.CodeTurnCanceling, agent.AdmissionAttach},
		{"settled", func(v *agent.AdmitView) { v.RootOpen = false }, agent.CodeTurnSettled, agent.CodeTurnSettled, agent.AdmissionNew},
		{"canceled, nothing asked since", func(v *agent.AdmitView) { v.RootOpen, v.UnaskedBarred = false, true }, agent.CodeTurnSettled, agent.CodeTurnSettled, agent.AdmissionRefuse},
		{"deleted", func(v *agent.AdmitView) { v.SessionGone = true }, agent.CodeSessionDeleted, agent.CodeSessionDeleted, agent.AdmissionRefuse},
		{"unknown", func(v *agent.AdmitView) { v.RootExists = false }, agent.CodeSessionDeleted, agent.CodeSessionDeleted, agent.AdmissionRefuse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := open
			tt.view(&v)
			if got := agent.AdmitChild(v); got != tt.child {
				t.Errorf("child: %q, want %q", got, tt.child)
			}
			if got := agent.AdmitTurn(v); got != tt.turn {
				t.Errorf("turn: %q, want %q", got, tt.turn)
			}
			if got, code := agent.AdmitProviderTurn(v); got != tt.provider || (got == agent.AdmissionRefuse) != (code != "") {
				t.Errorf("provider turn: %s %q, want %s", got, code, tt.provider)
			}
		})
	}
}

func TestPlaceMessage(t *testing.T) {
	all := agent.Capabilities{Guide: true, GuideWhileChildrenRun: true}
	for _, tt := range []struct {
		name string
		view agent.PlaceView
		want agent.Delivery
		code agent.Code
	}{
		{"idle root", agent.PlaceView{Kind: agent.KindRoot}, agent.DeliveryStarted, ""},
		{"running", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, LiveProvider: true, Capabilities: all}, agent.DeliveryGuided, ""},
		{"only children run", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, Capabilities: all}, agent.DeliveryGuided, ""},
		{"running, cannot", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, LiveProvider: true}, "", agent.CodeGuidanceUnsupported},
		{"only children run, cannot", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, Capabilities: agent.Capabilities{Guide: true}}, "", agent.CodeGuidanceUnsupported},
		{"being stopped", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, CancelOpen: true, Capabilities: all}, "", agent.CodeTurnCanceling},
		{"a child", agent.PlaceView{Kind: agent.KindChild, RootOpen: true, Capabilities: all}, "", agent.CodeChildInput},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, code := agent.PlaceMessage(tt.view); got != tt.want || code != tt.code {
				t.Errorf("got %q %q, want %q %q", got, code, tt.want, tt.code)
			}
		})
	}
}

func TestCheckAnswer(t *testing.T) {
	approval := agent.Interaction{Kind: agent.InteractionApproval, Options: []agent.Option{{ID: "yes", Role: agent.RoleAllow}, {ID: "no", Role: agent.RoleDeny}}}
	question := agent.Interaction{Kind: agent.InteractionQuestion}
	for _, tt := range []struct {
		name string
		ask  agent.Interaction
		r    agent.Response
		ok   bool
	}{
		{"offered", approval, agent.Response{OptionID: "no"}, true},
		{"not offered", approval, agent.Response{OptionID: "maybe"}, false},
		{"nothing", question, agent.Response{}, false},
		{"words to an approval", approval, agent.Response{Text: "sure"}, false},
		{"by what it does", approval, agent.Response{Action: "decline"}, true},
		{"an action that no option does", agent.Interaction{Kind: agent.InteractionApproval}, agent.Response{Action: "accept"}, false},
		{"words to a question", question, agent.Response{Text: "the second one"}, true},
		{"answers by id", question, agent.Response{Answers: map[string]string{"q1": "a"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := agent.CheckAnswer(tt.ask, tt.r); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestChosen(t *testing.T) {
	ask := agent.Interaction{Options: []agent.Option{
		{ID: "always", Role: agent.RoleAllowAlways}, {ID: "once", Role: agent.RoleAllow}, {ID: "no", Role: agent.RoleDeny}, {ID: "stop", Role: agent.RoleAbort},
	}}
	for r, want := range map[string]string{"accept": "once", "decline": "no", "cancel": "stop", "": ""} {
		if got := ask.Chosen(agent.Response{Action: r}); got != want {
			t.Errorf("%q chooses %q, want %q", r, got, want)
		}
	}
	ask.Options = ask.Options[:3]
	if got := ask.Chosen(agent.Response{Action: "cancel"}); got != "no" {
		t.Errorf("without a way to stop, cancel chooses %q", got)
	}
	if got := ask.Chosen(agent.Response{OptionID: "always", Action: "decline"}); got != "always" {
		t.Errorf("a named option is %q", got)
	}
}

func TestCheckChildWantsTheWholeEdge(t *testing.T) {
	whole := agent.Session{ID: "c", Kind: agent.KindChild, Relation: agent.Relation{
		ParentSessionID: "p", ParentTurnID: "t", RootSessionID: "r", RootTurnID: "rt",
	}}
	if err := agent.CheckChild(whole); err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*agent.Session){
		"a root":         func(s *agent.Session) { s.Kind = agent.KindRoot },
		"no parent":      func(s *agent.Session) { s.ParentSessionID = "" },
		"no parent turn": func(s *agent.Session) { s.ParentTurnID = "" },
		"no root":        func(s *agent.Session) { s.RootSessionID = "" },
		"no root turn":   func(s *agent.Session) { s.RootTurnID = "" },
		"own parent":     func(s *agent.Session) { s.ParentSessionID = s.ID },
	} {
		s := whole
		breakIt(&s)
		if agent.CheckChild(s) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestErrorsCompareByCode(t *testing.T) {
	err := error(agent.Errorf(agent.CodeTurnSettled, "turn %s has ended", "t1"))
	if !errors.Is(err, &agent.Error{Code: agent.CodeTurnSettled}) || errors.Is(err, &agent.Error{Code: agent.CodeConflict}) {
		t.Errorf("%v compares wrongly", err)
	}
}

func TestClientIDs(t *testing.T) {
	for id, ok := range map[string]bool{"a-1": true, "": false, "a b": false, "tab\t": false, "ümlaut": false, string(make([]byte, 10)): false} {
		if agent.ValidClientID(id) != ok {
			t.Errorf("%q: %v", id, !ok)
		}
	}
}
