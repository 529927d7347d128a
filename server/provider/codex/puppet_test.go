package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// puppet is an app-server that plays a part by itself: it answers as the real one does
// and follows a script from there. Everything happens inside the adapter's own writes
// and in release.
type puppet struct {
	*server

	mu      sync.Mutex
	twice   bool              // every frame is sent again
	active  map[string]string // thread → turn that runs
	parent  map[string]string // of a thread
	rootOf  map[string]string // thread → provider root turn
	turns   int
	calls   int
	asks    map[int]func(decision string)
	points  map[string]func()
	onTurn  []func(text string) // of each root turn, in order; the last one repeats
	onSteer func(text string)
	deaf    bool // the root's interrupt does not stop it
}

func newPuppet() *puppet {
	return &puppet{
		server: newServer(), active: map[string]string{}, parent: map[string]string{}, rootOf: map[string]string{},
		asks: map[int]func(string){}, points: map[string]func(){},
	}
}

// again is the same server after a restart: nothing runs.
func (p *puppet) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = newServer()
	clear(p.active)
	clear(p.asks)
}

func (p *puppet) emit(lines ...string) {
	for _, l := range lines {
		p.push(l)
		if p.twice {
			p.push(l)
		}
	}
}

// push queues a line without waiting for it to be handled.
func (s *server) push(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.WriteString(line + "\n")
	s.idle = false
	s.bump()
}

