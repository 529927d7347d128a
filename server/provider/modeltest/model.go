package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Model is a scripted model on a loopback address. Its methods may be called by many
// goroutines at once.
type Model struct {
	t       testing.TB
	dialect Dialect
	http    *httptest.Server
	stop    chan struct{} // closed at the end of the test: lets held replies go

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change below
	script   Script
	open     map[string]bool // gates
	held     map[string]int  // replies that wait at a gate
	agents   map[string]*agent
	names    map[string]string // thread id → agent
	requests int
	overruns []string
	strays   []string
}

type agent struct {
	thread   string
	requests []Request
}

// Request is one request an agent made of the model.
type Request struct {
	Agent  string
	Thread string // the program's id of the agent
	N      int    // counts from 1 for each agent
	Header http.Header
	Body   json.RawMessage
}

// New starts a model that plays the script in this dialect. It ends with the test.
func New(t testing.TB, d Dialect, script Script) *Model {
	t.Helper()
	if err := script.check(); err != nil {
		t.Fatalf("modeltest: script: %v", err)
	}
	m := &Model{
		t: t, dialect: d, script: maps.Clone(script), stop: make(chan struct{}), changed: make(chan struct{}),
		open: map[string]bool{}, held: map[string]int{},
		agents: map[string]*agent{}, names: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc(d.Route(), m.serve)
	mux.HandleFunc("/", m.stray)
	m.http = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(m.stop)
		m.http.CloseClientConnections()
		m.http.Close()
	})
	return m
}

// BaseURL is what the program must be given as the address of its model.
func (m *Model) BaseURL() string { return m.http.URL + m.dialect.Base() }

// Open opens gates for good.
func (m *Model) Open(gates ...string) {
	m.change(func() {
		for _, g := range gates {
			m.open[g] = true
		}
	})
}

// WaitRequests waits until the agent has made n requests in all.
func (m *Model) WaitRequests(ctx context.Context, name string, n int) error {
	err := m.await(ctx, func() bool {
		a := m.agents[name]
		return a != nil && len(a.requests) >= n
	})
	if err != nil {
		return fmt.Errorf("modeltest: agent %s made %d of %d requests: %w", name, len(m.Requests(name)), n, err)
	}
	return nil
}

// WaitHeld waits until a reply is held at the gate.
func (m *Model) WaitHeld(ctx context.Context, gate string) error {
	if err := m.await(ctx, func() bool { return m.held[gate] > 0 }); err != nil {
		return fmt.Errorf("modeltest: no reply at gate %s: %w", gate, err)
	}
	return nil
}

// WaitLeft waits until no reply is held at the gate any more: its client has gone.
func (m *Model) WaitLeft(ctx context.Context, gate string) error {
	if err := m.await(ctx, func() bool { return m.held[gate] == 0 }); err != nil {
		return fmt.Errorf("modeltest: a reply stays at gate %s: %w", gate, err)
	}
	return nil
}

// Requests are the requests the agent made so far.
func (m *Model) Requests(name string) []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.agents[name]; a != nil {
		return slices.Clone(a.requests)
	}
	return nil
}

// Thread is the program's id of the agent, empty before its first request.
func (m *Model) Thread(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.agents[name]; a != nil {
		return a.thread
	}
	return ""
}

// Overruns names the agents that asked for more replies than the script has,
// once for each request. Such requests are answered with [OverrunText].
func (m *Model) Overruns() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.overruns)
}

// Strays are the requests for anything but the model, by method and path. They are
// answered with "not found".
func (m *Model) Strays() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.strays)
}

// OverrunText is the message of an agent whose script is used up.
const OverrunText = "(the script has no further reply)"

// Append gives an agent further replies.
func (m *Model) Append(name string, replies ...Reply) {
	m.t.Helper()
	if err := (Script{name: replies}).check(); err != nil {
		m.t.Fatalf("modeltest: script: %v", err)
	}
	m.change(func() {
		next := maps.Clone(m.script) // the caller's map stays as it is
		next[name] = append(slices.Clone(next[name]), replies...)
		m.script = next
	})
}

// Next makes these the replies to the agent's next requests, whatever was left of its
// script. It is for an agent that may have asked once more than it used, as a race wants.
func (m *Model) Next(name string, replies ...Reply) {
	m.t.Helper()
	if err := (Script{name: replies}).check(); err != nil {
		m.t.Fatalf("modeltest: script: %v", err)
	}
	m.change(func() {
		next := maps.Clone(m.script)
		var used int
		if a := m.agents[name]; a != nil {
			used = len(a.requests)
		}
		past := make([]Reply, used)
		copy(past, next[name])
		next[name] = append(past, replies...)
		m.script = next
	})
}

// change alters the state and wakes everyone who waits for it.
func (m *Model) change(alter func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	alter()
	close(m.changed)
	m.changed = make(chan struct{})
}

// await waits until the condition, evaluated under the lock, holds.
func (m *Model) await(ctx context.Context, holds func() bool) error {
	for {
		m.mu.Lock()
		ok, changed := holds(), m.changed
		m.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.stop:
			return context.Canceled
		}
	}
}

// pass waits at a gate.
func (m *Model) pass(ctx context.Context, gate string) error {
	m.change(func() { m.held[gate]++ })
	defer m.change(func() { m.held[gate]-- })
	return m.await(ctx, func() bool { return m.open[gate] })
}

// admit books a request and returns its number among all and its reply.
func (m *Model) admit(r Request, name func() string) (req Request, seq int, reply Reply) {
	m.change(func() {
		known, ok := m.names[r.Thread]
		if !ok {
			known = name()
			m.names[r.Thread] = known
		}
		a := m.agents[known]
		if a == nil {
			a = &agent{}
			m.agents[known] = a
		}
		a.thread = r.Thread
		r.Agent, r.N = known, len(a.requests)+1
		a.requests = append(a.requests, r)
		m.requests++
		seq = m.requests
		if replies := m.script[known]; r.N <= len(replies) {
			reply = replies[r.N-1]
		} else {
			m.overruns = append(m.overruns, known)
			reply = Reply{Say(OverrunText)}
		}
	})
	return r, seq, reply
}
