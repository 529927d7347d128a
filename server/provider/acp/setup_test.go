package acp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// offering makes the puppet's session offer modes and options.
func (p *puppet) offering() {
	p.onHeard = func(m line) bool {
		switch m.Method {
		case acp.MethodNewSession:
			select1 := func(id, category, current string, values ...string) acp.ConfigOption {
				o := acp.ConfigOption{ID: id, ConfigID: id, Name: id, Category: category, Type: "select", CurrentValue: json.RawMessage(`"` + current + `"`)}
				for _, v := range values {
					o.Options = append(o.Options, acp.ConfigChoice{Value: v, Name: v})
				}
				return o
			}
			got := acp.SessionResponse{SessionID: rootSession, ConfigOptions: []acp.ConfigOption{select1("model", "model", "small", "small", "big")}}
			if p.version == acp.V1 {
				got.Modes = &acp.ModeState{CurrentModeID: "auto", AvailableModes: []acp.Mode{{ID: "auto"}, {ID: "ask"}}}
			} else {
				got.ConfigOptions = append(got.ConfigOptions, select1("m", "mode", "auto", "auto", "ask"))
			}
			p.reply(m.ID, got)
			return true
		case acp.MethodSetMode:
			p.reply(m.ID, struct{}{})
			return true
		case acp.MethodSetConfigOption:
			var q acp.SetConfigOptionRequest
			_ = json.Unmarshal(m.Params, &q)
			if q.Value == "none" {
				p.refuse(m.ID, -32602, "no such value")
				return true
			}
			p.reply(m.ID, struct{}{})
			return true
		}
		return false
	}
}

// written is the parameters of the one request of that method.
func (s *stage) written(method string) string {
	s.t.Helper()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	out := ""
	for _, m := range s.p.heard {
		if m.Method == method {
			out += string(m.Params)
		}
	}
	return out
}

// setting runs a test with a stage that is not open.
func setting(t *testing.T, versions []int, f func(s *stage)) {
	t.Helper()
	for _, v := range versions {
		t.Run(map[int]string{acp.V1: "v1", acp.V2: "v2"}[v], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, v)
				s.p.onTurn = turns(func(string) {})
				f(s)
				s.close()
			})
		})
	}
}

// The mode is set, so that the agent's own classifier does not decide in the person's
// place; so is the model.
func TestModeAndModelAreSet(t *testing.T) {
	setting(t, both, func(s *stage) {
		s.p.offering()
		s.root.PermissionMode, s.root.Model = "ask", "big"
		s.open()
		got := s.written(acp.MethodSetMode) + s.written(acp.MethodSetConfigOption)
		want := `{"sessionId":"R","modeId":"ask"}{"sessionId":"R","configId":"model","value":"big"}`
		if s.p.version == acp.V2 {
			want = `{"sessionId":"R","configId":"m","type":"id","value":"ask"}{"sessionId":"R","configId":"model","type":"id","value":"big"}`
		}
		if got != want {
			s.t.Errorf("written: %s", got)
		}
	})
}

// The entry's own mode is set where the person has named none; where the agent lacks it the
// session begins all the same. A mode that the person named must be there.
func TestModesThatAreNotThere(t *testing.T) {
	setting(t, both, func(s *stage) {
		s.p.offering()
		s.o.Mode = "ask"
		s.open()
		if got := s.written(acp.MethodSetMode) + s.written(acp.MethodSetConfigOption); !strings.Contains(got, `"ask"`) {
			s.t.Errorf("written: %s", got)
		}
	})
	setting(t, one, func(s *stage) {
		s.o.Mode = "ask" // the puppet has no modes
		s.open()
	})
	setting(t, both, func(s *stage) {
		s.p.offering()
		s.root.PermissionMode = "none"
		if err := s.tryOpen(); err == nil || s.Lost() != 0 {
			s.t.Errorf("Open: %v, lost %d", err, s.Lost())
		}
	})
}

