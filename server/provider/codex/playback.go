package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/provider/tape"
)

// Playback stands in for the app-servers of one recording. It hands recorded lines to
// the adapter and gives the recorded answers to the adapter's own requests, whose
// numbers and moments differ from those of the client that was recorded.
type Playback struct {
	tape *tape.Tape

	calls map[int]*recordedCall // by the line that sent it
	reads map[string]json.RawMessage

	mu    sync.Mutex
	asked map[string]json.RawMessage // the server's requests of this process, by number
}

// Recorded is one line of a recording.
type Recorded struct {
	At  int64           `json:"t"`   // ms since the first process started
	Dir string          `json:"dir"` // in: from the server; out: to it; meta: the recorder's note
	Msg json.RawMessage `json:"msg"`
}

// recordedCall is one request of the recorded client with its answer.
type recordedCall struct {
	method string
	thread string
	epoch  int
	answer json.RawMessage // nil if none was recorded
	passed bool            // its moment is over
	usable bool            // the adapter may be given its answer
	used   bool
	asked  json.RawMessage // id of the adapter's request that waits for it
	asks   string          // that request's method
	sentAt int
}

// NewPlayback reads a recording. idle is told, from the adapter's reading goroutine,
// when everything handed over has been handled.
func NewPlayback(lines []Recorded, idle func(bool)) *Playback {
	p := &Playback{calls: map[int]*recordedCall{}, reads: map[string]json.RawMessage{}}
	p.tape = tape.New(idle, p.heard)
	epoch := 0
	open := map[string]*recordedCall{}
	for at, line := range lines {
		m := readMessage(line.Msg)
		switch {
		case line.Dir == "meta" && m.Event == "process_started":
			epoch++
			clear(open)
		case line.Dir == "out" && m.Method != "" && len(m.ID) > 0:
			c := &recordedCall{method: m.Method, thread: m.Params.ThreadID, epoch: epoch, sentAt: at}
			// Starts and steers count only where the replay takes them as a person's
			// command; the rest may be answered early.
			c.usable = m.Method != methodTurnStart && m.Method != methodTurnSteer
			p.calls[at] = c
			open[string(m.ID)] = c
		case line.Dir == "in" && m.Method == "" && len(m.ID) > 0:
			if c := open[string(m.ID)]; c != nil {
				delete(open, string(m.ID))
				c.answer = line.Msg
				p.calls[-1-at] = c // by the line of its answer, too
				if c.method == methodThreadRead && len(m.Result) > 0 {
					p.reads[c.thread] = m.Result
				}
			}
		case line.Dir == "in":
			p.noteSpawn(m, line.Msg)
		}
	}
	return p
}

// noteSpawn keeps what thread/read would say of a child that the recorded client never
// asked about: the child was there, and its spawn tells its parent and its task.
func (p *Playback) noteSpawn(m message, raw json.RawMessage) {
	var line struct{ Params itemParams }
	if !strings.HasPrefix(m.Method, "item/") || json.Unmarshal(raw, &line) != nil {
		return
	}
	it := line.Params.Item
	children := it.ReceiverThreadIDs
	if it.Type == itemActivity && it.Kind == activityStarted {
		children = []string{it.AgentThreadID}
	} else if it.Type != itemCollab || it.Tool != toolSpawnAgent {
		return
	}
	var source any = "unknown"
	if it.AgentPath != "" {
		source = map[string]any{"subAgent": map[string]any{"thread_spawn": map[string]any{"agent_path": it.AgentPath}}}
	}
	for _, child := range children {
		if p.reads[child] != nil {
			continue
		}
		p.reads[child], _ = json.Marshal(map[string]any{"thread": map[string]any{
			"id": child, "parentThreadId": m.Params.ThreadID, "preview": it.Prompt, "source": source,
		}})
	}
}

// message is any line, as far as a replay looks.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ThreadID       string      `json:"threadId"`
		TurnID         string      `json:"turnId"`
		ItemID         string      `json:"itemId"`
		ExpectedTurnID string      `json:"expectedTurnId"`
		Input          []textInput `json:"input"`
		Model          string      `json:"model"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`

	Event  string `json:"event"` // of a note
	Status string `json:"status"`
	Signal int    `json:"signal"`
}

