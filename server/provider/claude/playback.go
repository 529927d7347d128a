package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/tape"
)

// Playback stands in for the binaries of one recording. It hands recorded lines to the
// adapter under the adapter's own names for messages, and gives the recorded answers to
// the adapter's own requests.
type Playback struct {
	tape    *tape.Tape
	session string // the conversation, the same in every process
	model   string

	calls    map[int]*recordedCall // by the line that sent it
	answers  map[int]*recordedCall // by the line of its answer
	texts    map[int]*recordedText // by the line that sent it
	detached map[string]bool       // tasks that outlive their turns and are no agents

	mu     sync.Mutex
	at     int                      // the line that is played
	opened int                      // the process that was opened last
	asked  map[string]*requestFrame // the binary's requests, by id
}

// Recorded is one line of a recording.
type Recorded struct {
	At  int64           `json:"t"`   // ms since the first process started
	Dir string          `json:"dir"` // in: from the binary; out: to it; err: on stderr; note: the recorder's
	Msg json.RawMessage `json:"msg"`
}

// recordedCall is one request of the recorded client with its answer.
type recordedCall struct {
	subtype string
	task    string // of a stop_task
	process int
	sentAt  int
	answer  json.RawMessage // nil if none was recorded
	passed  bool            // its moment is over
	used    bool
	asked   string // id of the adapter's request that waits for it
}

// recordedText is a message of the recorded client.
type recordedText struct {
	process int
	sentAt  int
	uuid    string
	text    string
	taken   bool   // the replay has made it a person's message
	ours    string // the adapter's uuid for it
}

// sent is a line to the binary, as far as a replay looks.
type sent struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	RequestID string `json:"request_id"`
	Message   *struct {
		Content string `json:"content"`
	} `json:"message"`
	Request struct {
		Subtype string `json:"subtype"`
		TaskID  string `json:"task_id"`
	} `json:"request"`
	Response responseBody `json:"response"`
}

// readSent reads a line; what is no message (a client's garbage) says nothing.
func readSent(raw json.RawMessage) sent {
	var m sent
	_ = json.Unmarshal(raw, &m) // a member of another shape leaves the rest usable
	return m
}

// recordedNote is what a replay looks at of the recorder's notes.
type recordedNote struct {
	Event string   `json:"event"`
	Argv  []string `json:"argv"`
}

// NewPlayback reads a recording. idle is told, from the adapter's reading goroutine,
// whether everything handed over has been handled.
func NewPlayback(lines []Recorded, idle func(bool)) *Playback {
	p := &Playback{
		calls: map[int]*recordedCall{}, answers: map[int]*recordedCall{}, texts: map[int]*recordedText{},
		detached: map[string]bool{}, asked: map[string]*requestFrame{},
	}
	p.tape = tape.New(idle, p.heard)
	process := 0
	open := map[string]*recordedCall{}
	for at, line := range lines {
		switch line.Dir {
		case "note":
			var n recordedNote
			_ = json.Unmarshal(line.Msg, &n) // a note of another kind
			if n.Event == "spawn" {
				process++
				p.model = cmp.Or(p.model, argument(n.Argv, "--model"))
			}
		case "out":
			m := readSent(line.Msg)
			switch {
			case m.Type == typeUser && m.Message != nil:
				p.texts[at] = &recordedText{process: process, sentAt: at, uuid: m.UUID, text: m.Message.Content}
			case m.Type == typeRequest:
				c := &recordedCall{subtype: m.Request.Subtype, task: m.Request.TaskID, process: process, sentAt: at}
				p.calls[at] = c
				open[m.RequestID] = c
			}
		case "in":
			p.foresee(at, line.Msg, open)
		}
	}
	return p
}

// foresee takes what a line of the binary tells of the whole recording.
func (p *Playback) foresee(at int, raw json.RawMessage, open map[string]*recordedCall) {
	f, err := decodeFrame(raw)
	if err != nil || f == nil {
		return
	}
	p.session = cmp.Or(p.session, f.head().SessionID)
	switch f := f.(type) {
	case *responseFrame:
		if c := open[f.Response.RequestID]; c != nil {
			delete(open, f.Response.RequestID)
			c.answer = raw
			p.answers[at] = c
		}
	case *taskFrame:
		if f.Subtype == subTaskStarted && !f.isAgent() {
			p.detached[f.TaskID] = true
		}
	}
}

