package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const printed = `goos: linux
BenchmarkGate/raw/producers=1/normal-2         	    3000	    152345 ns/op	      12.5 p99-ms	  4096 B/op
BenchmarkGate/raw/producers=1/full         	    3000	    2345 ns/op
PASS
`

func TestParse(t *testing.T) {
	tests := []struct {
		name, metric string
		want         float64
		fails        bool
	}{
		{"BenchmarkGate/raw/producers=1/normal", "ns/op", 152345, false},
		{"BenchmarkGate/raw/producers=1/normal", "p99-ms", 12.5, false},
		{"BenchmarkGate/raw/producers=1/full", "ns/op", 2345, false},
		{"BenchmarkGate/raw/producers=1/full", "p99-ms", 0, true},
		{"BenchmarkGate/impl", "ns/op", 0, true},
	}
	for _, tt := range tests {
		got, err := parse(printed, tt.name, tt.metric)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("parse(%s, %s) = %g, %v", tt.name, tt.metric, got, err)
		}
	}
}

func TestJudge(t *testing.T) {
	faster := row{Better: "higher", Floor: 0.85, Goal: 1.2}
	cheaper := row{Better: "lower", Floor: 2.5, Goal: 1.5}
	tests := []struct {
		name  string
		row   row
		ratio float64
		slack float64
		want  verdict
	}{
		{"speed at goal", faster, 1.2, 1, verdictGoal},
		{"speed at floor", faster, 0.85, 1, verdictFloor},
		{"speed below", faster, 0.84, 1, verdictBelow},
		{"speed below with slack", faster, 0.43, 2, verdictFloor},
		{"cost at goal", cheaper, 1.4, 1, verdictGoal},
		{"cost at floor", cheaper, 2.5, 1, verdictFloor},
		{"cost below", cheaper, 2.6, 1, verdictBelow},
		{"cost below with slack", cheaper, 4.9, 2, verdictFloor},
	}
	for _, tt := range tests {
		if got := tt.row.judge(result{ratio: tt.ratio}, tt.slack); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 2, 3}, 0: {}} {
		if got := median(values); got != want {
			t.Errorf("median(%v) = %g, want %g", values, got, want)
		}
	}
}

func TestPairReadsTheRatioInItsDirection(t *testing.T) {
	if got, _ := (row{A: "a", Better: "higher"}).pair(200, 100); got != 2 {
		t.Errorf("half the time is a speed-up of %g, want 2", got)
	}
	if got, _ := (row{A: "a", Better: "lower"}).pair(200, 100); got != 0.5 {
		t.Errorf("half the cost is %g, want 0.5", got)
	}
	if _, err := (row{A: "a", Better: "lower"}).pair(0, 1); err == nil {
		t.Error("a yardstick of zero was compared with")
	}
	if got, _ := (row{Better: "lower"}).pair(0, 31); got != 31 {
		t.Errorf("an absolute row gives %g, want 31", got)
	}
}

func TestPatternMatchesOneBenchmark(t *testing.T) {
	if got, want := pattern("BenchmarkGate/raw/producers=1"), "^BenchmarkGate$/^raw$/^producers=1$"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheRowsOfThisRepositoryAreWhole(t *testing.T) {
	rows, err := readRows("../floors.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.Row] {
			t.Errorf("row %s is there twice", r.Row)
		}
		seen[r.Row] = true
	}
	for _, want := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "15", "17", "18", "19", "19cpu", "21"} {
		if !seen[want] {
			t.Errorf("row %s is missing", want)
		}
	}
}
