package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

type requestIDKey struct{}

// requestID names one request in the log and in its problem.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// guard is every door in front of the mux, outermost first.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		rec := &recorder{ResponseWriter: w}
		done := a.metrics.begin()
		defer func() {
			if v := recover(); v != nil {
				a.recovered(rec, r, v)
			}
			done(r, rec.status)
		}()
		route := a.route(r)
		if p := a.refuse(rec, r, route); p != nil {
			p.write(rec, r)
			return
		}
		who := a.auth.identify(r)
		r = r.WithContext(withPrincipal(r.Context(), who))
		if who.kind == byNobody && a.needsToken(r, route) {
			h.Set("WWW-Authenticate", `Bearer realm="turnkeeper"`)
			newProblem(codeUnauthorized, "Send the daemon's token as a bearer token, or sign in with \"turnkeeper open\".").write(rec, r)
			return
		}
		next.ServeHTTP(rec, r)
	})
}

// route is the pattern that the mux will serve r by. Every door asks for it: a path has
// several readings (escaped or not, cleaned or not), and only the mux's own is the one
// that counts.
func (a *API) route(r *http.Request) string {
	_, pattern := a.mux.Handler(r)
	return pattern
}

// refuse looks at what can be judged before the request is understood.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, route string) *Problem {
	if !a.origins.host(r) {
		return newProblem(codeHost, fmt.Sprintf("This daemon does not answer to the name %q; add it to the allowed hosts if it should.", r.Host))
	}
	if !a.origins.request(r) {
		return newProblem(codeOrigin, "The request comes from a page of another site.")
	}
	limit := bodyLimit(route)
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // nobody reads the rest
		return newProblem(codeBodyTooLarge, fmt.Sprintf("The body has %d bytes; %d are allowed here.", r.ContentLength, limit))
	}
	if r.ContentLength != 0 && !isJSON(r.Header.Get("Content-Type")) {
		w.Header().Set("Connection", "close")
		return newProblem(codeMediaType, "A body must be application/json.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit+1) // huma refuses at limit; this ends the connection
	return nil
}

// bodyLimit is the largest body that a route takes; the operation's own limit is huma's
// to hold.
func bodyLimit(route string) int64 {
	if route == "POST "+pathSessions || route == "POST "+pathMessages {
		return messageBody
	}
	return defaultBody
}

func isJSON(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && t == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// Routes beside the operations.
const (
	routeStream  = "GET " + pathStream
	routeSpec    = "GET /openapi.json"
	routeMetrics = "GET /metrics"
	routeLogin   = "GET /login"
	routePage    = "/" // what no other route takes
)

// needsToken: every route does, except those that are listed here.
func (a *API) needsToken(r *http.Request, route string) bool {
	switch route {
	case "GET /healthz", "GET /readyz", "GET /version", routeSpec, routeLogin:
		return false
	case routeStream: // it tells its refusal with a close code, which a page can read, so it asks itself
		return !upgrades(r)
	case routeMetrics:
		return !a.origins.local(r)
	case routePage: // its index asks itself; below /v1 even what is not there is nobody's to know
		return isAPIPath(r.URL.Path)
	}
	return true
}

// upgrades reports whether r opens a WebSocket. A GET pattern takes HEAD too, which opens
// nothing.
func upgrades(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func (a *API) recovered(w *recorder, r *http.Request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
		panic(v)
	}
	a.log.ErrorContext(r.Context(), "panic in a request", "requestId", requestID(r.Context()),
		"method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.status == 0 {
		newProblem(agent.CodeInternal, "Something failed inside the daemon; its log has the details under this request id.").write(w, r)
	}
}

// logProblem keeps what the answer does not show.
func (a *API) logProblem(ctx context.Context, op string, p *Problem) {
	level := slog.LevelDebug
	switch {
	case p.Code == string(agent.CodeInternal):
		level = slog.LevelError
	case p.Status >= http.StatusInternalServerError && p.Code != string(codeNotReady):
		level = slog.LevelWarn // busy, stopping, or a provider's doing
	}
	a.log.Log(ctx, level, "request refused", "requestId", p.RequestID, "operation", op,
		"status", p.Status, "code", p.Code, "detail", p.Detail, "cause", p.cause)
}

// recorder remembers the status for the log and the metrics. Unwrap keeps hijacking and
// deadlines working.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
