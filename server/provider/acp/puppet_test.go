package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/tape"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// rootSession is the root's name on every stage.
const rootSession = "R"

// puppet is an agent that plays a part by itself: it answers as a real one does and follows
// a script from there. Everything happens inside the adapter's own writes and in release.
type puppet struct {
	*tape.Tape
	version int

	mu     sync.Mutex
	moved  *sync.Cond // of idle, under its own lock
	idle   bool
	twice  bool              // every line is sent again
	parent map[string]string // of a session that is announced
	live   map[string]bool
	prompt wire.RawID // of the prompt that runs, version 1
	turns  int
	calls  int
	asks   map[int]func(outcome acp.PermissionOutcome)
	asker  map[int]string
	points map[string]func()
	onTurn []func(text string) // of each prompt, in order; the last one repeats
	// onSteer takes a message into the turn that runs; nil where the agent takes none.
	onSteer func(text string)
	deaf    bool   // the root's cancel does not stop it at once
	heard   []line // what was written to it
	onHeard func(line) bool
}

// line is one message on the wire, either way.
type line struct {
	ID     wire.RawID      `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wire.Error     `json:"error"`
}

func newPuppet(version int) *puppet {
	p := &puppet{
		version: version, parent: map[string]string{}, live: map[string]bool{}, moved: sync.NewCond(&sync.Mutex{}),
		asks: map[int]func(acp.PermissionOutcome){}, asker: map[int]string{}, points: map[string]func(){}, idle: true,
	}
	p.Tape = tape.New(func(idle bool) {
		p.moved.L.Lock()
		p.idle = idle
		p.moved.L.Unlock()
		p.moved.Broadcast()
	}, p.hear)
	p.Begin()
	return p
}

// again is the same agent after a restart: nothing runs.
func (p *puppet) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.live)
	clear(p.asks)
	p.prompt = ""
	p.End("exit 0")
	p.Begin()
}

func (p *puppet) settle() {
	p.moved.L.Lock()
	defer p.moved.L.Unlock()
	for !p.idle {
		p.moved.Wait()
	}
}

func (p *puppet) emit(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	p.Play(raw)
	if p.twice {
		p.Play(raw)
	}
}

// update says something on a session's stream.
func (p *puppet) update(session string, kind acp.UpdateKind, variant any) {
	p.emit(map[string]any{"jsonrpc": "2.0", "method": acp.MethodUpdate, "params": acp.SessionNotification{SessionID: session, Update: acp.Say(kind, variant)}})
}

func (p *puppet) reply(id wire.RawID, result any) {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil {
		panic(err)
	}
	p.Play(raw)
}

func (p *puppet) refuse(id wire.RawID, code int, why string) {
	p.Play(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, why))
}

func (p *puppet) hear(raw []byte) {
	var m line
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, m)
	if p.onHeard != nil && p.onHeard(m) {
		return
	}
	switch m.Method {
	case "":
		p.answered(m)
	case acp.MethodInitialize:
		p.hello(m)
	case acp.MethodNewSession:
		p.reply(m.ID, map[string]any{"sessionId": rootSession})
	case acp.MethodResumeSession, acp.MethodLoadSession, acp.MethodCloseSession:
		p.reply(m.ID, struct{}{})
	case acp.MethodPrompt:
		p.prompted(m)
	case steering:
		p.reply(m.ID, struct{}{})
		p.onSteer(textIn(m.Params))
	case acp.MethodCancel:
		var ref acp.SessionRef
		_ = json.Unmarshal(m.Params, &ref)
		p.canceled(ref.SessionID)
	}
}

func (p *puppet) hello(m line) {
	me := &acp.Implementation{Name: "puppet", Version: "1"}
	got := acp.InitializeResponse{ProtocolVersion: p.version, AgentInfo: me, Info: me}
	if p.version == acp.V1 {
		got.AgentCapabilities = &acp.AgentCapabilities{LoadSession: true, SessionCapabilities: &acp.SessionCapabilities{Resume: &acp.Empty{}, Close: &acp.Empty{}}}
		if p.onSteer != nil {
			got.Meta = json.RawMessage(`{"steering":{"supported":true}}`)
		}
	}
	p.reply(m.ID, got)
}

func textIn(params json.RawMessage) string {
	var q acp.PromptRequest
	_ = json.Unmarshal(params, &q)
	return acp.Words(q.Prompt)
}

func (p *puppet) prompted(m line) {
	text := textIn(m.Params)
	if p.version == acp.V2 {
		p.reply(m.ID, map[string]any{"messageId": "u" + string(m.ID)})
		if p.live[rootSession] {
			p.onSteer(text)
			return
		}
		p.state(rootSession, acp.StateUpdate{State: acp.StateRunning})
	}
	p.turns++
	p.prompt = m.ID
	p.live[rootSession] = true
	p.onTurn[min(p.turns, len(p.onTurn))-1](text)
}

// state tells a state where it is told.
func (p *puppet) state(session string, st acp.StateUpdate) {
	if p.version == acp.V2 {
		p.update(session, acp.UpdateState, &st)
	}
	if parent := p.parent[session]; parent != "" {
		p.update(parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: session, State: acp.Some(st)})
	}
}

func (p *puppet) grant(session string, c acp.Opt[acp.SubagentCapabilities]) {
	p.update(p.parent[session], acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: session, Capabilities: c})
}

// announce announces a child.
func (p *puppet) announce(session, parent string) {
	p.parent[session] = parent
	p.update(parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: session, Title: acp.Some("agent " + session), Capabilities: acp.Ungranted()})
}

func (p *puppet) run(session string) {
	p.live[session] = true
	p.state(session, acp.StateUpdate{State: acp.StateRunning})
	p.grant(session, acp.Granted())
}

// delegate announces a child, runs it and lets it say hello.
func (p *puppet) delegate(session, parent string) {
	p.announce(session, parent)
	p.run(session)
	p.says(session, "["+session+"] hi")
}

func (p *puppet) says(session, text string) {
	p.calls++
	p.update(session, acp.UpdateAgentChunk, &acp.MessageChunk{MessageID: fmt.Sprintf("m%d", p.calls), Content: acp.Text(text)})
}

// end ends whatever runs in a session.
func (p *puppet) end(session string, stop acp.StopReason) {
	if !p.live[session] {
		return
	}
	delete(p.live, session)
	switch {
	case session != rootSession:
		p.state(session, acp.StateUpdate{State: acp.StateIdle, StopReason: stop})
		p.grant(session, acp.Revoked())
	case p.version == acp.V2:
		p.state(session, acp.StateUpdate{State: acp.StateIdle, StopReason: stop})
	default:
		p.reply(p.prompt, acp.PromptResponse{StopReason: stop, Usage: &acp.TokenUsage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}})
	}
}

// done says the root's last words.
func (p *puppet) done(text string) {
	if p.live[rootSession] {
		p.says(rootSession, text)
		p.end(rootSession, acp.StopEndTurn)
	}
}

// below are the live sessions below one, the deepest first.
func (p *puppet) below(session string) []string {
	var out []string
	for child, parent := range p.parent {
		if parent == session && p.live[child] {
			out = append(append(out, p.below(child)...), child)
		}
	}
	slices.Sort(out)
	return out
}

func (p *puppet) canceled(session string) {
	if session == rootSession && p.deaf {
		p.delegate("stray", rootSession)
	}
	for _, s := range append(p.below(session), session) {
		for id, who := range p.asker {
			if who == s && p.asks[id] != nil {
				delete(p.asks, id)
				p.withdrawID(id)
			}
		}
		p.end(s, acp.StopCancelled)
	}
}

// ask asks for a command; then goes on with the outcome.
func (p *puppet) ask(session string, then func(acp.PermissionOutcome)) {
	id := len(p.asker) // the first is 0
	p.state(session, acp.StateUpdate{State: acp.StateRequires})
	q := acp.PermissionRequest{
		SessionID: session,
		Options:   []acp.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: acp.AllowOnce}, {OptionID: "no", Name: "No", Kind: acp.RejectOnce}},
	}
	call := &acp.ToolCall{ToolCallID: "run", Title: acp.Some("make"), RawInput: json.RawMessage(`{"command":"make","cwd":"/w"}`)}
	if p.version == acp.V1 {
		q.ToolCall = call
	} else {
		q.Title, q.Subject = "Run a command?", &acp.PermissionSubject{Type: "tool_call", ToolCall: call}
	}
	p.asks[id], p.asker[id] = then, session
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": acp.MethodRequestPermission, "params": q})
	p.Play(raw)
}

func (p *puppet) withdrawID(id int) {
	p.Play(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, id))
}

// withdraw takes every open question back.
func (p *puppet) withdraw() {
	for id := range p.asks {
		delete(p.asks, id)
		p.withdrawID(id)
	}
}

func (p *puppet) answered(m line) {
	var id int
	if json.Unmarshal([]byte(m.ID), &id) != nil {
		return
	}
	then := p.asks[id]
	delete(p.asks, id)
	var got acp.PermissionResponse
	if then != nil && json.Unmarshal(m.Result, &got) == nil {
		p.state(p.asker[id], acp.StateUpdate{State: acp.StateRunning})
		then(got.Outcome)
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
	p.settle()
}

// plain says hello, makes a tool call, says done and completes.
func (p *puppet) plain(string) {
	p.says(rootSession, "[root] hello")
	kind := acp.UpdateToolCall
	if p.version == acp.V2 {
		kind = acp.UpdateToolCallUpdate
	}
	p.update(rootSession, kind, &acp.ToolCall{
		ToolCallID: "call_1", Title: acp.Some("ls"), Kind: acp.Some(acp.ToolExecute), Status: acp.Some(acp.ToolRunning), RawInput: json.RawMessage(`{"command":"ls"}`),
	})
	text := acp.Text("a.txt")
	p.update(rootSession, acp.UpdateToolCallUpdate, &acp.ToolCall{
		ToolCallID: "call_1", Status: acp.Some(acp.ToolCompleted), Content: acp.Some([]acp.ToolContent{{Type: acp.ToolContentBlock, Content: &text}}),
	})
	p.done("[root] done")
}

// finish is a child's end at its point; after the last of names the root says done.
func (p *puppet) finish(stop acp.StopReason, names ...string) {
	for _, name := range names {
		p.points[name] = func() {
			if !p.live[name] {
				return
			}
			if len(names) > 1 {
				p.says(name, "["+name+"] bye")
			}
			p.end(name, stop)
			if !slices.ContainsFunc(names, func(n string) bool { return p.live[n] }) {
				p.done("[root] done")
			}
		}
	}
}

// garbage are lines that nobody understands.
var garbage = []string{
	`not json`, `[{"jsonrpc":"2.0","id":9,"method":"x"}]`, `{}`, `{"method":""}`, `{"method":"no/such","params":{"sessionId":"R"}}`, `{"id":77,"result":{}}`,
	`{"method":"session/update","params":{"sessionId":"R"}}`, `{"method":"session/update","params":{"sessionId":7}}`,
	`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"weather","rain":true}}}`,
	`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"tool_call","toolCallId":[1]}}}`,
	`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"subagent_update","sessionId":"R","state":{"state":"running"}}}}`,
	`{"method":"session/update","params":{"sessionId":"R","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram"}}}}`,
	`{"id":"odd","method":"session/request_permission","params":{"options":[]}}`, `{"id":null,"method":"no/such"}`, strings.Repeat("x", 1000),
}

// methods are what the adapter wrote, in short.
func (p *puppet) methods() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, m := range p.heard {
		switch {
		case m.Method == "" && m.Error != nil:
			out = append(out, "refusal "+string(m.ID))
		case m.Method == "":
			out = append(out, "answer "+string(m.ID)+" "+string(m.Result))
		case m.Method == acp.MethodCancel:
			var ref acp.SessionRef
			_ = json.Unmarshal(m.Params, &ref)
			out = append(out, "cancel "+ref.SessionID)
		default:
			out = append(out, m.Method)
		}
	}
	return out
}

// wrote counts a line among what the adapter wrote.
func (p *puppet) wrote(t *testing.T, want string, times int) {
	t.Helper()
	n := 0
	got := p.methods()
	for _, m := range got {
		if m == want {
			n++
		}
	}
	if n != times {
		t.Errorf("%q was written %d times, want %d: %q", want, n, times, got)
	}
}
