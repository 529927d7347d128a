package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// acpLine is as much of a line as an order hangs on.
type acpLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string          `json:"sessionId"`
		RequestID json.RawMessage `json:"requestId"`
		Update    struct {
			Kind      string          `json:"sessionUpdate"`
			SessionID string          `json:"sessionId"`
			Sender    string          `json:"senderSessionId"`
			Recipient string          `json:"recipientSessionId"`
			Message   string          `json:"messageId"`
			State     json.RawMessage `json:"state"`
		} `json:"update"`
	} `json:"params"`
}

// acpOrder finds what the wire promises of a recording's order: each session keeps its
// own; a child speaks after its announcement, which comes in its parent's order; its states
// are in its order, and in version 2, where they are told twice, either telling may come
// first; and the root ends its part after it has given out work, but before or after
// that is done. What the recorded client wrote, and history, stays where it is.
type acpOrder struct {
	lines     []wireLine
	version2  bool
	prompts   map[string]bool // the client's open prompts, by id
	loads     map[string]bool // its open loads
	announced map[string]int
	words     map[string]int    // a child → its last line that is no state
	owner     map[string]string // a request of the agent → the session that asks
	live      []int             // states with which work began
}

const acpRoot = "root"

func orderOfACP(t fataler, name string) (lines []wireLine, children bool) {
	raw, err := os.ReadFile(filepath.Join(acpSuite.dir(), name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	o := &acpOrder{
		prompts: map[string]bool{}, loads: map[string]bool{}, announced: map[string]int{}, words: map[string]int{}, owner: map[string]string{},
	}
	for _, text := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		var m acpLine
		_ = json.Unmarshal(l.Msg, &m) // a line of another shape is a barrier
		o.lines = append(o.lines, wireLine{raw: text, at: l.At, msg: l.Msg, barrier: true})
		switch l.Dir {
		case "out":
			o.sent(l.Msg, m)
		case "in":
			o.received(len(o.lines)-1, m)
		}
	}
	return o.lines, len(o.announced) > 0
}

func (o *acpOrder) sent(raw json.RawMessage, m acpLine) {
	switch m.Method {
	case "initialize":
		o.version2 = bytes.Contains(raw, []byte(`"protocolVersion":2`))
	case "session/prompt":
		o.prompts[string(m.ID)] = true
	case "session/load", "session/resume":
		o.loads[string(m.ID)] = true
	}
}

func (o *acpOrder) received(at int, m acpLine) {
	w := &o.lines[at]
	switch {
	case m.Method == "" && o.prompts[string(m.ID)]:
		w.barrier, w.thread = false, acpRoot
		if !o.version2 { // the end of the root's part
			w.after = append(w.after, o.live...)
		}
	case m.Method == "":
		delete(o.loads, string(m.ID))
	case len(o.loads) > 0:
	case m.Method == "$/cancel_request":
		w.barrier, w.thread, w.again = false, o.owner[string(m.Params.RequestID)], true
	case len(m.ID) > 0:
		o.speaks(at, m.Params.SessionID)
		o.owner[string(m.ID)] = w.thread
	case m.Method == "session/update":
		o.update(at, m)
	}
}

// speaks puts a line into the order of its session.
func (o *acpOrder) speaks(at int, session string) {
	w := &o.lines[at]
	w.barrier, w.thread = false, acpRoot
	if first, child := o.announced[session]; child {
		w.thread = session
		w.after = append(w.after, first)
		o.words[session] = at
	}
}

func (o *acpOrder) update(at int, m acpLine) {
	w, u := &o.lines[at], m.Params.Update
	child := u.SessionID
	switch _, known := o.announced[child]; {
	case u.Kind == "subagent_update" && !known:
		o.speaks(at, m.Params.SessionID)
		o.announced[child] = at
		// One that tells the state at once is followed by the message that names its call.
		w.barrier = u.State != nil
		o.begins(at, u.State)
	case u.Kind == "subagent_update":
		w.barrier, w.thread, w.again = false, child, true
		w.after = append(w.after, o.announced[child])
		if o.version2 {
			w.thread = "mirror of " + child
			if last, ok := o.words[child]; ok {
				w.after = append(w.after, last)
			}
		}
		o.begins(at, u.State)
	case u.Kind == "session_message" && m.Params.SessionID == u.Sender: // it names the call
	case u.Kind == "session_message" && o.announced[u.Sender] > 0: // after what it answers
		o.speaks(at, m.Params.SessionID)
		for n := range at {
			if o.lines[n].thread == u.Sender || o.lines[n].thread == "mirror of "+u.Sender {
				w.after = append(w.after, n)
			}
		}
	case u.Kind == "state_update":
		last, spoke := o.words[m.Params.SessionID]
		o.speaks(at, m.Params.SessionID)
		w.again = true
		if w.thread == acpRoot {
			w.after = append(w.after, o.live...)
			return
		}
		delete(o.words, m.Params.SessionID)
		if spoke {
			o.words[m.Params.SessionID] = last
		}
		o.begins(at, u.State)
	default:
		o.speaks(at, m.Params.SessionID)
	}
}

// begins notes a line with which work begins, which the root gave out.
func (o *acpOrder) begins(at int, state json.RawMessage) {
	if bytes.Contains(state, []byte("running")) {
		o.live = append(o.live, at)
	}
}

// Every recording with children comes to the same end in whatever order its sessions
// speak, as far as the wire leaves it open, with lines said twice.
func TestOrderOfARecordingOfACPDoesNotMatter(t *testing.T) {
	for _, name := range acpSuite.recordings(t) {
		lines, children := orderOfACP(t, name)
		if !children {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := endState(acpSuite.replay(t, name))
			for seed := range *orders {
				text := reordered(lines, rand.New(rand.NewPCG(uint64(seed), 4)).IntN)
				end, err := Run(context.Background(), acpSuite.provider, bytes.NewReader(text))
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
