package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func (f *fixture) mint(t *testing.T) LoginCode {
	t.Helper()
	w := f.do(request("POST", "/v1/login-codes", ""))
	var c LoginCode
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	return c
}

func (f *fixture) redeem(path string) *httptest.ResponseRecorder {
	return f.do(request("GET", path, "", noToken, header("Accept", "text/html")))
}

func (f *fixture) signIn(t *testing.T) *http.Cookie {
	t.Helper()
	w := f.redeem(f.mint(t).Path)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 || w.Header().Get("Location") != "/" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	return cookies[0]
}

func with(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { noToken(r); r.AddCookie(c) }
}

func TestBrowserSignsInOnce(t *testing.T) {
	f := newFixture(t)
	code := f.mint(t)
	f.do(request("HEAD", code.Path, "", noToken)) // a link checker uses nothing up
	w := f.redeem(code.Path)
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 || c.Secure {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(c.Value, secret) || !strings.HasPrefix(c.Name, "turnkeeper_") {
		t.Errorf("cookie %s=%s", c.Name, c.Value)
	}
	if w := f.do(request("GET", ses, "", with(c))); w.Code != 200 {
		t.Errorf("with the cookie: %d", w.Code)
	}
	w = f.do(request("GET", code.Path, "", noToken))
	wantProblem(t, w, 401, "login_code_invalid")
	if len(w.Result().Cookies()) > 0 {
		t.Error("a second use gave a cookie")
	}
	if w := f.redeem(code.Path); w.Code != 401 || !strings.Contains(w.Body.String(), "turnkeeper open") {
		t.Errorf("the page of a used code: %d %s", w.Code, w.Body)
	}
	if w := f.do(request("GET", code.Path, "", with(c))); w.Code != http.StatusSeeOther {
		t.Errorf("a reload by a browser that is signed in: %d", w.Code)
	}
}

func TestCookieOutlivesARestartAndEndsWithTheToken(t *testing.T) {
	now := time.Now()
	clock := func(d *Deps) { d.Now = func() time.Time { return now } }
	c := newFixture(t, clock).signIn(t)
	if w := newFixture(t, clock).do(request("GET", ses, "", with(c))); w.Code != 200 {
		t.Errorf("after a restart: %d", w.Code)
	}
	other := newFixture(t, func(d *Deps) { d.Token = "rotated" })
	renamed := *c
	renamed.Name = other.api.auth.current.Load().cookie
	wantProblem(t, other.do(request("GET", ses, "", with(&renamed))), 401, "unauthorized")
	for name, value := range map[string]string{
		"empty": "", "no signature": "a.b", "cut": c.Value[:len(c.Value)-1], "longer life": strings.Replace(c.Value, ".", ".zz", 1),
	} {
		forged := *c
		forged.Value = value
		if w := newFixture(t, clock).do(request("GET", ses, "", with(&forged))); w.Code != 401 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	now = now.Add(cookieLife + time.Second)
	wantProblem(t, newFixture(t, clock).do(request("GET", ses, "", with(c))), 401, "unauthorized")
}

func TestLoginCodeExpires(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(d *Deps) { d.Now = func() time.Time { return now } })
	code := f.mint(t)
	now = now.Add(loginCodeLife)
	wantProblem(t, f.do(request("GET", code.Path, "", noToken)), 401, "login_code_invalid")
}

func TestLoginCodesAreForTheTokenAndBounded(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(d *Deps) { d.Now = func() time.Time { return now } })
	c := f.signIn(t)
	wantProblem(t, f.do(request("POST", "/v1/login-codes", "", with(c))), 401, "unauthorized")
	for range maxLoginCodes {
		f.mint(t)
	}
	wantProblem(t, f.do(request("POST", "/v1/login-codes", "")), 429, "too_many_login_codes")
	now = now.Add(loginCodeLife)
	f.mint(t)
	if _, err := f.api.LoginCode(); err != nil {
		t.Error(err)
	}
}

func TestDaemonWithoutATokenKnowsNobody(t *testing.T) {
	f := newFixture(t, func(d *Deps) { d.Token = "" })
	for _, h := range []string{"Bearer ", "Bearer", ""} {
		wantProblem(t, f.do(request("GET", ses, "", header("Authorization", h))), 401, "unauthorized")
	}
}

func TestClientNamesItself(t *testing.T) {
	f := newFixture(t)
	c := f.signIn(t)
	for _, tc := range []struct {
		change []func(*http.Request)
		want   string
	}{
		{nil, "api"},
		{[]func(*http.Request){with(c)}, "web"},
		{[]func(*http.Request){header(clientHeader, "cli")}, "cli"},
		{[]func(*http.Request){header(clientHeader, "a b<script>")}, "api"},
		{[]func(*http.Request){header(clientHeader, strings.Repeat("x", 33))}, "api"},
	} {
		f.asked = nil
		f.do(request("POST", trn+"/cancel", "", tc.change...))
		if len(f.asked) != 2 || f.asked[1] != tc.want {
			t.Errorf("asked %v, want %s", f.asked, tc.want)
		}
	}
}