// argument is the value of a flag, "" if it is not there.
func argument(argv []string, flag string) string {
	if at := slices.Index(argv, flag); at >= 0 && at+1 < len(argv) {
		return argv[at+1]
	}
	return ""
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
func (p *Playback) Begin() { p.tape.Begin() }

// End is the death of the process, if it has not died yet.
func (p *Playback) End(why string) { p.tape.End(why) }

// Take says that the replay has made that line a person's message.
func (p *Playback) Take(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.texts[at]; x != nil {
		x.taken = true
	}
}

// Skip says that nothing comes of a line: what the binary makes of it is nobody's.
func (p *Playback) Skip(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.texts[at]; x != nil {
		x.taken = false
	}
}

// Feed hands a line of the binary over. An answer goes only to the adapter's own request
// that it is meant for.
func (p *Playback) Feed(at int, raw json.RawMessage) {
	p.mu.Lock()
	p.at = at
	line := raw
	if c := p.answers[at]; c != nil {
		c.passed, line = true, nil
		if c.asked != "" {
			line = c.reply()
		}
	} else if f, _ := decodeFrame(raw); f != nil {
		switch f := f.(type) {
		case *responseFrame: // to nobody's request
			line = nil
		case *requestFrame:
			p.asked[f.RequestID] = f
		}
	}
	line = p.renamed(line)
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// renamed puts the adapter's names in place of the recorded client's.
func (p *Playback) renamed(line json.RawMessage) json.RawMessage {
	for _, x := range p.texts {
		if x.ours != "" && x.uuid != "" {
			line = bytes.ReplaceAll(line, []byte(x.uuid), []byte(x.ours))
		}
	}
	return line
}

// heard takes a line of the adapter.
func (p *Playback) heard(raw []byte) {
	m := readSent(raw)
	p.mu.Lock()
	var line json.RawMessage
	switch {
	case m.Type == typeUser && m.Message != nil:
		if x := p.said(m.Message.Content); x != nil {
			x.ours = m.UUID
		}
	case m.Type == typeRequest:
		if c := p.match(m); c == nil {
			line = unrecorded(m)
		} else if c.used, c.asked = true, m.RequestID; c.passed {
			line = p.renamed(c.reply())
		}
	}
	p.mu.Unlock()
	if line != nil {
		p.tape.Play(line)
	}
}

// said is the recorded message that the adapter's stands for.
func (p *Playback) said(text string) *recordedText {
	var best *recordedText
	for _, x := range p.texts {
		if x.taken && x.ours == "" && x.process == p.tape.Process() && x.text == text && (best == nil || x.sentAt < best.sentAt) {
			best = x
		}
	}
	return best
}

// match is the first recorded call of this process that the adapter's request can stand
// for. A request that the recorded client makes only later is none.
func (p *Playback) match(m sent) *recordedCall {
	var best *recordedCall
	for _, c := range p.calls {
		switch {
		case c.used, c.answer == nil, c.process != p.tape.Process():
			continue
		case c.subtype != m.Request.Subtype, c.task != m.Request.TaskID, c.sentAt > p.at:
			continue
		}
		if best == nil || c.sentAt < best.sentAt {
			best = c
		}
	}
	return best
}

// reply is the recorded answer to the adapter's request.
func (c *recordedCall) reply() json.RawMessage {
	var line struct {
		Type     string                     `json:"type"`
		Response map[string]json.RawMessage `json:"response"`
	}
	_ = json.Unmarshal(c.answer, &line) // it was decoded before
	line.Response["request_id"], _ = json.Marshal(c.asked)
	out, _ := json.Marshal(line)
	return out
}

// unrecorded answers a request that the recorded client never made: with what the binary
// always says to it, whatever came of it, or else by a refusal. It answers at once.
func unrecorded(m sent) json.RawMessage {
	body := outResponse{Subtype: resultSuccess, RequestID: m.RequestID}
	switch m.Request.Subtype {
	case reqInterrupt:
		body.Response = map[string][]string{"still_queued": {}, "cancelled": {}}
	case reqStopTask:
		body.Response = struct{}{}
	case reqWithdraw:
		body.Response = withdrawAnswer{}
	default:
		body = outResponse{Subtype: "error", RequestID: m.RequestID, Error: "the recording has no answer to " + m.Request.Subtype}
	}
	out, _ := json.Marshal(outAnswer{Type: typeResponse, Response: body})
	return out
}

// question is the binary's request that an answer is about, nil if nobody asked.
func (p *Playback) question(id string) *inquiry {
	f := p.asked[id]
	if f == nil || f.subtype() != reqCanUseTool && f.subtype() != reqElicit {
		return nil
	}
	q, err := inquire(f, nil)
	if err != nil {
		return nil
	}
	return q
}

// optionOf is the option of a question that does what a role says, "" if there is none.
func (q *inquiry) optionOf(role string) string {
	for _, o := range q.interaction.Options {
		if o.Role == role {
			return o.ID
		}
	}
	return ""
}

var _ Transport = (*tape.Link)(nil)

// answersOf are the recorded answers by the ids of our questions.
func answersOf(questions []agent.Question, given func(agent.Question) (string, bool)) map[string]string {
	out := map[string]string{}
	for _, q := range questions {
		if text, ok := given(q); ok {
			out[q.ID] = text
		}
	}
	return out
}
