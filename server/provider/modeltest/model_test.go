package modeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is the smallest dialect: a request is "thread mark…", a reply is lines.
type plain struct{}

func (plain) Route() string { return "POST /ask" }
func (plain) Base() string  { return "/base" }

func (plain) Read(_ http.Header, body []byte) (Asked, error) {
	thread, _, ok := strings.Cut(string(body), " ")
	if !ok {
		return Asked{}, errors.New("no thread")
	}
	return Asked{
		Thread: thread,
		Name:   func() string { return Marks(body)[0] },
		Output: func(call string) []byte {
			return map[string][]byte{"call_y": []byte(`{"id":7}`), "call_z": []byte("plain"), "call_s": []byte(`{"id":"i"}`)}[call]
		},
	}, nil
}

func (plain) Stream(_ testing.TB, w http.ResponseWriter, _ Asked, _ int) Stream { return lines{w} }

type lines struct{ w http.ResponseWriter }

func (l lines) say(format string, args ...any) {
	fmt.Fprintf(l.w, format+"\n", args...)
	_ = http.NewResponseController(l.w).Flush()
}

func (l lines) Begin() { l.say("begin") }

func (l lines) Text(pieces func(yield func(string) bool)) {
	for piece := range pieces {
		l.say("%s", piece)
	}
}

func (l lines) Think(text string)            { l.say("(%s)", text) }
func (l lines) Call(c ToolCall, args string) { l.say("%s %s %s %s", c.ID, c.Namespace, c.Tool, args) }
func (l lines) Status(code int, body string) { http.Error(l.w, body, code) }
func (l lines) Fail(code, message string)    { l.say("fail %s %s", code, message) }
func (l lines) Complete()                    { l.say("end") }

// ask makes one request; the answer's head has been read.
func ask(t *testing.T, m *Model, body string) *http.Response {
	t.Helper()
	url := strings.TrimSuffix(m.BaseURL(), "/base") + "/ask"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "|")
}

func TestSteps(t *testing.T) {
	m := New(t, plain{}, Script{"root": {
		{Think("hm"), SayIn(3, "añb"), SayPieces("x", "y"), Call("bare", nil)},
		{Gate("g"), Status(429, "slow down")},
		{Say("some"), Fail("a", "b")},
		{},
		{Call("send", map[string]any{"to": []any{OutputOf("call_s", "id"), ThreadOf("root")}, "n": 1}).In("ns").As("c2")},
	}})
	m.Open("g")
	for i, want := range []string{
		"begin|(hm)|a|ñ|b|x|y|  bare {}|end", "slow down", "begin|some|fail a b", "begin|end",
		`begin|c2 ns send {"n":1,"to":["i","t0"]}|end`,
	} {
		if got := read(t, ask(t, m, "t0 <<root>>")); got != want {
			t.Errorf("reply %d: %s, want %s", i+1, got, want)
		}
	}
	if got := m.Requests("root"); len(got) != 5 || got[4].N != 5 || m.Thread("root") != "t0" {
		t.Errorf("requests %+v", got)
	}
	if got := read(t, ask(t, m, "t0 <<other>>")); got != "begin|"+OverrunText+"|end" || !slices.Equal(m.Overruns(), []string{"root"}) {
		t.Errorf("an overrun: %s, %v", got, m.Overruns())
	}
}

