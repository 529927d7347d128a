package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

var orders = flag.Int("orders", 2, "how many orders of each recording are tried")

// wireLine is one line of a recording with what its place hangs on.
type wireLine struct {
	raw     []byte
	at      int64
	msg     json.RawMessage
	thread  string // whose order it keeps; "" if it is of no thread
	barrier bool   // everything before it stays before it, everything after it after it
	after   []int  // lines of other threads that must come first
	again   bool   // it may be said twice
	twin    []byte // its second saying where that is not the same to the last byte
	later   bool   // its second saying may come later
}

// wireMsg is as much of a line as an order hangs on.
type wireMsg struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ThreadID string `json:"threadId"`
		Turn     struct {
			ID         string `json:"id"`
			RootTurnID string `json:"rootTurnId"`
		} `json:"turn"`
		Item struct {
			ID     string   `json:"id"`
			Type   string   `json:"type"`
			Tool   string   `json:"tool"`
			Kind   string   `json:"kind"`
			Agents []string `json:"receiverThreadIds"`
			Agent  string   `json:"agentThreadId"`
		} `json:"item"`
	} `json:"params"`
	Result struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	} `json:"result"`
}

// recordedOrder reads a recording and finds what the wire promises of its order: each
// thread keeps its own; a child speaks after its parent's spawn call has begun; a further
// turn of a child comes after the call that asks for it and after the root turn it names,
// and that call after the child's turn before.
// The edge itself, the end of a v1 spawn call, may come before or after anything of the
// child. What the recorded client and the recorder wrote stays where it is, and so does a
// root turn that the server began by itself: what caused it came before.
func recordedOrder(t *testing.T, name string) (lines []wireLine, children bool) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(codexSuite.dir(), name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	threadOf := map[string]string{} // a request of the client → its thread
	roots := map[string]bool{}      // threads that the client sends messages to
	asked := map[string]bool{}      // turns that the client asked for
	spawns := map[string]int{}      // a child → the beginning of the call that spawned it
	named := map[string]int{}       // a child → the last line that names it
	begun := map[string]int{}       // a turn → its turn/started
	ended := map[string]int{}       // a thread → its last turn/completed
	begins := map[string]int{}      // a call → its item/started
	for _, text := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		var m wireMsg
		_ = json.Unmarshal(l.Msg, &m) // a line of another shape is a barrier
		w := wireLine{raw: text, at: l.At, msg: l.Msg, thread: m.Params.ThreadID, barrier: l.Dir != "in"}
		at := len(lines)
		switch {
		case l.Dir == "out" && m.Method != "":
			threadOf[string(m.ID)] = m.Params.ThreadID
			roots[m.Params.ThreadID] = roots[m.Params.ThreadID] || m.Method == "turn/start"
		case l.Dir != "in":
		case m.Method == "":
			w.thread = threadOf[string(m.ID)]
			w.barrier = w.thread == ""
			asked[m.Result.Turn.ID] = true
		case m.Method == "turn/started":
			turn := m.Params.Turn
			w.again, begun[turn.ID] = true, at
			w.barrier = (roots[m.Params.ThreadID] || turn.ID == turn.RootTurnID) && !asked[turn.ID]
			if first, ok := begun[turn.RootTurnID]; ok && first != at {
				w.after = append(w.after, first)
			}
			if call, ok := named[m.Params.ThreadID]; ok {
				w.after = append(w.after, call)
			}
		case strings.HasPrefix(m.Method, "item/") && m.Params.Item.ID != "":
			it := m.Params.Item
			w.again = m.Method == "item/started" || m.Method == "item/completed"
			if _, seen := begins[it.ID]; !seen {
				begins[it.ID] = at
			}
			spawn := it.Tool == "spawnAgent" || it.Kind == "started"
			for _, child := range append(it.Agents, it.Agent) {
				if spawn && child != "" {
					spawns[child] = begins[it.ID]
					children = true
				} else if child != "" && it.Tool != "wait" && it.Kind != "completed" {
					named[child] = at
					if last, ok := ended[child]; ok {
						w.after = append(w.after, last)
					}
				}
			}
		case m.Method == "turn/completed":
			w.again, ended[m.Params.ThreadID] = true, at
		}
		lines = append(lines, w)
	}
	for at := range lines {
		if call, ok := spawns[lines[at].thread]; ok && !lines[at].barrier {
			lines[at].after = append(lines[at].after, call)
		}
	}
	return lines, children
}

// picker picks one of n things. The first is always the one that the recording has next.
type picker func(n int) int

