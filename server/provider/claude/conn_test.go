package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// fakeLink is a binary of which only the pipes are there.
type fakeLink struct {
	io.Reader

	mu      sync.Mutex
	written bytes.Buffer
	broken  error
}

func (l *fakeLink) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return 0, l.broken
	}
	return l.written.Write(b)
}

func (l *fakeLink) Close(context.Context) error { return nil }
func (l *fakeLink) Explain() string             { return "" }

// lines are the lines written so far.
func (l *fakeLink) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.written.String(), "\n"), "\n")
}

// talk is a conversation with what it handled and what was odd.
type talk struct {
	*conn
	link *fakeLink
	got  []frame
	odds []string
}

func newTalk(in io.Reader, maxLine int) *talk {
	t := &talk{link: &fakeLink{Reader: in}}
	t.conn = newConn(t.link, connOptions{
		handle:  func(f frame) { t.got = append(t.got, f) },
		odd:     func(k provider.DiagnosticKind, method, _ string) { t.odds = append(t.odds, string(k)+" "+method) },
		clock:   provider.RealClock{},
		maxLine: maxLine,
	})
	return t
}

// Lines of any length come through whole and in order; one beyond the limit, and the half
// one that a dying process leaves, cost nothing but themselves.
func TestLinesOfAnyLength(t *testing.T) {
	const limit = 1 << 20
	rapid.Check(t, func(t *rapid.T) {
		var in strings.Builder
		var want []string
		dropped := 0
		for n := range rapid.IntRange(0, 6).Draw(t, "lines") {
			size := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(64<<10-100, 64<<10+100), rapid.IntRange(limit-200, limit+200)).Draw(t, "size")
			line := fmt.Sprintf(`{"type":"user","uuid":"u%d","message":{"role":"user","content":"%s"}}`, n, strings.Repeat("x", size))
			if len(line) > limit {
				dropped++
			} else {
				want = append(want, fmt.Sprintf("u%d", n))
			}
			in.WriteString(line + rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end"))
		}
		if rapid.Bool().Draw(t, "half") {
			in.WriteString(`{"type":"user","uuid":"half","mess`)
			dropped++
		}
		c := newTalk(strings.NewReader(in.String()), limit)
		if err := c.run(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range c.got {
			got = append(got, f.head().UUID)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || len(c.odds) != dropped {
			t.Fatalf("got %v of %v, odd %v, dropped %d", got, want, c.odds, dropped)
		}
	})
}

// Whatever people and callers say, from however many goroutines: every line that is written
// is one JSON object that the binary can take. Anything else would end it.
func TestNoMalformedLineIsEverWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newTalk(strings.NewReader(""), 4096)
		c.open["r"] = true
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"a\nb", "\u2028", "\x00", "</script>", strings.Repeat("x", 5000), "\xff\xfe"}))
		var calls []func()
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			s := text.Draw(t, "text")
			calls = append(calls, []func(){
				func() { _ = c.user(s, s) },
				func() { c.ask(stopTaskRequest{reqStopTask, s}, 0, func(answer) {}) },
				func() { c.ask(json.RawMessage(s), 0, func(answer) {}) },
				func() { c.ask(map[string]string{"x": s}, 0, func(answer) {}) },
				func() { c.ask(func() {}, 0, func(answer) {}) },
				func() { _ = c.reply("r", map[string]string{"message": s}) },
				func() { _ = c.reply("r", json.RawMessage(s)) },
				func() { _ = c.reply(s, nil) },
				func() { _ = c.refuse("r", s) },
			}[rapid.IntRange(0, 8).Draw(t, "call")])
		}
		var all sync.WaitGroup
		for _, f := range calls {
			all.Go(f)
		}
		all.Wait()
		answers := 0
		for _, line := range c.link.lines() {
			if line == "" {
				continue
			}
			var l struct {
				Type    string
				Message *struct{ Role, Content *string }
				Request *struct{ Subtype string }
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("%v: %q", err, line)
			}
			ok := l.Type == typeUser && l.Message != nil && l.Message.Role != nil && l.Message.Content != nil ||
				l.Type == typeRequest && l.Request != nil && l.Request.Subtype != "" || l.Type == typeResponse
			if l.Type == typeResponse {
				answers++
			}
			if !ok || answers > 1 {
				t.Fatalf("%d answers, %q", answers, line)
			}
		}
	})
}

