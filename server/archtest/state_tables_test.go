package archtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var update = flag.Bool("update", false, "write docs/state-tables.md from the rules")

// The page is written by the rules themselves, so that it cannot say anything else.
func TestStateTablesSayWhatTheRulesDo(t *testing.T) {
	path := filepath.Join(root(), "docs", "state-tables.md")
	want := stateTables()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/state-tables.md differs from the rules of server/agent; if the rules are right, run: go test ./server/archtest -run StateTables -update\n%s", diff)
	}
}

func stateTables() string {
	var b strings.Builder
	b.WriteString(`# State tables

Written from ` + "`server/agent`" + ` by ` + "`go test ./server/archtest -run StateTables -update`" + `; a test fails when they differ.
Do not edit by hand.

Verdicts: a new state means *applied*; "same" changes nothing because it is true already; "late" is kept as history at
most; a word in code type is a refusal with that code.

`)
	b.WriteString(turnTable("The turn of a child", "`NextTurn`. A child ends by its provider's own terminal, by a cancel, or with its process.", false))
	b.WriteString(turnTable("The root turn", "`NextTurn`. The two refusals are the point: a root turn has no terminal of its own. `Gate` settles it.", true))
	b.WriteString(gateTable())
	b.WriteString(interactionTable())
	b.WriteString(cancelTable())
	b.WriteString(fenceTable())
	b.WriteString(placeTable())
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// table writes a Markdown table.
func table(title, note string, head []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n| %s |\n|%s\n", title, note, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	b.WriteString("\n")
	return b.String()
}

func code(c agent.Code) string { return "`" + string(c) + "`" }

func turnTable(title, note string, root bool) string {
	changes := []struct {
		label string
		agent.Change
	}{
		{"begin", agent.Change{Step: agent.StepBegin}},
		{"prompt", agent.Change{Step: agent.StepPrompt}},
		{"resume", agent.Change{Step: agent.StepResume}},
		{"close", agent.Change{Step: agent.StepClose}},
		{"end completed", agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeCompleted}},
		{"end failed", agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeFailed}},
		{"end interrupted", agent.Change{Step: agent.StepEnd, Outcome: agent.OutcomeInterrupted}},
		{"stop canceled", agent.Change{Step: agent.StepStop, Outcome: agent.OutcomeCanceled}},
		{"stop interrupted", agent.Change{Step: agent.StepStop, Outcome: agent.OutcomeInterrupted}},
		{"lose", agent.Change{Step: agent.StepLose}},
	}
	states := []agent.TurnState{
		{Root: root, Phase: agent.PhaseSubmitted},
		{Root: root, Phase: agent.PhaseRunning},
		{Root: root, Phase: agent.PhaseWaiting},
		{Root: root, Phase: agent.PhaseSettling},
		{Root: root, Phase: agent.PhaseSettled, Outcome: agent.OutcomeCompleted},
	}
	head := []string{"step"}
	for _, s := range states {
		head = append(head, turnState(s))
	}
	var rows [][]string
	for _, c := range changes {
		row := []string{"**" + c.label + "**"}
		for _, s := range states {
			next, verdict, why := agent.NextTurn(s, c.Change)
			row = append(row, cell(turnState(next), verdict, why))
		}
		rows = append(rows, row)
	}
	return table(title, note, head, rows)
}

func turnState(s agent.TurnState) string {
	if s.Phase == agent.PhaseSettled {
		return string(s.Phase) + ": " + string(s.Outcome)
	}
	return string(s.Phase)
}

func cell(next string, v agent.Verdict, why agent.Code) string {
	switch v {
	case agent.VerdictApplied:
		return next
	case agent.VerdictUnchanged:
		return "same"
	case agent.VerdictLate:
		return "late"
	case agent.VerdictRefused:
		return code(why)
	}
	return "?"
}

func interactionTable() string {
	yes, no := agent.Response{OptionID: "yes"}, agent.Response{OptionID: "no"}
	states := []struct {
		label string
		agent.InteractionState
	}{
		{"pending", agent.InteractionState{Status: agent.InteractionPending}},
		{"answering (yes)", agent.InteractionState{Status: agent.InteractionAnswering, Response: &yes}},
		{"answered (yes)", agent.InteractionState{Status: agent.InteractionAnswered, Response: &yes}},
		{"superseded", agent.InteractionState{Status: agent.InteractionSuperseded}},
	}
	changes := []struct {
		label string
		agent.InteractionChange
	}{
		{"answer yes", agent.InteractionChange{Step: agent.AskAnswer, Response: yes}},
		{"answer no", agent.InteractionChange{Step: agent.AskAnswer, Response: no}},
		{"delivered", agent.InteractionChange{Step: agent.AskDelivered}},
		{"failed", agent.InteractionChange{Step: agent.AskFailed}},
		{"resolved", agent.InteractionChange{Step: agent.AskResolved}},
		{"withdraw", agent.InteractionChange{Step: agent.AskWithdraw}},
	}
	head := []string{"step"}
	for _, s := range states {
		head = append(head, s.label)
	}
	var rows [][]string
	for _, c := range changes {
		row := []string{"**" + c.label + "**"}
		for _, s := range states {
			next, verdict, why := agent.NextInteraction(s.InteractionState, c.InteractionChange)
			row = append(row, cell(string(next.Status), verdict, why))
		}
		rows = append(rows, row)
	}
	return table("A question", "`NextInteraction`. The first answer wins; it counts only once the provider has taken it; a failed delivery opens the question again.", head, rows)
}

