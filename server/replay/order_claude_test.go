package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// claudeLine is as much of a line of Claude's as an order hangs on.
type claudeLine struct {
	Event     string `json:"event"` // of a note
	UUID      string `json:"uuid"`
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	AgentID   string `json:"agent_id"`
	TaskID    string `json:"task_id"`
	TaskType  string `json:"task_type"`
	RunID     string `json:"run_id"`
	ToolUseID string `json:"tool_use_id"`
	ParentID  string `json:"parent_task_id"`
	Status    string `json:"status"`
	State     string `json:"state"`
	RequestID string `json:"request_id"`
	Origin    struct {
		RunID string `json:"runId"`
	} `json:"origin"`
	Tasks []struct {
		RunID string `json:"run_id"`
	} `json:"tasks"`
	Request struct {
		AgentID string `json:"agent_id"`
	} `json:"request"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	blocks []claudeBlock
}

type claudeBlock struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
}

// claudeOrder finds what the wire promises of the order of a recording, and nothing more:
// the root and each agent keep their own order, and what follows is the numbered facts
// that are kept with the recordings. What was sent to Claude stays where it is.
type claudeOrder struct {
	late  bool // edges may come after their child has begun to speak
	lines []wireLine
	msgs  []claudeLine

	call    map[string]int    // a tool call → its line
	started map[string]int    // a run → its task_started
	runOf   map[string]string // a task → its latest run
	ended   map[string]int    // a run → its task_notification
	stopped map[string]bool   // a task whose latest run was stopped
	level   int               // the latest level frame; -1 before any
	again   map[string]bool   // a run that is not the first of its task
	owner   map[string]string // a question → its lane
	folded  []int             // ends whose notice the root's next line holds already
}

const rootLane = "root"

// readClaude reads a recording, leaving out what the recorder noted about its mock.
func readClaude(t fataler, name string) (lines []wireLine, msgs []claudeLine) {
	raw, err := os.ReadFile(filepath.Join(claudeSuite.dir(), name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		var m claudeLine
		_ = json.Unmarshal(l.Msg, &m)                    // a line of another shape is a barrier
		_ = json.Unmarshal(m.Message.Content, &m.blocks) // a plain text has none
		if l.Dir == "err" || m.Event == "mock_gate" || m.Event == "scenario" {
			continue
		}
		lines = append(lines, wireLine{raw: text, at: l.At, msg: l.Msg, barrier: l.Dir != "in"})
		msgs = append(msgs, m)
	}
	return lines, msgs
}

type fataler interface{ Fatal(args ...any) }

// orderOfClaude is the order of a recording, and whether there are children in it.
func orderOfClaude(t fataler, name string, late bool) (lines []wireLine, children bool) {
	o := claudeOrder{
		late: late, level: -1, call: map[string]int{}, started: map[string]int{}, runOf: map[string]string{},
		ended: map[string]int{}, stopped: map[string]bool{}, owner: map[string]string{}, again: map[string]bool{},
	}
	o.lines, o.msgs = readClaude(t, name)
	awaited := map[string]bool{} // runs whose end begins a turn of the root
	for _, m := range o.msgs {
		awaited[m.Origin.RunID] = true
	}
	for at, m := range o.msgs {
		if o.lines[at].barrier {
			continue
		}
		switch {
		case m.Type == "system" && m.TaskID != "":
			o.task(at, m, awaited[m.RunID])
			children = children || m.TaskType == "local_agent"
		case m.Subtype == "background_tasks_changed":
			o.levels(at, m)
		case m.Subtype == "session_state_changed":
			o.state(at, m)
		case m.Type == "control_request", m.Type == "control_cancel_request":
			o.question(at, m)
		case m.Type == "assistant", m.Type == "user", m.Type == "tool_progress":
			o.speech(at, m)
		default:
			o.root(at, m)
		}
		o.repeat(at, m)
	}
	return o.lines, children
}

// repeat says how a line may be said again: a frame about a task or the state also under
// another id, and what has happened also later, when it is long known. A level that is
// said later would be another one.
func (o *claudeOrder) repeat(at int, m claudeLine) {
	w := &o.lines[at]
	level := m.Subtype == "background_tasks_changed" || m.Subtype == "session_state_changed"
	w.later = m.UUID != "" && !level
	if m.Type == "system" && m.UUID != "" && (level || m.TaskID != "") && at%2 == 0 {
		w.twin = bytes.ReplaceAll(w.msg, []byte(m.UUID), []byte("00000000"+m.UUID[8:]))
	}
}

func (o *claudeOrder) after(at, first int) {
	if first != at {
		o.lines[at].after = append(o.lines[at].after, first)
	}
}

// task is a frame about a task. It has been registered by its call, and on the level if
// it has one, before it starts (facts 1 and 2); of progress only that it lies between
// start and end is promised (fact 3).
func (o *claudeOrder) task(at int, m claudeLine, awaited bool) {
	w := &o.lines[at]
	w.thread, w.again = m.TaskID, true
	o.behindIdle(at)
	switch m.Subtype {
	case "task_started":
		_, another := o.runOf[m.TaskID]
		o.started[m.RunID], o.runOf[m.TaskID], o.stopped[m.TaskID] = at, m.RunID, false
		o.again[m.RunID] = another
		if call, ok := o.call[m.ToolUseID]; ok {
			o.after(at, call)
		}
		if o.level >= 0 && o.lists(o.level, m.RunID) {
			o.after(at, o.level)
		}
		if o.late && m.TaskType == "local_agent" && !another {
			w.thread = "start of " + m.RunID
		}
		return
	case "task_progress":
		w.thread = "progress of " + m.RunID
	case "task_notification":
		if m.RunID == "" { // of a process that is gone: nothing is known of it
			w.barrier = true
			return
		}
		o.ended[m.RunID], o.stopped[m.TaskID] = at, m.Status == "stopped"
		for n := range at {
			if o.msgs[n].RunID == m.RunID || o.lists(n, m.RunID) {
				o.after(at, n)
			}
		}
		if !awaited && m.Status != "stopped" {
			o.folded = append(o.folded, at)
		}
	}
	o.after(at, o.started[m.RunID])
}

func (o *claudeOrder) lists(at int, run string) bool {
	return slices.ContainsFunc(o.msgs[at].Tasks, func(t struct {
		RunID string `json:"run_id"`
	},
	) bool {
		return t.RunID == run
	})
}

// levels come in their order, and without a run only after its end (fact 5).
func (o *claudeOrder) levels(at int, m claudeLine) {
	o.lines[at].thread, o.lines[at].again = "level", true
	o.behindIdle(at)
	if o.level >= 0 {
		for _, t := range o.msgs[o.level].Tasks {
			if end, ok := o.ended[t.RunID]; ok && !o.lists(at, t.RunID) {
				o.after(at, end)
			}
		}
	}
	for _, t := range m.Tasks { // it has been called for
		if call, ok := o.call[o.callOf(t.RunID)]; ok {
			o.after(at, call)
		}
	}
	o.level = at
}

// callOf is the tool call that a run was started by, which may be told only later.
func (o *claudeOrder) callOf(run string) string {
	for _, m := range o.msgs {
		if m.RunID == run && m.Subtype == "task_started" {
			return m.ToolUseID
		}
	}
	return ""
}

// state tells nothing but levels, which may be late (fact 14), until all is idle: before
// that comes everything but what stopped agents still say (fact 8).
func (o *claudeOrder) state(at int, m claudeLine) {
	o.lines[at].thread, o.lines[at].again = "state", true
	if m.State != "idle" {
		return
	}
	o.lines[at].thread = rootLane
	for n := range at {
		if !o.isLate(n) {
			o.after(at, n)
		}
	}
}

// question belongs to who asks. It comes after its tool call, also where edges are late:
// a question whose owner nobody knows is refused (decisions.md 25).
func (o *claudeOrder) question(at int, m claudeLine) {
	w := &o.lines[at]
	w.thread, w.again = o.owner[m.RequestID], true
	if m.Type == "control_request" {
		w.thread = rootLane
		if run, ok := o.runOf[m.Request.AgentID]; ok {
			w.thread = m.Request.AgentID
			o.edge(at, run)
		}
		o.owner[m.RequestID] = w.thread
	}
	o.behindIdle(at)
}

// edge has a line wait for what registers a run.
func (o *claudeOrder) edge(at int, run string) {
	o.after(at, o.started[run])
	if call, ok := o.call[o.callOf(run)]; ok {
		o.after(at, call)
	}
}

// speech is what the root or an agent says. An agent speaks after it has started (fact 1);
// the result of its call comes after its end, unless it was interrupted (fact 6), or
// after its start.
func (o *claudeOrder) speech(at int, m claudeLine) {
	w := &o.lines[at]
	w.thread, w.again = rootLane, m.Type != "tool_progress"
	if run, ok := o.runOf[m.AgentID]; ok {
		w.thread = m.AgentID
		if !o.late || o.again[run] { // only its start tells of which run a line is
			o.edge(at, run)
		}
	}
	for _, b := range m.blocks {
		if b.Type == "tool_use" {
			o.call[b.ID] = at
		}
		for run, start := range o.started {
			if b.Type != "tool_result" || o.callOf(run) != b.ToolUseID {
				continue
			}
			o.after(at, start)
			if end, ok := o.ended[run]; ok && o.msgs[end].Status != "stopped" {
				o.after(at, end)
			}
		}
	}
	if w.thread == rootLane {
		o.fold(at)
	}
	o.behindIdle(at)
}

// root is everything else of the root. A turn that the end of a run began comes after it
// (fact 10).
func (o *claudeOrder) root(at int, m claudeLine) {
	o.lines[at].thread, o.lines[at].again = rootLane, m.Type == "result" || m.Type == "command_lifecycle"
	if m.Subtype == "init" {
		for _, later := range o.msgs[at:] {
			if later.Type == "result" {
				if end, ok := o.ended[later.Origin.RunID]; ok {
					o.after(at, end)
				}
				break
			}
		}
	}
	o.fold(at)
	o.behindIdle(at)
}

// fold has the root's next line wait for the ends that are told in it (fact 11).
func (o *claudeOrder) fold(at int) {
	for _, end := range o.folded {
		o.after(at, end)
	}
	o.folded = nil
}

// behindIdle keeps what is new behind the last idle before it.
func (o *claudeOrder) behindIdle(at int) {
	for n := at - 1; n >= 0 && !o.isLate(at); n-- {
		if o.msgs[n].State == "idle" {
			o.after(at, n)
			return
		}
	}
}

// isLate reports whether a line is one that an agent says after it was stopped.
func (o *claudeOrder) isLate(at int) bool {
	m := o.msgs[at]
	end, ok := o.ended[o.runOf[m.AgentID]]
	return ok && at > end && o.stopped[m.AgentID]
}

// endOfClaude is the end without which provider turn a root turn shows: that is the one
// that ended last.
func endOfClaude(end *End) map[string]any {
	plain := *end
	plain.Turns = slices.Clone(end.Turns)
	for n, u := range plain.Turns {
		if u.ProviderTurn != nil {
			shown := *u.ProviderTurn
			shown.NativeID = ""
			plain.Turns[n].ProviderTurn = &shown
		}
	}
	return endState(&plain)
}

// anotherOrder replays an order and says how its end differs from the recorded one's.
func anotherOrder(t fataler, want map[string]any, lines []wireLine, pick picker) string {
	end, err := Run(context.Background(), claudeSuite.provider, bytes.NewReader(reordered(lines, pick)))
	if err != nil {
		t.Fatal(err)
	}
	return gocmp.Diff(want, endOfClaude(end))
}

// Every recording with children comes to the same end in whatever order its agents speak,
// as far as the wire leaves it open, with lines said twice and with edges early or late.
func TestOrderOfARecordingOfClaudeDoesNotMatter(t *testing.T) {
	for n, name := range claudeSuite.recordings(t) {
		for _, late := range []bool{false, true} {
			if raceEnabled && late == (n%2 == 0) {
				continue // half of them
			}
			lines, children := orderOfClaude(t, name, late)
			if !children {
				continue
			}
			how := map[bool]string{false: "early", true: "late"}[late]
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				want := endOfClaude(claudeSuite.replay(t, name))
				for seed := range *orders {
					if diff := anotherOrder(t, want, lines, rand.New(rand.NewPCG(uint64(seed), 2)).IntN); diff != "" {
						t.Fatalf("order %d comes to another end (-recorded +this):\n%s", seed, diff)
					}
				}
			})
		}
	}
}

// The same with orders that are made simpler until the fault is plain.
func TestSimplestOrderOfClaudeThatMatters(t *testing.T) {
	names := claudeSuite.recordings(t)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "recording")
		lines, _ := orderOfClaude(r, name, rapid.Bool().Draw(r, "late"))
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "next") }
		if diff := anotherOrder(r, endOfClaude(claudeSuite.replay(t, name)), lines, pick); diff != "" {
			r.Fatalf("another end (-recorded +this):\n%s", diff)
		}
	})
}
