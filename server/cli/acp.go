package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/acpagent"
	"github.com/turnkeeper/turnkeeper/server/config"
)

// Bounds of a daemon that is started for an editor.
const (
	startBound = 30 * time.Second
	startPoll  = 100 * time.Millisecond
)

// editor is how an editor wants its sessions.
type editor struct{ provider, model, mode string }

func (a *app) editor() *cobra.Command {
	var e editor
	cmd := &cobra.Command{
		Use: "acp", Short: "Serve an editor on the standard streams, as an agent of the Agent Client Protocol",
		Long: "An editor starts this. Its sessions are the running daemon's, which is started where none runs\n" +
			"and stays when the editor leaves. What the editor does shows in the web view at once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runEditor(cmd.Context(), e) },
	}
	f := cmd.Flags()
	f.StringVar(&e.provider, "provider", "", "provider of new sessions; without it the first that is found")
	f.StringVar(&e.model, "model", "", "model of new sessions")
	f.StringVar(&e.mode, "permission-mode", "", "permission mode of new sessions, by the provider's name")
	f.String("log", "", "debug, info, warn or error, on the error stream (TURNKEEPER_LOG)")
	f.String("url", "", "a daemon elsewhere (TURNKEEPER_URL, with TURNKEEPER_TOKEN)")
	return cmd
}

func (a *app) runEditor(ctx context.Context, e editor) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	r, err := a.connectOrStart(ctx, c)
	if err != nil {
		return err
	}
	r.http.CloseIdleConnections()
	level := slog.LevelWarn // editors show what comes on the error stream
	if c.Origin("log").Source != config.FromDefault {
		if err := level.UnmarshalText([]byte(c.Log)); err != nil {
			return usageErrorf("log: %w", err)
		}
	}
	return acpagent.Serve(ctx, acpagent.Options{
		In: a.in, Out: a.out, Server: r.url, Token: r.token, Version: build().Version,
		Provider: e.provider, Model: e.model, Mode: e.mode,
		Logger: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})),
	})
}

// connectOrStart is the running daemon, or one that is started now if none runs on this
// directory. A daemon elsewhere is not ours to start.
func (a *app) connectOrStart(ctx context.Context, c *config.Config) (*remote, error) {
	r, err := a.connect(ctx, c)
	var unreachable *exitError
	if err == nil || c.URL != "" || !errors.As(err, &unreachable) || unreachable.code != exitUnreachable {
		return r, err
	}
	daemon, err := a.startDaemon(c)
	if err != nil {
		return nil, &exitError{exitUnreachable, fmt.Errorf("no daemon runs, and none could be started: %w", err)}
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	return a.awaitDaemon(ctx, c, ended)
}

// startDaemon starts one that belongs to nobody's terminal: it outlives the editor, as the
// work of other clients may be in it.
func (a *app) startDaemon(c *config.Config) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--any-port"}
	if c.Home != "" {
		args = append(args, "--home", c.Home)
	}
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // this very program, and it is to outlive us
	cmd.Dir = c.Dir
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	detach(cmd)
	return cmd, cmd.Start()
}

// awaitDaemon waits until it answers. Two editors may have started one each: the second
// finds the directory taken and ends, and the first one's is there for both.
func (a *app) awaitDaemon(ctx context.Context, c *config.Config, ended <-chan error) (*remote, error) {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	poll := time.NewTicker(startPoll)
	defer poll.Stop()
	var reason error
	for {
		r, err := a.connect(ctx, c)
		if err == nil {
			return r, nil
		}
		select {
		case reason = <-ended:
			ended = nil
		case <-poll.C:
		case <-ctx.Done():
			return nil, &exitError{exitUnreachable, fmt.Errorf("the daemon that was started did not become ready: %w", errors.Join(err, reason))}
		}
	}
}