func cancelTable() string {
	states := []agent.TargetState{agent.TargetRequested, agent.TargetAcknowledged, agent.TargetCanceled, agent.TargetAlreadyTerminal}
	var rows [][]string
	add := func(label string, t agent.CancelTarget, evidence string) {
		outcome, state := agent.CancelOutcome(t)
		rows = append(rows, []string{label, evidence, string(outcome), string(state), string(agent.CancelStatus([]agent.TargetState{state}))})
	}
	for _, s := range states {
		add("root", agent.CancelTarget{Root: true, Evidence: s}, string(s))
	}
	for _, s := range states {
		add("child", agent.CancelTarget{Evidence: s}, string(s))
	}
	for _, o := range []agent.Outcome{agent.OutcomeCompleted, agent.OutcomeFailed, agent.OutcomeCanceled} {
		add("child that ended "+string(o), agent.CancelTarget{Settled: true, Outcome: o, Evidence: agent.TargetRequested}, "any")
	}
	add("child lost with its process", agent.CancelTarget{Settled: true, Outcome: agent.OutcomeInterrupted, Evidence: agent.TargetRequested}, "any")
	return table("A cancel, by the evidence when it completes", "`CancelOutcome` and `CancelStatus`. The last column is the operation with this one target; it is succeeded only when every target is confirmed.",
		[]string{"target", "strongest evidence", "turn ends", "target reads", "operation"}, rows)
}

func fenceTable() string {
	views := []struct {
		label string
		v     agent.AdmitView
	}{
		{"root open", agent.AdmitView{RootExists: true, RootOpen: true}},
		{"root settled", agent.AdmitView{RootExists: true}},
		{"root settled, last turn canceled, nobody asked since", agent.AdmitView{RootExists: true, UnaskedBarred: true}},
		{"cancel of the root prepared", agent.AdmitView{RootExists: true, RootOpen: true, RootClosed: true}},
		{"cancel of the parent turn prepared", agent.AdmitView{RootExists: true, RootOpen: true, ParentClosed: true}},
		{"child has a live turn", agent.AdmitView{RootExists: true, RootOpen: true, SessionBusy: true}},
		{"deleted", agent.AdmitView{RootExists: true, RootOpen: true, SessionGone: true}},
		{"unknown root", agent.AdmitView{}},
	}
	admitted := func(c agent.Code, yes string) string {
		if c == "" {
			return yes
		}
		return code(c)
	}
	var rows [][]string
	for _, view := range views {
		place, why := agent.AdmitProviderTurn(view.v)
		rows = append(rows, []string{view.label, admitted(agent.AdmitChild(view.v), "admitted"), admitted(agent.AdmitTurn(view.v), "admitted"), admitted(why, string(place))})
	}
	return table("The fence: what may still start", "`AdmitChild`, `AdmitTurn`, `AdmitProviderTurn`. Storage repeats each as a guard in SQL. \"new\" is a root turn with trigger *provider*.",
		[]string{"when", "new child", "another turn of a child", "provider turn nobody asked for"}, rows)
}

func placeTable() string {
	all := agent.Capabilities{Guide: true, GuideWhileChildrenRun: true}
	views := []struct {
		label string
		v     agent.PlaceView
	}{
		{"no open turn", agent.PlaceView{Kind: agent.KindRoot}},
		{"provider turn runs, provider can be guided", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, LiveProvider: true, Capabilities: all}},
		{"provider turn runs, it cannot", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, LiveProvider: true}},
		{"only children run, provider takes a message then", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, Capabilities: all}},
		{"only children run, it does not", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, Capabilities: agent.Capabilities{Guide: true}}},
		{"a stop is under way", agent.PlaceView{Kind: agent.KindRoot, RootOpen: true, CancelOpen: true, Capabilities: all}},
		{"to a child", agent.PlaceView{Kind: agent.KindChild, RootOpen: true, Capabilities: all}},
	}
	var rows [][]string
	for _, view := range views {
		delivery, why := agent.PlaceMessage(view.v)
		where := string(delivery)
		if why != "" {
			where = code(why)
		}
		rows = append(rows, []string{view.label, where})
	}
	return table("Where a message goes", "`PlaceMessage`. It never starts a second turn beside an open one.", []string{"when", "delivery"}, rows)
}
