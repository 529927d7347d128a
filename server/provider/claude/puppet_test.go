package claude

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// puppet is the program as it behaves on the wire, playing a part by itself: it answers as
// the real one does and follows a script from there. Everything happens inside the
// adapter's own writes and in release.
type puppet struct {
	mu     sync.Mutex
	moved  *sync.Cond
	out    bytes.Buffer
	closed bool
	// handled: the adapter asks for more.
	handled bool
	why     string
	lines   []string // what the adapter wrote

	serial  int
	twice   bool   // every line is sent again
	version string // minVersion by default
	deafTo  string // a kind of line, or of request, that is not answered
	deaf    bool   // the interrupt finds the root launching another child
	turn    []string
	open    bool
	turns   int
	asks    map[string]func(behavior string)
	kids    map[string]*kid
	queue   []queued // messages that wait for the running turn
	notice  int      // ends of background children that the root was not told of
	quiet   bool     // no continuation follows the end of a child

	points map[string]func()
	onTurn []func(text string) // of each root turn that a message began; the last one repeats
	onNote func()              // the continuation
}

type queued struct{ uuid, text string }

// kid is one agent of the puppet.
type kid struct {
	name, call, task, run string
	parent                *kid
	background, live      bool
}

const reasonCompleted = "completed"

const puppetSession = "0c0ffee0-0000-4000-8000-000000000001"

func newPuppet() *puppet {
	p := &puppet{asks: map[string]func(string){}, kids: map[string]*kid{}, points: map[string]func(){}}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// again is the same conversation in another process: nothing runs.
func (p *puppet) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
	p.closed, p.open, p.why, p.queue = false, false, "", nil
	clear(p.asks)
	clear(p.kids)
}

func (p *puppet) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out.Len() == 0 {
		p.handled = true
		p.moved.Broadcast()
		if p.closed {
			return 0, io.EOF
		}
		p.moved.Wait()
	}
	return p.out.Read(b)
}

func (p *puppet) Close(context.Context) error { p.kill(""); return nil }

func (p *puppet) Explain() string { p.mu.Lock(); defer p.mu.Unlock(); return p.why }

func (p *puppet) kill(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.why == "" {
		p.why = why
	}
	p.moved.Broadcast()
}

// push queues a line as it is.
func (p *puppet) push(line string) {
	p.out.WriteString(line + "\n")
	p.handled = false
	p.moved.Broadcast()
}

type fields map[string]any

// emit sends one line of a kind; it gets its own id, and a repetition of it the same.
func (p *puppet) emit(kind string, f fields) {
	out := fields{"session_id": puppetSession}
	for k, v := range f {
		out[k] = v
	}
	out["type"], _, _ = strings.Cut(kind, "/")
	if _, sub, ok := strings.Cut(kind, "/"); ok {
		out["subtype"] = sub
	}
	p.serial++
	out["uuid"] = fmt.Sprintf("line-%d", p.serial)
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	p.push(string(raw))
	if p.twice {
		p.push(string(raw))
	}
}

func (p *puppet) state(s string) { p.emit("system/session_state_changed", fields{"state": s}) }

func (p *puppet) fate(uuid, state string) {
	p.emit("command_lifecycle", fields{"command_uuid": uuid, "state": state})
}

