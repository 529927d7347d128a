package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// measure runs the pair in turn and takes the medians.
func (r row) measure(ctx context.Context, b *binaries, rounds int) (result, error) {
	bin, err := b.build(ctx, r.Package)
	if err != nil {
		return result{}, err
	}
	if r.Rounds > 0 {
		rounds = min(rounds, r.Rounds)
	}
	var as, bs, ratios []float64
	for range max(rounds, 1) {
		var yard float64
		if r.A != "" {
			if yard, err = bench(ctx, bin, r.Package, r.A, r.Benchtime, r.Metric); err != nil {
				return result{}, err
			}
			as = append(as, yard)
		}
		ours, err := bench(ctx, bin, r.Package, r.B, r.Benchtime, r.Metric)
		if err != nil {
			return result{}, err
		}
		bs = append(bs, ours)
		ratio, err := r.pair(yard, ours)
		if err != nil {
			return result{}, err
		}
		ratios = append(ratios, ratio)
	}
	res := result{b: amount{median(bs), r.Metric}, ratio: median(ratios)}
	if r.A != "" {
		res.a = amount{median(as), r.Metric}
	}
	return res, nil
}

// pair is the ratio of one round.
func (r row) pair(yard, ours float64) (float64, error) {
	switch {
	case r.A == "":
		return ours, nil
	case yard == 0 || ours == 0:
		return 0, fmt.Errorf("a measurement of zero cannot be compared (%s %g, %s %g)", r.A, yard, r.B, ours)
	case r.Better == "higher":
		return yard / ours, nil
	}
	return ours / yard, nil
}

// binaries compiles each package's benchmarks once.
type binaries struct {
	dir   string
	built map[string]string
}

func (b *binaries) build(ctx context.Context, pkg string) (string, error) {
	if path, ok := b.built[pkg]; ok {
		return path, nil
	}
	path := filepath.Join(b.dir, strings.NewReplacer("/", "_", ".", "").Replace(pkg)+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	b.built[pkg] = path
	return path, nil
}

// bench runs one benchmark once and returns its metric.
func bench(ctx context.Context, bin, pkg, name, benchtime, metric string) (float64, error) {
	cmd := exec.CommandContext(ctx, bin, "-test.run", "^$", "-test.bench", pattern(name), "-test.benchtime", benchtime, "-test.timeout", "30m")
	cmd.Dir = filepath.FromSlash(pkg) // as `go test` would, so that testdata is found
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s%s", name, err, out.String(), stderr.String())
	}
	v, err := parse(out.String(), name, metric)
	if err != nil {
		return 0, fmt.Errorf("%w in:\n%s", err, out.String())
	}
	return v, nil
}

// pattern matches exactly one benchmark: the parts of -bench are matched one by one.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

var processors = regexp.MustCompile(`-\d+$`)

// parse finds the metric in what the benchmark printed.
func parse(out, name, metric string) (float64, error) {
	want := "Benchmark" + strings.TrimPrefix(name, "Benchmark")
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != want && processors.ReplaceAllString(f[0], "") != want {
			continue
		}
		for i := 2; i+1 < len(f); i += 2 {
			if f[i+1] == metric {
				return strconv.ParseFloat(f[i], 64)
			}
		}
		return 0, fmt.Errorf("%s reports no %s", name, metric)
	}
	return 0, errors.New("no line of " + want)
}
