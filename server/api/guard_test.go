package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// The document says which operations are open, and every other one refuses whoever shows
// no token, as a socket too.
func TestOperationsAreOpenWhereTheDocumentSaysSo(t *testing.T) {
	f := newFixture(t)
	parameter := regexp.MustCompile(`\{\w+\}`)
	for path, item := range f.api.huma.OpenAPI().Paths {
		for method, op := range map[string]bool{
			"GET": item.Get != nil, "POST": item.Post != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil,
			"HEAD": item.Get != nil,
		} {
			if !op {
				continue
			}
			open := strings.Count(path, "/") == 1 // at the root: healthz, readyz, version
			if item.Get != nil && open != (len(item.Get.Security) > 0) {
				t.Errorf("%s: the document says %v", path, item.Get.Security)
			}
			url := parameter.ReplaceAllString(path, "x%2Fevents%2Fstream")
			for _, upgrade := range []string{"", "websocket"} {
				if strings.HasSuffix(path, "/events/stream") && method == "GET" && upgrade != "" {
					continue // tells by its close code: TestStreamCloseCodes
				}
				w := f.do(request(method, url, "", noToken, header("Upgrade", upgrade)))
				if refused := w.Code == http.StatusUnauthorized; refused == open {
					t.Errorf("%s %s, upgrade %q, without a token: %d", method, url, upgrade, w.Code)
				}
			}
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("a request without a token reached %v", f.asked)
	}
}

// A path can be written in several ways, and methods are many; without a token none of
// them reaches anything.
func TestNoReadingOfAPathGoesAroundTheToken(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", ws + "/agent-sessions/x%2Fevents%2Fstream", 401},
		{"DELETE", ws + "/agent-sessions/x%2Fevents%2Fstream", 401},
		{"DELETE", "/v1/workspaces/x%2Fevents%2Fstream", 401},
		{"PATCH", "/v1/workspaces/x%2Fevents%2Fstream", 401},
		{"DELETE", "/%76%31/workspaces/ws_1", 401},
		{"DELETE", "/v1%2Fworkspaces%2Fws_1", 401},
		{"GET", "//v1/workspaces/ws_1", 401},
		{"GET", "/v1//workspaces/ws_1", 401},
		{"GET", "/healthz/../v1/workspaces/ws_1", 401},
		{"GET", "/v1/workspaces/ws_1/", 401},
		{"GET", "/v1", 401},
		{"GET", "/v1/", 401},
		{"GET", ws + "/events/stream/", 401},
		{"HEAD", ws + "/events/stream", 401},
		{"POST", ws + "/events/stream", 401},
		{"OPTIONS", ws + "/events/stream", 401},
		{"OPTIONS", ses, 401},
		{"TRACE", ses, 401},
		{"PROPFIND", ses, 401},
		{"HEAD", ses, 401},
		{"GET", "/healthz/%2e%2e/v1/workspaces/ws_1", 401}, // no route: the page, which asks too
		{"GET", "/V1/workspaces/ws_1", 401},
		{"GET", "/%2e%2e/%2e%2e/etc/passwd", 401},
		{"TRACE", "/", 405},
		{"OPTIONS", "/", 405},
		{"POST", "/healthz", 405},
		{"GET", "/assets/..%2f..%2fguard.go", 404},
	} {
		f := newFixture(t, built)
		w := f.do(request(c.method, c.path, "", noToken, header("Upgrade", "websocket"), header("Connection", "Upgrade")))
		if w.Code != c.status || strings.Contains(w.Body.String(), "<title>view") {
			t.Errorf("%s %s: %d %.200s, want %d", c.method, c.path, w.Code, w.Body, c.status)
		}
		if len(f.asked) > 0 {
			t.Errorf("%s %s reached %v", c.method, c.path, f.asked)
		}
	}
}

// The same over a real line, where net/http itself has a say.
func TestOddRequestLines(t *testing.T) {
	f := newFixture(t, built)
	addr := strings.TrimPrefix(f.listen(t), "http://")
	for line, status := range map[string]int{
		"CONNECT localhost:4880":        401,
		"CONNECT " + ses:                401,
		"GET *":                         400,
		"OPTIONS *":                     200, // net/http's own, and empty
		"GET http://evil.example" + ses: 421,
		"GET http://localhost" + ses:    401,
		"DELETE http://localhost/v1/workspaces/x%2Fevents%2Fstream": 401,
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, line+" HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != status {
			t.Errorf("%s: %v %+v, want %d", line, err, res, status)
		}
		_ = conn.Close()
	}
	if len(f.asked) > 0 {
		t.Errorf("a request without a token reached %v", f.asked)
	}
}

func TestPackedAndHiddenFilesHaveNoNameOfTheirOwn(t *testing.T) {
	f := newFixture(t, built)
	for _, path := range []string{"/index.html.br", "/index%2ehtml%2ebr", "/assets/index-Dk3_xY9a.js.gz", "/.gitkeep", "/.well/known.json"} {
		if w := f.do(request("GET", path, "", noToken)); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Metrics are open to whoever asks on this machine; what a proxy of this machine passes on
// was asked elsewhere.
func TestMetricsAreOpenOnThisMachineAlone(t *testing.T) {
	f := newFixture(t, func(d *Deps) { d.Hosts = []string{"agents.example"} })
	peer := func(a string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = a } }
	for _, c := range []struct {
		name   string
		change []func(*http.Request)
		status int
	}{
		{"here", []func(*http.Request){peer("127.0.0.1:5000")}, 200},
		{"here, version 6", []func(*http.Request){peer("[::1]:5000"), host("[::1]:4880")}, 200},
		{"elsewhere", []func(*http.Request){peer("192.168.1.9:5000")}, 401},
		{"proxy by another name", []func(*http.Request){peer("127.0.0.1:5000"), host("agents.example")}, 401},
		{"proxy that says so", []func(*http.Request){peer("127.0.0.1:5000"), header("X-Forwarded-For", "203.0.113.5")}, 401},
		{"proxy that says so in the standard's way", []func(*http.Request){peer("127.0.0.1:5000"), header("Forwarded", "for=203.0.113.5")}, 401},
		{"elsewhere with the token", []func(*http.Request){peer("192.168.1.9:5000"), header("Authorization", "Bearer "+secret)}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request("GET", "/metrics", "", append([]func(*http.Request){noToken}, c.change...)...)
			if w := f.do(r); w.Code != c.status {
				t.Errorf("%d, want %d", w.Code, c.status)
			}
		})
	}
}

// The larger bound of bodies belongs to the routes that take messages, not to every path
// that looks like one.
func TestLargeBodiesAreForMessagesAlone(t *testing.T) {
	body := `{"name":"` + strings.Repeat("x", 2<<20) + `"}`
	for path, status := range map[string]int{
		"/v1/workspaces/x%2Fmessages":       http.StatusRequestEntityTooLarge,
		"/v1/workspaces/x%2Fagent-sessions": http.StatusRequestEntityTooLarge,
	} {
		f := newFixture(t)
		wantProblem(t, f.do(request("PATCH", path, body)), status, "body_too_large")
	}
}

// What is no request, or has headers beyond the bound, never reaches a handler: net/http
// answers it in plain text.
func TestHeadersAreBounded(t *testing.T) {
	f := newFixture(t)
	url := f.listen(t)
	r := httptest.NewRequest("GET", url+"/healthz", nil)
	r.RequestURI = ""
	r.Header.Set("X-Large", strings.Repeat("x", 2*maxHeaderBytes))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}
