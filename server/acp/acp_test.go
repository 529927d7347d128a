package acp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptTellsAbsentNullAndValueApart(t *testing.T) {
	for _, c := range []struct {
		in               string
		said, null, some bool
	}{
		{`{"sessionId":"c"}`, false, false, false},
		{`{"sessionId":"c","title":null}`, true, true, false},
		{`{"sessionId":"c","title":"t"}`, true, false, true},
	} {
		var u SubagentUpdate
		if err := json.Unmarshal([]byte(c.in), &u); err != nil {
			t.Fatal(err)
		}
		_, some := u.Title.Get()
		if u.Title.Said() != c.said || u.Title.IsNull() != c.null || some != c.some {
			t.Errorf("%s: said %v null %v some %v", c.in, u.Title.Said(), u.Title.IsNull(), some)
		}
		out, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != c.in {
			t.Errorf("%s came out as %s", c.in, out)
		}
	}
}

// A grant is an object: neither absent, nor null, nor true.
func TestGrantIsAnObject(t *testing.T) {
	for in, want := range map[string]bool{
		`{"capabilities":{}}`: false, `{"capabilities":null}`: false, `{}`: false,
		`{"capabilities":{"cancel":null}}`: false, `{"capabilities":{"cancel":{}}}`: true,
	} {
		var u SubagentUpdate
		if err := json.Unmarshal([]byte(in), &u); err != nil {
			t.Fatal(err)
		}
		if c, _ := u.Capabilities.Get(); c.MayCancel() != want {
			t.Errorf("%s grants %v", in, !want)
		}
	}
	var u Update
	if err := json.Unmarshal([]byte(`{"sessionUpdate":"subagent_update","sessionId":"c","capabilities":{"cancel":true}}`), &u); err != nil {
		t.Fatal(err)
	}
	if u.Variant != nil || u.Err == nil {
		t.Errorf("a grant that is no object was understood: %+v", u.Variant)
	}
	for want, c := range map[string]Opt[SubagentCapabilities]{
		`{"cancel":{}}`: Granted(), `{"cancel":null}`: Revoked(), `{}`: Ungranted(),
	} {
		if out, _ := json.Marshal(c); string(out) != want {
			t.Errorf("%s, want %s", out, want)
		}
	}
}

// What is newer than this package passes as data (B017 and its kind: an unknown variant
// must not fail a session).
func TestUnknownVariantsKeepTheirJSON(t *testing.T) {
	for _, in := range []string{
		`{"sessionUpdate":"weather_update","rain":true}`,
		`{"sessionUpdate":"usage_update","used":"many"}`,
		`{"no":"kind"}`,
	} {
		var n SessionNotification
		if err := json.Unmarshal([]byte(`{"sessionId":"s","update":`+in+`}`), &n); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		out, err := json.Marshal(n.Update)
		if err != nil || string(out) != in || n.Update.Variant != nil {
			t.Errorf("%s came out as %s (%v)", in, out, err)
		}
	}
	var b ContentBlock
	if err := json.Unmarshal([]byte(`{"type":"hologram","text":5}`), &b); err != nil || b.Type != "hologram" || b.Words() != "" {
		t.Errorf("%+v %v", b, err)
	}
	var c ToolContent
	if err := json.Unmarshal([]byte(`{"type":"chart","path":[1]}`), &c); err != nil || c.Type != "chart" {
		t.Errorf("%+v %v", c, err)
	}
	var s StateUpdate
	if err := json.Unmarshal([]byte(`{"state":"dreaming"}`), &s); err != nil || s.State != "dreaming" || s.State.Live() {
		t.Errorf("%+v %v", s, err)
	}
}

func TestUpdatesAreWrittenWithTheirKind(t *testing.T) {
	for want, u := range map[string]Update{
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":""}}`: Say(UpdateAgentChunk, &MessageChunk{MessageID: "m", Content: Text("")}),
		`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`:                     Say(UpdateState, &StateUpdate{State: StateIdle, StopReason: StopEndTurn}),
		`{"sessionUpdate":"subagent_update","sessionId":"c","capabilities":{}}`:                       Say(UpdateSubagent, &SubagentUpdate{SessionID: "c", Capabilities: Ungranted()}),
	} {
		out, err := json.Marshal(u)
		if err != nil || string(out) != want {
			t.Errorf("%s (%v), want %s", out, err, want)
		}
		var back Update
		if err := json.Unmarshal(out, &back); err != nil || back.Variant == nil || back.Err != nil {
			t.Errorf("%s does not come back: %+v %v", out, back, err)
		}
	}
}

func TestWords(t *testing.T) {
	var blocks []ContentBlock
	in := `[{"type":"text","text":"a "},{"type":"image","mimeType":"image/png","data":"x"},{"type":"resource_link","name":"n","uri":"file:///n"},
		{"type":"resource","resource":{"uri":"u","text":"t"}}]`
	if err := json.Unmarshal([]byte(in), &blocks); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a [image image/png][n](file:///n)t", Words(blocks)); diff != "" {
		t.Error(diff)
	}
	out, err := json.Marshal(blocks[1])
	if err != nil || !bytes.Contains(out, []byte(`"data":"x"`)) {
		t.Errorf("%s %v", out, err)
	}
}

func TestConfigOptionsOfBothVersions(t *testing.T) {
	in := `[{"id":"mode","name":"Mode","type":"select","currentValue":"auto","options":[{"value":"auto","name":"A"}]},
		{"configId":"model","name":"Model","type":"select","currentValue":"m","options":[{"groupId":"g","name":"G","options":[{"value":"m","name":"M"}]}]},
		{"configId":"fast","name":"Fast","type":"boolean","currentValue":true}]`
	var options []ConfigOption
	if err := json.Unmarshal([]byte(in), &options); err != nil {
		t.Fatal(err)
	}
	if options[0].Key() != "mode" || options[1].Key() != "model" || options[0].Current() != "auto" || options[2].Current() != "" {
		t.Errorf("%+v", options)
	}
	if flat := options[1].Options.Flat(); len(flat) != 1 || flat[0].Value != "m" {
		t.Errorf("%+v", flat)
	}
}
