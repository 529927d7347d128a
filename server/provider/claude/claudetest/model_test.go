package claudetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// ask makes one request the way Claude Code does. With an id it is a sub-agent's.
func ask(t *testing.T, m *Model, agent string, streaming bool, messages ...any) *http.Response {
	t.Helper()
	return post(t, m, agent, map[string]any{
		"model": "m", "stream": streaming, "messages": messages, "tools": []any{map[string]any{"name": "Bash"}},
	})
}

func post(t *testing.T, m *Model, agent string, fields map[string]any) *http.Response {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.BaseURL()+"/v1/messages?beta=true", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if agent != "" {
		req.Header.Set(agentHeader, agent)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func user(content any) any { return map[string]any{"role": "user", "content": content} }

func text(s string) any { return map[string]any{"type": "text", "text": s} }

// event is one server-sent event.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID, Model string
		Usage     struct {
			Input int `json:"input_tokens"`
		}
	} `json:"message"`
	Block struct {
		Type, ID, Name string
		Input          json.RawMessage
	} `json:"content_block"`
	Delta struct {
		Type, Text, Thinking string
		JSON                 string `json:"partial_json"`
		Stop                 string `json:"stop_reason"`
	} `json:"delta"`
	Error struct{ Type, Message string } `json:"error"`
}

func events(t *testing.T, resp *http.Response) (all []event, err error) {
	t.Helper()
	lines := bufio.NewScanner(resp.Body)
	kind := ""
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != kind {
				t.Errorf("event %s: %s, %v", kind, data, err)
			}
			all = append(all, e)
		}
	}
	return all, lines.Err()
}

func kinds(all []event) (out []string) {
	for _, e := range all {
		out = append(out, strings.TrimPrefix(e.Type, "content_"))
	}
	return out
}

func TestStreamOfBlocks(t *testing.T) {
	m := NewModel(t, Script{"root": {{Think("hm"), SayIn(2, "añ"), Bash("toolu_b", "ls"), Call("Bare", nil)}}})
	resp := ask(t, m, "", true, user("hello"))
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %s", ct)
	}
	all, err := events(t, resp)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"message_start", "ping",
		"block_start", "block_delta", "block_delta", "block_stop",
		"block_start", "block_delta", "block_delta", "block_stop",
		"block_start", "block_delta", "block_stop",
		"block_start", "block_delta", "block_stop",
		"message_delta", "message_stop",
	}
	if got := kinds(all); !slices.Equal(got, want) {
		t.Fatalf("events %q", got)
	}
	if all[0].Message.Usage.Input != InputTokens || all[0].Message.Model != "m" || all[3].Delta.Thinking != "hm" || all[8].Delta.Text != "ñ" {
		t.Errorf("events %+v", all)
	}
	if b := all[10].Block; b.Type != "tool_use" || b.ID != "toolu_b" || b.Name != "Bash" || all[10].Index != 2 ||
		all[11].Delta.JSON != `{"command":"ls","description":"Run toolu_b"}` || all[16].Delta.Stop != "tool_use" {
		t.Errorf("call %+v, %+v, %+v", all[10], all[11], all[16])
	}
	if all[13].Block.ID != "toolu_msg_0001_3" || all[14].Delta.JSON != "{}" {
		t.Errorf("call without an id %+v", all[13])
	}
}

