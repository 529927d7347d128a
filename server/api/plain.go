package api

import (
	"net/http"
	"slices"
	"strings"
)

// registerPlain adds what is not an operation: the document, the metrics, signing in,
// the web view, and coded answers for every path and method that is not there.
func (a *API) registerPlain() {
	a.mux.HandleFunc(routeSpec, a.serveSpec)
	a.mux.Handle(routeMetrics, a.metrics.handler())
	a.mux.HandleFunc(routeLogin, a.login)
	view := newView(a)
	a.mux.HandleFunc(routePage, func(w http.ResponseWriter, r *http.Request) {
		if allowed := a.allowed(r); len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			newProblem(codeMethod, "This path answers to "+strings.Join(allowed, ", ")+".").write(w, r)
			return
		}
		if isAPIPath(r.URL.Path) {
			newProblem(codeRouteNotFound, "There is nothing at this path; /openapi.json lists what there is.").write(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			newProblem(codeMethod, "Pages are only read.").write(w, r)
			return
		}
		view.ServeHTTP(w, r)
	})
}

func isAPIPath(path string) bool { return path == "/v1" || strings.HasPrefix(path, "/v1/") }

// allowed asks the mux which methods the path has: its own 405 never comes to pass
// beside a pattern that takes everything.
func (a *API) allowed(r *http.Request) []string {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if m == r.Method {
			continue
		}
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := a.mux.Handler(probe); pattern != routePage && pattern != "" {
			methods = append(methods, m)
			if m == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	slices.Sort(methods)
	return methods
}

func (a *API) serveSpec(w http.ResponseWriter, r *http.Request) {
	b, err := a.spec()
	if err != nil {
		problemOf(r.Context(), err).write(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(b)
}

// login exchanges a one-time code for the browser's cookie. HEAD uses nothing up: link
// checkers send it.
func (a *API) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	if !a.auth.current.Load().redeem(r.URL.Query().Get("code")) {
		if a.auth.identify(r).kind == byCookie { // the page was reloaded: it is signed in already
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			writePage(w, statusOf(codeLoginCode), pageCodeUsed)
			return
		}
		newProblem(codeLoginCode, "This login code is unknown, was used before or has expired; get a new one with \"turnkeeper open\".").write(w, r)
		return
	}
	http.SetCookie(w, a.auth.current.Load().newCookie(r.TLS != nil))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
