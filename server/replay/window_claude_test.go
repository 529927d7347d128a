package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// moment is a line some time after the end of the last child.
type moment struct {
	after time.Duration
	dir   string
	msg   string
}

// window makes recordings that nobody recorded: one with a background child, as it was
// up to the child's end, and then what each case says.
type window struct {
	base []string // lines up to the end of the child
	end  time.Duration
	line map[string]string // the recorded continuation, by kind
}

func newWindow(t *testing.T) window {
	t.Helper()
	lines, msgs := readClaude(t, "d_background_then_continuation")
	w := window{line: map[string]string{}}
	for at, m := range msgs {
		switch {
		case w.end == 0:
			w.base = append(w.base, string(lines[at].raw))
			if m.Subtype == "background_tasks_changed" && len(m.Tasks) == 0 {
				w.end = time.Duration(lines[at].at) * time.Millisecond
			}
		case m.Type == "assistant", m.Type == "result":
			w.line[m.Type] = string(lines[at].msg)
		case m.Subtype == "init":
			w.line["init"] = string(lines[at].msg)
		case m.State == "idle":
			w.line["idle"] = string(lines[at].msg)
		}
	}
	return w
}

// says is a line of the recorded continuation.
func (w window) says(after time.Duration, kind string) moment {
	return moment{after, "in", w.line[kind]}
}

// turn is the whole of it, its first word some time after its beginning.
func (w window) turn(begins, speaks time.Duration) []moment {
	return []moment{
		w.says(begins, "init"), w.says(speaks, "assistant"),
		w.says(speaks+50*time.Millisecond, "result"), w.says(speaks+60*time.Millisecond, "idle"),
	}
}

// asks is a person's message and the turn that Claude makes of it.
func (w window) asks(after time.Duration, text string) []moment {
	const id = "11111111-2222-4333-8444-555555555555"
	var result map[string]any
	_ = json.Unmarshal([]byte(w.line["result"]), &result) // it was one
	delete(result, "origin")
	result["user_message_uuids"], result["uuid"] = []string{id}, "22222222-2222-4333-8444-555555555555"
	own, _ := json.Marshal(result)
	lifecycle := func(state string) string {
		return fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, id, state)
	}
	named := strings.Replace(w.line["init"], "{", `{"user_message_uuids":["`+id+`"],`, 1)
	return []moment{
		w.sends(after, id, text),
		{after, "in", lifecycle("queued")},
		{after, "in", lifecycle("started")},
		{after, "in", again(named)},
		{after, "in", strings.Replace(again(w.line["assistant"]), "Continuation: the agent finished.", "Answer.", 1)},
		{after, "in", string(own)},
		{after, "in", lifecycle("completed")},
		{after, "in", again(w.line["idle"])},
	}
}

func (w window) sends(after time.Duration, id, text string) moment {
	return moment{after, "out", fmt.Sprintf(
		`{"type":"user","uuid":%q,"session_id":"","parent_tool_use_id":null,"message":{"role":"user","content":%q}}`, id, text)}
}

// again is a line under another id: no repetition but another of its kind.
func again(line string) string {
	var m map[string]any
	_ = json.Unmarshal([]byte(line), &m) // it was one
	m["uuid"] = fmt.Sprintf("33333333-2222-4333-8444-%012d", len(line))
	out, _ := json.Marshal(m)
	return string(out)
}

func (w window) replay(t *testing.T, tail []moment) *End {
	t.Helper()
	var text bytes.Buffer
	text.WriteString(strings.Join(w.base, "\n"))
	for _, m := range tail {
		l, _ := json.Marshal(line{At: (w.end + m.after).Milliseconds(), Dir: m.dir, Msg: json.RawMessage(m.msg)})
		text.WriteString("\n" + string(l))
	}
	end, err := Run(t.Context(), claudeSuite.provider, &text)
	if err != nil {
		t.Fatal(err)
	}
	if end.Invariants != (Invariants{}) {
		t.Errorf("invariants %+v", end.Invariants)
	}
	return end
}

const (
	theChild = "a1 below root by toolu_root_a1: delegation completed"
	theGo    = `said "Go [[root]]" completed`
	oneTurn  = "root: user completed (provider completed)"
	// The wait was interrupted; what its root turn comes to is what was retained before it.
	timedOut = "root: user completed (provider interrupted)"
)