// Subagents are opted in always: without that, a stop of the root would spare children that
// nobody sees, and a late approval would still be carried out.
func TestSubagentsAreOptedIn(t *testing.T) {
	setting(t, both, func(s *stage) {
		s.open()
		var q acp.InitializeRequest
		if err := json.Unmarshal([]byte(s.written(acp.MethodInitialize)), &q); err != nil {
			s.t.Fatal(err)
		}
		if q.ClientCapabilities.Subagents == nil || q.ProtocolVersion != s.p.version || q.ClientInfo == nil || q.Info == nil || !q.ClientCapabilities.FS.ReadTextFile {
			s.t.Errorf("%+v", q)
		}
	})
}

// Version 2 is spoken where the agent has only that, however it says so.
func TestVersionTwoWhereOnlyThatIsOffered(t *testing.T) {
	for name, hello := range map[string]func(p *puppet, m line) bool{
		"answered": func(*puppet, line) bool { return false },
		"refused": func(p *puppet, m line) bool {
			var q acp.InitializeRequest
			_ = json.Unmarshal(m.Params, &q)
			if m.Method != acp.MethodInitialize || q.ProtocolVersion == acp.V2 {
				return false
			}
			p.Play([]byte(`{"id":` + string(m.ID) + `,"error":{"code":-32022,"message":"unsupported","data":{"requested":1,"supported":[2]}}}`))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			setting(t, two, func(s *stage) {
				s.o.Version = acp.V1
				s.p.onHeard = func(m line) bool { return hello(s.p, m) }
				s.open()
				s.start()
				s.does(func(p *puppet) { p.done("done") })
				s.rooted(agent.OutcomeCompleted)
			})
		})
	}
}

// A version that nobody knows, and an agent that wants a sign-in, are told in words.
func TestAgentsThatCannotBeUsed(t *testing.T) {
	setting(t, one, func(s *stage) {
		s.p.onHeard = func(m line) bool {
			s.p.reply(m.ID, map[string]any{"protocolVersion": 7})
			return true
		}
		if err := s.tryOpen(); !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) || !strings.Contains(err.Error(), "version 7") {
			s.t.Errorf("Open: %v", err)
		}
	})
	setting(t, both, func(s *stage) {
		s.p.onHeard = func(m line) bool {
			if m.Method == acp.MethodInitialize {
				s.p.reply(m.ID, map[string]any{"protocolVersion": s.p.version, "authMethods": []any{map[string]any{"id": "x", "methodId": "x", "name": "Log in with x"}}})
			} else {
				s.p.Play([]byte(`{"id":` + string(m.ID) + `,"error":{"code":-32000,"message":"Authentication required","data":{"details":"no key"}}}`))
			}
			return true
		}
		err := s.tryOpen()
		if !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) || !strings.Contains(err.Error(), "no key (Log in with x)") {
			s.t.Errorf("Open: %v", err)
		}
	})
	setting(t, one, func(s *stage) {
		s.p.onHeard = func(line) bool { s.p.End("exit 3: no such model"); return true }
		if err := s.tryOpen(); err == nil || !strings.Contains(err.Error(), "exit 3: no such model") {
			s.t.Errorf("Open: %v", err)
		}
	})
	setting(t, one, func(s *stage) {
		s.p.onHeard = func(line) bool { return true } // says nothing
		if err := s.tryOpen(); !errors.Is(err, &agent.Error{Code: agent.CodeTimeout}) {
			s.t.Errorf("Open: %v", err)
		}
	})
}

