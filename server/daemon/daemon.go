package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// Options are what a daemon is made from.
type Options struct {
	Config  *config.Config
	Version api.Version
	Console io.Writer // short log lines for a person; nil for none
	AnyPort bool      // take a free port if the configured one is taken

	// Adapters are used instead of the table; tests bring their own.
	Adapters map[string]provider.Adapter
}

// Daemon is one run on one directory. Make it with New and call Run once.
type Daemon struct {
	opt     Options
	ready   chan struct{}
	serving atomic.Bool
	// Written before ready is closed, read after.
	listener       Listener
	loginURL       func() (string, error)
	firstWorkspace func(ctx context.Context, path string) error
}

// Bounds of the end. Together they stay below what service managers allow before they
// kill.
const (
	stopRequests = 3 * time.Second
	stopSockets  = 2 * time.Second
	stopWorker   = 5 * time.Second  // operations under way; what is cut off goes on at the next start
	stopRuntimes = 12 * time.Second // provider processes: stdin, SIGTERM, SIGKILL
)

// EndSignals are the signals that end a daemon in order. The terminal's own end is one: an
// agent must not outlive the window that it was started in.
func EndSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} }

// New checks what can be checked without touching anything.
func New(o Options) (*Daemon, error) {
	if err := o.Config.CheckExposure(); err != nil {
		return nil, startErrorf(CodeExposed, err, "%s can be reached from other machines: set %s to a token of your own, or listen on 127.0.0.1", o.Config.Listen, config.EnvToken)
	}
	return &Daemon{opt: o, ready: make(chan struct{})}, nil
}

// Ready is closed once requests are served.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// Listener says where the daemon listens. Call it after Ready.
func (d *Daemon) Listener() Listener { return d.listener }

// LoginURL is an address that signs a browser in, once. Call it after Ready.
func (d *Daemon) LoginURL() (string, error) { return d.loginURL() }

// FirstWorkspace makes a workspace of a directory if there is none yet, so that a person's
// first page has something to begin with. Call it after Ready.
func (d *Daemon) FirstWorkspace(ctx context.Context, path string) error {
	return d.firstWorkspace(ctx, path)
}

// Run starts everything, serves until ctx ends or something fails for good, and ends
// everything in the opposite order. It returns nil when ctx ended it. Errors of the start
// are *StartError.
func (d *Daemon) Run(ctx context.Context) (err error) {
	c := d.opt.Config
	if err := prepareDir(c.Dir); err != nil {
		return err
	}
	held, err := acquire(c.LockFile(), c.Dir, c.Home != "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.release()) }()
	token, err := newTokenKeeper(c.Token, c.TokenFile())
	if err != nil {
		return err
	}
	log, file, err := newLogger(c.LogFile(), d.opt.Console, c.Log, token.secrets)
	if err != nil {
		return startErrorf(CodeDirectory, err, "%v", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	log.Info("starting", "version", d.opt.Version.Version, "pid", os.Getpid(), "home", c.Dir)
	if err := d.run(ctx, log, token); err != nil {
		log.Error("ended", "error", err)
		return err
	}
	log.Info("ended")
	return nil
}

func (d *Daemon) run(ctx context.Context, log *slog.Logger, token *tokenKeeper) (err error) {
	c := d.opt.Config
	l, err := listen(ctx, c.Listen, d.opt.AnyPort)
	if err != nil {
		return err
	}
	sweep(c.Dir, log)
	p, err := d.assemble(ctx, log, token, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, p.end(log)) }()
	token.follow(log, p.api.SetToken)
	looking, stopLooking := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { token.run(looking) })
	defer keeper.Wait()
	defer stopLooking()
	server := api.Server(p.api.Handler())
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() { err = errors.Join(err, stopServing(server, p.api, served, log)) }()
	d.firstWorkspace = p.firstWorkspace
	if err := d.announce(l.Addr().String(), urlOf(l.Addr()), p.api, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(c.ListenerFile())) }()
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-served:
		served <- err
		return err
	}
}

// announce writes the listener file and opens Ready.
func (d *Daemon) announce(address, url string, a *api.API, log *slog.Logger) error {
	d.listener = Listener{URL: url, Address: address, PID: os.Getpid(), Version: d.opt.Version.Version, StartedAt: time.Now().UTC().Truncate(time.Second)}
	raw, err := json.Marshal(d.listener)
	if err != nil {
		return err
	}
	if err := writeFile(d.opt.Config.ListenerFile(), append(raw, '\n')); err != nil {
		return startErrorf(CodeDirectory, err, "%v", err)
	}
	d.loginURL = func() (string, error) {
		code, err := a.LoginCode()
		return url + "/login?code=" + code, err
	}
	d.serving.Store(true)
	log.Info("ready", "url", url)
	close(d.ready)
	return nil
}

// stopServing accepts nothing new, lets requests finish, and closes sockets with
// "restart" so that clients come back by themselves. A peer that is still silent at the
// bound is cut off: that is how a stop goes, and no failure of it.
func stopServing(server *http.Server, a *api.API, served <-chan error, log *slog.Logger) error {
	sockets, cancel := context.WithTimeout(context.Background(), stopSockets)
	defer cancel()
	requests, cancelRequests := context.WithTimeout(context.Background(), stopRequests)
	defer cancelRequests()
	closing := make(chan error, 1)
	go func() { closing <- a.Close(sockets) }() // beside Shutdown, which does not know of sockets
	err := errors.Join(server.Shutdown(requests), <-closing)
	if err != nil {
		log.Info("peers that did not end were cut off", "reason", err)
		err = server.Close()
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// sweep ends what an earlier run of this directory left behind: a process that had left
// its group when that run was killed.
func sweep(owner string, log *slog.Logger) {
	killed, err := proc.Sweep(owner)
	if len(killed) > 0 {
		log.Warn("ended processes of an earlier run", "pids", killed)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		log.Warn("looking for processes of an earlier run", "error", err)
	}
}
