package api

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func built(d *Deps) {
	d.Assets = fstest.MapFS{
		"index.html":                  {Data: []byte("<!doctype html><title>view</title>")},
		"index.html.br":               {Data: []byte("brotli index")},
		"favicon.svg":                 {Data: []byte("<svg/>")},
		"assets/index-Dk3_xY9a.js":    {Data: []byte("plain script")},
		"assets/index-Dk3_xY9a.js.br": {Data: []byte("brotli script")},
		"assets/index-Dk3_xY9a.js.gz": {Data: []byte("gzip script")},
		".gitkeep":                    {},
	}
}

func TestView(t *testing.T) {
	f := newFixture(t, built)
	c := f.signIn(t)
	for _, tc := range []struct {
		name, path, encoding string
		signedIn             bool
		status               int
		has, kind, cache     string
	}{
		{"index", "/", "", true, 200, "<title>view", "text/html; charset=utf-8", "no-cache"},
		{"index, packed", "/", "gzip, br", true, 200, "brotli index", "text/html; charset=utf-8", "no-cache"},
		{"deep link", "/sessions/ses_1", "", true, 200, "<title>view", "text/html; charset=utf-8", "no-cache"},
		{"index by name", "/index.html", "", true, 200, "<title>view", "text/html; charset=utf-8", "no-cache"},
		{"not signed in", "/", "", false, 401, "turnkeeper open", "text/html; charset=utf-8", "no-store"},
		{"deep link, not signed in", "/sessions/ses_1", "", false, 401, "turnkeeper open", "text/html; charset=utf-8", "no-store"},
		{"script", "/assets/index-Dk3_xY9a.js", "", false, 200, "plain script", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"script, brotli", "/assets/index-Dk3_xY9a.js", "gzip, deflate, br", false, 200, "brotli script", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"script, gzip", "/assets/index-Dk3_xY9a.js", "br;q=0, gzip", false, 200, "gzip script", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"unhashed", "/favicon.svg", "", false, 200, "<svg/>", "image/svg+xml", "no-cache"},
		{"missing script", "/assets/index-old.js", "", true, 404, "route_not_found", problemType, "no-store"},
		{"a file that is nowhere", "/etc/passwd.txt", "", true, 404, "route_not_found", problemType, "no-store"},
		{"hidden file", "/.gitkeep", "", true, 404, "route_not_found", problemType, "no-store"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			change := noToken
			if tc.signedIn {
				change = with(c)
			}
			w := f.do(request("GET", "/x", "", change, header("Accept-Encoding", tc.encoding), func(r *http.Request) { r.URL.Path = tc.path }))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.has) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			h := w.Header()
			if h.Get("Content-Type") != tc.kind || h.Get("Cache-Control") != tc.cache {
				t.Errorf("type %q, cache %q", h.Get("Content-Type"), h.Get("Cache-Control"))
			}
			if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "script-src 'self'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
				t.Errorf("policy %q", csp)
			}
		})
	}
}

func TestViewThatIsNotBuilt(t *testing.T) {
	f := newFixture(t)
	w := f.do(request("GET", "/", "", with(f.signIn(t))))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHeadOfAPage(t *testing.T) {
	f := newFixture(t, built)
	w := f.do(request("HEAD", "/favicon.svg", "", noToken))
	if w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "6" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

func TestCookieIsRenewedInItsSecondHalf(t *testing.T) {
	now := time.Now()
	f := newFixture(t, built, func(d *Deps) { d.Now = func() time.Time { return now } })
	c := f.signIn(t)
	if w := f.do(request("GET", "/", "", with(c))); len(w.Result().Cookies()) > 0 {
		t.Error("renewed at once")
	}
	now = now.Add(cookieLife/2 + time.Second)
	if w := f.do(request("GET", "/", "", with(c))); len(w.Result().Cookies()) != 1 {
		t.Error("not renewed in the second half")
	}
}
