package claude

import (
	"context"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// parts are what the puppet plays in each case of the conformance suite.
var parts = map[string]func(p *puppet){
	"plain":            func(p *puppet) { p.onTurn = turns(p.plain) },
	"unknown-answer":   func(p *puppet) { p.onTurn = turns(p.plain) },
	"death-idle":       func(p *puppet) { p.onTurn = turns(p.plain) },
	"canceled-open":    func(*puppet) {},
	"child":            waitFor(taskCompleted, "one"),
	"two-in-order":     waitFor(taskCompleted, "one", "two"),
	"two-in-reverse":   waitFor(taskCompleted, "one", "two"),
	"failing-child":    waitFor(taskFailed, "one"),
	"cancel-root":      waitFor(taskCompleted, "one", "two"),
	"close":            waitFor(taskCompleted, "one", "two"),
	"cancel-child":     stopOne,
	"forget":           stopOne,
	"root-first":       background,
	"death-children":   background,
	"approval-accept":  askFirst("[one] ran", "[one] skipped"),
	"approval-decline": askFirst("[one] ran", "[one] skipped"),
	"cancel-asking":    askFirst("", ""),
	"death-asking":     askFirst("", ""),
	"nested": func(p *puppet) {
		p.onTurn = turns(func(string) {
			one := p.delegate("one", nil, false)
			nested := p.delegate("nested", one, false)
			p.points["nested"] = func() {
				p.finish(nested, taskCompleted)
				p.finish(one, taskCompleted)
				p.done("[root] done")
			}
		})
	},
	"guide-children": func(p *puppet) {
		background(p)
		p.onTurn = append(p.onTurn, func(string) { p.done("[root] noted") })
	},
	"withdrawn": func(p *puppet) {
		askFirst("", "")(p)
		p.points["withdraw"] = func() {
			p.withdraw()
			p.says(p.kids["one"], "[one] went on")
			p.finish(p.kids["one"], taskCompleted)
			p.done("[root] done")
		}
	},
	"root-approval": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(nil, "[root] hello")
			p.ask(nil, func(string) { p.done("[root] ran") })
		})
	},
	"cancel-settled-child": func(p *puppet) {
		p.onTurn = turns(func(string) {
			one := p.delegate("one", nil, true)
			p.says(nil, "[root] hello")
			p.finish(one, taskCompleted)
			p.notice = 0 // the root reads it at its next step
			p.points["root"] = func() { p.done("[root] done") }
		})
	},
	"spawn-after-cancel": func(p *puppet) {
		waitFor(taskCompleted, "one", "two")(p)
		p.deaf = true
	},
	"unasked": func(p *puppet) {
		p.onTurn = turns(p.plain)
		p.points["unasked"] = func() {
			p.state(stateRunning)
			p.begin()
			p.done("[root] by the way")
		}
	},
	"unasked-after-cancel": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(nil, "[root] hello") })
		p.points["unasked"] = func() {
			p.state(stateRunning)
			p.begin()
			p.says(nil, "[root] by the way")
		}
	},
	"steer": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(nil, "[root] hello") })
		p.points["root"] = func() {
			p.fold()
			p.done("[root] noted")
		}
	},
	"resume":     func(p *puppet) { p.onTurn = turns(p.plain, func(string) { p.done("[root] again") }) },
	"death-root": func(p *puppet) { p.onTurn = turns(func(string) { p.says(nil, "[root] hello") }) },
	"late": func(p *puppet) {
		p.quiet = true
		p.onTurn = turns(func(string) {
			one := p.delegate("one", nil, true)
			p.says(nil, "[root] hello")
			p.done("")
			p.finish(one, taskCompleted)
			p.says(one, "[one] late")
			p.emit("system/task_notification", fields{"task_id": one.task, "run_id": one.run, "tool_use_id": one.call, "status": taskFailed})
			p.follow()
		}, func(string) { p.done("[root] again") })
	},
	"duplicates": func(p *puppet) {
		waitFor(taskCompleted, "one")(p)
		p.twice = true
	},
	"garbage": func(p *puppet) {
		p.onTurn = turns(func(text string) {
			for _, l := range garbage {
				p.push(l)
			}
			p.plain(text)
		})
	},
	"early": func(p *puppet) {
		p.onTurn = turns(func(string) {
			one := &kid{name: "one", call: "toolu_one", task: "aone"}
			p.says(one, "[one] hi")
			one = p.edge("one", nil, false)
			p.started(one)
			p.join(taskCompleted, "one")
		})
	},
	"orphan": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(nil, "[root] hello")
			stray := &kid{name: "stray", call: "toolu_stray", task: "astray"}
			p.says(stray, "[stray] hi")
			p.emit("system/task_notification", fields{"task_id": stray.task, "run_id": "r", "tool_use_id": stray.call, "status": taskCompleted})
			p.done("[root] done")
		})
	},
}

func turns(f ...func(string)) []func(string) { return f }

// waitFor delegates to each in the foreground and waits for all.
func waitFor(status string, names ...string) func(p *puppet) {
	return func(p *puppet) {
		p.onTurn = turns(func(string) {
			for _, name := range names {
				p.delegate(name, nil, false)
			}
			p.join(status, names...)
		})
	}
}

// stopOne is two children, one of which is stopped.
func stopOne(p *puppet) {
	waitFor(taskCompleted, "one", "two")(p)
	p.points["stopped"] = func() { p.joined([]string{"one", "two"}) }
}

// background is a child that outlives its root's turn; nothing follows its end.
func background(p *puppet) {
	p.quiet = true
	p.onTurn = turns(func(string) {
		one := p.delegate("one", nil, true)
		p.done("[root] launched")
		p.points["one"] = func() {
			p.finish(one, taskCompleted)
			p.follow()
		}
	})
}

// askFirst is a child that asks; empty words mean that it waits for ever.
func askFirst(allowed, denied string) func(p *puppet) {
	return func(p *puppet) {
		p.onTurn = turns(func(string) {
			one := p.delegate("one", nil, false)
			p.ask(one, func(behavior string) {
				words := denied
				if behavior == "allow" {
					words = allowed
				}
				p.says(one, words)
				p.finish(one, taskCompleted)
				p.done("[root] done")
			})
		})
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{Reserves: true, New: func(t *testing.T, name string) providertest.Play {
		part, ok := parts[name]
		if !ok {
			t.Fatalf("the puppet has no part in %s", name)
		}
		p := newPuppet()
		part(p)
		opened := false
		return providertest.Play{
			Adapter: New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) {
				if opened {
					p.again()
				}
				opened = true
				return p, nil
			}}),
			Release: p.release,
			Kill:    func() { p.kill("signal: killed") },
		}
	}})
}
