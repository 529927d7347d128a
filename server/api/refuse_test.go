package api

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const newMessage = `{"clientMessageId":"c1","content":[{"type":"text","text":"hello"}]}`

func header(k, v string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(k, v) }
}

func host(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }

func noToken(r *http.Request) { r.Header.Del("Authorization") }

func TestRefusals(t *testing.T) {
	post := func(path, body string, change ...func(*http.Request)) *http.Request {
		return request(http.MethodPost, path, body, change...)
	}
	get := func(path string, change ...func(*http.Request)) *http.Request {
		return request(http.MethodGet, path, "", change...)
	}
	for _, c := range []struct {
		name   string
		r      *http.Request
		status int
		code   string
		at     string // location of the first field error
	}{
		{"foreign host", get("/healthz", host("evil.example")), 421, "host_not_allowed", ""},
		{"foreign host with port", get(ses, host("evil.example:4880")), 421, "host_not_allowed", ""},
		{"foreign address", get(ses, host("192.168.1.2")), 421, "host_not_allowed", ""},
		{"foreign origin", post(ses+"/messages", newMessage, header("Origin", "http://evil.example")), 403, "origin_not_allowed", ""},
		{"null origin", post(ses+"/messages", newMessage, header("Origin", "null")), 403, "origin_not_allowed", ""},
		{"cross site", post(ses+"/messages", newMessage, header("Sec-Fetch-Site", "cross-site")), 403, "origin_not_allowed", ""},
		{"another port of this machine", post(trn+"/cancel", "", header("Sec-Fetch-Site", "same-site"), header("Origin", "http://localhost:9999")), 403, "origin_not_allowed", ""},
		{"no token", get(ses, noToken), 401, "unauthorized", ""},
		{"wrong token", get(ses, header("Authorization", "Bearer wrong")), 401, "unauthorized", ""},
		{"other scheme", get(ses, header("Authorization", "Basic "+secret)), 401, "unauthorized", ""},
		{"token in the URL", get(ses+"?token="+secret, noToken), 401, "unauthorized", ""},
		{"no token, unknown path below /v1", get("/v1/nothing", noToken), 401, "unauthorized", ""},
		{"invalid JSON", post(ses+"/messages", `{"clientMessageId":`), 400, "invalid_json", "body"},
		{"two JSON values", post(ses+"/messages", newMessage+newMessage), 400, "invalid_json", "body"},
		{"no body", post(ses+"/messages", ""), 400, "invalid_request", ""},
		{"unknown field", post(ses+"/messages", `{"clientMessageId":"c1","content":[{"type":"text","text":"x","font":"big"}]}`), 422, "validation_failed", "body.content[0].font"},
		{"unknown field, other case", post(ses+"/messages", `{"ClientMessageId":"c1","content":[{"type":"text","text":"x"}]}`), 422, "validation_failed", "body"},
		{"missing field", post(ses+"/messages", `{"clientMessageId":"c1"}`), 422, "validation_failed", "body"},
		{"wrong type", post(ses+"/messages", `{"clientMessageId":7,"content":[{"type":"text","text":"x"}]}`), 422, "validation_failed", "body.clientMessageId"},
		{"wrong enum", post(ses+"/messages", `{"clientMessageId":"c","content":[{"type":"image","text":"x"}]}`), 422, "validation_failed", "body.content[0].type"},
		{"unprintable id", post(ses+"/messages", `{"clientMessageId":"a b","content":[{"type":"text","text":"x"}]}`), 422, "validation_failed", "body.clientMessageId"},
		{"unprintable key", post(ses+"/messages", newMessage, header("Idempotency-Key", "a b")), 422, "validation_failed", "header.Idempotency-Key"},
		{"null list", post(ses+"/messages", `{"clientMessageId":"c","content":null}`), 422, "validation_failed", "body.content"},
		{"unknown parameter", get(ses + "/messages?lmit=5"), 422, "validation_failed", "query.lmit"},
		{"limit too large", get(ses + "/messages?limit=501"), 422, "validation_failed", "query.limit"},
		{"limit no number", get(ses + "/messages?limit=x"), 422, "validation_failed", "query.limit"},
		{"after and before", get(ses + "/messages?after=1&before=9"), 400, "invalid_request", ""},
		{"unknown attention", get(ws + "/agent-sessions?attention=loud"), 422, "validation_failed", "query.attention"},
		{"unknown kind of operation", get(ses + "/operations?kind=wish"), 422, "validation_failed", "query.kind"},
		{"text body", post(ses+"/messages", newMessage, header("Content-Type", "text/plain")), 415, "unsupported_media_type", ""},
		{"form body", post(ses+"/messages", "a=b", header("Content-Type", "application/x-www-form-urlencoded")), 415, "unsupported_media_type", ""},
		{"body without a type", post(ses+"/messages", newMessage, header("Content-Type", "")), 415, "unsupported_media_type", ""},
		{"latin body", post(ses+"/messages", newMessage, header("Content-Type", "application/json; charset=iso-8859-1")), 415, "unsupported_media_type", ""},
		{"unknown path below /v1", get("/v1/nothing"), 404, "route_not_found", ""},
		{"other method", request(http.MethodDelete, "/v1/providers", ""), 405, "method_not_allowed", ""},
		{"put", request(http.MethodPut, ses, ""), 405, "method_not_allowed", ""},
		{"post to a page", request(http.MethodPost, "/somewhere", ""), 405, "method_not_allowed", ""},
		{"stream without upgrade", get(ws + "/events/stream"), 426, "upgrade_required", ""},
		{"used login code", get("/login?code=x"), 401, "login_code_invalid", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			p := wantProblem(t, f.do(c.r), c.status, c.code)
			if c.at != "" && (len(p.Errors) == 0 || p.Errors[0].Location != c.at) {
				t.Errorf("errors %+v, want one at %s", p.Errors, c.at)
			}
			if len(f.asked) > 0 {
				t.Errorf("a refused request reached %v", f.asked)
			}
		})
	}
}