func (p *puppet) Write(b []byte) (int, error) {
	n, err := p.server.Write(b)
	if err != nil {
		return n, err
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return n, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Method == "" {
		p.answered(m)
	} else if len(m.ID) > 0 {
		p.request(m)
	}
	return n, nil
}

func (p *puppet) reply(m message, result string) {
	p.push(fmt.Sprintf(`{"id":%s,"result":%s}`, m.ID, result))
}

func (p *puppet) refuse(m message, why string) {
	p.push(fmt.Sprintf(`{"id":%s,"error":{"code":-32600,"message":%q}}`, m.ID, why))
}

func (p *puppet) request(m message) {
	thread := m.Params.ThreadID
	switch m.Method {
	case methodInitialize:
		p.reply(m, `{"userAgent":"x/0.171.0 (puppet)"}`)
	case methodThreadStart, methodThreadResume:
		p.reply(m, `{"thread":{"id":"`+rootThread+`"},"model":"m"}`)
	case methodThreadRead:
		p.reply(m, fmt.Sprintf(`{"thread":{"id":%q,"parentThreadId":%q}}`, thread, p.parent[thread]))
	case methodTurnStart:
		p.turns++
		native := fmt.Sprintf("r%d", p.turns)
		p.reply(m, turnAnswer(native))
		p.begin(native)
		p.emit(heardUser(rootThread, native, "u"+native, "", m.Params.Input[0].Text))
		script := p.onTurn[min(p.turns, len(p.onTurn))-1]
		script(m.Params.Input[0].Text)
	case methodTurnSteer:
		if p.active[rootThread] != m.Params.ExpectedTurnID {
			p.refuse(m, "no active turn to steer")
			return
		}
		p.reply(m, fmt.Sprintf(`{"turnId":%q}`, p.active[rootThread]))
		p.emit(heardUser(rootThread, p.active[rootThread], "steer", "", m.Params.Input[0].Text))
		p.onSteer(m.Params.Input[0].Text)
	case methodTurnInterrupt:
		p.interrupt(m, thread)
	}
}

func (p *puppet) interrupt(m message, thread string) {
	turn := p.active[thread]
	switch {
	case turn == "" && m.Params.TurnID != "":
		p.refuse(m, "no active turn to interrupt")
	case turn == "":
		p.reply(m, `{}`)
	default:
		p.reply(m, `{}`)
		if thread == rootThread && p.deaf {
			p.points["spawn"] = nil
			p.emit(spawnV1(rootThread, turn, "call_stray", "stray")...) // under way already
			p.start("stray", rootThread)
			p.says("stray", "[stray] hi")
		}
		p.end(thread, statusTurnInterrupted)
	}
}

func (p *puppet) answered(m message) {
	var id int
	_ = json.Unmarshal(m.ID, &id)
	f := p.asks[id]
	delete(p.asks, id)
	if f == nil {
		return
	}
	var result struct {
		Decision string `json:"decision"`
	}
	_ = json.Unmarshal(m.Result, &result)
	f(result.Decision)
}

// begin starts a turn of the root thread.
func (p *puppet) begin(native string) {
	p.active[rootThread], p.rootOf[rootThread] = native, native
	p.emit(started(rootThread, native, native))
}

// start starts the first turn of a child thread.
func (p *puppet) start(thread, parent string) {
	p.parent[thread], p.rootOf[thread] = parent, p.rootOf[parent]
	p.active[thread] = thread + "-turn"
	p.emit(started(thread, p.active[thread], p.rootOf[thread]))
}

// delegate spawns a child and lets it say hello.
func (p *puppet) delegate(thread, parent string) {
	p.emit(p.edge(thread, parent)...)
	p.start(thread, parent)
	p.says(thread, "["+thread+"] hi")
}

func (p *puppet) edge(thread, parent string) []string {
	return spawnV1(parent, p.active[parent], "call_"+thread, thread)
}

func (p *puppet) says(thread, text string) {
	p.calls++
	p.emit(said(thread, p.active[thread], fmt.Sprintf("m%d", p.calls), text)...)
}

func (p *puppet) end(thread, status string) {
	turn := p.active[thread]
	if turn == "" {
		return
	}
	delete(p.active, thread)
	p.emit(completed(thread, turn, p.rootOf[thread], status))
}

// ask asks for a command; then goes on with the decision.
func (p *puppet) ask(thread string, then func(decision string)) {
	id := len(p.asks) + 100*p.turns
	turn := p.active[thread]
	p.emit(itemNote("started", thread, turn, `{"type":"commandExecution","id":"run","command":"make","status":"inProgress"}`))
	p.push(approval(id, thread, turn, "run"))
	p.asks[id] = func(decision string) {
		p.push(resolvedNote(thread, id))
		then(decision)
	}
}

// withdraw takes an open question back.
func (p *puppet) withdraw(thread string) {
	for id := range p.asks {
		delete(p.asks, id)
		p.push(resolvedNote(thread, id))
	}
}

// release is Play.Release. It returns when the adapter has handled what came of it.
func (p *puppet) release(point string) {
	p.mu.Lock()
	if f := p.points[point]; f != nil {
		delete(p.points, point)
		f()
	}
	p.mu.Unlock()
	_ = p.await(context.Background(), func() bool { return p.idle || p.closed })
}

// plain says hello, makes a tool call, says done and completes.
func (p *puppet) plain(string) {
	p.says(rootThread, "[root] hello")
	turn := p.active[rootThread]
	item := `{"type":"commandExecution","id":"call_1","command":"ls","status":%q,"aggregatedOutput":%q}`
	p.emit(itemNote("started", rootThread, turn, fmt.Sprintf(item, statusInProgress, "")),
		itemNote("completed", rootThread, turn, fmt.Sprintf(item, statusCompleted, "a.txt\n")))
	p.done("[root] done")
}

// done says the root's last words.
func (p *puppet) done(text string) {
	if p.active[rootThread] == "" {
		return
	}
	p.says(rootThread, text)
	p.end(rootThread, statusCompleted)
}

// finish is a child's end at its point; after the last of names the root says done.
func (p *puppet) finish(status string, names ...string) {
	for _, name := range names {
		p.points[name] = func() {
			if p.active[name] == "" {
				return
			}
			if len(names) > 1 {
				p.says(name, "["+name+"] bye")
			}
			p.end(name, status)
			if !slices.ContainsFunc(names, func(n string) bool { return p.active[n] != "" }) {
				p.done("[root] done")
			}
		}
	}
}

// garbage are lines that nobody understands.
var garbage = []string{
	`not json`, `[1,2]`, `{}`, `{"method":""}`, `{"method":"no/such","params":{"threadId":"T0"}}`, `{"id":77,"result":{}}`,
	note("turn/started", `{"threadId":"T0"}`), note("turn/completed", `{"threadId":7}`), note("item/started", `{"threadId":"T0","turnId":"r1"}`),
	note("item/agentMessage/delta", `{"threadId":"T0","turnId":"nobody","itemId":"x","delta":"?"}`),
	note("item/completed", `{"threadId":"T0","turnId":"r1","item":{"type":"agentMessage","id":"g","text":7}}`), strings.Repeat("x", 1000),
}
