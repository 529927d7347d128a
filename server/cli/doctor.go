package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/config"
)

// Verdicts of a check. A warning is worth knowing and fails nothing.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// check is one thing that doctor looked at: what it found, and what helps.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Help   string `json:"help,omitempty"`
}

// report is what doctor prints for programs. It holds no token and nobody's text.
type report struct {
	OK       bool             `json:"ok"`
	Version  string           `json:"version"`
	Checks   []check          `json:"checks"`
	Settings []config.Setting `json:"settings"`
}

// checkBound is the time that all checks together may take.
const checkBound = time.Minute

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check everything that can be wrong, and say what helps",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), checkBound)
			defer cancel()
			r := a.examine(ctx)
			if err := a.printReport(r); err != nil {
				return err
			}
			if !r.OK {
				return said(exitFailed)
			}
			return nil
		},
	}
}

// examine runs the checks in an order in which an early failure explains later ones.
func (a *app) examine(ctx context.Context) report {
	r := report{OK: true, Version: build().Version, Checks: []check{}, Settings: []config.Setting{}}
	add := func(checks ...check) {
		for _, c := range checks {
			r.OK = r.OK && c.Status != checkFail
			r.Checks = append(r.Checks, c)
		}
	}
	c, err := a.config()
	if err != nil {
		add(check{"configuration", checkFail, oneLine(err.Error()), "correct it and try again"})
		return r
	}
	r.Settings = c.Settings()
	add(checkConfig(c), checkDirectory(c), checkToken(c))
	d, lock := a.checkDaemon(ctx, c)
	add(lock...)
	// A daemon of this directory that answers, even if only to refuse our token, is what listens.
	if d == nil && !answered(lock) {
		add(checkAddress(ctx, c))
	}
	add(checkDatabase(ctx, c)...)
	if d != nil {
		add(d.checkTurns(ctx)...)
	}
	add(checkProviders(ctx, c, d)...)
	add(a.checkView(), a.checkBrowser())
	return r
}

// answered tells whether a running daemon was among what checkDaemon found.
func answered(checks []check) bool {
	return len(checks) > 1
}

func (a *app) printReport(r report) error {
	if a.json {
		return a.printJSON(r)
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-14s %s\n", c.Status, c.Name, c.Detail)
		if c.Help != "" {
			fmt.Fprintf(&b, "      %-14s → %s\n", "", c.Help)
		}
	}
	b.WriteString("\nSettings that are not the default:\n")
	n := 0
	for _, s := range r.Settings {
		if s.Origin.Source != config.FromDefault {
			n++
			fmt.Fprintf(&b, "      %s = %s (%s)\n", s.Key, s.Value, s.Origin)
		}
	}
	if n == 0 {
		b.WriteString("      none\n")
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}
