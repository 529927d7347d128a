package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/tape"
)

// Playback stands in for the agent of one recording. It hands recorded lines to the
// adapter and gives the recorded answers to the adapter's own requests, whose numbers and
// moments differ from those of the client that was recorded.
type Playback struct {
	tape    *tape.Tape
	root    string // the session that the recorded client opened first
	known   bool   // which an earlier process had begun
	version int    // of the protocol that the recorded client asked for
	mode    string // that the recorded client set before it said anything

	calls   map[int]*recordedCall // by the line that sent it
	answers map[int]*recordedCall // by the line of its answer

	mu     sync.Mutex
	opened int                        // the process that was opened last
	asked  map[string]json.RawMessage // the agent's requests, by id
}

// Recorded is one line of a recording.
type Recorded struct {
	At  int64           `json:"t"`   // ms since the process started
	Dir string          `json:"dir"` // in: from the agent; out: to it; note: the recorder's
	Msg json.RawMessage `json:"msg"`
}

// recordedCall is one request of the recorded client with its answer.
type recordedCall struct {
	method  string
	session string // that it is about; of session/new, the one that it made
	sentAt  int
	process int
	answer  json.RawMessage // nil if none was recorded
	passed  bool            // its moment is over
	usable  bool            // the adapter may be given its answer
	used    bool
	asked   json.RawMessage // id of the adapter's request that waits for it
}

// message is any line, as far as a replay looks.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion int                `json:"protocolVersion"`
		SessionID       string             `json:"sessionId"`
		Prompt          []acp.ContentBlock `json:"prompt"`
		ModeID          string             `json:"modeId"`
		ConfigID        string             `json:"configId"`
		Value           string             `json:"value"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`

	Event string `json:"event"` // of a note
}

// readMessage reads a line; what is no object (a batch) says nothing.
func readMessage(raw json.RawMessage) message {
	var m message
	_ = json.Unmarshal(raw, &m) // a member of another shape leaves the rest usable
	return m
}

// setups are the methods that open a session.
func setsUp(method string) bool {
	return method == acp.MethodNewSession || takesUp(method)
}

// takesUp reports whether a method opens a session of before.
func takesUp(method string) bool {
	return method == acp.MethodLoadSession || method == acp.MethodResumeSession
}

// NewPlayback reads a recording. idle is told, from the adapter's reading goroutine, when
// everything handed over has been handled. One that has no conversation in this protocol
// replays as nothing.
func NewPlayback(lines []Recorded, idle func(bool)) *Playback {
	p := &Playback{calls: map[int]*recordedCall{}, answers: map[int]*recordedCall{}, asked: map[string]json.RawMessage{}}
	p.tape = tape.New(idle, p.heard)
	p.tape.Begin()
	open := map[string]*recordedCall{}
	said, process := false, 1
	for at, line := range lines {
		m := readMessage(line.Msg)
		switch {
		case m.Event == "spawn":
			process++
			clear(open)
		case line.Dir == "out" && m.Method != "" && len(m.ID) > 0:
			c := &recordedCall{method: m.Method, session: m.Params.SessionID, sentAt: at, process: process}
			c.usable = m.Method != acp.MethodPrompt // that counts only where it is a person's message
			p.calls[at], open[string(m.ID)] = c, c
			p.version = cmp.Or(p.version, m.Params.ProtocolVersion)
			said = said || m.Method == acp.MethodPrompt
			if takesUp(m.Method) && p.root == "" {
				p.root, p.known = m.Params.SessionID, true
			}
			if !said && m.Params.SessionID == p.root {
				p.mode = cmp.Or(m.Params.ModeID, modeOption(m), p.mode)
			}
		case line.Dir == "in" && m.Method == "" && open[string(m.ID)] != nil:
			c := open[string(m.ID)]
			delete(open, string(m.ID))
			c.answer, p.answers[at] = line.Msg, c
			if c.method == acp.MethodNewSession {
				var got acp.SessionResponse
				_ = json.Unmarshal(m.Result, &got) // a refusal opens nothing
				c.session = got.SessionID
				p.root = cmp.Or(p.root, got.SessionID)
			}
		}
	}
	return p
}

// modeOption is the mode that a request sets as an option, "" if it sets none.
func modeOption(m message) string {
	if m.Method == acp.MethodSetConfigOption && m.Params.ConfigID == "mode" {
		return m.Params.Value
	}
	return ""
}

// Agent is the agent that was recorded, as the recorded client used it. What it would have
// said to a client that opts in to more is not in the recording.
func (p *Playback) Agent() Agent {
	return Agent{Name: "acp", Title: "the agent", Version: p.version, Mode: p.mode}
}

// Connect gives the adapter the process.
func (p *Playback) Connect() (Transport, error) {
	l, err := p.tape.Connect()
	if err != nil {
		return nil, err // not the typed nil
	}
	return l, nil
}

// Begin starts another process. The first one runs from the beginning, without a note.
func (p *Playback) Begin() { p.tape.Begin() }

// End is the death of the process, if it has not died yet.
func (p *Playback) End(why string) { p.tape.End(why) }

// Take says that the replay has made that line a person's message.
func (p *Playback) Take(at int) { p.allow(at, true) }

// Skip says that nothing comes of a line: what the agent answered is nobody's.
func (p *Playback) Skip(at int) { p.allow(at, false) }

func (p *Playback) allow(at int, usable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[at]; c != nil && !c.used {
		c.usable = usable
	}
}

// Feed hands a line of the agent over. An answer goes only to the adapter's own request
// that it is meant for.
func (p *Playback) Feed(at int, raw json.RawMessage) {
	m := readMessage(raw)
	p.mu.Lock()
	line := []byte(raw)
	switch {
	case m.Method == "" && len(m.ID) > 0:
		line = nil
		if c := p.answers[at]; c != nil {
			c.passed = true
			if c.asked != nil {
				line = c.reply()
			}
		}
	case len(m.ID) > 0:
		p.asked[string(m.ID)] = raw
	}
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// heard takes a line of the adapter. Its requests are answered, now or at their moment;
// its notifications and its answers are what the recorded client has said already.
func (p *Playback) heard(raw []byte) {
	m := readMessage(raw)
	if m.Method == "" || len(m.ID) == 0 {
		return
	}
	p.mu.Lock()
	var line []byte
	if c := p.match(m); c == nil {
		line = unrecorded(m)
	} else if c.used, c.asked = true, m.ID; c.passed {
		line = c.reply()
	}
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// match is the first recorded call that the adapter's request can stand for: the same
// method about the same session. A session of before is taken up in one way or another. One
// that was never answered is not answered here either.
func (p *Playback) match(m message) *recordedCall {
	var best *recordedCall
	for _, c := range p.calls {
		switch {
		case c.used, !c.usable, c.process != p.tape.Process():
			continue
		case c.method != m.Method && (!takesUp(c.method) || !takesUp(m.Method)):
			continue
		case c.session != m.Params.SessionID && m.Method != acp.MethodNewSession:
			continue
		}
		if best == nil || c.sentAt < best.sentAt {
			best = c
		}
	}
	return best
}

// reply is the recorded answer under the adapter's number.
func (c *recordedCall) reply() []byte {
	m := readMessage(c.answer)
	if len(m.Error) > 0 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, c.asked, m.Error)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.asked, m.Result)
}

// unrecorded answers at once a request that the recorded client never made.
func unrecorded(m message) []byte {
	switch m.Method {
	case acp.MethodCloseSession, acp.MethodSetMode, acp.MethodSetConfigOption:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"the recording has no answer to %s"}}`, m.ID, m.Method)
}

var _ Transport = (*tape.Link)(nil)
