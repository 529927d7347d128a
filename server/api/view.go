package api

import (
	"bytes"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// policy is the page's Content-Security-Policy: everything comes from the daemon itself,
// nothing is inline, nobody frames us.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hashed matches the names that the bundler gives: the content decides the name, so a
// copy never goes stale.
var hashed = regexp.MustCompile(`-[A-Za-z0-9_-]{8,}\.[a-z0-9.]+$`)

// view serves the embedded web view: the index for every path that is not a file, so
// that deep links work.
type view struct {
	api    *API
	assets fs.FS
}

func newView(a *API) *view { return &view{api: a, assets: a.deps.Assets} }

func (v *view) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == indexFile {
		name = "" // for who is signed in, as every other page
	}
	if name != "" && v.serveFile(w, r, name) {
		return
	}
	if looksLikeFile(name) {
		newProblem(codeRouteNotFound, "There is no such file.").write(w, r)
		return
	}
	if v.api.auth.identify(r).kind == byNobody {
		h.Set("Cache-Control", "no-store")
		writePage(w, http.StatusUnauthorized, pageSignIn)
		return
	}
	v.renewCookie(w, r)
	if !v.serveFile(w, r, indexFile) {
		h.Set("Cache-Control", "no-store")
		writePage(w, http.StatusOK, pageNotBuilt)
	}
}

const indexFile = "index.html"

// looksLikeFile keeps a missing script from being answered with the index page.
func looksLikeFile(name string) bool {
	return strings.HasPrefix(name, "assets/") || path.Ext(name) != ""
}

// renewCookie gives a browser that still comes a new cookie in the second half of the
// old one's life.
func (v *view) renewCookie(w http.ResponseWriter, r *http.Request) {
	cred := v.api.auth.current.Load()
	c, err := r.Cookie(cred.cookie)
	if err != nil {
		return
	}
	if end, ok := cred.cookieEnd(c.Value); ok && end.Sub(v.api.now()) < cookieLife/2 {
		http.SetCookie(w, cred.newCookie(r.TLS != nil))
	}
}

// encodings are tried in order, where the client takes them and the build made them.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

func (v *view) serveFile(w http.ResponseWriter, r *http.Request, name string) bool {
	if v.assets == nil || !fs.ValidPath(name) || !named(name) {
		return false
	}
	content, err := fs.ReadFile(v.assets, name)
	if err != nil {
		return false // not there, or a directory
	}
	h := w.Header()
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		h.Set("Content-Type", t)
	} else {
		h.Set("Content-Type", "application/octet-stream")
	}
	if hashed.MatchString(name) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	h.Add("Vary", "Accept-Encoding")
	for _, e := range encodings {
		if !accepts(r, e.name) {
			continue
		}
		if packed, err := fs.ReadFile(v.assets, name+e.suffix); err == nil {
			h.Set("Content-Encoding", e.name)
			content = packed
			break
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = bytes.NewReader(content).WriteTo(w)
	}
	return true
}

// named reports whether a file may be asked for by its name: hidden ones may not, nor the
// packed form of one, which is served under the name of the plain one.
func named(name string) bool {
	for _, e := range encodings {
		if strings.HasSuffix(name, e.suffix) {
			return false
		}
	}
	return !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.")
}

func accepts(r *http.Request, encoding string) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}