// What is written is exactly what the recorded client wrote.
func TestWrittenLines(t *testing.T) {
	c := newTalk(strings.NewReader(""), 0)
	c.open["p"], c.open["q"] = true, true
	done := func(answer) {}
	c.ask(initializeRequest{Subtype: reqInitialize, ForwardSubagentText: true}, 0, done)
	_ = c.user("b5cf60ba-31df-45d9-861e-1935aa64f167", "Say <hello>")
	c.ask(interruptRequest{reqInterrupt, true}, 0, done)
	c.ask(stopTaskRequest{reqStopTask, "a1"}, 0, done)
	c.ask(withdrawRequest{reqWithdraw, "u1"}, 0, done)
	_ = c.reply("p", denyAnswer{Behavior: "deny", Message: "no", ToolUseID: "t"})
	_ = c.refuse("q", "not here")
	want := []string{
		`{"type":"control_request","request_id":"tk-1","request":{"subtype":"initialize","forwardSubagentText":true}}`,
		`{"type":"user","uuid":"b5cf60ba-31df-45d9-861e-1935aa64f167","session_id":"","parent_tool_use_id":null,"message":{"role":"user","content":"Say <hello>"}}`,
		`{"type":"control_request","request_id":"tk-2","request":{"subtype":"interrupt","cancel_queued":true}}`,
		`{"type":"control_request","request_id":"tk-3","request":{"subtype":"stop_task","task_id":"a1"}}`,
		`{"type":"control_request","request_id":"tk-4","request":{"subtype":"cancel_async_message","message_uuid":"u1"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"p","response":{"behavior":"deny","message":"no","toolUseID":"t"}}}`,
		`{"type":"control_response","response":{"subtype":"error","request_id":"q","error":"not here"}}`,
	}
	got := c.link.lines()
	for n := range max(len(got), len(want)) {
		if n >= len(got) || n >= len(want) || got[n] != want[n] {
			t.Fatalf("line %d\n got %v\nwant %v", n, got, want)
		}
	}
}

// Answers find their request in any order; what answers nothing is counted.
func TestAnswersFindTheirRequest(t *testing.T) {
	r, w := io.Pipe()
	c := newTalk(r, 0)
	over := make(chan error, 1)
	go func() { over <- c.run() }()
	got := map[string][]error{}
	note := func(name string) func(answer) {
		return func(a answer) {
			var v struct{ X int }
			err := a.decode(&v)
			if err == nil && v.X != 7 {
				err = fmt.Errorf("payload %s", a.body.Response)
			}
			got[name] = append(got[name], err)
		}
	}
	for _, name := range []string{"first", "second", "third", "fourth"} {
		c.ask(stopTaskRequest{reqStopTask, name}, 0, note(name))
	}
	for _, line := range []string{
		`{"type":"control_response","response":{"subtype":"error","request_id":"tk-3","error":"no such","error_code":"unsupported_request"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"tk-1","response":{"x":7}}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"tk-1","response":{"x":8}}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"somebody","response":{}}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"tk-2","response":"odd"}}`,
	} {
		_, _ = io.WriteString(w, line+"\n")
	}
	_ = w.Close()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	var refused *refusedError
	switch {
	case len(got["first"]) != 1 || got["first"][0] != nil:
		t.Errorf("first: %v", got["first"])
	case len(got["second"]) != 1 || got["second"][0] == nil:
		t.Errorf("second: %v", got["second"])
	case len(got["third"]) != 1 || !errors.As(got["third"][0], &refused) || refused.Code != "unsupported_request":
		t.Errorf("third: %v", got["third"])
	case len(got["fourth"]) != 1 || !errors.Is(got["fourth"][0], wire.ErrClosed):
		t.Errorf("fourth: %v", got["fourth"])
	}
	if strings.Join(c.odds, ",") != "late control_response,late control_response" {
		t.Errorf("odd: %v", c.odds)
	}
	c.ask(stopTaskRequest{reqStopTask, "x"}, time.Minute, note("after"))
	if len(got["after"]) != 1 || !errors.Is(got["after"][0], wire.ErrClosed) || !errors.Is(c.user("u", "x"), wire.ErrClosed) || !errors.Is(c.reply("x", nil), wire.ErrClosed) {
		t.Errorf("after the end: %v", got["after"])
	}
}

// Each request has one end: its answer, its bound, or the end of the conversation.
func TestARequestHasOneEnd(t *testing.T) {
	for n := range 27 {
		at := func(place int) time.Duration { return time.Duration(n/place%3) * time.Second }
		bound, answered, closed := at(1)+time.Second, at(3)+time.Second, at(9)+time.Second
		synctest.Test(t, func(t *testing.T) { oneEnd(t, bound, answered, closed) })
	}
}