// reordered draws another order that the wire allows, with lines said twice here and
// there. The moments stay: line n of the new order comes when line n of the old one did.
func reordered(lines []wireLine, pick picker) []byte {
	var order []saying
	done := make([]bool, len(lines))
	for from := 0; from < len(lines); {
		if lines[from].barrier {
			order, done[from] = append(order, saying{at: from}), true
			from++
			continue
		}
		to := from
		for to < len(lines) && !lines[to].barrier {
			to++
		}
		var stretch []saying
		for left := to - from; left > 0; left-- {
			at := draw(lines, done, from, to, pick)
			stretch, done[at] = append(stretch, saying{at: at}), true
		}
		order = append(order, repeated(lines, stretch, pick)...)
		from = to
	}
	var out bytes.Buffer
	slot := 0
	for _, s := range order {
		w := lines[s.at]
		if w.barrier {
			out.Write(w.raw)
		} else {
			msg := w.msg
			if s.again && w.twin != nil {
				msg = w.twin
			}
			text, _ := json.Marshal(line{At: lines[slot].at, Dir: "in", Msg: msg})
			out.Write(text)
		}
		out.WriteByte('\n')
		if !s.again && slot+1 < len(lines) {
			slot++
		}
	}
	return out.Bytes()
}

// saying is a line's turn to be said, the first time or again.
type saying struct {
	at    int
	again bool
}

// repeated has some lines of a stretch said again, at once or later in it.
func repeated(lines []wireLine, stretch []saying, pick picker) []saying {
	behind := map[int][]saying{} // what is said again after each place
	for n, s := range stretch {
		if !lines[s.at].again || pick(8) != 7 {
			continue
		}
		place := n
		if lines[s.at].later {
			place += pick(len(stretch) - n)
		}
		behind[place] = append(behind[place], saying{s.at, true})
	}
	var out []saying
	for n, s := range stretch {
		out = append(append(out, s), behind[n]...)
	}
	return out
}

// draw picks the next line of a stretch: the first that is left of a thread, and may come.
func draw(lines []wireLine, done []bool, from, to int, pick picker) int {
	var may []int
	seen := map[string]bool{}
	for at := from; at < to; at++ {
		if done[at] || seen[lines[at].thread] {
			continue
		}
		seen[lines[at].thread] = true
		if !slices.ContainsFunc(lines[at].after, func(first int) bool { return !done[first] }) {
			may = append(may, at)
		}
	}
	return may[pick(len(may))] // the earliest line that is left always may
}

// endState is what must not depend on the order: no ids, numbers or times of ours, and
// what stands in the transcripts of a session without its order.
func endState(end *End) map[string]any {
	name, turn := map[agent.SessionID]string{}, map[agent.TurnID]string{}
	for _, s := range end.Sessions {
		name[s.ID] = cmp.Or(s.Handles.ThreadID, string(s.ParentToolCallID), "root")
	}
	roots := 0
	for _, u := range end.Turns {
		native := u.NativeID
		if u.ProviderTurn != nil {
			roots++ // Claude does not name its turns
			native = cmp.Or(u.ProviderTurn.NativeID, strconv.Itoa(roots))
		}
		turn[u.ID] = name[u.SessionID] + "/" + native
	}
	out := map[string]any{"invariants": end.Invariants}
	for _, s := range end.Sessions {
		var turns, words, asks []string
		for _, u := range end.Turns {
			if u.SessionID == s.ID {
				turns = append(turns, fmt.Sprintf("%s %s %s %s %v under %s used %+v", turn[u.ID], u.Trigger, u.Phase, u.Outcome, u.Error, turn[u.RootTurnID], u.Usage))
			}
		}
		for _, m := range end.Messages {
			if m.SessionID == s.ID {
				words = append(words, fmt.Sprintf("%s %s %s %s %q %s %s %q %q %s", turn[m.TurnID], m.Role, m.Kind, m.Status, m.Content, m.CallID, m.Title, m.Input, m.Output, name[m.ChildSessionID]))
			}
		}
		for _, i := range end.Interactions {
			if i.SessionID == s.ID {
				asks = append(asks, fmt.Sprintf("%s %s %s %v", turn[i.TurnID], i.Title, i.Status, i.Response))
			}
		}
		slices.Sort(words) // what was held stands where it was applied
		out[name[s.ID]] = []any{
			name[s.ParentSessionID], turn[s.ParentTurnID], turn[s.RootTurnID], s.ParentToolCallID, s.Title, s.AgentType, s.Model,
			s.Usage, s.UsageWithChildren, turns, words, asks,
		}
	}
	for n, p := range end.Processes {
		out[fmt.Sprintf("process %d", n)] = []any{p.ID, name[p.SessionID], turn[p.TurnID], p.CallID, p.Command, p.Status, p.Stoppable}
	}
	for n, o := range end.Operations {
		var targets []string
		for _, x := range o.Targets {
			targets = append(targets, name[x.SessionID]+" "+string(x.State))
		}
		slices.Sort(targets)
		out[fmt.Sprintf("operation %d", n)] = []any{o.Kind, o.Status, targets}
	}
	return out
}

// Every recording with children comes to the same end in whatever order its threads speak.
func TestOrderOfARecordingDoesNotMatter(t *testing.T) {
	for _, name := range codexSuite.recordings(t) {
		lines, children := recordedOrder(t, name)
		if !children {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := endState(codexSuite.replay(t, name))
			for seed := range *orders {
				text := reordered(lines, rand.New(rand.NewPCG(uint64(seed), 1)).IntN)
				end, err := Run(context.Background(), "codex", bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(want, endState(end)); diff != "" {
					t.Fatalf("order %d comes to another end (-recorded +this):\n%s", seed, diff)
				}
			}
		})
	}
}
