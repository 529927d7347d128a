package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const cancel = trn + "/cancel"

// What is wrong with a body is said in our words: a parser's quote what they were given.
func TestBodiesThatAreNoJSON(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001)
	for _, c := range []struct{ name, body, says string }{
		{"cut in a name", `{"clientMess`, "breaks off"},
		{"cut in a value", `{"clientMessageId":"hunter2`, "breaks off"},
		{"wrong from the start", `hunter2`, "near byte 1"},
		{"wrong inside", `{"clientMessageId":hunter2}`, "near byte 20"},
		{"something behind it", newMessage + `hunter2`, "near byte"},
		{"a name twice", `{"clientMessageId":"a","clientMessageId":"hunter2","content":[{"type":"text","text":"x"}]}`, "same name twice"},
		{"a name twice, escaped", `{"clientMessageId":"a","clientMessageI\u0064":"hunter2","content":[{"type":"text","text":"x"}]}`, "same name twice"},
		{"a name twice, deeper", `{"clientMessageId":"a","content":[{"type":"text","text":"x"},{"type":"text","text":"x","text":"hunter2"}]}`, "same name twice"},
		{"a name twice, unknown", `{"clientMessageId":"a","content":[{"type":"text","text":"x"}],"hunter2":1,"hunter2":2}`, "same name twice"},
		{"no UTF-8", "{\"clientMessageId\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}", "not UTF-8"},
		{"a number beyond all", `{"clientMessageId":1e999999}`, "wrong type"},
		{"too deep", deep, "near byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(request(http.MethodPost, ses+"/messages", c.body))
			p := wantProblem(t, w, 400, "invalid_json")
			if !strings.Contains(p.Detail, c.says) || len(p.Errors) != 1 || p.Errors[0].Location != "body" {
				t.Errorf("said %+v", p)
			}
			for _, raw := range []string{"hunter2", "invalid character", "unmarshal", "unexpected end", "max depth"} {
				if strings.Contains(w.Body.String(), raw) {
					t.Errorf("%q is in %s", raw, w.Body)
				}
			}
			if len(f.asked) > 0 {
				t.Errorf("it reached %v", f.asked)
			}
		})
	}
	f := newFixture(t) // the same name in two objects is no repetition, nor is a text like a name
	fine := `{"clientMessageId":"text","content":[{"type":"text","text":"text"},{"type":"text","text":"type"}]}`
	if w := f.do(request(http.MethodPost, ses+"/messages", fine)); w.Code != http.StatusAccepted {
		t.Errorf("names that are not repeated: %d %s", w.Code, w.Body)
	}
}

// A call that takes no body does not lose in silence what was said in one.
func TestCallsWithoutABody(t *testing.T) {
	for _, call := range []struct{ method, path string }{
		{"POST", cancel},
		{"POST", ses + "/processes/p_1/stop"},
		{"POST", "/v1/login-codes"},
		{"DELETE", ses},
		{"GET", ses},
	} {
		for _, c := range []struct {
			body   string
			status int
			code   string
			at     string
		}{
			{`null`, 422, "validation_failed", "body"},
			{`[]`, 422, "validation_failed", "body"},
			{`"now"`, 422, "validation_failed", "body"},
			{`{"force":true}`, 422, "validation_failed", "body.force"},
			{`{`, 400, "invalid_json", "body"},
			{`{"a":1,"a":2}`, 400, "invalid_json", "body"},
		} {
			f := newFixture(t)
			p := wantProblem(t, f.do(request(call.method, call.path, c.body)), c.status, c.code)
			if len(p.Errors) == 0 || p.Errors[0].Location != c.at {
				t.Errorf("%s %s with %s: %+v", call.method, call.path, c.body, p.Errors)
			}
			if len(f.asked) > 0 {
				t.Errorf("%s %s with %s reached %v", call.method, call.path, c.body, f.asked)
			}
		}
		for _, body := range []string{"", "{}", " {} \n", " "} {
			if w := newFixture(t).do(request(call.method, call.path, body)); w.Code >= 300 {
				t.Errorf("%s %s with %q: %d %s", call.method, call.path, body, w.Code, w.Body)
			}
		}
	}
	f := newFixture(t)
	large := request(http.MethodPost, cancel, "", header("Content-Type", "application/json"))
	large.Body, large.ContentLength = io.NopCloser(&endless{n: 100 << 20}), -1
	wantProblem(t, f.do(large), 413, "body_too_large")
	wantProblem(t, f.do(request(http.MethodPost, cancel, `null`, noToken)), 401, "unauthorized")
}

// null is no object, wherever an object is asked for.
func TestNullBody(t *testing.T) {
	for _, path := range []string{"/v1/workspaces", ws + "/agent-sessions", ses + "/messages", trn + "/interactions/req_1/response"} {
		f := newFixture(t)
		wantProblem(t, f.do(request(http.MethodPost, path, `null`)), 422, "validation_failed")
		if len(f.asked) > 0 {
			t.Errorf("%s reached %v", path, f.asked)
		}
	}
	f := newFixture(t)
	wantProblem(t, f.do(request(http.MethodPatch, ses, `null`)), 422, "validation_failed")
}