func TestDrop(t *testing.T) {
	m := New(t, plain{}, Script{"root": {{Say("some"), Drop()}}})
	if b, err := io.ReadAll(ask(t, m, "t0 <<root>>").Body); err == nil || string(b) != "begin\nsome\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A silent model sends nothing, not even that it has begun.
func TestSilence(t *testing.T) {
	m := New(t, plain{}, Script{"root": {{Silent("s"), SayAround("m", "one", "two")}}})
	got := make(chan string, 1)
	go func() { got <- read(t, ask(t, m, "t0 <<root>>")) }()
	if err := m.WaitHeld(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	m.Open("s")
	if err := m.WaitHeld(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	m.Open("m")
	if s := <-got; s != "begin|one|two|end" {
		t.Error(s)
	}
}

func TestStrays(t *testing.T) {
	m := New(t, plain{}, Script{})
	resp, err := http.Get(m.BaseURL() + "/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || !slices.Equal(m.Strays(), []string{"GET /base/elsewhere"}) {
		t.Errorf("status %d, strays %v", resp.StatusCode, m.Strays())
	}
}

// faults is a testing.TB that keeps failures instead of failing.
type faults struct {
	testing.TB
	said chan string
}

func (f *faults) Helper() {}

func (f *faults) Errorf(format string, args ...any) { f.said <- fmt.Sprintf(format, args...) }

func TestScriptErrorsFailTheTest(t *testing.T) {
	for _, c := range []struct{ ref, want string }{
		{OutputOf("call_x", "id"), "no output of call_x"},
		{OutputOf("call_y", "id"), `no text "id"`},
		{OutputOf("call_z", "id"), "is no object"},
		{ThreadOf("b"), "agent b has no thread"},
	} {
		f := &faults{TB: t, said: make(chan string, 1)}
		m := New(f, plain{}, Script{"root": {{Call("tool", map[string]any{"deep": []any{c.ref}})}}})
		got := read(t, ask(t, m, "t0 <<root>>"))
		if said := <-f.said; !strings.Contains(said, c.want) || !strings.Contains(said, "agent root, request 1, step 1") {
			t.Errorf("%s: %s", c.ref, said)
		}
		if !strings.Contains(got, "fail script_error") {
			t.Errorf("%s: %s", c.ref, got)
		}
	}
	f := &faults{TB: t, said: make(chan string, 1)}
	m := New(f, plain{}, Script{})
	resp := ask(t, m, "nothing")
	if said := <-f.said; resp.StatusCode != http.StatusBadRequest || !strings.Contains(said, "cannot be read") {
		t.Errorf("status %d, %s", resp.StatusCode, said)
	}
}

func TestGates(t *testing.T) {
	m := New(t, plain{}, Script{"root": {{Gate("g"), Gate("h"), Say("through")}, {Gate("g"), Say("again")}}})
	got := make(chan string, 2)
	for i := range 2 {
		go func() {
			got <- read(t, ask(t, m, "t0 <<root>>"))
		}()
		if err := m.WaitRequests(t.Context(), "root", i+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.WaitHeld(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	m.Open("g")
	if s := <-got; s != "begin|again|end" {
		t.Errorf("second reply: %s", s)
	}
	if err := m.WaitHeld(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-got:
		t.Errorf("a closed gate was passed: %s", s)
	default:
	}
	m.Open("h")
	if s := <-got; s != "begin|through|end" {
		t.Errorf("first reply: %s", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.WaitRequests(ctx, "root", 3); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "2 of 3") {
		t.Errorf("waiting in vain: %v", err)
	}
	if err := m.WaitHeld(ctx, "g"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting in vain: %v", err)
	}
}

// A client that leaves frees its reply; the test's end frees the others.
func TestHeldRepliesAreLetGo(t *testing.T) {
	m := New(t, plain{}, Script{"root": {{Gate("never")}, {Gate("never")}}})
	resp := ask(t, m, "t0 <<root>>")
	if err := m.WaitHeld(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := m.WaitLeft(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
	ask(t, m, "t0 <<root>>")
	if err := m.WaitHeld(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
}

func TestAppend(t *testing.T) {
	script := Script{"root": {{Say("1")}}}
	m := New(t, plain{}, script)
	m.Append("root", Reply{Say("2")})
	for _, want := range []string{"1", "2"} {
		if got := read(t, ask(t, m, "t0 <<root>>")); got != "begin|"+want+"|end" {
			t.Errorf("said %s, want %s", got, want)
		}
	}
	m.Append("root", Reply{Say("of the old script")})
	m.Next("root", Reply{Say("next")})
	m.Next("other", Reply{Say("first")})
	for want, request := range map[string]string{"next": "t0 <<root>>", "first": "t1 <<other>>"} {
		if got := read(t, ask(t, m, request)); got != "begin|"+want+"|end" {
			t.Errorf("said %s, want %s", got, want)
		}
	}
	if len(script["root"]) != 1 {
		t.Error("the caller's script was changed")
	}
}

func TestScriptCheck(t *testing.T) {
	for name, c := range map[string]struct {
		reply Reply
		ok    bool
	}{
		"plain":               {Reply{Say("x"), Drop()}, true},
		"status after a gate": {Reply{Gate("g"), Status(500, "")}, true},
		"status after text":   {Reply{Say("x"), Status(500, "")}, false},
		"text after status":   {Reply{Status(500, ""), Say("x")}, false},
		"text after fail":     {Reply{Fail("a", "b"), Say("x")}, false},
		"bad arguments":       {Reply{Call("t", make(chan int))}, false},
		"nil":                 {Reply{nil}, false},
		"silent first":        {Reply{Silent("a"), Silent("b"), Gate("g"), Status(500, "")}, true},
		"silent after text":   {Reply{Say("x"), Silent("a")}, false},
	} {
		if err := (Script{"root": {c.reply}}).check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
