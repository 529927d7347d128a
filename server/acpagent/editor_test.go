package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/acp"
)

// editor is a client that speaks lines, so that the tests see the wire and nothing kinder.
type editor struct {
	t       *testing.T
	w       *world
	version int
	in      io.Writer

	mu     sync.Mutex
	more   *sync.Cond
	lines  []line
	over   bool
	hold   bool // reads nothing
	seen   int  // lines that await has passed
	lastID int
	idFor  map[string]string // method of our requests, by id
	// For the rules: where setups were asked for, by request id, and the roots.
	setupAt map[string]int
	roots   map[string]bool
	leave   func()
	unread  bool // it leaves without reading what was written to it
}

type editorOptions struct {
	flat    bool // version 1 without the opt-in
	forms   bool
	backlog int
}

// newEditor starts the agent for an editor and initializes.
func (w *world) newEditor(version int, o editorOptions) *editor {
	w.t.Helper()
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	e := &editor{t: w.t, w: w, version: version, in: in, idFor: map[string]string{}, setupAt: map[string]int{}, roots: map[string]bool{}}
	e.more = sync.NewCond(&e.mu)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, Options{
			In: fromEditor, Out: toEditor, Server: w.url, Token: w.token, Version: "test", Backlog: o.backlog,
			HTTPClient: &http.Client{Transport: w.gates},
			Logger:     slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		_ = toEditor.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		e.read(out)
	}()
	e.leave = sync.OnceFunc(func() {
		if !e.unread {
			e.resume()
		}
		_ = in.Close()
		if err := <-served; err != nil {
			w.t.Errorf("serving ended with %v", err)
		}
		e.resume()
		<-read
		cancel()
		record(version, e)
		checkRules(w.t, e)
	})
	w.t.Cleanup(e.leave)
	e.initialize(o)
	return e
}

func (e *editor) initialize(o editorOptions) {
	e.t.Helper()
	caps := map[string]any{}
	if o.forms {
		caps["elicitation"] = map[string]any{"form": map[string]any{}}
	}
	p := map[string]any{"protocolVersion": e.version}
	if e.version == acp.V2 {
		p["info"], p["capabilities"] = map[string]string{"name": "test", "version": "0"}, caps
	} else {
		if !o.flat {
			caps["subagents"] = map[string]any{}
		}
		p["clientInfo"], p["clientCapabilities"] = map[string]string{"name": "test", "version": "0"}, caps
	}
	var r acp.InitializeResponse
	e.must("initialize", p, &r)
	if r.ProtocolVersion != e.version {
		e.t.Fatalf("version %d", r.ProtocolVersion)
	}
}

func (e *editor) read(from io.Reader) {
	dec := json.NewDecoder(from)
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		e.mu.Lock()
		if err != nil {
			e.over = true
			e.more.Broadcast()
			e.mu.Unlock()
			return
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			panic(err)
		}
		l.raw = string(raw)
		if l.Method == acp.MethodUpdate {
			if err := json.Unmarshal(l.Params, &l.note); err != nil {
				panic(err)
			}
		}
		e.lines = append(e.lines, l)
		e.more.Broadcast()
		for e.hold {
			e.more.Wait()
		}
		e.mu.Unlock()
	}
}

// pause stops reading after the line that is next; resume goes on.
func (e *editor) pause() { e.mu.Lock(); e.hold = true; e.mu.Unlock() }

func (e *editor) resume() {
	e.mu.Lock()
	e.hold = false
	e.more.Broadcast()
	e.mu.Unlock()
}

func (e *editor) write(v any) {
	e.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(raw, '\n')); err != nil {
		e.t.Fatal(err)
	}
}