// After the last child's end the root turn waits for the continuation: 30 s for its first
// word, or until all is idle (decisions.md 16). The recording's clock says when.
func TestWaitForTheContinuation(t *testing.T) {
	w := newWindow(t)
	const s, soon = time.Second, 20 * time.Millisecond
	interrupt := []moment{
		{10 * s, "out", `{"type":"control_request","request_id":"req_stop","request":{"subtype":"interrupt","cancel_queued":true}}`},
		{10*s + soon, "in", `{"type":"control_response","response":{"subtype":"success","request_id":"req_stop","response":{"still_queued":[],"cancelled":[]}}}`},
		w.says(11*s, "idle"),
	}
	const guidance = "44444444-2222-4333-8444-555555555555"
	for _, c := range []struct {
		name    string
		tail    []moment
		want    []string
		settles time.Duration // of the first root turn, after the child's end
		words   []string      // of the root, after the launch
	}{
		{
			"it speaks after 29 s", w.turn(soon, 29*s),
			[]string{oneTurn, theChild, theGo},
			29*s + 50*time.Millisecond,
			[]string{"Continuation: the agent finished."},
		},
		{
			"it begins after 29 s", w.turn(29*s, 29*s+soon),
			[]string{oneTurn, theChild, theGo},
			29*s + soon + 50*time.Millisecond,
			[]string{"Continuation: the agent finished."},
		},
		{"it never comes", nil, []string{timedOut, theChild, theGo}, 30 * s, nil},
		{"it begins and never speaks", []moment{w.says(soon, "init")}, []string{timedOut, theChild, theGo}, 30 * s, nil},
		{"all is idle first", []moment{w.says(s, "idle")}, []string{oneTurn, theChild, theGo}, s, nil},
		// What comes of it after the time-out is nobody's, and reopens nothing.
		{"it speaks after 31 s", w.turn(soon, 31*s), []string{timedOut, theChild, theGo}, 30 * s, nil},
		{"it begins after 31 s", w.turn(31*s, 32*s), []string{timedOut, theChild, theGo}, 30 * s, nil},
		{
			"a person goes on after the time-out", w.asks(40*s, "Go on"),
			[]string{timedOut + ", user completed (provider completed)", theChild, theGo, `said "Go on" completed`},
			30 * s,
			[]string{"Answer."},
		},
		{
			"a person goes on after a late word", slices.Concat(w.turn(soon, 31*s), w.asks(40*s, "Go on")),
			[]string{timedOut + ", user completed (provider completed)", theChild, theGo, `said "Go on" completed`},
			30 * s,
			[]string{"Answer."},
		},
		// Guidance neither ends the wait nor begins it anew; it is lost with it.
		{
			"guidance in the wait",
			[]moment{
				w.sends(10*s, guidance, "And this"),
				{10*s + soon, "in", `{"type":"command_lifecycle","command_uuid":"` + guidance + `","state":"queued"}`},
			},
			[]string{timedOut, theChild, theGo, `said "And this" undelivered`, "guide succeeded"},
			30 * s, nil,
		},
		{
			"a stop in the wait", interrupt,
			[]string{"root: user canceled (provider interrupted)", theChild, theGo, "cancel succeeded: root canceled"},
			11 * s, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			end := w.replay(t, c.tail)
			if diff := cmp.Diff(c.want, told(end)); diff != "" {
				t.Errorf("another end (-want +got):\n%s", diff)
			}
			var child, root *time.Time
			for _, u := range end.Turns {
				if !u.IsRoot() {
					child = u.SettledAt
				} else if root == nil {
					root = u.SettledAt
				}
			}
			if child == nil || root == nil {
				t.Fatalf("turns %+v", end.Turns)
			}
			if took := root.Sub(*child); took < c.settles-soon || took > c.settles+soon {
				t.Errorf("the root turn settled %v after its child, want %v", took, c.settles)
			}
			if words := rootWords(end)[2:]; !slices.Equal(words, c.words) {
				t.Errorf("the root went on with %q, want %q", words, c.words)
			}
		})
	}
}

// rootWords is what the root agent said.
func rootWords(end *End) (words []string) {
	for _, m := range end.Messages {
		if m.SessionID == end.Sessions[0].ID && m.Role == agent.RoleAssistant && m.Kind == agent.MessageText {
			words = append(words, m.Content)
		}
	}
	return words
}