func oneEnd(t *testing.T, bound, answered, closed time.Duration) {
	r, w := io.Pipe()
	c := newTalk(r, 0)
	var over sync.WaitGroup
	over.Go(func() { _ = c.run() })
	var mu sync.Mutex
	var ends []answer
	c.ask(interruptRequest{Subtype: reqInterrupt}, bound, func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, a)
	})
	over.Go(func() {
		time.Sleep(answered)
		_, _ = io.WriteString(w, `{"type":"control_response","response":{"subtype":"success","request_id":"tk-1","response":{}}}`+"\n")
	})
	over.Go(func() {
		time.Sleep(closed)
		c.close(io.ErrUnexpectedEOF)
		_ = r.Close()
	})
	over.Wait()
	time.Sleep(time.Minute)
	mu.Lock()
	defer mu.Unlock()
	if len(ends) != 1 {
		t.Fatalf("%d ends: %v", len(ends), ends)
	}
	if bound < min(answered, closed) && !errors.Is(ends[0].err, errNoAnswer) || answered < min(bound, closed) && ends[0].err != nil {
		t.Fatalf("bound %v, answered %v, closed %v: %v", bound, answered, closed, ends[0].err)
	}
}

// A request of the binary is answered once, and not after it was withdrawn. What nobody
// here can answer is refused at once.
func TestRequestsOfTheBinary(t *testing.T) {
	lines := []string{
		`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t1"}}`,
		`{"type":"control_request","request_id":"r2","request":{"subtype":"elicitation","mcp_server_name":"s","message":"?"}}`,
		`{"type":"control_request","request_id":"r3","request":{"subtype":"hook_callback","callback_id":"h"}}`,
		`{"type":"control_request","request_id":"r4","request":{"subtype":"request_user_dialog"}}`,
		`{"type":"control_request","request_id":"r5"}`,
		`{"type":"control_request","request":{"subtype":"can_use_tool"}}`,
		`{"type":"control_cancel_request","request_id":"r2"}`,
	}
	r, w := io.Pipe()
	c := newTalk(r, 200)
	over := make(chan error, 1)
	go func() { over <- c.run() }()
	for _, l := range lines {
		_, _ = io.WriteString(w, l+"\n")
	}
	_, _ = io.WriteString(w, "not json\n")
	for n, id := range []string{"r3", "r4", "r5"} {
		var a outAnswer
		if err := json.Unmarshal([]byte(c.link.lines()[n]), &a); err != nil || a.Response.RequestID != id || a.Response.Subtype != "error" {
			t.Errorf("answer %d: %+v, %v", n, a, err)
		}
	}
	if err := c.reply("r1", map[string]string{"x": strings.Repeat("y", 300)}); !errors.Is(err, wire.ErrMessageTooLong) {
		t.Errorf("too long: %v", err)
	}
	if err := c.reply("r1", map[string]any{"behavior": "deny"}); err != nil {
		t.Errorf("first answer: %v", err)
	}
	for _, id := range []string{"r1", "r2", "r3", "never"} {
		if err := c.reply(id, nil); !errors.Is(err, errNotOpen) {
			t.Errorf("%s: %v", id, err)
		}
	}
	_ = w.Close()
	<-over               // how the pipe ended
	if len(c.got) != 3 { // r1, r2 and its withdrawal
		t.Errorf("handled %d", len(c.got))
	}
	if want := "refused hook_callback,refused request_user_dialog,refused ,malformed control_request,malformed "; strings.Join(c.odds, ",") != want {
		t.Errorf("odd: %q", strings.Join(c.odds, ","))
	}
}

// After a write that failed nothing is written any more, and everybody is told.
func TestBrokenPipe(t *testing.T) {
	c := newTalk(strings.NewReader(""), 0)
	c.link.broken = io.ErrClosedPipe
	c.open["r"] = true
	var broken *wire.WriteError
	if err := c.user("u", "x"); !errors.As(err, &broken) {
		t.Errorf("%v", err)
	}
	var got []error
	c.ask(interruptRequest{Subtype: reqInterrupt}, 0, func(a answer) { got = append(got, a.err) })
	if len(got) != 1 || !errors.As(got[0], &broken) {
		t.Errorf("%v", got)
	}
	if err := c.reply("r", nil); !errors.As(err, &broken) {
		t.Errorf("%v", err)
	}
}
