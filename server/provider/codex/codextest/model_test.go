package codextest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// ask makes one request the way Codex does. With a parent it is a sub-agent's.
func ask(t *testing.T, m *Model, thread, parent string, input ...any) *http.Response {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "input": input})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.BaseURL()+"/responses", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("thread-id", thread)
	if parent != "" {
		req.Header.Set("x-codex-parent-thread-id", parent)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func prompt(text string) any {
	return map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": text}}}
}

// sse is one server-sent event.
type sse struct {
	Type  string `json:"type"`
	Delta string `json:"delta"`
	Item  struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Arguments string `json:"arguments"`
		Content   []struct{ Text string }
		Summary   []struct{ Text string }
	} `json:"item"`
	Response struct {
		ID    string `json:"id"`
		Error struct{ Code, Message string }
		Usage struct {
			Total int `json:"total_tokens"`
		}
	} `json:"response"`
}

// events reads a whole stream and returns how it ended.
func events(t *testing.T, resp *http.Response) (all []sse, err error) {
	t.Helper()
	lines := bufio.NewScanner(resp.Body)
	kind := ""
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e sse
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != kind {
				t.Errorf("event %s: %s, %v", kind, data, err)
			}
			all = append(all, e)
		}
	}
	return all, lines.Err()
}

func kinds(all []sse) (out []string) {
	for _, e := range all {
		out = append(out, strings.TrimPrefix(e.Type, "response."))
	}
	return out
}

func TestMessageAndThought(t *testing.T) {
	m := NewModel(t, Script{"root": {{Think("hm"), SayIn(3, "añb"), SayPieces("x", "y")}}})
	resp := ask(t, m, "t0", "", prompt("hello"))
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %s", ct)
	}
	all, err := events(t, resp)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"created",
		"output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta", "output_item.done",
		"output_item.added", "output_text.delta", "output_text.delta", "output_text.delta", "output_item.done",
		"output_item.added", "output_text.delta", "output_text.delta", "output_item.done",
		"completed",
	}
	if got := kinds(all); !slices.Equal(got, want) {
		t.Fatalf("events %q", got)
	}
	if d := all[6].Delta + "|" + all[7].Delta + "|" + all[8].Delta; d != "a|ñ|b" {
		t.Errorf("pieces %s", d)
	}
	if all[4].Item.Summary[0].Text != "hm" || all[9].Item.Content[0].Text != "añb" || all[14].Response.Usage.Total == 0 {
		t.Errorf("events %+v", all)
	}
}

func TestToolCallWithReferences(t *testing.T) {
	m := NewModel(t, Script{
		"root": {
			{V1.Spawn("call_s", "a", "work")},
			{
				Call("send", map[string]any{"to": []any{OutputOf("call_s", "agent_id"), ThreadOf("a")}, "n": 1}).In("ns").As("c2"),
				Call("send", map[string]any{"to": OutputOf("call_p", "id")}),
				V1.Wait("call_w", "call_s"),
				Call("bare", nil),
			},
		},
		"a": {{Say("x")}},
	})
	first, _ := events(t, ask(t, m, "t0", "", prompt("go")))
	if c := first[2].Item; c.CallID != "call_s" || c.Name != "spawn_agent" || c.Namespace != "multi_agent_v1" ||
		c.Arguments != `{"message":"\u003c\u003ca\u003e\u003e work"}` {
		t.Errorf("spawn %+v", c)
	}
	_, _ = events(t, ask(t, m, "t1", "t0", prompt("<<a>> work")))
	all, err := events(t, ask(t, m, "t0", "", prompt("go"),
		map[string]any{"type": "function_call_output", "call_id": "call_s", "output": `{"agent_id":"id-1"}`},
		map[string]any{"type": "function_call_output", "call_id": "call_p", "output": []any{map[string]any{"type": "input_text", "text": `{"id":"id-2"}`}}},
	))
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, e := range all {
		if e.Type == "response.output_item.done" {
			args = append(args, e.Item.Arguments)
		}
	}
	want := []string{`{"n":1,"to":["id-1","t1"]}`, `{"to":"id-2"}`, `{"targets":["id-1"],"timeout_ms":30000}`, `{}`}
	if !slices.Equal(args, want) {
		t.Errorf("arguments %q", args)
	}
}

