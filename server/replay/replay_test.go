package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// suite is the recordings of one provider and what this package keeps about them.
type suite struct {
	provider string
	kept     string // facts.json and golden/
	expected []map[string][]string
}

var codexSuite = suite{"codex", "testdata", []map[string][]string{expectedAtoH, expectedItoZ}}

var claudeSuite = suite{
	"claude", filepath.Join("testdata", "claude"), []map[string][]string{claudeAtoF, claudeGtoI, claudeJtoR},
}

var acpSuite = suite{"acp", filepath.Join("testdata", "acp"), []map[string][]string{acpCodex, acpOthers}}

var suites = []suite{codexSuite, claudeSuite, acpSuite}

// eachRecording runs f for every recording of every provider.
func eachRecording(t *testing.T, f func(t *testing.T, s suite, name string)) {
	t.Helper()
	for _, s := range suites {
		for _, name := range s.recordings(t) {
			t.Run(s.provider+"/"+name, func(t *testing.T) { f(t, s, name) })
		}
	}
}

// dir is where the adapter's tests keep the recordings.
func (s suite) dir() string { return filepath.Join("..", "provider", s.provider, "testdata") }

// recordings are the names of all recordings that the adapter's tests keep.
func (s suite) recordings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir(), "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", s.dir(), err)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(filepath.Base(f), ".jsonl")
	}
	return names
}

// ends are the recordings that were replayed already: one replay serves every test that
// looks at its end.
var ends sync.Map // provider/name → func() (*End, error)

func (s suite) replay(t *testing.T, name string) *End {
	t.Helper()
	once, _ := ends.LoadOrStore(s.provider+"/"+name, sync.OnceValues(func() (*End, error) { return s.replayAnew(name) }))
	end, err := once.(func() (*End, error))()
	if err != nil {
		t.Fatal(err)
	}
	if end.Invariants != (Invariants{}) {
		t.Errorf("invariants %+v", end.Invariants)
	}
	return end
}

func (s suite) replayAnew(name string) (*End, error) {
	f, err := os.Open(filepath.Join(s.dir(), name+".jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Run(context.Background(), s.provider, f)
}

func encode(t *testing.T, end *End) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(end); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The whole end of each recording, to the last field: whatever changes it is seen.
func TestGoldenEnds(t *testing.T) {
	eachRecording(t, func(t *testing.T, s suite, name string) {
		t.Parallel()
		got := encode(t, s.replay(t, name))
		path := filepath.Join(s.kept, "golden", name+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("another end (-golden +got; -update accepts it):\n%s", diff)
		}
	})
}

// The same recording gives the same end, byte for byte, twenty times: two of each
// provider with the most going on at once.
func TestReplayIsDeterministic(t *testing.T) {
	for _, c := range []struct {
		suite
		name string
	}{
		{codexSuite, "g-v1-interrupt"},
		{codexSuite, "f5-v1-two-children-approvals"},
		{claudeSuite, "g_interrupt_root_active_background_child_affordance"},
		{claudeSuite, "f_two_children_ask_concurrently"},
		{acpSuite, "e-parent-cancel.v1"},
		{acpSuite, "f2-perm-withdrawn-late-reply.v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := encode(t, c.replay(t, c.name))
			again := 19
			if raceEnabled {
				again = 4
			}
			for range again {
				end, err := c.replayAnew(c.name)
				if err != nil {
					t.Fatal(err)
				}
				if again := encode(t, end); !bytes.Equal(first, again) {
					t.Fatalf("another end (-first +again):\n%s", cmp.Diff(string(first), string(again)))
				}
			}
		})
	}
}

func TestWhatCannotBeReplayed(t *testing.T) {
	for _, c := range []struct{ provider, recording, says string }{
		{"nobody", "{}", "there are: acp, claude, codex"},
		{"codex", "", "empty"},
		{"codex", "{\"t\":1,\"dir\":\"in\",\"msg\":{}}\nnot a line\n", "line 2"},
		{"codex", "{\"t\":1,\"dir\":\"in\",\"msg\":{}}\n\n{\"t\":2,\"di\n{\"t\":3,\"dir\":\"in\",\"msg\":{}}\n", "line 3"}, // cut, but not the last
		{"codex", "{\"t\":1,\"dir\":\"in\",\"msg\":{}} {}\n", "line 1"},
		{"codex", "{\"t\":1,\"dir\":\"in\",\"msg\":{}}\n{\"t\":2,\"di\n", "line 2"}, // it was ended, and wrong
		{"codex", "{\"t\":1,\"di", "no whole line"},
		{"codex", "{\"level\":\"info\"}\n{\"level\":\"warn\"}\n", "this is no recording"},
	} {
		_, err := Run(t.Context(), c.provider, strings.NewReader(c.recording))
		if !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v", c.provider, c.recording, err)
		}
	}
}

// A recording of things that make no sense must still end.
func TestReplayOfNonsense(t *testing.T) {
	for provider, first := range map[string]string{
		"codex": `{"id":1,"method":"turn/start","params":{"threadId":"nobody","input":[{"type":"text","text":"x"}]}}`,
		"acp":   `{"id":1,"method":"session/prompt","params":{"sessionId":"nobody","prompt":[{"type":"text","text":"x"}]}}`,
	} {
		end, err := Run(t.Context(), provider, strings.NewReader(strings.Join([]string{
			`{"t":0,"dir":"out","msg":` + first + `}`,
			`{"t":1,"dir":"in","msg":"half a li"}`,
			`{"t":2,"dir":"meta","msg":{"event":"process_started"}}`,
			`{"t":2,"dir":"meta","msg":7}`,
			`{"t":1,"dir":"out","msg":"{not json"}`,
			`{"t":3,"dir":"out","msg":{"id":9,"result":{"decision":"accept"}}}`,
			`{"t":3,"dir":"out","msg":[{"id":9}]}`,
			`{"t":4,"dir":"sideways","msg":{}}`,
		}, "\n")))
		if err != nil || len(end.Sessions) != 0 || end.Sessions == nil {
			t.Errorf("%s: end %+v, %v", provider, end, err)
		}
	}
}

// A recorder that is killed leaves half a line: what it had recorded whole is replayed, and
// the end says so. Wherever the cut is, the rest counts as if it had never been begun.
func TestRecordingCutInItsLastLine(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(codexSuite.dir(), "a-plain.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	kept := whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1]
	end, err := Run(t.Context(), "codex", bytes.NewReader(kept))
	if err != nil {
		t.Fatal(err)
	}
	want := encode(t, end)
	for _, left := range []int{1, 7, (len(whole) - len(kept)) / 2, len(whole) - len(kept) - 2} {
		got, err := Run(t.Context(), "codex", bytes.NewReader(whole[:len(kept)+left]))
		if err != nil {
			t.Fatalf("%d bytes of the last line: %v", left, err)
		}
		if got.Diagnostics.Truncated != 1 {
			t.Errorf("%d bytes of the last line: %+v", left, got.Diagnostics)
		}
		got.Diagnostics.Truncated = 0
		if diff := cmp.Diff(string(want), string(encode(t, got))); diff != "" {
			t.Errorf("%d bytes of the last line changed the end:\n%s", left, diff)
		}
	}
	if end, err := Run(t.Context(), "codex", bytes.NewReader(whole[:len(whole)-1])); err != nil || end.Diagnostics.Truncated != 0 {
		t.Errorf("a last line that only lacks its newline is whole: %+v, %v", end, err)
	}
}