// readMessage reads a line; what is no object (a client's garbage) says nothing.
func readMessage(raw json.RawMessage) message {
	var m message
	_ = json.Unmarshal(raw, &m) // a member of another shape leaves the rest usable
	return m
}

// Connect gives the adapter the process that is running now.
func (p *Playback) Connect() (Transport, error) {
	l, err := p.tape.Connect()
	if err != nil {
		return nil, err // not the typed nil
	}
	return l, nil
}

// Begin starts the next process of the recording.
func (p *Playback) Begin() {
	p.mu.Lock()
	p.asked = map[string]json.RawMessage{}
	p.mu.Unlock()
	p.tape.Begin()
}

// End is the death of the process, if it has not died yet.
func (p *Playback) End(why string) { p.tape.End(why) }

// Take makes the answer of a start or steer available: the replay has made that line a
// person's command.
func (p *Playback) Take(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[at]; c != nil {
		c.usable = true
	}
}

// Skip makes the answer of a line unavailable: nothing comes of it.
func (p *Playback) Skip(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[at]; c != nil && !c.used {
		c.usable = false
	}
}

// Feed hands a line of the server over. An answer goes only to the adapter's own
// request that it is meant for.
func (p *Playback) Feed(at int, raw json.RawMessage) {
	m := readMessage(raw)
	if m.Method != "" || len(m.ID) == 0 {
		if len(m.ID) > 0 {
			p.mu.Lock()
			p.asked[string(m.ID)] = raw
			p.mu.Unlock()
		}
		p.tape.Play(raw)
		return
	}
	p.mu.Lock()
	c := p.calls[-1-at]
	var line []byte
	if c != nil {
		c.passed = true
		if c.asked != nil {
			line = c.reply()
		}
	}
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// heard takes a line of the adapter.
func (p *Playback) heard(line []byte) {
	if m := readMessage(line); m.Method != "" && len(m.ID) > 0 {
		p.request(m)
	}
}

// request answers a request of the adapter, now or at its moment.
func (p *Playback) request(m message) {
	p.mu.Lock()
	c := p.match(m)
	var line []byte
	if c != nil {
		c.used, c.asked, c.asks = true, m.ID, m.Method
		if c.passed {
			line = c.reply()
		}
	} else if m.Method == methodThreadRead {
		line = fmt.Appendf(nil, `{"id":%s,"error":{"code":-32600,"message":"thread not loaded: %s"}}`, m.ID, m.Params.ThreadID)
		if read := p.reads[m.Params.ThreadID]; read != nil {
			line = fmt.Appendf(nil, `{"id":%s,"result":%s}`, m.ID, read)
		}
	}
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// match is the first recorded call of this process that the adapter's request can stand
// for: the same method on the same thread; a steer for a turn/start, because the
// recorded client may have used that to steer.
func (p *Playback) match(m message) *recordedCall {
	var best *recordedCall
	now := p.tape.Process()
	for _, c := range p.calls {
		switch {
		case c.used, !c.usable, c.epoch != now, c.answer == nil:
			continue
		case c.method != m.Method && (m.Method != methodTurnSteer || c.method != methodTurnStart):
			continue
		case c.thread != m.Params.ThreadID:
			continue
		}
		if best == nil || c.better(best) {
			best = c
		}
	}
	return best
}

// better prefers the earlier call; of a handshake one that went well, for a client may
// have tried it too early.
func (c *recordedCall) better(other *recordedCall) bool {
	if bad := len(readMessage(other.answer).Error) > 0; c.thread == "" && bad != (len(readMessage(c.answer).Error) > 0) {
		return bad
	}
	return c.sentAt < other.sentAt
}

// reply is the recorded answer under the adapter's number.
func (c *recordedCall) reply() []byte {
	m := readMessage(c.answer)
	if len(m.Error) > 0 {
		return fmt.Appendf(nil, `{"id":%s,"error":%s}`, c.asked, m.Error)
	}
	result := m.Result
	if c.asks == methodTurnSteer && c.method == methodTurnStart {
		var res turnStartResult
		_ = json.Unmarshal(result, &res) // an answer without a turn steers nothing
		result, _ = json.Marshal(turnSteerResult{TurnID: res.Turn.ID})
	}
	return fmt.Appendf(nil, `{"id":%s,"result":%s}`, c.asked, result)
}
