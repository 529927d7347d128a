//go:build providers

package codextest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// appServer is a real app-server whose notifications are kept in order.
type appServer struct {
	*wire.Peer
	t    *testing.T
	proc *proc.Process

	mu      sync.Mutex
	seen    []note
	changed chan struct{}
}

// note is what the test looks at of a notification.
type note struct {
	method   string
	ThreadID string `json:"threadId"`
	Turn     struct {
		Status     string `json:"status"`
		RootTurnID string `json:"rootTurnId"`
	} `json:"turn"`
	Item struct {
		Type      string   `json:"type"`
		Tool      string   `json:"tool"`
		Kind      string   `json:"kind"`
		ID        string   `json:"id"`
		Text      string   `json:"text"`
		Receivers []string `json:"receiverThreadIds"`
		Agent     string   `json:"agentThreadId"`
	} `json:"item"`
}

func startServer(t *testing.T, place Place) *appServer {
	t.Helper()
	p, err := proc.Start(proc.Config{
		Path: Binary(t), Args: []string{"app-server"}, Dir: place.Work, Env: place.Env, Owner: t.Name(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &appServer{t: t, proc: p, changed: make(chan struct{})}
	s.Peer = wire.NewPeer(p.Stdout(), p.Stdin(), wire.Options{Handler: s.handle, OnDiagnostic: func(d wire.Diagnostic) {
		t.Errorf("diagnostic %s: %v: %s", d.Kind, d.Err, d.Head)
	}})
	ran := make(chan error, 1)
	go func() { ran <- s.Run() }()
	t.Cleanup(func() {
		if e, err := p.Stop(context.Background()); err != nil || e.Code != 0 || len(e.Swept)+len(e.Survivors) > 0 {
			t.Errorf("exit %v %+v, %v; stderr: %s", e, e, err, p.StderrTail())
		}
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s
}

func (s *appServer) handle(f wire.Frame) {
	if f.Kind == wire.KindRequest {
		if err := s.Reply(f.ID, map[string]string{"decision": "accept"}); err != nil {
			s.t.Errorf("%s: %v", f.Method, err)
		}
	}
	n := note{method: f.Method}
	if err := json.Unmarshal(f.Params, &n); err != nil {
		s.t.Errorf("%s: %v", f.Raw, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, n)
	close(s.changed)
	s.changed = make(chan struct{})
}

// find waits for the first notification that matches.
func (s *appServer) find(ctx context.Context, what string, match func(note) bool) note {
	s.t.Helper()
	for from := 0; ; {
		s.mu.Lock()
		seen, changed := s.seen, s.changed
		s.mu.Unlock()
		for ; from < len(seen); from++ {
			if match(seen[from]) {
				return seen[from]
			}
		}
		select {
		case <-changed:
		case <-s.proc.Done():
			s.t.Fatalf("server ended (%v) before %s: %s", s.proc.Exit(), what, s.proc.StderrTail())
		case <-ctx.Done():
			s.t.Fatalf("no %s among %d notifications; stderr: %s", what, len(seen), s.proc.StderrTail())
		}
	}
}

func (s *appServer) must(ctx context.Context, method string, params, result any) {
	s.t.Helper()
	if err := s.Call(ctx, method, params, result); err != nil {
		s.t.Fatalf("%s: %v; stderr: %s", method, err, s.proc.StderrTail())
	}
}

type started struct {
	Thread struct{ ID string } `json:"thread"`
	Turn   struct{ ID string } `json:"turn"`
}

// begin shakes hands, starts a thread and gives it one prompt.
func (s *appServer) begin(ctx context.Context, place Place, prompt string) (thread, turn string) {
	s.t.Helper()
	s.must(ctx, "initialize", map[string]any{
		"clientInfo":   map[string]string{"name": "turnkeeper_test", "title": "Turnkeeper test", "version": "0"},
		"capabilities": map[string]bool{"experimentalApi": true},
	}, nil)
	if err := s.Notify("initialized", nil); err != nil {
		s.t.Fatal(err)
	}
	var th, tu started
	s.must(ctx, "thread/start", map[string]any{"cwd": place.Work}, &th)
	s.must(ctx, "turn/start", map[string]any{
		"threadId": th.Thread.ID, "input": []any{map[string]string{"type": "text", "text": prompt}},
	}, &tu)
	return th.Thread.ID, tu.Turn.ID
}

func ends(thread string) func(note) bool {
	return func(n note) bool { return n.method == "turn/completed" && n.ThreadID == thread }
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestRealPlainTurn(t *testing.T) {
	ctx := limit(t)
	model := NewModel(t, Script{"root": {{Think("let me see"), SayIn(3, "Hello from the script.")}}})
	place := Home(t, Options{BaseURL: model.BaseURL()})
	s := startServer(t, place)
	thread, _ := s.begin(ctx, place, "Say hello")
	if end := s.find(ctx, "end of turn", ends(thread)); end.Turn.Status != "completed" {
		t.Errorf("turn %s", end.Turn.Status)
	}
	s.find(ctx, "message", func(n note) bool {
		return n.method == "item/completed" && n.Item.Type == "agentMessage" && n.Item.Text == "Hello from the script."
	})
	s.find(ctx, "reasoning", func(n note) bool { return n.method == "item/reasoning/summaryTextDelta" })
	if model.Thread("root") != thread || len(model.Overruns()) > 0 {
		t.Errorf("model saw thread %s, overruns %v", model.Thread("root"), model.Overruns())
	}
	err := s.Call(ctx, "turn/interrupt", map[string]string{"threadId": thread, "turnId": "x"}, nil)
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.CodeInvalidRequest {
		t.Errorf("interrupt of an idle thread: %v", err)
	}
}

func TestRealSpawnOfOneChild(t *testing.T) {
	for _, v := range []Version{V1, V2} {
		t.Run(v.String(), func(t *testing.T) {
			ctx := limit(t)
			model := NewModel(t, Script{
				"root": {{v.Spawn("call_spawn", "a", "do the task")}, {v.Wait("call_wait", "call_spawn")}, {Say("Root done.")}},
				"a":    {{Gate("a"), Say("Child done.")}},
			})
			place := Home(t, Options{BaseURL: model.BaseURL(), V2: v == V2})
			s := startServer(t, place)
			root, turn := s.begin(ctx, place, "Use one sub-agent")
			if err := model.WaitRequests(ctx, "root", 2); err != nil {
				t.Fatal(err)
			}
			if err := model.WaitHeld(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			child := model.Thread("a")
			model.Open("a")
			s.find(ctx, "spawn of the child", func(n note) bool {
				if v == V2 {
					return n.method == "item/started" && n.Item.Kind == "started" && n.Item.Agent == child
				}
				return n.method == "item/completed" && n.Item.Tool == "spawnAgent" &&
					len(n.Item.Receivers) == 1 && n.Item.Receivers[0] == child
			})
			for thread, who := range map[string]string{child: "child", root: "root"} {
				if end := s.find(ctx, who+"'s end", ends(thread)); end.Turn.Status != "completed" || end.Turn.RootTurnID != turn {
					t.Errorf("%s: %+v", who, end.Turn)
				}
			}
			if n := len(model.Requests("a")); n != 1 || len(model.Overruns()) > 0 {
				t.Errorf("%d requests of the child, overruns %v", n, model.Overruns())
			}
		})
	}
}

func TestRealFailures(t *testing.T) {
	for name, step := range map[string]Step{
		"status": Status(500, `{"error":{"message":"scripted"}}`),
		"fail":   Fail("server_error", "scripted"),
		"drop":   Drop(),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := limit(t)
			model := NewModel(t, Script{"root": {{step}}})
			place := Home(t, Options{BaseURL: model.BaseURL()})
			s := startServer(t, place)
			thread, _ := s.begin(ctx, place, "Try")
			if end := s.find(ctx, "end of turn", ends(thread)); end.Turn.Status != "failed" {
				t.Errorf("turn %s", end.Turn.Status)
			}
		})
	}
}

// A child of each version asks, and what it asked for is done.
func TestRealApproval(t *testing.T) {
	for _, v := range []Version{V1, V2} {
		t.Run(v.String(), func(t *testing.T) {
			ctx := limit(t)
			model := NewModel(t, Script{
				"root": {{v.Spawn("call_spawn", "a", "do the task")}, {v.Wait("call_wait", "call_spawn")}, {Say("Root done.")}},
				"a":    {{AskShell("call_touch", "touch made.txt", "May I?")}, {Say("Child done.")}},
			})
			place := Home(t, Options{BaseURL: model.BaseURL(), V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
			s := startServer(t, place)
			root, _ := s.begin(ctx, place, "Use one sub-agent")
			ask := s.find(ctx, "approval", func(n note) bool { return n.method == "item/commandExecution/requestApproval" })
			s.find(ctx, "end of turn", ends(root))
			if ask.ThreadID != model.Thread("a") {
				t.Errorf("thread %s asked, the child is %s", ask.ThreadID, model.Thread("a"))
			}
			if _, err := os.Stat(filepath.Join(place.Work, "made.txt")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that was cut off from its client says nothing more and leaves
// nothing behind, in the middle of a turn too.
func TestRealStopInMidTurn(t *testing.T) {
	ctx := limit(t)
	model := NewModel(t, Script{"root": {{Shell("call_sh", "sleep 300 & echo $!; wait")}, {Gate("never")}}})
	place := Home(t, Options{BaseURL: model.BaseURL()})
	s := startServer(t, place)
	s.begin(ctx, place, "Run it")
	if err := model.WaitHeld(ctx, "never"); err != nil { // the shell went to the background
		t.Fatal(err)
	}
	if out := string(model.Requests("root")[1].Body); !strings.Contains(out, "call_sh") {
		t.Error("no output of the shell")
	}
	e, err := s.proc.Stop(ctx)
	if err != nil || e.Code != 0 {
		t.Errorf("exit %v, %v", e, err)
	}
	if killed, err := proc.Sweep(t.Name()); err != nil || len(killed) > 0 {
		t.Errorf("left behind: %v, %v", killed, err)
	}
}