// send sends a request and returns its id as it is at the wire.
func (e *editor) send(method string, params any) string {
	e.t.Helper()
	e.mu.Lock()
	e.lastID++
	id := e.lastID
	e.idFor[fmt.Sprint(id)] = method
	if method == acp.MethodLoadSession || method == acp.MethodResumeSession {
		e.setupAt[fmt.Sprint(id)] = len(e.lines)
		raw, _ := json.Marshal(params)
		var about acp.SessionRef
		if json.Unmarshal(raw, &about) == nil {
			e.roots[about.SessionID] = true
		}
	}
	e.mu.Unlock()
	e.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return fmt.Sprint(id)
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	e.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// cancel is session/cancel.
func (e *editor) cancel(session string) {
	e.t.Helper()
	e.notify(acp.MethodCancel, map[string]string{"sessionId": session})
}

// answer answers a request of the agent.
func (e *editor) answer(req line, result any) {
	e.t.Helper()
	e.write(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
}

// from waits for the first line at or after the given place that satisfies the condition,
// and returns it with its place.
func (e *editor) from(at int, what string, is func(line) bool) (line, int) {
	e.t.Helper()
	deadline := time.Now().Add(patience)
	wake := time.AfterFunc(patience, func() { e.mu.Lock(); e.more.Broadcast(); e.mu.Unlock() })
	defer wake.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := at; ; i++ {
		for i >= len(e.lines) && !e.over && time.Now().Before(deadline) {
			e.more.Wait()
		}
		if i >= len(e.lines) {
			var all strings.Builder
			for _, l := range e.lines[min(at, len(e.lines)):] {
				all.WriteString(l.raw + "\n")
			}
			e.t.Fatalf("waited in vain for %s; since then:\n%s", what, all.String())
		}
		if is(e.lines[i]) {
			return e.lines[i], i
		}
	}
}

// await is from, after everything that was awaited before.
func (e *editor) await(what string, is func(line) bool) line {
	e.t.Helper()
	l, i := e.from(e.seen, what, is)
	e.seen = i + 1
	return l
}

// response waits for the answer to a request.
func (e *editor) response(id string) line {
	e.t.Helper()
	l, _ := e.from(0, "the answer to "+id, func(l line) bool { return l.Method == "" && string(l.ID) == id })
	return l
}

// must calls and needs success.
func (e *editor) must(method string, params, out any) {
	e.t.Helper()
	l := e.response(e.send(method, params))
	if l.Error != nil {
		e.t.Fatalf("%s: %s", method, l.raw)
	}
	if out != nil {
		if err := json.Unmarshal(l.Result, out); err != nil {
			e.t.Fatal(err)
		}
	}
}

// refused calls and needs an error with that code.
func (e *editor) refused(code int, method string, params any) line {
	e.t.Helper()
	l := e.response(e.send(method, params))
	if l.Error == nil || l.Error.Code != code {
		e.t.Fatalf("%s: %s, want error %d", method, l.raw, code)
	}
	return l
}

// begin makes a session.
func (e *editor) begin() string {
	e.t.Helper()
	var r acp.SessionResponse
	e.must("session/new", map[string]any{"cwd": e.w.dir, "mcpServers": []any{}, "_meta": map[string]any{"turnkeeper": map[string]string{"provider": "fake"}}}, &r)
	if r.SessionID == "" {
		e.t.Fatal("no session id")
	}
	e.mu.Lock()
	e.roots[r.SessionID] = true
	e.mu.Unlock()
	return r.SessionID
}

// prompt sends a prompt and returns the request's id with the root at the provider.
func (e *editor) prompt(session, text string) string {
	e.t.Helper()
	return e.send("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}})
}

// work begins a session with a prompt and returns the root as the provider plays it.
func (e *editor) work() (session, prompt string, root *fakeAgent) {
	e.t.Helper()
	session = e.begin()
	prompt = e.prompt(session, "go")
	r := receive(e.t, "the provider to be opened", e.w.fake.opened)
	return session, prompt, r.main(receive(e.t, "the provider's turn", e.w.fake.starts))
}

// all is what came so far.
func (e *editor) all() []line {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

// since counts the lines so far: a place for from.
func (e *editor) since() int { return len(e.all()) }

// fence returns when everything that was sent before has been looked at.
func (e *editor) fence() {
	e.t.Helper()
	e.response(e.send("session/list", map[string]any{}))
}

// ended waits for the end of a prompt: its response in version 1, the idle state in 2.
func (e *editor) ended(session, prompt string, reason acp.StopReason) int {
	e.t.Helper()
	if e.version == acp.V1 {
		l, i := e.from(0, "the end of the prompt", func(l line) bool { return l.Method == "" && string(l.ID) == prompt })
		var r acp.PromptResponse
		if l.Error != nil || json.Unmarshal(l.Result, &r) != nil || r.StopReason != reason {
			e.t.Fatalf("the prompt ended with %s", l.raw)
		}
		return i
	}
	l, i := e.from(0, "the root to be idle", func(l line) bool {
		s, ok := l.note.Update.Variant.(*acp.StateUpdate)
		return ok && l.note.SessionID == session && s.State == acp.StateIdle
	})
	if s := l.note.Update.Variant.(*acp.StateUpdate); s.StopReason != reason {
		e.t.Fatalf("the prompt ended with %s", l.raw)
	}
	return i
}

// grant waits until a child can be stopped.
func (e *editor) grant(c *fakeAgent) { e.t.Helper(); e.from(0, "a grant", isGrant(c.session)) }

// both runs a test in both versions.
func both(t *testing.T, test func(t *testing.T, version int)) {
	for _, v := range []int{acp.V1, acp.V2} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { test(t, v) })
	}
}
