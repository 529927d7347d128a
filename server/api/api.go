package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// API is the front of one daemon.
type API struct {
	deps    Deps
	log     *slog.Logger
	now     func() time.Time
	mux     *http.ServeMux
	huma    huma.API
	auth    *authority
	origins *originCheck
	metrics *metrics
	spec    func() ([]byte, error) // the document, rendered once

	// Sockets outlive their requests: closing ends them and waits for them.
	sockets  sync.WaitGroup
	closing  context.Context
	close    context.CancelFunc
	socketMu sync.Mutex // no socket enters once closing has begun
	open     map[*socket]struct{}
	endBy    time.Time // of every socket, once closing
}

// New registers the whole API on mux. No dependency is touched before the first request,
// so New(http.NewServeMux(), Deps{}) is enough to print the document.
func New(mux *http.ServeMux, d Deps) *API {
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	a := &API{deps: d, log: d.Logger, now: d.Now, mux: mux, open: map[*socket]struct{}{}}
	a.closing, a.close = context.WithCancel(context.Background())
	a.auth = newAuthority(d.Token, d.Now, d.Refresh)
	a.origins = newOriginCheck(d.Hosts, d.Origins)
	a.metrics = newMetrics(a)

	configureHuma()
	a.huma = humago.New(mux, humaConfig())
	a.registerSystem()
	a.registerWorkspaces()
	a.registerSessions()
	a.registerTurns()
	a.registerMessages()
	a.registerInteractions()
	a.registerProcesses()
	a.registerEvents()
	a.registerStream()
	a.spec = sync.OnceValues(func() ([]byte, error) { return renderSpec(a.huma.OpenAPI()) })
	a.registerPlain()
	return a
}

// Handler is the mux behind every door: Host, Origin, token, sizes, and the net that
// catches panics.
func (a *API) Handler() http.Handler { return a.guard(a.mux) }

// LoginCode mints a one-time code for GET /login?code=…, for whoever opens the browser.
func (a *API) LoginCode() (string, error) { return a.auth.current.Load().mintCode() }

// Bounds of the server itself. What breaks maxHeaderBytes, or is no HTTP at all, is
// answered by net/http, in plain text: it never becomes a request.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = time.Minute
	writeTimeout      = 2 * time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// Server returns an HTTP server for h with bounds on everything a peer can drag out.
// Sockets are not bound by them: they have their own.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}
