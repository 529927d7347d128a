package demo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Parse reads one scenario (see the package comment for the language). All mistakes are
// reported, each with its line.
func Parse(id, text string) (*Script, error) {
	p := parser{script: &Script{ID: id, Agents: map[string]*Agent{}}}
	for _, n := range outline(text) {
		p.top(n)
	}
	if len(p.script.Root) == 0 && len(p.errs) == 0 {
		p.errs = append(p.errs, errors.New("there is no root"))
	}
	p.checkSpawns()
	if len(p.errs) > 0 {
		return nil, fmt.Errorf("scenario %s: %w", id, errors.Join(p.errs...))
	}
	return p.script, nil
}

// node is one line with the lines that stand below it, indented further.
type node struct {
	line       int
	verb, rest string
	text       string // the whole line without its indentation
	below      []node
	raw        string // everything below as it was written, without the common indentation
}

// outline reads the text into nodes.
func outline(text string) []node {
	lines := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	nodes, _ := nodesFrom(lines, 0, -1)
	return nodes
}

// nodesFrom reads the nodes that start at line i and are indented deeper than outer.
func nodesFrom(lines []string, i, outer int) ([]node, int) {
	var nodes []node
	for i < len(lines) {
		if blank(lines[i]) {
			i++
			continue
		}
		in := indent(lines[i])
		if in <= outer {
			return nodes, i
		}
		n := node{line: i + 1, text: strings.TrimSpace(lines[i])}
		n.verb, n.rest, _ = strings.Cut(n.text, " ")
		n.rest = strings.TrimSpace(n.rest)
		start := i + 1
		n.below, i = nodesFrom(lines, start, in)
		n.raw = rawBlock(lines[start:i])
		nodes = append(nodes, n)
	}
	return nodes, i
}

