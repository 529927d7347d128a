package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A page of another site reaches nothing that changes anything, in whatever way a browser
// lets it ask: with the cookie of a person who is signed in, as a form, as plain text, by a
// name of its own that it has pointed at this machine.
func TestAnotherSiteReachesNothing(t *testing.T) {
	parameter := regexp.MustCompile(`\{\w+\}`)
	f := newFixture(t)
	cookie := with(f.signIn(t))
	ways := map[string]struct {
		change []func(*http.Request)
		status []int
	}{
		"fetch":            {[]func(*http.Request){header("Origin", "http://evil.example"), header("Sec-Fetch-Site", "cross-site")}, []int{403}},
		"fetch, old":       {[]func(*http.Request){header("Origin", "http://evil.example")}, []int{403}},
		"sandboxed":        {[]func(*http.Request){header("Origin", "null")}, []int{403}},
		"another port":     {[]func(*http.Request){header("Origin", "http://localhost:3000"), header("Sec-Fetch-Site", "same-site")}, []int{403}},
		"form":             {[]func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded"), header("Origin", "http://evil.example")}, []int{403, 415}},
		"form, no origin":  {[]func(*http.Request){header("Content-Type", "multipart/form-data; boundary=x")}, []int{415}},
		"plain text":       {[]func(*http.Request){header("Content-Type", "text/plain")}, []int{415}},
		"type not given":   {[]func(*http.Request){header("Content-Type", "")}, []int{415}},
		"rebinding":        {[]func(*http.Request){host("evil.example:4880")}, []int{421}},
		"rebinding, alike": {[]func(*http.Request){host("localhost.evil.example")}, []int{421}},
	}
	asked := 0
	for path, item := range f.api.huma.OpenAPI().Paths {
		for method, op := range map[string]bool{"POST": item.Post != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil} {
			if !op {
				continue
			}
			for name, way := range ways {
				r := request(method, parameter.ReplaceAllString(path, "x"), `{}`, append([]func(*http.Request){cookie}, way.change...)...)
				w := f.do(r)
				ok := false
				for _, s := range way.status {
					ok = ok || w.Code == s
				}
				if !ok {
					t.Errorf("%s %s by %s: %d %s", method, path, name, w.Code, w.Body)
				}
				asked++
			}
		}
	}
	if len(f.asked) > 0 || asked < 50 {
		t.Errorf("%d requests reached %v", asked, f.asked)
	}

	url := f.listen(t)
	c := f.signIn(t)
	for _, origin := range []string{"http://evil.example", "null", "http://localhost:3000", "file://"} {
		h := http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {origin}}
		dialAs(t, url, h).wantClose(4403, "origin_not_allowed")
	}
	h := http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {url}}
	own := dialAs(t, url, h)
	own.send(helloFrom0)
	if e := own.next(); e.Type != "ready" {
		t.Errorf("our own page: %+v", e)
	}
	_ = own.conn.Close(websocket.StatusNormalClosure, "")
}

// No answer invites another site's page to read it.
func TestNothingIsSharedAcrossOrigins(t *testing.T) {
	f := newFixture(t, built)
	for _, path := range []string{"/healthz", "/version", "/openapi.json", "/metrics", ses, ws + "/events", "/", "/assets/index-Dk3_xY9a.js", "/login?code=x"} {
		for _, method := range []string{"GET", "OPTIONS"} {
			w := f.do(request(method, path, "", header("Origin", "http://evil.example"), header("Access-Control-Request-Method", "POST")))
			for k := range w.Header() {
				if strings.HasPrefix(k, "Access-Control-") {
					t.Errorf("%s %s answers %s", method, path, k)
				}
			}
			if w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s %s may be embedded", method, path)
			}
		}
	}
}
