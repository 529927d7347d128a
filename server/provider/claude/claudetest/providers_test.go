//go:build providers

package claudetest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// program is a real Claude Code whose lines are kept in order.
type program struct {
	t     *testing.T
	ctx   context.Context
	proc  *proc.Process
	model *Model
	place Place

	mu      sync.Mutex
	seen    []line
	changed chan struct{}
}

// line is what the tests look at of a line.
type line struct {
	Type      string   `json:"type"`
	Subtype   string   `json:"subtype"`
	State     string   `json:"state"`
	Parent    string   `json:"parent_tool_use_id"`
	Agent     string   `json:"agent_id"`
	Task      string   `json:"task_id"`
	TaskType  string   `json:"task_type"`
	ToolUse   string   `json:"tool_use_id"`
	Status    string   `json:"status"`
	Result    string   `json:"result"`
	Session   string   `json:"session_id"`
	IsError   bool     `json:"is_error"`
	Terminal  string   `json:"terminal_reason"`
	RequestID string   `json:"request_id"`
	Messages  []string `json:"user_message_uuids"`
	Origin    struct {
		Kind string `json:"kind"`
	} `json:"origin"`
	Response struct {
		RequestID string `json:"request_id"`
		Subtype   string `json:"subtype"`
	} `json:"response"`
	Request struct {
		Subtype string          `json:"subtype"`
		Tool    string          `json:"tool_name"`
		Agent   string          `json:"agent_id"`
		Input   json.RawMessage `json:"input"`
	} `json:"request"`
	raw string
}

