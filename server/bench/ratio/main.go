// Command ratio measures the project against raw yardsticks that hold no project code.
// It runs the two benchmarks of each row of floors.json in turn, A B A B, so that whatever
// else the machine does falls on both alike; prints both medians, the median of the paired
// ratios and the distance to the goal; and fails when a row is below its floor.
//
// It owns the pairing and the verdict. What is measured belongs to the benchmarks beside
// the code that they measure.
//
//	go run ./server/bench/ratio [-rounds 7] [-row 1,2,8] [-slack 1] [-floors FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	rounds := flag.Int("rounds", 7, "rounds of each pair; rows may ask for fewer")
	only := flag.String("row", "", "rows to run, separated by commas; all if empty")
	slack := flag.Float64("slack", 1, "how much worse than its floor a row may be: 2 on shared machines")
	floors := flag.String("floors", "server/bench/floors.json", "the rows")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Stdout, *floors, *only, *rounds, *slack)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratio:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run measures the rows and reports whether all hold their floors.
func run(ctx context.Context, out io.Writer, floors, only string, rounds int, slack float64) (bool, error) {
	rows, err := readRows(floors)
	if err != nil {
		return false, err
	}
	bin, err := os.MkdirTemp("", "turnkeeper-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(bin)
	b := &binaries{dir: bin, built: map[string]string{}}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\twhat\tyardstick\tours\tratio\tfloor\tgoal\tverdict")
	held := true
	for _, r := range rows {
		if !r.wanted(only) {
			continue
		}
		res, err := r.measure(ctx, b, rounds)
		if err != nil { // the other rows are still worth knowing
			held = false
			fmt.Fprintf(os.Stderr, "row %s: %v\n", r.Row, err)
			fmt.Fprintf(table, "%s\t%s\t-\t-\t-\t%s\t%s\tNOT MEASURED\n", r.Row, r.What, r.bound(r.Floor), r.bound(r.Goal))
			continue
		}
		verdict := r.judge(res, slack)
		held = held && verdict != verdictBelow
		fmt.Fprintf(os.Stderr, "row %s: %s: %.3g, %s\n", r.Row, r.What, res.ratio, verdict)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.3g\t%s\t%s\t%s\n", r.Row, r.What, res.a, res.b, res.ratio, r.bound(r.Floor), r.bound(r.Goal), r.distance(res, verdict))
	}
	return held, table.Flush()
}

// wanted reports whether the row is among those asked for.
func (r row) wanted(only string) bool {
	if only == "" {
		return true
	}
	for name := range strings.SplitSeq(only, ",") {
		if strings.TrimSpace(name) == r.Row {
			return true
		}
	}
	return false
}
