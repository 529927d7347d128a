package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
)

// printJSON writes v for programs: two spaces, one newline at the end, no HTML escapes.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printPairs writes names and values in two columns.
func (a *app) printPairs(pairs ...[2]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, p := range pairs {
		fmt.Fprintf(w, "%s\t%s\n", p[0], p[1])
	}
	return w.Flush()
}