func start(t *testing.T, script Script, o Options) *program {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	p := &program{t: t, ctx: ctx, model: NewModel(t, script), changed: make(chan struct{})}
	o.BaseURL = p.model.BaseURL()
	o.Env = append(o.Env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1")
	p.place = Home(t, o)
	var err error
	p.proc, err = proc.Start(proc.Config{
		Path: Binary(t), Dir: p.place.Work, Env: p.place.Env, Owner: t.Name(),
		Args: []string{
			"--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
			"--permission-prompt-tool", "stdio", "--setting-sources=", "--model", "claude-sonnet-4-5",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go p.read(ended)
	t.Cleanup(func() {
		if _, err := p.proc.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		<-ended
		if left := ProcessesOf(t, p.place.Home); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		if over, strays := p.model.Overruns(), p.model.Strays(); len(over)+len(strays) > 0 {
			t.Errorf("overruns %v, strays %v", over, strays)
		}
	})
	p.send(Object{"type": "control_request", "request_id": "start", "request": Object{
		"subtype": "initialize", "forwardSubagentText": true,
	}})
	p.find("answer to initialize", func(l line) bool { return l.Response.RequestID == "start" && l.Response.Subtype == "success" })
	return p
}

func (p *program) read(ended chan<- struct{}) {
	defer close(ended)
	for r := bufio.NewReader(p.proc.Stdout()); ; {
		raw, err := r.ReadString('\n')
		if err != nil {
			return
		}
		l := line{raw: raw}
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			l.Type = "unread" // a field of another type than this test thinks
		}
		p.mu.Lock()
		p.seen = append(p.seen, l)
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *program) send(o Object) {
	p.t.Helper()
	raw, err := json.Marshal(o)
	if err == nil {
		_, err = p.proc.Stdin().Write(append(raw, '\n'))
	}
	if err != nil {
		p.t.Fatalf("%v; stderr: %s", err, p.proc.StderrTail())
	}
}

func (p *program) say(uuid, text string) {
	p.t.Helper()
	p.send(Object{
		"type": "user", "uuid": uuid, "session_id": "", "parent_tool_use_id": nil,
		"message": Object{"role": "user", "content": text},
	})
}

// find waits for the first line that matches.
func (p *program) find(what string, match func(line) bool) line {
	p.t.Helper()
	l, _ := p.findFrom(0, what, match)
	return l
}

func (p *program) findFrom(from int, what string, match func(line) bool) (line, int) {
	p.t.Helper()
	for {
		p.mu.Lock()
		seen, changed := p.seen, p.changed
		p.mu.Unlock()
		for ; from < len(seen); from++ {
			if match(seen[from]) {
				return seen[from], from + 1
			}
		}
		select {
		case <-changed:
		case <-p.proc.Done():
			p.t.Fatalf("it ended (%v) before %s: %s", p.proc.Exit(), what, p.proc.StderrTail())
		case <-p.ctx.Done():
			for _, l := range seen {
				p.t.Logf("%.300s", l.raw)
			}
			p.t.Fatalf("no %s; stderr: %s", what, p.proc.StderrTail())
		}
	}
}

func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func idle(l line) bool   { return l.Subtype == "session_state_changed" && l.State == "idle" }
func result(l line) bool { return l.Type == "result" }
func permission(l line) bool {
	return l.Type == "control_request" && l.Request.Subtype == "can_use_tool"
}

const (
	uuidOne = "00000000-0000-4000-8000-000000000001"
	uuidTwo = "00000000-0000-4000-8000-000000000002"
)

func TestRealPlainTurn(t *testing.T) {
	p := start(t, Script{"root": {
		{Think("let me see"), SayIn(3, "Looking."), Bash("toolu_b", "echo from the shell")},
		{Say("Hello from the script.")},
	}}, Options{})
	p.say(uuidOne, "Say hello")
	r := p.find("result", result)
	if r.IsError || r.Result != "Hello from the script." || len(r.Messages) != 1 || r.Messages[0] != uuidOne {
		t.Errorf("result %s", r.raw)
	}
	p.find("idle", idle)
	if said := Said(p.model.Requests("root")[1]); !strings.Contains(strings.Join(said, "\n"), "from the shell") {
		t.Errorf("the model was told %q", said)
	}
	if id := p.model.Thread("root"); id == "" || r.Session != id {
		t.Errorf("the root has the id %s, want that of its session, %s", id, r.Session)
	}
}

func TestRealForegroundChild(t *testing.T) {
	p := start(t, Script{
		"root": {{Foreground("toolu_a", "a", "do the task")}, {Say("Root done.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, Options{})
	p.say(uuidOne, "Use one sub-agent")
	p.must(p.model.WaitHeld(p.ctx, "a"))
	begun := p.find("start of the task", func(l line) bool { return l.Subtype == "task_started" })
	if begun.Task != p.model.Thread("a") || begun.TaskType != "local_agent" || begun.ToolUse != "toolu_a" {
		t.Errorf("task %s, the model knows %s", begun.raw, p.model.Thread("a"))
	}
	p.model.Open("a")
	p.find("end of the task", func(l line) bool { return l.Subtype == "task_notification" && l.Status == "completed" })
	p.find("the child's text", func(l line) bool { return l.Type == "assistant" && l.Parent == "toolu_a" && l.Agent == begun.Task })
	if r := p.find("result", result); r.Result != "Root done." {
		t.Errorf("result %s", r.raw)
	}
	p.find("idle", idle)
}

// The root's turn ends first; when the child has ended, Claude starts another by itself.
func TestRealBackgroundChildAndContinuation(t *testing.T) {
	p := start(t, Script{
		"root": {{Background("toolu_a", "a", "do the task")}, {Say("Started it.")}, {Say("It is done.")}},
		"a":    {{Gate("a"), Say("Child done.")}},
	}, Options{})
	p.say(uuidOne, "Use one sub-agent")
	r, at := p.findFrom(0, "first result", result)
	if r.Result != "Started it." {
		t.Errorf("result %s", r.raw)
	}
	p.must(p.model.WaitHeld(p.ctx, "a"))
	p.model.Open("a")
	_, at = p.findFrom(at, "end of the task", func(l line) bool { return l.Subtype == "task_notification" })
	_, at = p.findFrom(at, "start of the continuation", func(l line) bool { return l.Subtype == "init" && len(l.Messages) == 0 })
	r, at = p.findFrom(at, "second result", result)
	if r.Result != "It is done." || r.Origin.Kind != "task-notification" {
		t.Errorf("result %s", r.raw)
	}
	p.findFrom(at, "idle", idle)
}

func TestRealPermission(t *testing.T) {
	p := start(t, Script{
		"root": {{Foreground("toolu_a", "a", "do the task")}, {Say("Root done.")}},
		"a":    {{Bash("toolu_one", "touch one.txt")}, {Bash("toolu_two", "touch two.txt")}, {Say("Child done.")}},
	}, Options{})
	p.say(uuidOne, "Use one sub-agent")
	at := 0
	for _, allow := range []bool{true, false} {
		var ask line
		ask, at = p.findFrom(at, "question", permission)
		if ask.Request.Agent != p.model.Thread("a") || ask.Request.Tool != "Bash" {
			t.Errorf("question %s", ask.raw)
		}
		answer := Object{"behavior": "deny", "message": "no"}
		if allow {
			answer = Object{"behavior": "allow", "updatedInput": ask.Request.Input}
		}
		p.send(Object{"type": "control_response", "response": Object{"subtype": "success", "request_id": ask.RequestID, "response": answer}})
	}
	p.find("idle", idle)
	_, one := os.Stat(filepath.Join(p.place.Work, "one.txt"))
	_, two := os.Stat(filepath.Join(p.place.Work, "two.txt"))
	if one != nil || two == nil {
		t.Errorf("allowed: %v, denied: %v", one, two)
	}
}

func TestRealQuestion(t *testing.T) {
	p := start(t, Script{"root": {{Ask("toolu_q", "Which one?", "red", "blue")}, {Say("Thanks.")}}}, Options{})
	p.say(uuidOne, "Ask me")
	ask := p.find("question", permission)
	var input map[string]any
	p.must(json.Unmarshal(ask.Request.Input, &input))
	input["answers"] = map[string]string{"Which one?": "blue"}
	p.send(Object{"type": "control_response", "response": Object{"subtype": "success", "request_id": ask.RequestID, "response": Object{
		"behavior": "allow", "updatedInput": input,
	}}})
	p.find("idle", idle)
	if said := strings.Join(Said(p.model.Requests("root")[1]), " "); !strings.Contains(said, "blue") {
		t.Errorf("the model was told %s", said)
	}
}

func TestRealFailures(t *testing.T) {
	for name, reply := range map[string]Reply{
		"400":  {Status(400, "")},
		"429":  {Status(429, "")},
		"500":  {Status(500, "")},
		"529":  {Status(529, "")},
		"fail": {Fail("overloaded_error", "scripted")},
		"drop": {Say("some"), Drop()},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Script{"root": {reply, {Say("Recovered.")}}}, Options{})
			p.say(uuidOne, "Try")
			r := p.find("result", result)
			if !r.IsError || r.Terminal != "api_error" {
				t.Errorf("result %s", r.raw)
			}
			p.find("idle", idle)
			p.say(uuidTwo, "Again")
			if r, _ := p.findFrom(0, "second result", func(l line) bool { return l.Type == "result" && !l.IsError }); r.Result != "Recovered." {
				t.Errorf("result %s", r.raw)
			}
		})
	}
}

// A call that hangs is given up on an interrupt; its client leaves.
func TestRealInterruptOfAHangingCall(t *testing.T) {
	p := start(t, Script{"root": {{Silent("never")}}}, Options{})
	p.say(uuidOne, "Hang")
	p.must(p.model.WaitHeld(p.ctx, "never"))
	p.send(Object{"type": "control_request", "request_id": "stop", "request": Object{"subtype": "interrupt", "cancel_queued": true}})
	if r := p.find("result", result); r.Terminal != "aborted_streaming" {
		t.Errorf("result %s", r.raw)
	}
	p.find("idle", idle)
	p.must(p.model.WaitLeft(p.ctx, "never"))
}

// A shell that was detached has its own session, carries the home, and is swept.
func TestRealShellsAreFoundAndSwept(t *testing.T) {
	p := start(t, Script{"root": {{Detached("toolu_s", "sleep 300")}, {Say("It runs.")}}}, Options{Env: []string{"BASH_DEFAULT_TIMEOUT_MS=600000"}})
	p.say(uuidOne, "Start it")
	ask := p.find("question", func(l line) bool { return permission(l) || idle(l) })
	if permission(ask) {
		p.send(Object{"type": "control_response", "response": Object{"subtype": "success", "request_id": ask.RequestID, "response": Object{
			"behavior": "allow", "updatedInput": ask.Request.Input,
		}}})
	}
	p.find("idle", idle)
	found := false
	for _, x := range ProcessesOf(t, p.place.Home) {
		found = found || strings.Contains(x.Command, "sleep 300")
	}
	if !found {
		t.Errorf("the shell is not found: %v", ProcessesOf(t, p.place.Home))
	}
	p.proc.Kill()
	<-p.proc.Done()
	if e := p.proc.Exit(); len(e.Swept)+len(e.Survivors) == 0 {
		t.Errorf("exit %+v", e)
	}
}
