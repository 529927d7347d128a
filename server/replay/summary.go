package replay

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// shownTitle is how many characters of a title a summary shows.
const shownTitle = 60

// Summary writes in a few lines for people what a recording came to. Titles are the
// recording's own text, so they are quoted: nothing in them reaches a terminal as it is.
func (end *End) Summary(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	end.list(w)
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
	_, err := fmt.Fprintf(to, "Messages: %d\nDiagnostics: unrouted %d, held %d, late %d, refused %d\n%sInvariants: openBelowSettled %d, settledTwice %d: %s\n",
		len(end.Messages), d.Unrouted, d.Held, d.Late, d.Refused, cut, v.OpenBelowSettled, v.SettledTwice, verdict)
	return err
}

// list writes the entities in columns; the writer's tabs align them. Errors show when it is
// flushed.
func (end *End) list(w io.Writer) {
	row := func(cells ...string) {
		fmt.Fprintln(w, "  "+strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	fmt.Fprintf(w, "Sessions: %d\n", len(end.Sessions))
	for i := range end.Sessions {
		s := &end.Sessions[i]
		row(string(s.ID), string(s.Kind), edge(s), quoted(s.Title))
	}
	fmt.Fprintf(w, "Turns: %d\n", len(end.Turns))
	for i := range end.Turns {
		t := &end.Turns[i]
		row(string(t.ID), "of "+string(t.SessionID), string(t.Trigger), ended(t), providerWord(t))
	}
	fmt.Fprintf(w, "Questions: %d\n", len(end.Interactions))
	for i := range end.Interactions {
		q := &end.Interactions[i]
		row(string(q.RequestID), "of "+string(q.SessionID), string(q.Kind), answeredBy(q), quoted(q.Title))
	}
	fmt.Fprintf(w, "Operations: %d\n", len(end.Operations))
	for i := range end.Operations {
		o := &end.Operations[i]
		row(string(o.ID), "of "+string(o.SessionID), string(o.Kind), string(o.Status), heard(o))
	}
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
