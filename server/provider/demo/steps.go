package demo

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// How text streams: about as fast as people read ahead.
const (
	wordsPerChunk = 2
	chunkEvery    = 55 * time.Millisecond
)

func (s Say) play(p *player) bool {
	m := agent.Message{
		ID: p.rt.sink.Mint().Message(), SessionID: p.session, TurnID: p.turn,
		Role: agent.RoleAssistant, Kind: s.Kind, Status: agent.MessageStreaming,
	}
	p.report(agent.MessagePut{Message: m})
	chunks := split(s.Text)
	var stream func(i int)
	stream = func(i int) {
		if i < len(chunks) {
			p.text(m.ID, chunks[i])
			p.later(chunkEvery, func() { stream(i + 1) })
			return
		}
		m.Content, m.Status = s.Text, agent.MessageCompleted
		p.report(agent.MessagePut{Message: m})
		p.later(250*time.Millisecond, p.next)
	}
	p.later(120*time.Millisecond, func() { stream(0) })
	return false
}

// split cuts text into pieces of a few words; together they are the text.
func split(text string) []string {
	var chunks []string
	words, start := 0, 0
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' && text[i-1] != ' ' {
			if words++; words%wordsPerChunk == 0 {
				chunks = append(chunks, text[start:i])
				start = i
			}
		}
	}
	return append(chunks, text[start:])
}

func (s Tool) play(p *player) bool {
	m := p.call(s.Name, s.Input, s.Input)
	p.report(agent.MessagePut{Message: m})
	p.later(s.Took, func() {
		m.Status, m.Output = agent.MessageCompleted, s.Output
		if s.Fails {
			m.Status = agent.MessageFailed
		}
		p.report(agent.MessagePut{Message: m})
		if s.Stays {
			p.stays(m)
		}
		p.later(150*time.Millisecond, p.next)
	})
	return false
}

// call makes the message of a new tool call.
func (p *player) call(name, title, input string) agent.Message {
	p.rt.calls++
	return agent.Message{
		ID: p.rt.sink.Mint().Message(), SessionID: p.session, TurnID: p.turn,
		Role: agent.RoleTool, Kind: agent.MessageToolCall, Status: agent.MessageStreaming,
		CallID: agent.CallID("call_" + strconv.Itoa(p.rt.calls)), Name: name, Title: title, Input: input,
	}
}

func (s Wait) play(p *player) bool {
	p.later(s.For, p.next)
	return false
}

func (s Spawn) play(p *player) bool {
	for n := 1; n <= s.Times && !p.halted && !p.rt.over; n++ {
		s.one(p, n)
	}
	if s.Foreground && p.awaits != nil {
		return false // the child's end goes on
	}
	p.later(350*time.Millisecond, p.next)
	return false
}

// one starts the n-th agent: its tool call, its edge, and its own play.
func (s Spawn) one(p *player, n int) {
	r, kind := p.rt, p.play.script.Agents[s.Agent]
	mint := r.sink.Mint()
	c := &player{
		rt: r, play: p.play, parent: p, kind: kind, orphan: s.Orphan,
		session: mint.Session(), turn: mint.Turn(),
	}
	c.push(kind.Steps)
	p.play.agents = append(p.play.agents, c)
	edge := func() bool { return s.edge(p, c, n) }
	switch {
	case s.Orphan:
	case s.Late > 0:
		p.kids++
		p.rt.timer(r.adapter.scaled(s.Late), func() { edge() })
	default:
		p.kids++
		if !edge() {
			return
		}
	}
	begin := func() {
		c.report(agent.TurnStarted{Session: c.session, Turn: c.turn, NativeID: "turn-" + string(c.turn)})
		c.next()
	}
	c.later(time.Duration(200+100*(n%5))*time.Millisecond, begin)
}

