package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// parts are what the puppet plays in each case of the conformance suite.
var parts = map[string]func(p *puppet){
	"plain":            func(p *puppet) { p.onTurn = turns(p.plain) },
	"child":            waitFor(acp.StopEndTurn, "one"),
	"two-in-order":     waitFor(acp.StopEndTurn, "one", "two"),
	"two-in-reverse":   waitFor(acp.StopEndTurn, "one", "two"),
	"failing-child":    waitFor(acp.StopError, "one"),
	"cancel-root":      waitFor(acp.StopEndTurn, "one", "two"),
	"cancel-child":     waitFor(acp.StopEndTurn, "one", "two"),
	"close":            waitFor(acp.StopEndTurn, "one", "two"),
	"forget":           waitFor(acp.StopEndTurn, "one", "two"),
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
			p.withdraw()
			p.says("one", "[one] went on")
			p.end("one", acp.StopEndTurn)
			p.done("[root] done")
		}
	},
	"root-approval": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(rootSession, "[root] hello")
			p.ask(rootSession, func(acp.PermissionOutcome) { p.done("[root] ran") })
		})
	},
	"unknown-answer": func(p *puppet) { p.onTurn = turns(p.plain) },
	"cancel-settled-child": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.delegate("one", rootSession)
			p.says(rootSession, "[root] hello")
			p.end("one", acp.StopEndTurn)
			p.points["root"] = func() { p.done("[root] done") }
		})
	},
	"spawn-after-cancel": func(p *puppet) {
		waitFor(acp.StopEndTurn, "one", "two")(p)
		p.deaf = true
	},
	"unasked": func(p *puppet) {
		p.onTurn = turns(p.plain)
		p.points["unasked"] = func() {
			p.begin()
			p.done("[root] by the way")
		}
	},
	"unasked-after-cancel": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(rootSession, "[root] hello") })
		p.points["unasked"] = func() {
			p.begin()
			p.says(rootSession, "[root] by the way")
		}
	},
	"steer": func(p *puppet) {
		p.onTurn = turns(func(string) { p.says(rootSession, "[root] hello") })
		p.onSteer = func(string) {}
		p.points["root"] = func() { p.done("[root] noted") }
	},
	"resume":         func(p *puppet) { p.onTurn = turns(p.plain, func(string) { p.done("[root] again") }) },
	"canceled-open":  func(p *puppet) {},
	"death-root":     func(p *puppet) { p.onTurn = turns(func(string) { p.says(rootSession, "[root] hello") }) },
	"death-children": background,
	"death-idle":     func(p *puppet) { p.onTurn = turns(p.plain) },
	"late": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.delegate("one", rootSession)
			p.says(rootSession, "[root] hello")
			p.end(rootSession, acp.StopEndTurn)
			p.end("one", acp.StopEndTurn)
			p.says("one", "[one] late")
			p.state("one", acp.StateUpdate{State: acp.StateIdle, StopReason: acp.StopError})
		}, func(string) { p.done("[root] again") })
	},
	"garbage": func(p *puppet) {
		p.onTurn = turns(func(text string) {
			for _, line := range garbage {
				p.Play(json.RawMessage(line))
			}
			p.plain(text)
		})
	},
	"early": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says("one", "[one] hi")
			p.announce("one", rootSession)
			p.run("one")
			p.finish(acp.StopEndTurn, "one")
		})
	},
	"orphan": func(p *puppet) {
		p.onTurn = turns(func(string) {
			p.says(rootSession, "[root] hello")
			p.says("stray", "[stray] hi")
			p.done("[root] done")
		})
	},
}

func turns(f ...func(string)) []func(string) { return f }

// begin starts a turn of the root that nobody asked for.
func (p *puppet) begin() {
	p.live[rootSession] = true
	p.state(rootSession, acp.StateUpdate{State: acp.StateRunning})
}

// waitFor delegates to each and waits for all.
func waitFor(stop acp.StopReason, names ...string) func(p *puppet) {
	return func(p *puppet) {
		p.onTurn = turns(func(string) {
			for _, name := range names {
				p.delegate(name, rootSession)
			}
			p.finish(stop, names...)
		})
	}
}

func nested(p *puppet) {
	p.onTurn = turns(func(string) {
		p.delegate("one", rootSession)
		p.delegate("nested", "one")
		p.points["nested"] = func() {
			p.end("nested", acp.StopEndTurn)
			p.end("one", acp.StopEndTurn)
			p.done("[root] done")
		}
	})
}

func background(p *puppet) {
	p.onTurn = turns(func(string) {
		p.delegate("one", rootSession)
		p.end(rootSession, acp.StopEndTurn)
		p.points["one"] = func() { p.end("one", acp.StopEndTurn) }
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
			p.delegate("one", rootSession)
			p.ask("one", func(o acp.PermissionOutcome) {
				if o.OptionID == "yes" {
					p.says("one", allowed)
				} else {
					p.says("one", denied)
				}
				p.end("one", acp.StopEndTurn)
				p.done("[root] done")
			})
		})
	}
}

func TestConformance(t *testing.T) {
	without := map[int]map[string]string{
		acp.V1: {
			"duplicates":           "the protocol has no mark by which a repeated piece of text could be told from a new one",
			"unasked":              "the root has no state of its own in version 1: only a prompt is a turn",
			"unasked-after-cancel": "as unasked",
		},
		acp.V2: {"duplicates": "the protocol has no mark by which a repeated piece of text could be told from a new one"},
	}
	for _, version := range []int{acp.V1, acp.V2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			providertest.Run(t, providertest.Harness{Bubble: true, Without: without[version], New: func(t *testing.T, name string) providertest.Play {
				part, ok := parts[name]
				if !ok {
					t.Fatalf("the puppet has no part in %s", name)
				}
				p := newPuppet(version)
				part(p)
				return providertest.Play{Adapter: New(p.options()), Release: p.release, Kill: func() { p.End("signal: killed") }}
			}})
		})
	}
}

// options connect an adapter to the puppet; a second runtime finds it restarted.
func (p *puppet) options() Options {
	opened := false
	return Options{Agent: Agent{Name: "puppet", Version: p.version}, Connect: func(context.Context, provider.OpenParams) (Transport, error) {
		if opened {
			p.again()
		}
		opened = true
		l, err := p.Connect()
		if err != nil {
			return nil, err // not the typed nil
		}
		return l, nil
	}}
}

// playAgent is the test binary as an agent: it answers a prompt with one line.
func playAgent(in io.Reader, out io.Writer) int {
	var peer *wire.Peer
	peer = wire.NewPeer(in, out, wire.Options{Version: "2.0", Handler: func(f wire.Frame) {
		var result any = struct{}{}
		switch f.Method {
		case acp.MethodInitialize:
			result = acp.InitializeResponse{ProtocolVersion: acp.V1}
		case acp.MethodNewSession:
			result = acp.SessionResponse{SessionID: rootSession}
		case acp.MethodPrompt:
			_ = peer.Notify(acp.MethodUpdate, acp.SessionNotification{
				SessionID: rootSession, Update: acp.Say(acp.UpdateAgentChunk, &acp.MessageChunk{Content: acp.Text("hello from a process")}),
			})
			result = acp.PromptResponse{StopReason: acp.StopEndTurn}
		}
		if f.Kind == wire.KindRequest {
			_ = peer.Reply(f.ID, result)
		}
	}})
	if peer.Run() != nil {
		return 1
	}
	return 0
}
