package main

import (
	"maps"

	"github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	"github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// vendor is in what the scripts of two programs differ.
type vendor interface {
	// launch starts children that the root does not wait for.
	launch(children ...string) modeltest.Reply
	// ask runs a command for which the person is asked.
	ask(command string) modeltest.ToolCall
	// sums are what a root says when children have ended after its own answer: the requests
	// that its program makes then by itself.
	sums(texts ...string) []modeltest.Reply
}

type codex struct{}

func (codex) launch(children ...string) (r modeltest.Reply) {
	for _, c := range children {
		r = append(r, codextest.V1.Spawn("call_"+c, c, "Look at it."))
	}
	return r
}

func (codex) ask(command string) modeltest.ToolCall {
	return codextest.AskShell("call_ask", command, "May I?")
}

func (codex) sums(...string) []modeltest.Reply { return nil }

type claude struct{}

func (claude) launch(children ...string) (r modeltest.Reply) {
	for _, c := range children {
		r = append(r, claudetest.Background("toolu_"+c, c, "Look at it."))
	}
	return r
}

func (claude) ask(command string) modeltest.ToolCall { return claudetest.Bash("toolu_ask", command) }

func (claude) sums(texts ...string) (all []modeltest.Reply) {
	for _, t := range texts {
		all = append(all, modeltest.Reply{modeltest.Say(t)})
	}
	return all
}

// scripts holds one scenario after another. A session plays the one whose mark stands in
// its first message; gates have the name of the agent that stands there.
func scripts(v vendor) modeltest.Script {
	all := modeltest.Script{}
	for _, s := range []modeltest.Script{lanes(v), stopOne(v), stopAll(v), guide(v), side(v)} {
		maps.Copy(all, s)
	}
	return all
}

// root answers and leaves its children at work; after them comes what more it has to say.
func root(v vendor, children []string, more ...modeltest.Reply) []modeltest.Reply {
	return append([]modeltest.Reply{v.launch(children...), {modeltest.Say("They are at work.")}}, more...)
}

func held(name, text string) []modeltest.Reply {
	return []modeltest.Reply{{modeltest.Gate(name), modeltest.Say(text)}}
}

// lanes: two children, of which the first asks for a permission.
func lanes(v vendor) modeltest.Script {
	return modeltest.Script{
		"lanes":   root(v, []string{"lanes-a", "lanes-b"}, v.sums("The first is done.", "Both are done.")...),
		"lanes-a": {{v.ask("touch allowed")}, {modeltest.Say("I was allowed to.")}},
		"lanes-b": held("lanes-b", "Nothing was found."),
	}
}

// stop-one: the first never ends by itself.
func stopOne(v vendor) modeltest.Script {
	return modeltest.Script{
		"stop-one":   root(v, []string{"stop-one-a", "stop-one-b"}, v.sums("One was stopped.", "The other is done.")...),
		"stop-one-a": held("stop-one-a", "Never said."),
		"stop-one-b": held("stop-one-b", "I went on."),
	}
}

// stop-all: nobody ends, and one has a question open.
func stopAll(v vendor) modeltest.Script {
	return modeltest.Script{
		"stop-all":   root(v, []string{"stop-all-a", "stop-all-b"}, modeltest.Reply{modeltest.Say("Here I am.")}),
		"stop-all-a": held("stop-all-a", "Never said."),
		"stop-all-b": {{v.ask("touch never")}, {modeltest.Say("Never said.")}},
	}
}

// guide: a message comes while only the child runs.
func guide(v vendor) modeltest.Script {
	more := append([]modeltest.Reply{{modeltest.Gate("guide"), modeltest.Say("Noted.")}}, v.sums("It is done.")...)
	return modeltest.Script{
		"guide":   root(v, []string{"guide-a"}, more...),
		"guide-a": held("guide-a", "Nothing was found."),
	}
}

// side: a session beside one of another program.
func side(v vendor) modeltest.Script {
	return modeltest.Script{
		"side":   root(v, []string{"side-a"}, v.sums("It is done.")...),
		"side-a": {{v.ask("touch allowed")}, {modeltest.Say("I was allowed to.")}},
	}
}