// rawBlock joins lines as they were written, less the indentation of the first.
func rawBlock(lines []string) string {
	var b strings.Builder
	margin := -1
	for i, l := range lines {
		if margin < 0 && strings.TrimSpace(l) != "" {
			margin = indent(l)
			if i > 0 {
				b.WriteString("\n") // a blank line first: a new paragraph
			}
		}
		if margin >= 0 {
			b.WriteString(strings.TrimRight(l[min(margin, indent(l)):], " ") + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }

func blank(l string) bool {
	l = strings.TrimSpace(l)
	return l == "" || strings.HasPrefix(l, "#")
}

type parser struct {
	script *Script
	spawns []node // to be checked once every agent is known
	errs   []error
}

func (p *parser) fail(n node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("line %d: %s", n.line, fmt.Sprintf(format, args...)))
}

func (p *parser) top(n node) {
	switch n.verb {
	case "title":
		p.script.Title = n.rest
	case "about":
		p.script.About = n.rest
	case "root":
		p.script.Root = p.steps(n.below)
	case "agent":
		p.agent(n)
	case "guidance":
		p.script.Guidance = p.steps(n.below)
	case "after":
		p.after(n)
	case "ignores":
		p.script.IgnoresCancel = true
	case "every":
		p.script.Twice = true
	default:
		p.fail(n, "%q cannot stand here", n.verb)
	}
}

func (p *parser) agent(n node) {
	a := &Agent{Name: n.rest, Title: n.rest}
	if p.script.Agents[a.Name] != nil {
		p.fail(n, "agent %q is there twice", a.Name)
	}
	for i, s := range n.below {
		switch s.verb {
		case "title":
			a.Title = s.rest
		case "type":
			a.Type = s.rest
		case "model":
			a.Model = s.rest
		case "prompt":
			a.Prompt = join(s.rest, s.raw)
		case "ignores":
			a.IgnoresCancel = true
		default:
			a.Steps = p.steps(n.below[i:])
			p.script.Agents[a.Name] = a
			return
		}
	}
	p.script.Agents[a.Name] = a
}

func (p *parser) after(n node) {
	a := &After{Steps: p.steps(n.below)}
	words := strings.Fields(n.rest)
	switch {
	case len(words) == 1 && words[0] == "children":
	case len(words) == 3 && words[0] == "children" && words[1] == "reserved":
		a.Reserved = p.duration(n, words[2])
	default:
		p.fail(n, "want \"after children\" or \"after children reserved 30s\"")
	}
	p.script.After = a
}

func (p *parser) steps(nodes []node) []Step {
	var steps []Step
	for _, n := range nodes {
		if s := p.step(n); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

func (p *parser) step(n node) Step {
	switch n.verb {
	case "say":
		return Say{agent.MessageText, join(n.rest, n.raw)}
	case "think":
		return Say{agent.MessageThinking, join(n.rest, n.raw)}
	case "tool":
		return p.tool(n)
	case "wait":
		return Wait{p.duration(n, n.rest)}
	case "spawn", "orphan":
		return p.spawn(n)
	case "join":
		return Join{}
	case "ask":
		return p.ask(n)
	case "usage":
		return p.usage(n)
	case "resume":
		p.spawns = append(p.spawns, n)
		return Resume{n.rest, p.steps(n.below)}
	case "unasked":
		return Unasked{p.steps(n.below)}
	case "garbage":
		return Garbage{}
	case "die":
		return Die{}
	case "fail":
		return End{agent.OutcomeFailed, n.rest}
	case "stop":
		return End{Outcome: agent.OutcomeInterrupted}
	case "end":
		return End{Outcome: agent.OutcomeCompleted}
	}
	p.fail(n, "there is no step %q", n.verb)
	return nil
}

func (p *parser) tool(n node) Step {
	t := Tool{Took: 600 * time.Millisecond}
	t.Name, t.Input, _ = strings.Cut(n.rest, " ")
	var out []string
	for _, s := range n.below {
		switch {
		case s.verb == "took":
			t.Took = p.duration(s, s.rest)
		case s.verb == "fails":
			t.Fails = true
		case s.verb == "stays":
			t.Stays = true
		case strings.HasPrefix(s.text, ">"):
			out = append(out, strings.TrimPrefix(strings.TrimPrefix(s.text, ">"), " "))
		default:
			p.fail(s, "a tool has: took, fails, stays, > output; not %q", s.verb)
		}
	}
	t.Output = strings.Join(out, "\n")
	return t
}

func (p *parser) spawn(n node) Step {
	words := strings.Fields(n.rest)
	if len(words) == 0 {
		p.fail(n, "%s whom?", n.verb)
		return nil
	}
	p.spawns = append(p.spawns, node{line: n.line, rest: words[0]})
	s := Spawn{Agent: words[0], Times: 1, Orphan: n.verb == "orphan"}
	for i := 1; i < len(words); i++ {
		switch {
		case words[i] == "foreground":
			s.Foreground = true
		case words[i] == "times" && i+1 < len(words):
			i++
			times, err := strconv.Atoi(words[i])
			if err != nil || times < 1 {
				p.fail(n, "how many times is %q?", words[i])
			}
			s.Times = times
		case words[i] == "late" && i+1 < len(words):
			i++
			s.Late = p.duration(n, words[i])
		default:
			p.fail(n, "spawn takes: foreground, times N, late DURATION; not %q", words[i])
		}
	}
	return s
}

func (p *parser) ask(n node) Step {
	kind, title, _ := strings.Cut(n.rest, " ")
	a := Ask{Kind: agent.InteractionKind(kind), Title: strings.TrimSpace(title)}
	switch a.Kind {
	case agent.InteractionApproval, agent.InteractionQuestion, agent.InteractionPlan, agent.InteractionElicitation:
	default:
		p.fail(n, "ask approval, question, plan or elicitation; not %q", kind)
	}
	for _, s := range n.below {
		p.askPart(&a, s)
	}
	if len(a.Choices) == 0 && len(a.Detail.Questions) == 0 {
		p.fail(n, "ask offers no choice")
	}
	return a
}

func (p *parser) askPart(a *Ask, n node) {
	switch n.verb {
	case "command":
		a.Detail.Command = join(n.rest, n.raw)
	case "cwd":
		a.Detail.Cwd = n.rest
	case "reason":
		a.Detail.Reason = n.rest
	case "text":
		a.Detail.Text = join(n.rest, n.raw)
	case "diff":
		a.Detail.Diff = join(n.rest, n.raw)
	case "withdraw":
		a.Withdraw = p.duration(n, n.rest)
	case "question":
		id, text, _ := strings.Cut(n.rest, " ")
		q := agent.Question{ID: id, Text: text, Options: []agent.Option{}}
		for _, c := range n.below {
			q.Options = append(q.Options, agent.Option{ID: slug(c.rest), Label: c.rest, Role: agent.RoleOther})
		}
		a.Detail.Questions = append(a.Detail.Questions, q)
	case agent.RoleAllow, agent.RoleAllowAlways, agent.RoleDeny, agent.RoleAbort, agent.RoleOther:
		id := n.verb
		if id == agent.RoleOther {
			id = slug(n.rest)
		}
		a.Choices = append(a.Choices, Choice{agent.Option{ID: id, Label: n.rest, Role: n.verb}, p.steps(n.below)})
	default:
		p.fail(n, "ask has no part %q", n.verb)
	}
}

func (p *parser) usage(n node) Step {
	var u agent.Usage
	for _, word := range strings.Fields(n.rest) {
		name, value, _ := strings.Cut(word, "=")
		count, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			p.fail(n, "%q is no number", value)
		}
		switch name {
		case "input":
			u.InputTokens = count
		case "cached":
			u.CachedInputTokens = count
		case "output":
			u.OutputTokens = count
		case "reasoning":
			u.ReasoningTokens = count
		case "cost":
			u.CostMicros = count
		default:
			p.fail(n, "usage counts input, cached, output, reasoning, cost; not %q", name)
		}
	}
	return Use{u}
}

func (p *parser) duration(n node, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		p.fail(n, "%q is no duration; write 500ms or 2s", s)
	}
	return d
}

// checkSpawns reports agents that are used and described nowhere.
func (p *parser) checkSpawns() {
	for _, n := range p.spawns {
		if p.script.Agents[n.rest] == nil {
			p.fail(n, "no agent is called %q", n.rest)
		}
	}
}

// join puts what stands on a line before what stands below it.
func join(rest, raw string) string {
	switch {
	case raw == "":
		return rest
	case rest == "":
		return raw
	}
	return rest + "\n" + raw
}

func slug(label string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(label), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}
