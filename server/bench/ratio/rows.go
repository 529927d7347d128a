package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// row is one line of floors.json: two benchmarks and what their ratio must be.
type row struct {
	Row     string `json:"row"`
	What    string `json:"what"`
	Package string `json:"package"`
	// A is the yardstick, B ours; names as the benchmark prints them, without the
	// processor count. A is empty where the bound is absolute.
	A         string `json:"a,omitempty"`
	B         string `json:"b"`
	Metric    string `json:"metric"` // unit as printed: ns/op, p99-ms …
	Benchtime string `json:"benchtime"`
	Rounds    int    `json:"rounds,omitempty"` // at most; for rows with a costly fixture
	// Better says how to read the ratio: "higher" is yardstick divided by ours, a speed-up;
	// "lower" is ours divided by the yardstick, a cost.
	Better string  `json:"better"`
	Floor  float64 `json:"floor"`
	Goal   float64 `json:"goal"`
}

func readRows(path string) ([]row, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Note string `json:"note"`
		Rows []row  `json:"rows"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range file.Rows {
		if r.Better != "higher" && r.Better != "lower" || r.B == "" || r.Metric == "" || r.Floor == 0 || r.Goal == 0 {
			return nil, fmt.Errorf("%s: row %q is not whole", path, r.Row)
		}
	}
	return file.Rows, nil
}

// result is one measured row.
type result struct {
	a, b  amount
	ratio float64 // median of the paired ratios; of an absolute row the amount itself
}

type amount struct {
	value float64
	unit  string
}

func (a amount) String() string {
	if a.unit == "" {
		return "-"
	}
	return fmt.Sprintf("%.4g %s", a.value, a.unit)
}

type verdict string

const (
	verdictGoal  verdict = "goal"
	verdictFloor verdict = "floor"
	verdictBelow verdict = "BELOW FLOOR"
)

// judge compares with the floor, loosened by slack, and with the goal.
func (r row) judge(res result, slack float64) verdict {
	holds := func(bound float64) bool {
		if r.Better == "higher" {
			return res.ratio >= bound
		}
		return res.ratio <= bound
	}
	floor := r.Floor * slack
	if r.Better == "higher" {
		floor = r.Floor / slack
	}
	switch {
	case holds(r.Goal):
		return verdictGoal
	case holds(floor):
		return verdictFloor
	}
	return verdictBelow
}

// bound writes a floor or a goal with its direction.
func (r row) bound(v float64) string {
	if r.Better == "higher" {
		return fmt.Sprintf("≥ %.3g", v)
	}
	return fmt.Sprintf("≤ %.3g", v)
}

// distance is the verdict with how far the goal is.
func (r row) distance(res result, v verdict) string {
	if v == verdictGoal || res.ratio == 0 {
		return string(v)
	}
	far := res.ratio / r.Goal
	if r.Better == "higher" {
		far = r.Goal / res.ratio
	}
	return fmt.Sprintf("%s, goal is %.2g× away", v, far)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
