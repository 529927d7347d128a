package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// family is a root with two children and a grandchild, as the lines of each thread in
// the order in which that thread sends them. Between threads the wire promises one thing:
// a child speaks after its parent's spawn call has begun. In the first version that
// call's end, which is the edge, may come any time later.
type family struct {
	threads map[string][]string
	read    map[string]string // what thread/read says
	after   map[string]int    // how many lines of the parent come first
	parent  map[string]string
}

func newFamily(spawn func(thread, turn, call, child string) []string) family {
	f := family{
		threads: map[string][]string{}, read: map[string]string{}, after: map[string]int{},
		parent: map[string]string{"A": rootThread, "B": rootThread, "N": "A"},
	}
	f.threads[rootThread] = slices.Concat(
		spawn(rootThread, "r1", "call_a", "A"), spawn(rootThread, "r1", "call_b", "B"),
		said(rootThread, "r1", "m", "root words"),
		[]string{completed(rootThread, "r1", "r1", "completed")},
	)
	life := func(thread, status string, between ...string) []string {
		turn := thread + "-turn"
		return slices.Concat(
			[]string{started(thread, turn, "r1")}, said(thread, turn, "m", thread+" words"), between,
			[]string{completed(thread, turn, "r1", status)},
		)
	}
	f.threads["A"] = life("A", "completed", spawn("A", "A-turn", "call_n", "N")...)
	f.threads["B"] = life("B", "failed")
	f.threads["N"] = life("N", "interrupted")
	for child, parent := range f.parent {
		f.read[child] = fmt.Sprintf(`{"thread":{"id":%q,"parentThreadId":%q,"preview":"do call_%s"}}`, child, parent, strings.ToLower(child))
		call := `"id":"call_` + strings.ToLower(child) + `"`
		f.after[child] = 1 + slices.IndexFunc(f.threads[parent], func(l string) bool { return strings.Contains(l, call) })
	}
	return f
}

// state is what must not depend on the order: ids and times left out.
func state(v providertest.View) map[string]any {
	name := map[agent.SessionID]string{}
	turn := map[agent.TurnID]string{}
	for _, s := range v.Sessions {
		name[s.ID] = s.Handles.ThreadID
	}
	for _, u := range v.Turns {
		turn[u.ID] = name[u.SessionID] + "/" + u.NativeID
	}
	out := map[string]any{}
	for _, s := range v.Sessions {
		var turns []string
		for _, u := range turnsOf(v, s.ID) {
			turns = append(turns, fmt.Sprintf("%s %s %s %s under %s", turn[u.ID], u.Trigger, u.Phase, u.Outcome, turn[u.RootTurnID]))
		}
		words := say(v, s.ID)
		slices.Sort(words) // an item that was held stands where it was applied
		out[s.Handles.ThreadID] = []any{
			name[s.ParentSessionID], turn[s.ParentTurnID], s.ParentToolCallID, s.Title, turns, words,
		}
	}
	return out
}

// run plays lines and answers what the adapter asks.
func (f family) run(t *testing.T, lines []string) map[string]any {
	s := newStage(t)
	s.begin("go", "r1")
	for _, l := range lines {
		s.send(l)
		for s.srv.peek() != nil {
			m := s.expect(methodThreadRead)
			s.answer(m, f.read[m.Params.ThreadID])
		}
	}
	v := s.View()
	s.close()
	return state(v)
}

// interleave draws an order that the wire allows, with lines said twice here and there.
func (f family) interleave(t *rapid.T) []string {
	at := map[string]int{}
	var out []string
	for {
		var may []string
		for _, thread := range []string{rootThread, "A", "B", "N"} {
			if at[thread] < len(f.threads[thread]) && at[f.parent[thread]] >= f.after[thread] {
				may = append(may, thread)
			}
		}
		if len(may) == 0 {
			return out
		}
		thread := rapid.SampledFrom(may).Draw(t, "thread")
		line := f.threads[thread][at[thread]]
		at[thread]++
		out = append(out, line)
		if !strings.Contains(line, "delta") && rapid.IntRange(0, 9).Draw(t, "again") == 0 {
			out = append(out, line)
		}
	}
}

func TestOrderBetweenThreadsDoesNotMatter(t *testing.T) {
	for name, f := range map[string]family{"v1": newFamily(spawnV1), "v2": newFamily(spawnV2)} {
		t.Run(name, func(t *testing.T) {
			// The plain order: parents' edges first, ends from the inside out.
			root, a, b, n := f.threads[rootThread], f.threads["A"], f.threads["B"], f.threads["N"]
			plain := slices.Concat(root[:4], a[:len(a)-1], b, n, a[len(a)-1:], root[4:])
			want := f.run(t, plain)
			if len(want) != 4 {
				t.Fatalf("the plain order gives %v", want)
			}
			rapid.Check(t, func(rt *rapid.T) {
				lines := f.interleave(rt)
				if diff := cmp.Diff(want, f.run(t, lines)); diff != "" {
					rt.Fatalf("another order, another end (-plain +this):\n%s\n%s", diff, strings.Join(lines, "\n"))
				}
			})
		})
	}
}
