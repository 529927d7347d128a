//go:build providers

package codex_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// tap stands between the adapter and its process: the test can ask the server things of
// its own, over the same line, and sees what the adapter writes.
type tap struct {
	t *testing.T

	mu      sync.Mutex
	process *proc.Process
	asked   int
	answers map[string]chan json.RawMessage
	onOut   func(method string)
	threads map[string]bool // that the server has named so far
	newest  chan string     // told of each new one, while there is room
}

func newTap(t *testing.T) *tap {
	return &tap{t: t, answers: map[string]chan json.RawMessage{}, threads: map[string]bool{}, newest: make(chan string, 1)}
}

func (p *tap) connect(_ context.Context, open provider.OpenParams) (codex.Transport, error) {
	process, err := proc.Start(proc.Config{
		Path: Binary(p.t), Args: []string{"app-server"}, Dir: open.Root.Cwd, Env: open.Env, Owner: p.t.Name(),
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
	return p, nil
}

func (p *tap) Read(b []byte) (int, error) { return p.process.Stdout().Read(b) }

// Write implements codex.Transport: one whole line.
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process.Stdin().Write(b)
}

func (p *tap) Close(ctx context.Context) error {
	_, err := p.process.Stop(ctx)
	return err
}

func (p *tap) Explain() string { return p.process.Exit().String() }

// record sees every line of both directions.
func (p *tap) record(dir string, line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Params struct {
			ThreadID string `json:"threadId"`
		} `json:"params"`
	}
	_ = json.Unmarshal(line, &m) // another shape is nobody's answer
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir == "out" {
		if p.onOut != nil && m.Method != "" {
			p.onOut(m.Method)
		}
		return
	}
	if id := m.Params.ThreadID; id != "" && !p.threads[id] {
		p.threads[id] = true
		select {
		case p.newest <- id:
		default:
		}
	}
	if answer := p.answers[string(m.ID)]; answer != nil && m.Method == "" {
		answer <- append(json.RawMessage(nil), m.Result...)
		delete(p.answers, string(m.ID))
	}
}

// ask calls a method of the server.
func (p *tap) ask(ctx context.Context, method, params string, result any) {
	p.t.Helper()
	p.mu.Lock()
	p.asked++
	id := fmt.Sprintf(`"tap-%d"`, p.asked)
	answer := make(chan json.RawMessage, 1)
	p.answers[id] = answer
	_, err := fmt.Fprintf(p.process.Stdin(), `{"id":%s,"method":%q,"params":%s}`+"\n", id, method, params)
	p.mu.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	select {
	case raw := <-answer:
		if err := json.Unmarshal(raw, result); err != nil {
			p.t.Fatalf("%s: %v in %s", method, err, raw)
		}
	case <-ctx.Done():
		p.t.Fatalf("%s was not answered", method)
	}
}

// running are the loaded threads that have a turn which runs.
func (r *real) running() (active []string, loaded int) {
	r.T.Helper()
	var list struct{ Data []string }
	r.tap.ask(r.Ctx, "thread/loaded/list", `{}`, &list)
	for _, id := range list.Data {
		var read struct {
			Thread struct{ Status struct{ Type string } }
		}
		r.tap.ask(r.Ctx, "thread/read", fmt.Sprintf(`{"threadId":%q}`, id), &read)
		if read.Thread.Status.Type == "active" {
			active = append(active, id)
		}
	}
	return active, len(list.Data)
}

// stops waits until no thread runs; each look is a round trip to the server.
func (r *real) stops() int {
	r.tap.t.Helper()
	for {
		active, loaded := r.running()
		if len(active) == 0 {
			return loaded
		}
		if r.Ctx.Err() != nil {
			r.tap.t.Fatalf("still running: %v", active)
		}
	}
}

// An interrupt races a spawn, thirty times: no child that came of it is left running,
// whether an edge named it or not.
func TestRealSpawnRacesAnInterrupt(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		const rounds, most = 30, 120
		script := Script{}
		for n := range most { // a stopped turn may have asked once more than it used
			script["root"] = append(script["root"], Reply{Gate(fmt.Sprintf("g%d", n+1)), v.Spawn(fmt.Sprintf("call_%d", n), fmt.Sprintf("c%d", n), "work")})
			script[fmt.Sprintf("c%d", n)] = []Reply{{Gate("never"), Say("x")}}
		}
		r := startTapped(t, script, Options{V2: v == V2, MaxThreads: 200})
		for round := range rounds {
			before := len(r.Model.Requests("root"))
			in := r.Say(fmt.Sprintf("Round %d", round))
			r.Must(r.Model.WaitRequests(r.Ctx, "root", before+1))
			sessions, messages := len(r.View().Sessions), len(r.View().Messages)
			select {
			case <-r.tap.newest: // of the round before
			default:
			}
			r.Model.Open(fmt.Sprintf("g%d", before+1))
			switch round % 5 { // the moments at which a person may press Stop
			case 1:
				r.Until("the spawn call is seen", func(v providertest.View) bool { return len(v.Messages) > messages })
			case 2:
				r.Until("the child is seen", func(v providertest.View) bool { return len(v.Sessions) > sessions })
			case 3:
				select { // the child is there; its edge may be on its way, or never come
				case <-r.tap.newest:
				case <-r.Ctx.Done():
					t.Fatal("no child")
				}
			case 4:
				r.Must(r.Model.WaitRequests(r.Ctx, fmt.Sprintf("c%d", before), 1))
			}
			r.Cancel(in.Turn)
			r.WantRoot(agent.OutcomeCanceled)
			r.stops()
		}
		loaded := r.stops()
		view := r.View()
		for _, u := range view.Turns {
			if u.Live() {
				t.Errorf("turn %s is %s", u.ID, u.Phase)
			}
		}
		t.Logf("%d threads at the server, %d sessions of ours: %d orphans; refused %d", loaded, len(view.Sessions), loaded-len(view.Sessions), r.Diagnosed(provider.Refused))
	})
}