// edge reports the delegation; an agent that is refused by the fence is stopped.
func (s Spawn) edge(p, c *player, n int) bool {
	title := numbered(c.kind.Title, n)
	m := p.call("spawn_agent", title, numbered(c.kind.Prompt, n))
	m.ChildSessionID = c.session
	p.bindCall(c, m, s.Foreground)
	applied := p.rt.apply(agent.ChildStarted{
		Session: c.session, Turn: c.turn, Parent: p.session, ParentTurn: p.turn, Call: m.CallID,
		Title: title, Prompt: numbered(c.kind.Prompt, n), AgentType: c.kind.Type, Model: c.kind.Model,
		Handles: agent.Handles{ThreadID: "demo-" + string(c.session)},
	})
	if p.play.script.Twice {
		p.rt.apply(agent.ChildStarted{Session: c.session, Turn: c.turn, Parent: p.session, ParentTurn: p.turn, Call: m.CallID})
	}
	if applied.Verdict == agent.VerdictRefused || p.rt.over {
		c.halt()
		c.ended = true
		p.kids--
		p.awaits = nil
		return false
	}
	c.bound, p.play.spawned = true, true
	p.rt.children[c.kind.Name] = c
	p.report(agent.MessagePut{Message: m})
	for _, f := range c.held {
		f()
	}
	c.held = nil
	return true
}

// bindCall ends the delegation call at once, or keeps it open for a foreground agent.
func (p *player) bindCall(c *player, m agent.Message, foreground bool) {
	m.Status = agent.MessageCompleted
	m.Output = "Started."
	if foreground {
		m.Status, m.Output = agent.MessageStreaming, ""
		p.awaits, p.awaitCall = c, m
	}
}

func numbered(text string, n int) string { return strings.ReplaceAll(text, "{n}", strconv.Itoa(n)) }

func (Join) play(p *player) bool {
	p.joining = p.kids > 0
	return !p.joining
}

func (s Use) play(p *player) bool {
	p.usage = p.usage.Add(s.Usage)
	p.report(agent.UsageReported{Session: p.session, Turn: p.turn, Usage: p.usage})
	return true
}

func (s Resume) play(p *player) bool {
	old := p.rt.children[s.Agent]
	if old == nil || !old.ended {
		p.rt.sink.Diagnose(provider.Diagnostic{Kind: provider.Refused, Method: "resume", Detail: "agent " + s.Agent})
		return true
	}
	c := &player{rt: p.rt, play: p.play, parent: p, kind: old.kind, session: old.session, turn: p.rt.sink.Mint().Turn(), bound: true}
	c.push(s.Steps)
	applied := p.report(agent.TurnStarted{Session: c.session, Turn: c.turn, NativeID: "turn-" + string(c.turn), Trigger: agent.TriggerDelegation})
	if applied.Verdict == agent.VerdictRefused {
		return true
	}
	p.kids++
	p.play.spawned = true
	p.play.agents = append(p.play.agents, c)
	p.rt.children[s.Agent] = c
	c.later(200*time.Millisecond, c.next)
	return true
}

func (s Unasked) play(p *player) bool {
	pl := &play{script: p.play.script}
	applied, err := p.rt.begin(pl, s.Steps, nil)
	if err != nil {
		return false
	}
	if applied.Verdict == agent.VerdictRefused { // as a real adapter: interrupt it, and count it
		p.rt.sink.Diagnose(provider.Diagnostic{Kind: provider.Refused, Method: "unasked", Detail: string(applied.Code)})
		return true
	}
	p.rt.plays = append(p.rt.plays, pl)
	return true
}

func (Garbage) play(p *player) bool {
	p.rt.sink.Diagnose(provider.Diagnostic{Kind: provider.Malformed, Method: "garbage", Detail: "no frame of ours"})
	return true
}

func (Die) play(p *player) bool {
	p.rt.end(agent.Errorf(agent.CodeProviderGone, "the demo agent's process ended in the middle of its work"))
	return false
}

func (s End) play(p *player) bool {
	var err *agent.Error
	if s.Outcome == agent.OutcomeFailed {
		err = agent.Errorf(agent.CodeProviderRefused, "%s", cmp.Or(s.Reason, "the agent failed"))
	}
	p.finish(s.Outcome, err)
	return len(p.stack) > 0 // what is left comes late
}

// guidance is what a person's message during the turn causes.
func guidance(s *Script, text string) []Step {
	if s.Guidance == nil {
		return []Step{Say{agent.MessageText, fmt.Sprintf("Noted: “%s”. I'll take it into account.", text)}}
	}
	steps := make([]Step, len(s.Guidance))
	for i, step := range s.Guidance {
		if say, ok := step.(Say); ok {
			say.Text = strings.ReplaceAll(say.Text, "{text}", text)
			step = say
		}
		steps[i] = step
	}
	return steps
}