func TestMethodNotAllowedSaysWhichAre(t *testing.T) {
	f := newFixture(t)
	w := f.do(request(http.MethodPut, ses, ""))
	if got := w.Header().Get("Allow"); got != "DELETE, GET, HEAD, PATCH" {
		t.Errorf("Allow: %q", got)
	}
}

// endless is a body of n bytes that counts what was read of it.
type endless struct{ n, read int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	k := min(int64(len(p)), e.n)
	for i := range p[:k] {
		p[i] = ' '
	}
	e.n, e.read = e.n-k, e.read+k
	return int(k), nil
}

func TestLargeBodyIsRefusedEarly(t *testing.T) {
	const large = 100 << 20
	for _, c := range []struct {
		name     string
		declared int64
		path     string
		atMost   int64
	}{
		{"declared", large, ses + "/messages", 0},
		{"declared, small limit", 2 << 20, "/v1/workspaces", 0},
		{"chunked", -1, ses + "/messages", messageBody + 64<<10},
		{"chunked, small limit", -1, "/v1/workspaces", defaultBody + 64<<10},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			body := &endless{n: large}
			r := request(http.MethodPost, c.path, "", header("Content-Type", "application/json"))
			r.Body, r.ContentLength = io.NopCloser(body), c.declared
			wantProblem(t, f.do(r), 413, "body_too_large")
			if body.read > c.atMost {
				t.Errorf("%d bytes were read, %d would do", body.read, c.atMost)
			}
		})
	}
}

// Over a real connection the refusal comes before the body, and the connection ends: the
// server reads no hundred megabytes in order to say no.
func TestLargeBodyOverTheWire(t *testing.T) {
	f := newFixture(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.listen(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST "+ses+"/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+secret+
		"\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n{\"clientMessageId\":")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 413 || !res.Close {
		t.Fatalf("%+v %v", res, err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection stayed open")
	}
}

func TestMessageOfThreeMegabytesIsTaken(t *testing.T) {
	f := newFixture(t)
	body := `{"clientMessageId":"c1","content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`
	if w := f.do(request(http.MethodPost, ses+"/messages", body)); w.Code != http.StatusAccepted {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// Every code of package agent has a status of its own choosing: the table is whole, and
// the answer carries both.
func TestEveryCodeHasItsStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../agent/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				code, _ := strconv.Unquote(lit.Value)
				codes = append(codes, code)
			}
		}
		return true
	})
	if len(codes) < 20 {
		t.Fatalf("found only %v", codes)
	}
	for _, code := range codes {
		status, ok := statuses[agent.Code(code)]
		if !ok {
			t.Errorf("%s has no status", code)
			continue
		}
		f := newFixture(t)
		f.err = agent.Errorf(agent.Code(code), "what happened")
		w := f.do(request(http.MethodPost, ses+"/messages", newMessage))
		p := wantProblem(t, w, status, code)
		if p.Detail != "what happened" {
			t.Errorf("%s: detail %q", code, p.Detail)
		}
		if retry := w.Header().Get("Retry-After") != ""; retry != (status == 503) {
			t.Errorf("%s: Retry-After %v", code, retry)
		}
	}
	if status := statusOf("never heard of"); status != http.StatusInternalServerError {
		t.Errorf("unknown code: %d", status)
	}
}

