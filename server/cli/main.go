package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 20
)

// exitError is an error with an exit code of its own. An empty message prints nothing:
// what is to be said was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// app is one run of the command line.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	json     bool
	flags    map[string]string // those given, by name, that config reads
}

// Main runs the command line and returns its exit code. The signals of
// daemon.EndSignals end what runs; a second one ends the process at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), daemon.EndSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // gives the second signal back to the system
	a := &app{in: in, out: out, err: errOut, env: os.LookupEnv}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitFailed
	var withCode *exitError
	if errors.As(err, &withCode) {
		code = withCode.code
	}
	if text := oneLine(err.Error()); text != "" {
		fmt.Fprintln(a.err, "turnkeeper: "+text)
	}
	return code
}

// oneLine keeps a message on the one line that is promised.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// said ends a command whose output already tells what is wrong.
func said(code int) error { return &exitError{code, errors.New("")} }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "turnkeeper",
		Short:         "Runs agents that delegate, and ends a turn only when all its work has ended",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.flags = given(cmd)
		},
	}
	root.Args = asUsage(root.Args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	root.PersistentFlags().String("home", "", "directory for configuration and state (TURNKEEPER_HOME)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.serve(), a.open(), a.status(), a.doctor(), a.token(), a.replay(), a.openapi(), a.version(), a.editor())
	for _, c := range root.Commands() {
		if c.Args == nil {
			c.Args = cobra.NoArgs
		}
		c.Args = asUsage(c.Args)
	}
	return root
}

func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageErrorf("%w; see: %s --help", err, cmd.CommandPath())
		}
		return nil
	}
}

// given are the flags that were set, by name.
func given(cmd *cobra.Command) map[string]string {
	set := map[string]string{}
	for _, name := range []string{"home", "listen", "url", "log", "codex-bin", "claude-bin"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			set[name] = f.Value.String()
		}
	}
	return set
}

// config is what was set for this run.
func (a *app) config() (*config.Config, error) {
	c, err := config.Load(config.Input{Env: a.env, Flags: a.flags})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return c, nil
}