func TestAgentsAreToldApart(t *testing.T) {
	m := NewModel(t, Script{})
	assistant := map[string]any{"type": "message", "role": "assistant", "content": "<<wrong>>"}
	call := map[string]any{"type": "function_call", "call_id": "c", "arguments": "<<wrong>>"}
	for _, c := range []struct {
		thread, parent string
		input          []any
		want           string
	}{
		{"t0", "", []any{prompt("no mark")}, "root"},
		{"t0", "", []any{prompt("<<a>> a mark that comes later")}, "root"},
		{"t1", "t0", []any{prompt("<<b>> of the parent"), call, prompt("<<a>> go"), assistant}, "a"},
		{"t2", "", []any{prompt("<<other>> first"), prompt("<<a>>")}, "other"},
		{"t3", "t0", []any{prompt("no mark")}, "sub"},
	} {
		before := len(m.Requests(c.want))
		all, err := events(t, ask(t, m, c.thread, c.parent, c.input...))
		if err != nil || all[len(all)-2].Item.Content[0].Text != OverrunText {
			t.Errorf("%s: %v, %+v", c.want, err, all)
		}
		reqs := m.Requests(c.want)
		if len(reqs) != before+1 || m.Thread(c.want) != c.thread || reqs[before].N != before+1 || reqs[before].Agent != c.want {
			t.Errorf("%s: thread %s, %d requests", c.want, m.Thread(c.want), len(reqs))
		}
	}
	if got := m.Overruns(); !slices.Equal(got, []string{"root", "root", "a", "other", "sub"}) {
		t.Errorf("overruns %v", got)
	}
	if m.Thread("nobody") != "" || m.Requests("nobody") != nil {
		t.Error("an agent nobody has seen")
	}
}

func TestFailures(t *testing.T) {
	m := NewModel(t, Script{"root": {
		{Gate("g"), Status(429, `{"error":{"message":"slow down"}}`)},
		{SayPieces("some"), Fail("server_error", "broken")},
		{Say("some"), Drop()},
		{},
	}})
	m.Open("g")
	resp := ask(t, m, "t0", "", prompt("x"))
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 429 || !strings.Contains(string(b), "slow down") {
		t.Errorf("status %d, %s", resp.StatusCode, b)
	}
	all, err := events(t, ask(t, m, "t0", "", prompt("x")))
	if last := all[len(all)-1]; err != nil || last.Type != "response.failed" || last.Response.Error.Code != "server_error" {
		t.Errorf("failed: %+v, %v", all, err)
	}
	all, err = events(t, ask(t, m, "t0", "", prompt("x")))
	if last := all[len(all)-1]; err == nil || last.Type != "response.output_item.done" {
		t.Errorf("dropped: %+v, %v", all, err)
	}
	if all, err = events(t, ask(t, m, "t0", "", prompt("x"))); err != nil || len(all) != 2 {
		t.Errorf("empty reply: %+v, %v", all, err)
	}
}

func TestCompressedBody(t *testing.T) {
	m := NewModel(t, Script{"root": {{Say("ok")}}})
	var body bytes.Buffer
	zw := gzip.NewWriter(&body)
	_, _ = io.WriteString(zw, `{"prompt_cache_key":"t9","input":[]}`)
	zw.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, m.BaseURL()+"/responses", &body)
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if all, err := events(t, resp); err != nil || len(all) != 5 || m.Thread("root") != "t9" {
		t.Errorf("%d events, %v, thread %s", len(all), err, m.Thread("root"))
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
		m := NewModel(f, Script{"root": {{Call("tool", map[string]any{"deep": []any{c.ref}})}}})
		all, err := events(t, ask(t, m, "t0", "", prompt("x"),
			map[string]any{"type": "function_call_output", "call_id": "call_y", "output": `{"id":7}`},
			map[string]any{"type": "function_call_output", "call_id": "call_z", "output": "plain"},
		))
		if said := <-f.said; !strings.Contains(said, c.want) || !strings.Contains(said, "agent root, request 1, step 1") {
			t.Errorf("%s: %s", c.ref, said)
		}
		if err != nil || all[len(all)-1].Response.Error.Code != "script_error" {
			t.Errorf("%s: %+v, %v", c.ref, all, err)
		}
	}
	f := &faults{TB: t, said: make(chan string, 1)}
	m := NewModel(f, Script{})
	resp, err := http.DefaultTransport.RoundTrip(must(http.NewRequestWithContext(t.Context(), http.MethodPost, m.BaseURL()+"/responses", strings.NewReader("{"))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said := <-f.said; resp.StatusCode != http.StatusBadRequest || !strings.Contains(said, "cannot be read") {
		t.Errorf("status %d, %s", resp.StatusCode, said)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
