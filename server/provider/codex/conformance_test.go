package codex

import (
	"context"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// parts are what the puppet plays in each case of the conformance suite.
var parts = map[string]func(p *puppet){
	"plain":            func(p *puppet) { p.onTurn = turns(p.plain) },
	"child":            waitFor(statusCompleted, "one"),
	"two-in-order":     waitFor(statusCompleted, "one", "two"),
	"two-in-reverse":   waitFor(statusCompleted, "one", "two"),
	"failing-child":    waitFor(statusFailed, "one"),
	"cancel-root":      waitFor(statusCompleted, "one", "two"),
	"cancel-child":     waitFor(statusCompleted, "one", "two"),
	"close":            waitFor(statusCompleted, "one", "two"),
	"forget":           waitFor(statusCompleted, "one", "two"),
	"nested":           nested,
	"root-first":       background,
	"guide-children":   guideChildren,
	"approval-accept":  asking("[one] ran", "[one] skipped"),
	"approval-decline": asking("[one] ran", "[one] skipped"),
	"cancel-asking":    asking("", ""),
	"death-asking":     asking("", ""),
	"withdrawn": func(p *puppet) {
		asking("", "")(p)
		p.points["withdraw"] = func() {
			p.withdraw("one")
			p.says("one", "[one] went on")
			p.end("one", statusCompleted)
			p.done("[root] done")
		}
	},
	"root-approval": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(rootThread, "[root] hello")
			p.ask(rootThread, func(string) { p.done("[root] ran") })
		})
	},
	"unknown-answer": func(p *puppet) { p.onTurn = turns(p.plain) },
	"cancel-settled-child": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.delegate("one", rootThread)
			p.says(rootThread, "[root] hello")
			p.end("one", statusCompleted)
			p.points["root"] = func() { p.done("[root] done") }
		})
	},
	"spawn-after-cancel": func(p *puppet) {
		waitFor(statusCompleted, "one", "two")(p)
		p.deaf = true
	},
	"unasked": func(p *puppet) {
		p.onTurn = turns(p.plain)
		p.points["unasked"] = func() {
			p.begin("goal")
			p.done("[root] by the way")
		}
	},
	"unasked-after-cancel": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(rootThread, "[root] hello") })
		p.points["unasked"] = func() {
			p.begin("goal")
			p.says(rootThread, "[root] by the way")
		}
	},
	"steer": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(rootThread, "[root] hello") })
		p.onSteer = func(string) {}
		p.points["root"] = func() { p.done("[root] noted") }
	},
	"resume":         func(p *puppet) { p.onTurn = turns(p.plain, func(string) { p.done("[root] again") }) },
	"canceled-open":  func(p *puppet) {},
	"death-root":     func(p *puppet) { p.onTurn = turns(func(string) { p.says(rootThread, "[root] hello") }) },
	"death-children": background,
	"death-idle":     func(p *puppet) { p.onTurn = turns(p.plain) },
	"late": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.delegate("one", rootThread)
			p.says(rootThread, "[root] hello")
			p.end(rootThread, statusCompleted)
			p.end("one", statusCompleted)
			p.emit(said("one", "one-turn", "late", "[one] late")...)
			p.emit(completed("one", "one-turn", "r1", statusFailed))
		}, func(string) { p.done("[root] again") })
	},
	"duplicates": func(p *puppet) {
		waitFor(statusCompleted, "one")(p)
		p.twice = true
	},
	"garbage": func(p *puppet) {
		p.onTurn = turns(func(text string) {
			p.emit(garbage...)
			p.plain(text)
		})
	},
	"early": func(p *puppet) {
		p.onTurn = turns(func(string) {
			edge := p.edge("one", rootThread)
			p.emit(edge[0])
			p.start("one", rootThread)
			p.says("one", "[one] hi")
			p.emit(edge[1])
			p.finish(statusCompleted, "one")
		})
	},
	"orphan": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(rootThread, "[root] hello")
			p.emit(started("stray", "s1", "of-another-root"))
			p.emit(said("stray", "s1", "m", "[stray] hi")...)
			p.done("[root] done")
		})
	},
}

func turns(f ...func(string)) []func(string) { return f }

// waitFor delegates to each and waits for all.
func waitFor(status string, names ...string) func(p *puppet) {
	return func(p *puppet) {
		p.onTurn = turns(func(string) {
			for _, name := range names {
				p.delegate(name, rootThread)
			}
			p.finish(status, names...)
		})
	}
}

func nested(p *puppet) {
	p.onTurn = turns(func(string) {
		p.delegate("one", rootThread)
		p.delegate("nested", "one")
		p.points["nested"] = func() {
			p.end("nested", statusCompleted)
			p.end("one", statusCompleted)
			p.done("[root] done")
		}
	})
}

func background(p *puppet) {
	p.onTurn = turns(func(string) {
		p.delegate("one", rootThread)
		p.end(rootThread, statusCompleted)
		p.points["one"] = func() { p.end("one", statusCompleted) }
	})
}

func guideChildren(p *puppet) {
	background(p)
	p.onTurn = append(p.onTurn, func(string) { p.done("[root] noted") })
}

// asking is a child that asks; empty words mean that it waits for ever.
func asking(allowed, denied string) func(p *puppet) {
	return func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.delegate("one", rootThread)
			p.ask("one", func(decision string) {
				if decision == "accept" {
					p.says("one", allowed)
				} else {
					p.says("one", denied)
				}
				p.end("one", statusCompleted)
				p.done("[root] done")
			})
		})
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{New: func(t *testing.T, name string) providertest.Play {
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
			Kill:    func() { p.server.end("signal: killed") },
		}
	}})
}
