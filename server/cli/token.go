package cli

import (
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
		RunE: func(*cobra.Command, []string) error { return a.runToken(rotate) },
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "make a new one; programs and browsers must sign in again")
	return cmd
}

func (a *app) runToken(rotate bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if rotate {
		return a.rotateToken(c)
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

func (a *app) rotateToken(c *config.Config) error {
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
	if a.json {
		return a.printJSON(map[string]any{"token": token, "restartNeeded": held})
	}
	fmt.Fprintln(a.out, token)
	if held {
		fmt.Fprintln(a.err, "turnkeeper: the running daemon keeps the old token until it is started again")
	}
	return nil
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