// Stop comes before turn/started: right behind the request, and right behind its answer.
func TestRealInterruptBeforeTheTurnHasBegun(t *testing.T) {
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			r := startTapped(t, Script{"root": {{Gate("never"), Say("x")}, {Say("Here I am.")}}}, Options{})
			in := r.Submit(r.Root, "One")
			written := make(chan struct{}, 8)
			r.tap.mu.Lock()
			r.tap.onOut = func(method string) {
				if method == "turn/start" {
					written <- struct{}{}
				}
			}
			r.tap.mu.Unlock()
			begun := make(chan error, 1)
			go func() { begun <- r.Runtime.Start(r.Ctx, in) }()
			if round%2 == 0 {
				<-written
			} else {
				r.Must(<-begun)
			}
			r.Cancel(in.Turn)
			r.WantRoot(agent.OutcomeCanceled)
			r.stops()
		})
	}
}

// The server works for a goal by itself: a root turn with trigger provider. Once a person
// has stopped one, another that the server begins unasked is interrupted and not shown.
func TestRealGoal(t *testing.T) {
	r := startTapped(t, Script{"root": {
		{Say("Working on it.")},
		{Call("update_goal", map[string]any{"status": "complete"}).As("call_g")},
		{Say("Goal complete.")},
		{Gate("never"), Say("x")},
		{Gate("never"), Say("x")},
		{Say("Asked for.")},
	}}, Options{})
	thread := r.View().Root().ProviderSessionID
	goal := func(text string) {
		var any struct{}
		r.tap.ask(r.Ctx, "thread/goal/set", fmt.Sprintf(`{"threadId":%q,"objective":%q,"status":"active"}`, thread, text), &any)
	}
	goal("Write the report")
	r.Until("two turns of the server's own", func(v providertest.View) bool {
		return len(v.Turns) == 2 && v.Turns[0].Outcome == agent.OutcomeCompleted && v.Turns[1].Outcome == agent.OutcomeCompleted
	})
	goal("Write another one")
	view := r.Until("a third one", func(v providertest.View) bool { return len(v.Turns) == 3 })
	for _, u := range view.Turns {
		if u.Trigger != agent.TriggerProvider || u.SessionID != r.Root {
			t.Errorf("turn %+v", u)
		}
	}
	r.Must(r.Model.WaitRequests(r.Ctx, "root", 4))
	r.Cancel(view.RootTurn().ID)
	r.WantRoot(agent.OutcomeCanceled)
	refused := r.Diagnosed(provider.Refused)
	goal("And one more")
	for r.Diagnosed(provider.Refused) == refused { // the server begins, and is refused
		r.stops()
	}
	r.stops()
	if v := r.View(); len(v.Turns) != 3 {
		t.Errorf("%d turns: %+v", len(v.Turns), v.Turns)
	}
}

// A shell that outlives its turn is listed as a process of it, holds nothing, and is ended
// alone; one whose turn was stopped as well.
func TestRealProcesses(t *testing.T) {
	r := startReal(t, Script{"root": {
		{Shell("call_bg", "sleep 77")},
		{Say("It runs on.")},
		{Shell("call_two", "sleep 78")},
		{Gate("never"), Say("x")},
	}}, Options{})
	r.Say("Start it")
	r.WantRoot(agent.OutcomeCompleted)
	r.Until("the process is listed", func(v providertest.View) bool { return len(v.Processes) == 1 })
	in := r.Say("And another")
	r.Held("never")
	r.Cancel(in.Turn)
	view := r.Until("both are listed", func(v providertest.View) bool { return len(v.Processes) == 2 })
	for n, command := range []string{"sleep 77", "sleep 78"} {
		p := view.Processes[n]
		if p.TurnID != view.Turns[n].ID || p.Status != agent.ProcessRunning || !strings.Contains(p.Command, command) || !p.Stoppable {
			t.Errorf("process %+v", p)
		}
	}
	r.Must(r.Runtime.(provider.ProcessStopper).StopProcess(r.Ctx, r.Root, "call_bg"))
	if v := r.View(); v.Processes[0].Status != agent.ProcessEnded || v.Processes[1].Status != agent.ProcessRunning {
		t.Errorf("processes %+v", v.Processes)
	}
	r.Must(UntilGone(r.Ctx, r.Place.Home, "sleep 77")) // it is told before the last of it is gone
}
