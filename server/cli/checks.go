package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

func checkConfig(c *config.Config) check {
	if _, err := os.Stat(c.File); errors.Is(err, fs.ErrNotExist) {
		return check{"configuration", checkOK, "no " + c.File + ": defaults, environment and flags count", ""}
	}
	return check{"configuration", checkOK, c.File, ""}
}

func checkDirectory(c *config.Config) check {
	info, err := os.Stat(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check{"directory", checkOK, c.Dir + " does not exist yet; the first start makes it", ""}
	case err != nil:
		return check{"directory", checkFail, err.Error(), "choose another with TURNKEEPER_HOME"}
	case !info.IsDir():
		return check{"directory", checkFail, c.Dir + " is not a directory", "choose another with TURNKEEPER_HOME"}
	case info.Mode().Perm()&0o077 != 0:
		return check{"directory", checkWarn, fmt.Sprintf("%s can be entered by other users (mode %o)", c.Dir, info.Mode().Perm()), "chmod 700 " + c.Dir}
	}
	return check{"directory", checkOK, c.Dir, ""}
}

func checkToken(c *config.Config) check {
	if c.Token != "" {
		return check{"token", checkOK, "from " + c.Origin("token").String(), ""}
	}
	if err := c.CheckExposure(); err != nil {
		return check{"token", checkFail, oneLine(err.Error()), "set " + config.EnvToken}
	}
	_, err := daemon.ReadToken(c.TokenFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check{"token", checkOK, "none yet; the first start makes one", ""}
	case err != nil:
		return check{"token", checkFail, oneLine(err.Error()), "turnkeeper token --rotate"}
	}
	return check{"token", checkOK, c.TokenFile(), ""}
}

// checkDaemon finds out who holds the directory and whether it answers. The remote is nil
// if nobody does.
func (a *app) checkDaemon(ctx context.Context, c *config.Config) (*remote, []check) {
	held, pid, err := daemon.Locked(c.LockFile())
	if err != nil {
		return nil, []check{{"lock", checkFail, err.Error(), "look at who may write to " + c.Dir}}
	}
	if !held && c.URL == "" {
		return nil, []check{{"daemon", checkOK, "none runs on this directory", ""}}
	}
	d, err := a.connect(ctx, c)
	if err != nil {
		return nil, []check{{"daemon", checkFail, fmt.Sprintf("pid %d holds %s, but: %v", pid, c.Dir, oneLine(err.Error())), "look at " + c.LogFile() + "; it may still be starting"}}
	}
	v, err := d.version(ctx)
	if err != nil {
		return nil, []check{{"daemon", checkFail, oneLine(err.Error()), "look at " + c.LogFile()}}
	}
	answers := check{"daemon", checkOK, fmt.Sprintf("pid %d answers at %s, version %s", pid, d.url, v), ""}
	if mine := build().Version; v != mine {
		answers.Status, answers.Help = checkWarn, "this command is version "+mine+": end the daemon and start this one"
	}
	if err := d.authorised(ctx); err != nil {
		return nil, []check{answers, {"sign-in", checkFail, oneLine(err.Error()), "set " + config.EnvToken + " to the daemon's token, or start the daemon anew"}}
	}
	return d, []check{answers}
}

// checkAddress tries to listen where the daemon would.
func checkAddress(ctx context.Context, c *config.Config) check {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return check{"address", checkFail, oneLine(err.Error()), "end what listens there, or set another with TURNKEEPER_LISTEN"}
	}
	if err := l.Close(); err != nil {
		return check{"address", checkFail, err.Error(), ""}
	}
	return check{"address", checkOK, c.Listen + " is free", ""}
}

// checkDatabase looks at the file, whether or not a daemon has it open.
func checkDatabase(ctx context.Context, c *config.Config) []check {
	state, err := daemon.Inspect(ctx, c.Database())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []check{{"database", checkOK, "none yet", ""}}
	case err != nil:
		return []check{{"database", checkFail, oneLine(err.Error()), "end the daemon and put a copy back, or move the file away: " + c.Database()}}
	}
	file := check{"database", checkOK, fmt.Sprintf("%s, %.1f MB, schema %d, quick check passed", c.Database(), float64(state.Bytes)/1e6, state.Schema), ""}
	below := check{"settled turns", checkOK, "nothing lives below a settled root turn", ""}
	switch n := state.OpenBelowSettled; {
	case n < 0:
		below.Status, below.Detail, below.Help = checkWarn, "not counted: the file has the schema of another version", "start the daemon, then look again"
	case n > 0:
		below.Status, below.Detail, below.Help = checkFail, fmt.Sprintf("%d turns live below a settled root turn", n), "this must never be: please report it with the log"
	}
	return []check{file, below}
}

// checkTurns names what is live and silent.
func (d *remote) checkTurns(ctx context.Context) []check {
	stalled, err := d.stalled(ctx)
	if err != nil {
		return []check{{"turns", checkFail, oneLine(err.Error()), ""}}
	}
	if len(stalled) == 0 {
		return []check{{"turns", checkOK, "none is silent for longer than the stall time", ""}}
	}
	return []check{{"turns", checkWarn, fmt.Sprintf("%d silent: %s", len(stalled), strings.Join(stalled, "; ")), "silence is no ending; stop them in the web view if they should not run"}}
}

// checkProviders asks the running daemon, whose surroundings count, or looks from here.
func checkProviders(ctx context.Context, c *config.Config, d *remote) []check {
	cards, err := providersFrom(ctx, c, d)
	if err != nil {
		return []check{{"providers", checkFail, oneLine(err.Error()), ""}}
	}
	var out []check
	for _, card := range cards {
		out = append(out, card.check())
	}
	return out
}

// card is the part of a provider's card that doctor shows.
type card struct {
	Name, Reason, Version, Path string
	Note                        string // the first: what matters most
	Found                       bool
}

// check: a program that is not there, or has no account, is no fault of this one.
func (c card) check() check {
	found := strings.TrimSpace(c.Version + " " + c.Path)
	switch {
	case !c.Found:
		return check{c.Name, checkWarn, oneLine(c.Reason), ""}
	case c.Reason != "":
		return check{c.Name, checkWarn, found, oneLine(c.Reason)}
	case c.Note != "":
		found += "; " + oneLine(c.Note)
	}
	return check{c.Name, checkOK, found, ""}
}

func providersFrom(ctx context.Context, c *config.Config, d *remote) ([]card, error) {
	if d != nil {
		return d.providers(ctx)
	}
	var cards []card
	for _, p := range daemon.Providers(ctx, c) {
		cards = append(cards, card{Name: p.Name, Reason: p.Reason, Version: p.Version, Path: p.Path, Note: first(p.Notes), Found: p.Found})
	}
	return cards, nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (a *app) checkView() check {
	if !daemon.HasView() {
		return check{"web view", checkWarn, "this binary was built without it", "make build"}
	}
	return check{"web view", checkOK, "in this binary", ""}
}

func (a *app) checkBrowser() check {
	name, err := a.browserCommand()
	if err != nil {
		return check{"browser", checkWarn, err.Error(), "open the address that turnkeeper open --print gives"}
	}
	return check{"browser", checkOK, name, ""}
}
