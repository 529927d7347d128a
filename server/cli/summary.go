package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/replay"
)

// shownTitle is how many characters of a title a summary shows.
const shownTitle = 60

// printSummary says in a few lines what a recording came to. Titles are the recording's
// own text, so they are quoted: nothing in them reaches the terminal as it is.
func (a *app) printSummary(end *replay.End) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	section := func(name string, n int) {
		fmt.Fprintf(w, "%s: %d\n", name, n)
	}
	section("Sessions", len(end.Sessions))
	for i := range end.Sessions {
		s := &end.Sessions[i]
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", s.ID, s.Kind, edge(s), quoted(s.Title))
	}
	section("Turns", len(end.Turns))
	for i := range end.Turns {
		t := &end.Turns[i]
		fmt.Fprintf(w, "  %s\tof %s\t%s\t%s\t%s\n", t.ID, t.SessionID, t.Trigger, ended(t), providerWord(t))
	}
	section("Questions", len(end.Interactions))
	for i := range end.Interactions {
		q := &end.Interactions[i]
		fmt.Fprintf(w, "  %s\tof %s\t%s\t%s\t%s\n", q.RequestID, q.SessionID, q.Kind, answeredBy(q), quoted(q.Title))
	}
	section("Operations", len(end.Operations))
	for i := range end.Operations {
		o := &end.Operations[i]
		fmt.Fprintf(w, "  %s\tof %s\t%s\t%s\t%s\n", o.ID, o.SessionID, o.Kind, o.Status, heard(o))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	d, v := end.Diagnostics, end.Invariants
	verdict := "they hold"
	if !v.Hold() {
		verdict = "THEY DO NOT HOLD"
	}
	cut := ""
	if d.Truncated > 0 {
		cut = "The recording breaks off in its last line, which was left out.\n"
	}
	_, err := fmt.Fprintf(a.out, "Messages: %d\nDiagnostics: unrouted %d, held %d, late %d, refused %d\n%sInvariants: openBelowSettled %d, settledTwice %d: %s\n",
		len(end.Messages), d.Unrouted, d.Held, d.Late, d.Refused, cut, v.OpenBelowSettled, v.SettledTwice, verdict)
	return err
}

// edge says which turn and which call a child was launched by.
func edge(s *agent.Session) string {
	if s.IsRoot() {
		return ""
	}
	text := fmt.Sprintf("of %s in turn %s", s.ParentSessionID, s.ParentTurnID)
	if s.ParentToolCallID != "" {
		text += fmt.Sprintf(" by call %s", s.ParentToolCallID)
	}
	return text
}

func ended(t *agent.Turn) string {
	if t.Live() {
		return "still " + string(t.Phase)
	}
	return string(t.Outcome)
}

// providerWord is what the provider said of a root turn's own part, which the rest of the
// tree may have outlived.
func providerWord(t *agent.Turn) string {
	if t.ProviderTurn == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("its provider turn %s %s", t.ProviderTurn.Phase, t.ProviderTurn.Outcome))
}

func answeredBy(i *agent.Interaction) string {
	if i.AnsweredBy == "" {
		return string(i.Status)
	}
	return fmt.Sprintf("%s by %s", i.Status, i.AnsweredBy)
}

// heard counts what became of an operation's targets.
func heard(o *agent.Operation) string {
	order := []agent.TargetState{}
	counts := map[agent.TargetState]int{}
	for _, t := range o.Targets {
		if counts[t.State] == 0 {
			order = append(order, t.State)
		}
		counts[t.State]++
	}
	parts := make([]string, len(order))
	for i, s := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[s], s)
	}
	return strings.Join(parts, ", ")
}

func quoted(title string) string {
	if title == "" {
		return ""
	}
	if r := []rune(title); len(r) > shownTitle {
		title = string(r[:shownTitle-1]) + "…"
	}
	return fmt.Sprintf("%q", title)
}