func (p *puppet) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	p.lines = append(p.lines, string(b))
	var m struct {
		Type      string `json:"type"`
		UUID      string `json:"uuid"`
		RequestID string `json:"request_id"`
		Request   struct {
			Subtype string `json:"subtype"`
			TaskID  string `json:"task_id"`
		} `json:"request"`
		Message  userMessage `json:"message"`
		Response struct {
			RequestID string `json:"request_id"`
			Response  struct {
				Behavior string `json:"behavior"`
			} `json:"response"`
		} `json:"response"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return 0, err
	}
	switch {
	case p.deafTo != "" && (m.Type == p.deafTo || m.Request.Subtype == p.deafTo):
	case m.Type == typeUser:
		p.message(m.UUID, m.Message.Content)
	case m.Type == typeResponse:
		if f := p.asks[m.Response.RequestID]; f != nil {
			delete(p.asks, m.Response.RequestID)
			f(m.Response.Response.Behavior)
		}
	case m.Request.Subtype == reqInitialize:
		p.answer(m.RequestID, fields{"claude_code_version": cmp.Or(p.version, minVersion)})
	case m.Request.Subtype == reqInterrupt:
		p.interrupt(m.RequestID)
	case m.Request.Subtype == reqStopTask:
		p.stopTask(m.Request.TaskID)
		p.answer(m.RequestID, fields{})
	default:
		p.answer(m.RequestID, fields{})
	}
	return len(b), nil
}

func (p *puppet) answer(id string, payload fields) {
	p.emit("control_response", fields{"response": fields{"subtype": "success", "request_id": id, "response": payload}})
}

// message takes a person's message: at once when the root is free, else it waits.
func (p *puppet) message(uuid, text string) {
	p.state(stateRunning)
	p.fate(uuid, lifeQueued)
	if p.open {
		p.queue = append(p.queue, queued{uuid, text})
		return
	}
	p.fate(uuid, lifeStarted)
	p.begin(uuid)
	p.turns++
	p.onTurn[min(p.turns, len(p.onTurn))-1](text)
}

// begin opens a root turn; without a message it is the program's own.
func (p *puppet) begin(uuids ...string) {
	f := fields{"model": "m", "capabilities": needed, "permissionMode": modeDefault}
	if len(uuids) > 0 {
		f["user_message_uuids"] = uuids
	}
	p.open, p.turn = true, uuids
	p.emit("system/init", f)
}

// fold gives the running turn the messages that wait.
func (p *puppet) fold() {
	for _, q := range p.queue {
		p.fate(q.uuid, lifeStarted)
		p.turn = append(p.turn, q.uuid)
	}
	p.queue = nil
}

// end closes the root turn, and what follows it.
func (p *puppet) end(f fields) {
	if !p.open {
		return
	}
	if len(p.turn) > 0 {
		f["user_message_uuids"] = p.turn
	} else {
		f["origin"] = fields{"kind": originNotice}
	}
	p.open = false
	p.emit("result/"+f["subtype"].(string), f)
	for _, id := range p.turn {
		p.fate(id, lifeCompleted)
	}
	p.follow()
}

// follow begins what waits, or says idle.
func (p *puppet) follow() {
	switch {
	case p.open || p.closed:
	case p.notice > 0 && !p.quiet:
		p.notice = 0
		p.begin()
		if p.onNote != nil {
			p.onNote()
		}
		p.done("")
	case len(p.queue) > 0:
		q := p.queue[0]
		p.queue = p.queue[1:]
		p.fate(q.uuid, lifeStarted)
		p.begin(q.uuid)
		p.turns++
		p.onTurn[min(p.turns, len(p.onTurn))-1](q.text)
	case !p.busy():
		p.state(stateIdle)
	}
}

func (p *puppet) busy() bool {
	for _, k := range p.kids {
		if k.live {
			return true
		}
	}
	return false
}

// done says the root's last words.
func (p *puppet) done(text string) {
	if !p.open {
		return
	}
	if text != "" {
		p.says(nil, text)
	}
	p.end(fields{"subtype": resultSuccess, "result": text, "num_turns": 1, "terminal_reason": reasonCompleted})
}

// ask asks to run a command, then goes on with the answer.
func (p *puppet) ask(k *kid, then func(behavior string)) {
	p.serial++
	id := fmt.Sprintf("ask-%d", p.serial)
	input := fields{"command": "make"}
	p.use(k, "toolu_run", "Bash", input)
	p.state(stateAction)
	r := fields{"subtype": reqCanUseTool, "tool_name": "Bash", "input": input, "tool_use_id": "toolu_run"}
	if k != nil {
		r["agent_id"] = k.task
	}
	p.emit("control_request", fields{"request_id": id, "request": r})
	p.asks[id] = func(behavior string) {
		p.state(stateRunning)
		p.result(k, "toolu_run", "done", behavior != "allow")
		then(behavior)
	}
}

// withdraw takes the open questions back.
func (p *puppet) withdraw() {
	for _, id := range slices.Sorted(maps.Keys(p.asks)) {
		delete(p.asks, id)
		p.emit("control_cancel_request", fields{"request_id": id})
	}
}

// release is Play.Release. It returns when the adapter has handled what came of it.
func (p *puppet) release(point string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.points[point]; f != nil {
		delete(p.points, point)
		f()
	}
	p.settle()
}

// settle waits until the adapter has handled all there is. Called with the lock held.
func (p *puppet) settle() {
	for !p.handled && !p.closed {
		p.moved.Wait()
	}
}

// wrote counts the lines of the adapter that have a text in them.
func (p *puppet) wrote(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}
