package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

func (a *app) serve() *cobra.Command {
	var open, anyPort bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon in the foreground; Ctrl-C ends it and everything it started",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runServe(cmd.Context(), open, anyPort)
		},
	}
	f := cmd.Flags()
	f.String("listen", "", "host:port to listen on; port 0 takes a free one (TURNKEEPER_LISTEN)")
	f.String("log", "", "debug, info, warn or error (TURNKEEPER_LOG)")
	f.String("codex-bin", "", "path of the codex program (TURNKEEPER_CODEX_BIN)")
	f.String("claude-bin", "", "path of the claude program (TURNKEEPER_CLAUDE_BIN)")
	f.BoolVar(&open, "open", false, "open the web view, signed in, once the daemon is ready, or that of the daemon that runs already; the working directory becomes the first workspace")
	f.BoolVar(&anyPort, "any-port", false, "take a free port if the one asked for is taken")
	return cmd
}

func (a *app) runServe(ctx context.Context, open, anyPort bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	d, err := daemon.New(daemon.Options{Config: c, Version: build(), Console: a.err, AnyPort: anyPort})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case err := <-ended:
		if running, ok := errors.AsType[*daemon.StartError](err); ok && open && running.Code == daemon.CodeRunning {
			return a.showRunning(ctx, c, running)
		}
		return err
	case <-d.Ready():
	}
	if err := a.greet(ctx, d, open); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	return <-ended
}

// greet says where the daemon is. With open it also shows the page; where there is no
// desktop the printed address is what a person takes.
func (a *app) greet(ctx context.Context, d *daemon.Daemon, open bool) error {
	if a.json {
		return a.printJSON(d.Listener())
	}
	if !open {
		_, err := fmt.Fprintf(a.out, "Turnkeeper listens on %s\nOpen the web view with: turnkeeper open\n", d.Listener().URL)
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := d.FirstWorkspace(ctx, dir); err != nil {
		return err
	}
	url, err := d.LoginURL()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.out, "Turnkeeper listens on %s\nSign in once, within two minutes: %s\nCtrl-C ends it.\n", d.Listener().URL, url); err != nil {
		return err
	}
	return a.tryBrowser(ctx, url)
}

// Waiting for a daemon that holds the directory and does not answer: it is starting, or on
// its way out.
const (
	answerWait  = 10 * time.Second
	answerAgain = 100 * time.Millisecond
)

// showRunning opens the page of the daemon that has this directory already: who asked to
// see the page gets it.
func (a *app) showRunning(ctx context.Context, c *config.Config, running *daemon.StartError) error {
	here := *c
	here.URL = "" // the one of this directory, not one elsewhere
	d, err := a.awaitAnswer(ctx, &here)
	if err != nil {
		return fmt.Errorf("%w; it does not answer: %w", running, err)
	}
	url, err := d.loginURL(ctx)
	if err != nil {
		return fmt.Errorf("%w; its page could not be opened: %w", running, err)
	}
	if a.json {
		l, err := daemon.ReadListener(c.ListenerFile())
		if err != nil {
			return err
		}
		return a.printJSON(l)
	}
	if _, err := fmt.Fprintf(a.out, "Turnkeeper runs already (pid %d) and listens on %s\nSign in once, within two minutes: %s\n", d.pid, d.url, url); err != nil {
		return err
	}
	return a.tryBrowser(ctx, url)
}

// awaitAnswer connects as soon as the daemon of the directory answers, within a bound.
func (a *app) awaitAnswer(ctx context.Context, c *config.Config) (*remote, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	again := time.NewTicker(answerAgain)
	defer again.Stop()
	for {
		d, err := a.connect(ctx, c)
		if err == nil {
			return d, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// tryBrowser shows an address, or says that a person must.
func (a *app) tryBrowser(ctx context.Context, url string) error {
	if err := a.openBrowser(ctx, url); err != nil {
		_, err = fmt.Fprintf(a.out, "No browser was opened (%v): open the address yourself.\n", err)
		return err
	}
	return nil
}
