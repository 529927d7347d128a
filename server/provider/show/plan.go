package show

import (
	"fmt"
	"strings"
)

// Step is one step of a plan or of a to-do list.
type Step struct {
	Text   string
	Done   bool
	Active bool
}

// PlanTitle says how far a plan has come.
func PlanTitle(steps []Step) string {
	done := 0
	for _, s := range steps {
		if s.Done {
			done++
		}
	}
	return fmt.Sprintf("Plan: %d of %d steps done", done, len(steps))
}

// PlanText lists the steps, a line each, below why they were chosen ("" if nobody said).
func PlanText(why string, steps []Step) string {
	var b strings.Builder
	if why != "" {
		b.WriteString(why + "\n\n")
	}
	for _, s := range steps {
		mark := "[ ]"
		switch {
		case s.Done:
			mark = "[x]"
		case s.Active:
			mark = "[>]"
		}
		b.WriteString(mark + " " + s.Text + "\n")
	}
	return Output(b.String())
}
