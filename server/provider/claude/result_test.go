package claude

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestReasonsOfFailedTurns(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","result":"API Error: 400 mock 400 for root","api_error_type":"invalid_request_error","api_error_status":400}`, "invalid_request_error: 400 mock 400 for root"},
		{`{"type":"result","subtype":"success","is_error":true,"result":"API Error: Overloaded","api_error_type":"overloaded_error","api_error_status":529}`, "overloaded_error (HTTP 529): Overloaded"},
		{`{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (3)"]}`, "error max turns: Reached maximum number of turns (3)"},
		{`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["[ede_diagnostic] x"]}`, "error during execution"},
		{`{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1796072965"}`, "Claude AI usage limit reached. It is lifted at 2026-11-30 21:09 UTC."},
		{`{"type":"result","subtype":"success","is_error":true}`, "Claude gave no reason"},
	} {
		f, err := decodeFrame([]byte(c.line))
		if err != nil {
			t.Fatal(err)
		}
		if got := errorOf(f.(*resultFrame)); got.Message != c.want || got.Code != agent.CodeProviderRefused {
			t.Errorf("got  %q\nwant %q", got.Message, c.want)
		}
	}
	if f := framesOf[*resultFrame](t, "k_root_error_400_with_background_child")[0]; errorOf(f).Message != "invalid_request_error: 400 mock 400 for root" {
		t.Errorf("%v", errorOf(f))
	}
}

// A limit can come as a message with a normal stop and a result without an error; the
// message says what it is (B212).
func TestRateLimitLooksLikeACleanCompletion(t *testing.T) {
	f, err := decodeFrame([]byte(`{"type":"assistant","message":{"model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"You've hit your limit|1796072965"}]},"error":"rate_limit","api_error_status":429}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.(*messageFrame).apiError(); got == nil || got.Message != "rate_limit (HTTP 429): You've hit your limit. It is lifted at 2026-11-30 21:09 UTC." {
		t.Errorf("%v", got)
	}
	said := map[string]string{}
	for _, name := range recordings(t) {
		for _, f := range framesOf[*messageFrame](t, name) {
			if e := f.apiError(); e != nil {
				said[name] = e.Message
			}
		}
	}
	if len(said) != 4 || said["k_child_error_400_background"] != "invalid_request_error: 400 mock 400 for A1" {
		t.Errorf("%v", said)
	}
}

func TestRemarks(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"error_status":529,"error":"overloaded"}`, "Claude tries again (2 of 10): overloaded, HTTP 529."},
		{`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"error_status":null,"error":"unknown"}`, "Claude tries again (1 of 10)."},
		{`{"type":"system","subtype":"informational","content":"A hook stopped it","level":"warning"}`, "A hook stopped it"},
		{`{"type":"system","subtype":"informational","content":"x","level":"info"}`, ""},
		{`{"type":"system","subtype":"local_command_output","content":" Total cost: 1 \n"}`, "Total cost: 1"},
		{`{"type":"system","subtype":"notification","key":"k","text":"press ctrl+o"}`, ""},
		{`{"type":"system","subtype":"permission_denied","tool_name":"mcp__s__t","tool_use_id":"t","decision_reason":"a rule","message":"m"}`, "s: t was not allowed: a rule"},
		{`{"type":"system","subtype":"permission_denied","tool_name":"Bash","message":"m"}`, "Bash was not allowed: m"},
		{`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":150000,"post_tokens":9000}}`, "The context was compacted, from 150000 to 9000 tokens."},
		{`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"manual","pre_tokens":7}}`, "The context was compacted as asked at 7 tokens."},
		{`{"type":"system","subtype":"status","status":"compacting"}`, ""},
		{`{"type":"system","subtype":"status","status":null,"compact_result":"failed","compact_error":"too short"}`, "The context could not be compacted: too short"},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796072965,"rateLimitType":"five_hour"}}`, "Claude: five hour limit reached. It is lifted at 2026-11-30 21:09 UTC."},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","overageStatus":"allowed"}}`, ""},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`, "Claude: limit reached."},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"seven_day"}}`, ""},
		{`{"type":"tool_progress","tool_use_id":"x","subagent_retry":{"agent_id":"a","attempt":1,"max_retries":1,"error_status":500,"error_category":"server_error"}}`, "Claude tries again (1 of 1): server error, HTTP 500."},
		{`{"type":"tool_progress","tool_use_id":"x","tool_name":"Bash","elapsed_time_seconds":3}`, ""},
	} {
		f, err := decodeFrame([]byte(c.line))
		if err != nil {
			t.Fatal(err)
		}
		if got := remarkText(f); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.line, got, c.want)
		}
	}
}