// Whatever an operation fails with, its answer is a coded problem: none leaks the text of
// an inner error, and none takes a panic for an answer.
func TestFailuresOfEveryOperation(t *testing.T) {
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/workspaces", ""},
		{"POST", "/v1/workspaces", `{"path":"/tmp"}`},
		{"GET", ws, ""},
		{"PATCH", ws, `{"name":"n"}`},
		{"DELETE", ws, ""},
		{"GET", ws + "/agent-sessions", ""},
		{"POST", ws + "/agent-sessions", `{"provider":"demo"}`},
		{"GET", ses, ""},
		{"PATCH", ses, `{"pinned":true}`},
		{"DELETE", ses, ""},
		{"GET", ses + "/turns", ""},
		{"GET", trn, ""},
		{"GET", trn + "/gate", ""},
		{"POST", trn + "/cancel", ""},
		{"GET", ses + "/messages", ""},
		{"GET", ses + "/messages/msg_1", ""},
		{"POST", ses + "/messages", newMessage},
		{"GET", ses + "/interactions", ""},
		{"POST", trn + "/interactions/req_1/response", `{"optionId":"a"}`},
		{"GET", ses + "/processes", ""},
		{"POST", ses + "/processes/p_1/stop", ""},
		{"GET", ses + "/operations", ""},
		{"GET", ws + "/operations/op_1", ""},
		{"GET", ws + "/events", ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			f := newFixture(t)
			f.err = agent.Errorf(agent.CodeNotFound, "not here")
			wantProblem(t, f.do(request(c.method, c.path, c.body)), 404, "not_found")
			f.err = io.ErrUnexpectedEOF
			w := f.do(request(c.method, c.path, c.body))
			p := wantProblem(t, w, 500, "internal")
			if strings.Contains(w.Body.String(), "unexpected EOF") || !strings.Contains(f.log.String(), "unexpected EOF") || !strings.Contains(f.log.String(), p.RequestID) {
				t.Errorf("answer %s\nlog %s", w.Body, f.log)
			}
			f.err, f.panic = nil, "boom"
			w = f.do(request(c.method, c.path, c.body))
			p = wantProblem(t, w, 500, "internal")
			if strings.Contains(w.Body.String(), "boom") || !strings.Contains(f.log.String(), "boom") || !strings.Contains(f.log.String(), p.RequestID) {
				t.Errorf("answer %s\nlog %s", w.Body, f.log)
			}
		})
	}
}

func TestAbortedHandlerIsNotAnswered(t *testing.T) {
	f := newFixture(t)
	f.panic = http.ErrAbortHandler
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
			t.Error("the abort did not reach the server")
		}
	}()
	f.do(request(http.MethodGet, ses, ""))
}

func TestAllowedNames(t *testing.T) {
	f := newFixture(t, func(d *Deps) {
		d.Hosts = []string{"box.example", "fd00::1"}
		d.Origins = []string{"https://front.example", "not an origin"}
	})
	for _, h := range []string{"localhost", "LOCALHOST:1", "127.0.0.1:4880", "127.9.9.9", "[::1]:4880", "box.example:4880", "[fd00::1]:4880"} {
		if w := f.do(request(http.MethodGet, "/healthz", "", host(h))); w.Code != 200 {
			t.Errorf("%s: %d", h, w.Code)
		}
	}
	ok := []func(*http.Request){
		header("Origin", "https://front.example"), header("Origin", "http://localhost:4880"), header("Sec-Fetch-Site", "same-origin"), header("Sec-Fetch-Site", "none"),
	}
	for i, change := range ok {
		if w := f.do(request(http.MethodPost, trn+"/cancel", "", change)); w.Code != http.StatusAccepted {
			t.Errorf("origin %d: %d %s", i, w.Code, w.Body)
		}
	}
}

func TestServerIsBounded(t *testing.T) {
	s := Server(http.NotFoundHandler())
	v := reflect.ValueOf(s).Elem()
	for _, name := range []string{"ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout", "MaxHeaderBytes"} {
		if v.FieldByName(name).IsZero() {
			t.Errorf("%s is not set", name)
		}
	}
}

func TestHeadersOnEveryAnswer(t *testing.T) {
	f := newFixture(t)
	for _, w := range []*httptest.ResponseRecorder{f.get(ses), f.get("/v1/none"), f.do(request("GET", "/", "", noToken)), f.get("/healthz")} {
		for k, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(k); got != want {
				t.Errorf("%s: %q", k, got)
			}
		}
	}
}
