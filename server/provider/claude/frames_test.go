package claude

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// wireLine is one line of a recording.
type wireLine struct {
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
}

// recordings are the names of all recordings.
func recordings(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".jsonl")
	}
	return paths
}

// linesOf are the lines of one recording in one direction.
func linesOf(t testing.TB, name, dir string) []json.RawMessage {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []json.RawMessage
	for r := bufio.NewReader(file); ; {
		raw, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(raw)) > 0 {
			var l wireLine
			if err := json.Unmarshal(raw, &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if l.Dir == dir {
				out = append(out, l.Msg)
			}
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// framesOf are the frames of one recording of the given type.
func framesOf[F frame](t testing.TB, name string) []F {
	t.Helper()
	var out []F
	for _, line := range linesOf(t, name, "in") {
		f, err := decodeFrame(line)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, line)
		}
		if f, ok := f.(F); ok {
			out = append(out, f)
		}
	}
	return out
}

// Every line that was ever recorded is understood, and only the kinds that mean nothing are
// left aside.
func TestEveryRecordedLineIsRead(t *testing.T) {
	other, byUser, byItself := map[string]int{}, 0, 0
	for _, name := range recordings(t) {
		for _, f := range framesOf[frame](t, name) {
			switch f := f.(type) {
			case *otherFrame:
				other[f.name()]++
			case *initFrame:
				if f.byUser() {
					byUser++
				} else {
					byItself++
				}
				if f.Version != minVersion || f.Model == "" || lacking(f.Capabilities) != nil {
					t.Errorf("%s: %+v", name, f)
				}
			case *taskFrame:
				if f.TaskID == "" {
					t.Errorf("%s: a task without id: %+v", name, f)
				}
			case *messageFrame:
				if len(f.Message.Content) == 0 {
					t.Errorf("%s: a message without content", name)
				}
			}
		}
	}
	if keys := slices.Sorted(maps.Keys(other)); !slices.Equal(keys, []string{"system/thinking_tokens"}) {
		t.Errorf("left aside: %v", other)
	}
	if byUser != 111 || byItself != 43 {
		t.Errorf("%d turns by a message, %d by itself", byUser, byItself)
	}
}

// A stopped or interrupted root turn, an API error, and an empty turn are told apart.
func TestEndsOfRootTurns(t *testing.T) {
	for _, c := range []struct {
		recording                      string
		at                             int
		empty, interrupted, ok, notice bool
	}{
		{"a_plain_turn", 0, false, false, true, false},
		{"d_background_then_continuation", 1, false, false, true, true},
		{"d_two_background_simultaneous", 1, true, false, true, true},
		{"g_interrupt_root_streaming_plain", 0, false, true, false, false},
		{"g_interrupt_foreground_child", 0, false, true, false, false},
		{"k_root_error_400_with_background_child", 0, false, false, false, false},
		{"r_goal_command", 3, false, false, true, false}, // "/goal": no turn of a model, and no notice
	} {
		f := framesOf[*resultFrame](t, c.recording)[c.at]
		ok := f.Subtype == resultSuccess && !f.IsError
		if f.empty() != c.empty || f.interrupted() != c.interrupted || ok != c.ok || f.ofNotice() != c.notice {
			t.Errorf("%s: empty %v, interrupted %v, ok %v, notice %v", c.recording, f.empty(), f.interrupted(), ok, f.ofNotice())
		}
	}
}

func TestWhoseALineIs(t *testing.T) {
	for _, c := range []struct {
		line        string
		child       bool
		task, scope string
	}{
		{`{"type":"assistant","message":{"content":"x"},"parent_tool_use_id":null}`, false, "", ""},
		{`{"type":"assistant","message":{"content":"x"},"parent_tool_use_id":"toolu_1","agent_id":"a1"}`, true, "a1", "toolu_1"},
		{`{"type":"user","message":{"content":[]},"agent_id":"a1"}`, true, "a1", ""},
	} {
		f, err := decodeFrame([]byte(c.line))
		if err != nil {
			t.Fatal(err)
		}
		if h := f.head(); h.isChild() != c.child || h.AgentID != c.task || h.ParentToolUseID != c.scope {
			t.Errorf("%s: %+v", c.line, h)
		}
	}
}

// A member of another shape costs that member alone: the end of a turn still is one.
func TestOddMembersLeaveTheRest(t *testing.T) {
	f, err := decodeFrame([]byte(`{"type":"result","subtype":"success","is_error":false,"num_turns":2,"api_error_status":"odd","result":"fine","uuid":7}`))
	r, ok := f.(*resultFrame)
	if err == nil || !ok || r.Result != "fine" || r.NumTurns != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = decodeFrame([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":{"a":1}}]}}`))
	if m, ok := f.(*messageFrame); err == nil || !ok || len(m.Message.Content) != 1 || m.Message.Content[0].ToolUseID != "t" {
		t.Errorf("%+v, %v", f, err)
	}
	for _, line := range []string{``, `null`, `7`, `[]`, `"x"`, `{}`, `{"type":""}`, `{"type":7}`, `{"type":"result"`} {
		if f, err := decodeFrame([]byte(line)); f != nil || err == nil {
			t.Errorf("%q: %v, %v", line, f, err)
		}
	}
	for _, line := range []string{`{"type":"banana"}`, `{"type":"system","subtype":"of_tomorrow","x":{}}`, `{"type":"keep_alive"}`} {
		if f, err := decodeFrame([]byte(line)); err != nil {
			t.Errorf("%q: %v, %v", line, f, err)
		}
	}
}

// Whatever is done to a line, it is read or refused, never worse.
func TestGarbledLines(t *testing.T) {
	var lines []json.RawMessage
	for _, name := range []string{"b_foreground_agent", "a_plain_turn_partial", "f_child_permission_allow", "l_mcp_elicitation_root_and_child"} {
		lines = append(lines, linesOf(t, name, "in")...)
	}
	rapid.Check(t, func(t *rapid.T) {
		line := bytes.Clone(rapid.SampledFrom(lines).Draw(t, "line"))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				line[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				line = line[:max(at, 1)]
			default:
				line = append(line[:at:at], append([]byte(rapid.SampledFrom([]string{"null", "{}", "[]", "7", `""`}).Draw(t, "value")), line[at:]...)...)
			}
		}
		f, err := decodeFrame(line)
		if f == nil && err == nil {
			t.Fatalf("neither read nor refused: %s", line)
		}
		switch f := f.(type) {
		case *requestFrame:
			if q, err := inquire(f, nil); err == nil && q.reply == nil {
				t.Fatalf("nothing can answer %s", line)
			}
		case *messageFrame:
			for i := range f.Message.Content {
				b := &f.Message.Content[i]
				_, _ = describeCall(b.Name, b.Input), resultMessage(f, b)
			}
		case *resultFrame:
			_ = errorOf(f)
		}
	})
}