// What the root and its children took adds up to what the binary counted, in tokens and in
// money, at every result of every recording.
func TestUsageAddsUp(t *testing.T) {
	for _, name := range recordings(t) {
		var all agent.Usage
		var last *resultFrame
		for _, f := range framesOf[*resultFrame](t, name) {
			own, children := f.split("claude-sonnet-4-5")
			for _, u := range []agent.Usage{own, children} {
				if min(u.InputTokens, u.OutputTokens, u.CachedInputTokens, u.ReasoningTokens, u.CostMicros) < 0 {
					t.Errorf("%s: %+v", name, u)
				}
			}
			if last != nil && f.TotalCostUSD < last.TotalCostUSD {
				all = agent.Usage{} // another process
			}
			all, last = all.Add(own).Add(children), f
		}
		if last == nil {
			continue
		}
		if want := sum(last.ModelUsage); all != want {
			t.Errorf("%s: %+v, and the binary counted %+v", name, all, want)
		}
	}
	f := framesOf[*resultFrame](t, "b_foreground_agent")[0]
	want := agent.Usage{InputTokens: 200, OutputTokens: 40, CostMicros: 1200}
	if own, children := f.split("claude-sonnet-4-5"); own != want || children != want {
		t.Errorf("%+v, %+v", own, children)
	}
}

func TestUsageOfModels(t *testing.T) {
	var f resultFrame
	line := `{"type":"result","usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":8,"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}},
		"model_usage_since_last_result":{"big":{"inputTokens":10,"cacheReadInputTokens":100,"cacheCreationInputTokens":8,"outputTokens":20,"thinkingTokens":5,"costUSD":0.0013},
		"small":{"inputTokens":7,"outputTokens":1,"costUSD":0.000012}}}`
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatal(err)
	}
	own, children := f.split("big")
	if own != (agent.Usage{InputTokens: 118, CachedInputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CostMicros: 1300}) ||
		children != (agent.Usage{InputTokens: 7, OutputTokens: 1, CostMicros: 12}) {
		t.Errorf("%+v, %+v", own, children)
	}
	if own, children = f.split("another"); own.CostMicros+children.CostMicros != 1312 || own.CostMicros < 1200 {
		t.Errorf("%+v, %+v", own, children)
	}
	f.SinceLast, f.Usage = nil, nil
	if own, children = f.split("big"); own != (agent.Usage{}) || children != (agent.Usage{}) {
		t.Errorf("%+v, %+v", own, children)
	}
}

func TestPartsAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40)
		u := agent.Usage{InputTokens: n.Draw(t, "in"), OutputTokens: n.Draw(t, "out"), CostMicros: n.Draw(t, "cost")}
		weights := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 6).Draw(t, "weights")
		var all agent.Usage
		for _, part := range apportion(u, weights) {
			if min(part.InputTokens, part.OutputTokens, part.CostMicros) < 0 {
				t.Fatalf("%+v", part)
			}
			all = all.Add(part)
		}
		if all != u {
			t.Fatalf("%+v of %+v", all, u)
		}
	})
	if got := apportion(agent.Usage{InputTokens: 5}, nil); len(got) != 0 {
		t.Error(got)
	}
}
