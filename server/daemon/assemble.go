package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/store"
	"github.com/turnkeeper/turnkeeper/web"
)

// parts is what one run is made of, in the order in which it was made.
type parts struct {
	store    *store.Store
	live     *live.Live
	commands *command.Service
	worker   sync.WaitGroup
	api      *api.API
}

// never is an idle time that no runtime reaches.
const never = 100 * 365 * 24 * time.Hour

// assemble opens the database, recovers what an earlier run left, and puts the parts
// together. When it returns an error nothing is left open.
func (d *Daemon) assemble(ctx context.Context, log *slog.Logger, token *tokenKeeper, addr net.Addr) (_ *parts, err error) {
	c := d.opt.Config
	mint := agent.NewMinter(func() string { return uuid.Must(uuid.NewV7()).String() })
	p := &parts{}
	var h *hub.Hub // set before the first commit: nothing is written until Recover
	p.store, err = store.Open(ctx, store.Options{
		Path: c.Database(), Synchronous: c.Synchronous, Mint: mint, Logger: log,
		CancelBound: c.CancelBound, StallAfter: c.StallAfter, RetainEvents: int64(c.KeepEvents),
		OnCommit: func(events []agent.Event) { h.Publish(events) },
	})
	if err != nil {
		return nil, startErrorf(CodeDatabase, err, "%s: %v", c.Database(), err)
	}
	h = hub.New(p.store, hub.Options{})
	if err := p.store.Recover(ctx); err != nil {
		return nil, errors.Join(startErrorf(CodeDatabase, err, "%s could not be recovered: %v", c.Database(), err), p.store.Close())
	}
	table := d.opt.Adapters
	if table == nil {
		table = adapters(c, c.Dir, log)
	}
	cards := newCards(table)
	idleClose := c.IdleClose
	if idleClose == 0 {
		idleClose = never
	}
	p.live = live.New(live.Options{Adapters: table, Recorder: p.store, Deltas: h.Delta, Mint: mint, Logger: log, IdleClose: idleClose})
	p.commands = command.New(command.Options{Store: p.store, Live: live.Port{Live: p.live}, Card: cards.capabilities, Accept: cards.accept, Logger: log, CancelBound: c.CancelBound})
	p.worker.Go(func() { p.commands.Run(context.WithoutCancel(ctx)) }) // Close ends it, in its turn
	p.api = api.New(http.NewServeMux(), api.Deps{
		Reader: p.store, Commands: p.commands, Hub: h,
		Providers: cards.all, Diagnostics: func() map[string]uint64 { return p.live.Diagnostics().Counts }, Ready: d.readiness,
		Assets: web.Dist(), Token: token.token, Refresh: token.look, Hosts: hosts(c, addr),
		Version: d.opt.Version, Logger: log,
	})
	return p, nil
}

// end stops the worker, then every provider process, then closes the database: each may
// still need what comes after it here. Each has a bound of its own, so that a slow worker
// takes no time from the providers' processes.
func (p *parts) end(log *slog.Logger) error {
	bounded := func(bound time.Duration, end func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		return end(ctx)
	}
	var problems []error
	for _, step := range []struct {
		name string
		end  func() error
	}{
		{"worker", func() error { return bounded(stopWorker, p.commands.Close) }},
		{"providers", func() error { return bounded(stopRuntimes, p.live.Close) }},
		{"database", p.store.Close},
	} {
		if err := step.end(); err != nil {
			log.Error("stopping", "part", step.name, "error", err)
			problems = append(problems, err)
		}
	}
	p.worker.Wait()
	return errors.Join(problems...)
}

// firstWorkspace makes a workspace of path if there is none.
func (p *parts) firstWorkspace(ctx context.Context, path string) error {
	known, err := p.store.Workspaces(ctx)
	if err != nil || len(known) > 0 {
		return err
	}
	_, err = p.commands.CreateWorkspace(ctx, "", path)
	return err
}

var errNotServing = errors.New("daemon: not serving yet")

// readiness is nil while requests are served. Recovery has run by then.
func (d *Daemon) readiness() error {
	if !d.serving.Load() {
		return errNotServing
	}
	return nil
}

// hosts are the names to answer to besides loopback's: those configured, and the address
// itself where it is one that others can name.
func hosts(c *config.Config, addr net.Addr) []string {
	names := c.AllowedHosts
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && !config.Loopback(c.Listen) {
		names = append(names[:len(names):len(names)], strings.ToLower(host))
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() && !tcp.IP.IsLoopback() {
		names = append(names[:len(names):len(names)], tcp.IP.String())
	}
	return names
}