// What sessions tell of the agent is on its card from then on.
func TestTheCardLearns(t *testing.T) {
	setting(t, both, func(s *stage) {
		s.p.offering()
		a := New(s.o)
		before := a.Probe(s.t.Context())
		s.Sink = providertest.NewSink(s.t, s.root)
		rt, err := a.Open(s.t.Context(), s.OpenParams(), s.Sink)
		if err != nil {
			s.t.Fatal(err)
		}
		s.rt = rt.(*runtime)
		after := a.Probe(s.t.Context())
		if len(before.Models) != 0 || strings.Join(after.Models, ",") != "small,big" || strings.Join(after.PermissionModes, ",") != "auto,ask" || after.Version != "1" {
			s.t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

// The agent's own list of conversations, page by page, and a copy of this one: roots only,
// and a copy grants nothing here.
func TestListAndFork(t *testing.T) {
	setting(t, both, func(s *stage) {
		hello := func(m line) bool {
			if m.Method != acp.MethodInitialize {
				return false
			}
			caps := map[string]any{"list": acp.Empty{}, "fork": acp.Empty{}}
			s.p.reply(m.ID, map[string]any{
				"protocolVersion": s.p.version, "agentCapabilities": map[string]any{"sessionCapabilities": caps}, "capabilities": map[string]any{"session": caps},
			})
			return true
		}
		s.p.onHeard = func(m line) bool {
			switch m.Method {
			case acp.MethodListSessions:
				var q acp.ListSessionsRequest
				_ = json.Unmarshal(m.Params, &q)
				got := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{SessionID: "A" + q.Cursor, Cwd: q.Cwd}}}
				if q.Cursor == "" {
					got.NextCursor = "2"
				}
				s.p.reply(m.ID, got)
				return true
			case acp.MethodForkSession:
				s.p.reply(m.ID, map[string]any{"sessionId": "copy"})
				return true
			}
			return hello(m)
		}
		s.open()
		got, err := s.rt.Sessions(s.t.Context())
		if err != nil || len(got) != 2 || got[1].SessionID != "A2" || got[0].Cwd != "/w" {
			s.t.Errorf("%+v %v", got, err)
		}
		s.start()
		s.does(func(p *puppet) { p.delegate("one", rootSession) })
		if id, err := s.rt.Fork(s.t.Context()); err != nil || id != "copy" {
			s.t.Errorf("%s %v", id, err)
		}
		s.does(func(p *puppet) {
			p.announce("copy:one", "copy")
			p.run("copy:one")
			p.end("one", acp.StopEndTurn)
			p.done("done")
		})
		s.rooted(agent.OutcomeCompleted)
		if n := len(s.View().Children()); n != 1 {
			s.t.Errorf("%d children", n)
		}
	})
	play(t, one, func(s *stage) {
		if _, err := s.rt.Fork(s.t.Context()); !errors.Is(err, &agent.Error{Code: agent.CodeProviderRefused}) {
			s.t.Errorf("Fork: %v", err)
		}
	})
}

func TestReadyMadeAgents(t *testing.T) {
	names := map[string]bool{}
	for _, a := range known {
		if names[a.Name] || a.Command == "" || a.Title == "" {
			t.Errorf("%+v", a)
		}
		names[a.Name] = true
	}
	for _, want := range []string{"codex-acp", "claude-agent-acp", "opencode", "gemini", "goose", "copilot"} {
		if _, ok := Known(want); !ok {
			t.Errorf("%s is missing", want)
		}
	}
	if found := Found(func(string) string { return "" }); len(found) == len(known) {
		t.Error("every agent is found where there is no PATH")
	}
	a, _ := Known("gemini")
	b := a.With(Agent{Command: "/opt/g", Args: []string{"x"}, Mode: "m", Version: 2, Inherits: []string{"Y"}})
	if b.Title != a.Title || b.Command != "/opt/g" || b.Args[0] != "x" || b.Mode != "m" || b.Version != 2 || b.Install != "" || len(b.Inherits) != len(a.Inherits)+1 {
		t.Errorf("%+v", b)
	}
	info := New(Options{Agent: Agent{Name: "nobody", Command: "no-such-agent", Install: "npm install -g nobody"}, Getenv: func(string) string { return "" }}).Probe(t.Context())
	if info.Found || !strings.Contains(info.Reason, "npm install -g nobody") || info.DisplayName != "nobody" {
		t.Errorf("%+v", info)
	}
}
