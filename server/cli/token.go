package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

func (a *app) token() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use: "token", Short: "Print the bearer token of this directory's daemon, or make a new one",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runToken(cmd.Context(), rotate) },
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "make a new one, at once: programs and browsers must sign in again")
	return cmd
}

func (a *app) runToken(ctx context.Context, rotate bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if rotate {
		return a.rotateToken(ctx, c)
	}
	token, err := tokenOf(c)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"token": token})
	}
	_, err = fmt.Fprintln(a.out, token)
	return err
}

// rotated is what token --rotate prints for programs.
type rotated struct {
	Token    string `json:"token"`
	Running  bool   `json:"running"`  // whether a daemon serves this directory
	InEffect bool   `json:"inEffect"` // whether it takes the new token; true where none runs
}

// rotateToken makes a new token and shows it to the daemon that runs, which takes it, and
// lets go of the old one, with that.
func (a *app) rotateToken(ctx context.Context, c *config.Config) error {
	if c.Token != "" {
		return fmt.Errorf("the token comes from %s, which outranks the file: change it there", c.Origin("token"))
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	token, err := daemon.NewToken(c.TokenFile())
	if err != nil {
		return err
	}
	held, _, err := daemon.Locked(c.LockFile())
	if err != nil {
		return err
	}
	var refused error
	if held {
		refused = a.showToken(ctx, c)
	}
	if a.json {
		err = a.printJSON(rotated{Token: token, Running: held, InEffect: refused == nil})
	} else {
		_, err = fmt.Fprintln(a.out, token)
	}
	switch {
	case err != nil:
		return err
	case refused != nil:
		return fmt.Errorf("the new token is in %s, but the running daemon has not taken it: %w", c.TokenFile(), refused)
	case held && !a.json:
		_, err = fmt.Fprintln(a.err, "turnkeeper: the running daemon takes it from now on, and the old one no more; sign a browser in again with: turnkeeper open")
	}
	return err
}

// showToken comes to this directory's daemon with the token of the file.
func (a *app) showToken(ctx context.Context, c *config.Config) error {
	here := *c
	here.URL = "" // a daemon elsewhere has a token of its own
	d, err := a.connect(ctx, &here)
	if err != nil {
		return err
	}
	return d.authorised(ctx)
}

// tokenOf is the token that the daemon of this configuration accepts.
func tokenOf(c *config.Config) (string, error) {
	if c.Token != "" {
		return c.Token, nil
	}
	token, err := daemon.ReadToken(c.TokenFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no token in %s yet; the first turnkeeper serve makes one", c.Dir)
	}
	return token, err
}
