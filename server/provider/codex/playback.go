package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Playback stands in for the app-servers of one recording. It hands recorded lines to
// the adapter and gives the recorded answers to the adapter's own requests, whose
// numbers and moments differ from those of the client that was recorded.
type Playback struct {
	idle func(bool) // whether the adapter has handled everything handed over

	calls map[int]*recordedCall // by the line that sent it
	reads map[string]json.RawMessage

	mu      sync.Mutex
	epoch   int                        // which process of the recording
	asked   map[string]json.RawMessage // the server's requests of this process, by number
	link    *playbackLink
	waiting [][]byte // of this process, before anybody has connected
	dead    bool
	why     string
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
	p := &Playback{idle: idle, calls: map[int]*recordedCall{}, reads: map[string]json.RawMessage{}, dead: true}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.link != nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "the recording has no process for this conversation at this moment")
	}
	l := &playbackLink{p: p, moved: sync.NewCond(&sync.Mutex{})}
	for _, line := range p.waiting {
		l.out.Write(line)
	}
	p.waiting, p.link = nil, l
	return l, nil
}

// Begin starts the next process of the recording.
func (p *Playback) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch++
	p.dead, p.why, p.link, p.waiting = false, "", nil, nil
	p.asked = map[string]json.RawMessage{}
}

// End is the death of the process, if it has not died yet.
func (p *Playback) End(why string) {
	p.mu.Lock()
	l := p.link
	if !p.dead {
		p.dead, p.why = true, why
	}
	p.mu.Unlock()
	if l != nil {
		l.end()
	}
}

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
		p.deliver(raw)
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
		p.deliver(line)
	}
}

// deliver queues a line for whoever is connected, or will be.
func (p *Playback) deliver(raw []byte) {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		line.Reset()
		line.Write(raw) // not JSON: that is the adapter's to see
	}
	line.WriteByte('\n')
	p.mu.Lock()
	l := p.link
	if l == nil && !p.dead {
		p.waiting = append(p.waiting, line.Bytes())
	}
	p.mu.Unlock()
	if l != nil {
		l.push(line.Bytes())
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
		p.deliver(line)
	}
}

// match is the first recorded call of this process that the adapter's request can stand
// for: the same method on the same thread; a steer for a turn/start, because the
// recorded client may have used that to steer.
func (p *Playback) match(m message) *recordedCall {
	var best *recordedCall
	for _, c := range p.calls {
		switch {
		case c.used, !c.usable, c.epoch != p.epoch, c.answer == nil:
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

// playbackLink is one process as the adapter sees it.
type playbackLink struct {
	p     *Playback
	moved *sync.Cond
	out   bytes.Buffer // guarded by moved.L
	ended bool
}

func (l *playbackLink) push(line []byte) {
	l.moved.L.Lock()
	defer l.moved.L.Unlock()
	if l.ended {
		return // nobody reads it any more
	}
	l.out.Write(line)
	l.p.idle(false) // under the lock: the adapter may be quick
	l.moved.Broadcast()
}

func (l *playbackLink) end() {
	l.moved.L.Lock()
	l.ended = true
	l.moved.L.Unlock()
	l.moved.Broadcast()
}

// Read implements Transport. The adapter asks for more only when it has handled what it
// has.
func (l *playbackLink) Read(b []byte) (int, error) {
	l.moved.L.Lock()
	defer l.moved.L.Unlock()
	for l.out.Len() == 0 {
		l.p.idle(true)
		if l.ended {
			return 0, io.EOF
		}
		l.moved.Wait()
	}
	return l.out.Read(b)
}

// Write implements Transport.
func (l *playbackLink) Write(b []byte) (int, error) {
	l.moved.L.Lock()
	ended := l.ended
	l.moved.L.Unlock()
	if ended {
		return 0, io.ErrClosedPipe
	}
	if m := readMessage(b); m.Method != "" && len(m.ID) > 0 {
		l.p.request(m)
	}
	return len(b), nil
}

// Close implements Transport.
func (l *playbackLink) Close(context.Context) error {
	l.end()
	return nil
}

// Explain implements Transport.
func (l *playbackLink) Explain() string {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.why
}