// Claude asks again without streaming when a stream has broken, if it may.
func TestWholeMessage(t *testing.T) {
	m := NewModel(t, Script{"root": {
		{Think("hm"), SayPieces("x", "y"), Foreground("toolu_a", "a", "work")},
		{Fail("overloaded_error", "no")},
		{Status(500, "")},
	}})
	var got struct {
		Stop    string `json:"stop_reason"`
		Content []struct {
			Type, Text, Thinking, ID string
			Input                    struct {
				Prompt     string
				Background bool `json:"run_in_background"`
			}
		}
		Usage struct {
			Output int `json:"output_tokens"`
		}
	}
	if err := json.NewDecoder(ask(t, m, "", false, user("hello")).Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Stop != "tool_use" || got.Usage.Output != OutputTokens || len(got.Content) != 3 || got.Content[1].Text != "xy" ||
		got.Content[2].Input.Prompt != "<<a>> work" || got.Content[2].Input.Background {
		t.Errorf("message %+v", got)
	}
	for range 2 {
		if resp := ask(t, m, "", false, user("hello")); resp.StatusCode != 500 {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

func TestAgentsAreToldApart(t *testing.T) {
	m := NewModel(t, Script{})
	says := map[string]any{"role": "assistant", "content": "<<wrong>>"}
	result := user([]any{map[string]any{"type": "tool_result", "tool_use_id": "c", "content": "<<wrong>>"}})
	for _, c := range []struct {
		agent    string
		messages []any
		want     string
	}{
		{"", []any{user("no mark")}, "root"},
		{"a1", []any{user([]any{text("a reminder"), text("<<a>> go")}), says, result}, "a"},
		{"a2", []any{user("<<a>> of the parent"), says, user("<<b>> go")}, "b"},
		{"a3", []any{user("no mark")}, "sub"},
		{"a1", []any{user("<<other>> later")}, "a"},
	} {
		before := len(m.Requests(c.want))
		all, err := events(t, ask(t, m, c.agent, true, c.messages...))
		if err != nil || all[3].Delta.Text != OverrunText {
			t.Errorf("%s: %v, %+v", c.want, err, all)
		}
		if got := m.Requests(c.want); len(got) != before+1 || m.Thread(c.want) != c.agent {
			t.Errorf("%s: thread %q, %d requests", c.want, m.Thread(c.want), len(got))
		}
	}
	other := NewModel(t, Script{})
	if _, err := events(t, ask(t, other, "", true, user("<<x>> go"), user("<<y>>"))); err != nil || len(other.Requests("x")) != 1 {
		t.Errorf("a root with a mark: %v", err)
	}
	if _, err := events(t, post(t, m, "", map[string]any{"model": "m", "stream": true, "messages": []any{user("is it done?")}})); err != nil {
		t.Error(err)
	}
	if len(m.Requests("aside")) != 1 || len(m.Requests("root")) != 1 {
		t.Error("what is asked aside is the root's")
	}
}

func TestFailures(t *testing.T) {
	m := NewModel(t, Script{"root": {
		{Status(400, "")},
		{Status(429, "")},
		{Status(500, "")},
		{Status(529, "")},
		{Status(418, "own words")},
		{Say("some"), Fail("overloaded_error", "broken")},
		{Say("some"), Drop()},
	}})
	for _, want := range []struct {
		code int
		body string
	}{
		{400, "invalid_request_error"},
		{429, "rate_limit_error"},
		{500, "api_error"},
		{529, "overloaded_error"},
		{418, "own words"},
	} {
		resp := ask(t, m, "", true, user("x"))
		if b, _ := io.ReadAll(resp.Body); resp.StatusCode != want.code || !strings.Contains(string(b), want.body) {
			t.Errorf("status %d, %s", resp.StatusCode, b)
		}
	}
	all, err := events(t, ask(t, m, "", true, user("x")))
	if last := all[len(all)-1]; err != nil || last.Type != "error" || last.Error.Type != "overloaded_error" {
		t.Errorf("failed: %+v, %v", all, err)
	}
	all, err = events(t, ask(t, m, "", true, user("x")))
	if last := all[len(all)-1]; err == nil || last.Type != "content_block_stop" {
		t.Errorf("dropped: %+v, %v", all, err)
	}
}

func TestReferencesAndSaid(t *testing.T) {
	m := NewModel(t, Script{"root": {{Call("SendMessage", map[string]any{"to": ThreadOf("a"), "id": OutputOf("c", "id")})}}, "a": {{Say("x")}}})
	_, _ = events(t, ask(t, m, "a1", true, user("<<a>> go")))
	results := user([]any{
		map[string]any{"type": "tool_result", "tool_use_id": "c", "content": []any{text(`{"id":`), text(`"i"}`)}},
		map[string]any{"type": "tool_result", "tool_use_id": "d", "content": "plain"},
		text("a reminder"),
	})
	all, err := events(t, ask(t, m, "", true, user("go"), results))
	if err != nil || all[3].Delta.JSON != `{"id":"i","to":"a1"}` {
		t.Errorf("call %+v, %v", all, err)
	}
	if got := Said(m.Requests("root")[0]); !slices.Equal(got, []string{`{"id":`, `"i"}`, "plain", "a reminder"}) {
		t.Errorf("said %q", got)
	}
	if got := Said(m.Requests("a")[0]); !slices.Equal(got, []string{"<<a>> go"}) {
		t.Errorf("said %q", got)
	}
}

func TestHome(t *testing.T) {
	t.Setenv("CLAUDE_CODE_SOMETHING", "of the person")
	place := Home(t, Options{BaseURL: "http://127.0.0.1:1", Retries: 2, Env: []string{"MORE=1"}})
	for _, want := range []string{
		"HOME=" + place.Home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY=opens-nothing",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=2", "MORE=1",
	} {
		if !slices.Contains(place.Env, want) {
			t.Errorf("environment lacks %s: %q", want, place.Env)
		}
	}
	if strings.Contains(strings.Join(place.Env, "\n"), "SOMETHING") {
		t.Error("what the person has set gets through")
	}
}
