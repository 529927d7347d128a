package codex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

func TestProcessDeathIsReportedOnce(t *testing.T) {
	s := withChild(t)
	s.send(completed(rootThread, "r1", "r1", "completed")) // an outcome is retained
	s.srv.end("signal: killed")
	<-s.rt.Done()
	s.close()
	if s.Lost() != 1 {
		t.Errorf("%d losses", s.Lost())
	}
	v := s.View()
	wantOutcome(t, turnsOf(v, child(t, v, "T1").ID)[0], agent.OutcomeInterrupted)
	wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
	for _, f := range []func() error{
		func() error { return s.rt.Start(context.Background(), provider.Input{}) },
		func() error { return s.rt.Guide(context.Background(), provider.Input{}) },
	} {
		if err := f(); !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
			t.Errorf("a call after the end: %v", err)
		}
	}
}

func TestProcessDeathWhileCallsWait(t *testing.T) {
	s := newStage(t)
	in := s.Submit(s.Root, "go")
	start := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	s.expect(methodTurnStart)
	_, guide := s.guide("and X")
	c := s.PrepareCancel(in.Turn)
	stop := s.goes(func(ctx context.Context) error { return s.rt.Cancel(ctx, c, s.Heard) })
	s.expectInterrupt(rootThread, "")
	s.srv.end("exit 1: out of memory")
	for what, done := range map[string]<-chan error{"start": start, "guide": guide, "cancel": stop} {
		if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeProviderGone}) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
	<-s.rt.Done()
	s.CompleteCancel(c, s.Evidence())
	wantOutcome(t, s.View().RootTurn(), agent.OutcomeCanceled)
	if s.Lost() != 1 {
		t.Errorf("%d losses", s.Lost())
	}
}

func TestNothingIsReportedAfterClose(t *testing.T) {
	s := withChild(t)
	s.close()
	s.close()
	if s.Lost() != 0 {
		t.Error("Close is no loss")
	}
	<-s.rt.Done()
}

// opening runs Open against a server that the test drives.
func opening(t *testing.T, srv *server, root agent.Session) <-chan error {
	sink := providertest.NewSink(t, root)
	a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return srv, nil }})
	done := make(chan error, 1)
	go func() {
		_, err := a.Open(t.Context(), sink.OpenParams(), sink)
		if sink.Lost() != 0 {
			t.Error("a session that never opened was lost")
		}
		done <- err
	}()
	return done
}

func TestStartUpFailures(t *testing.T) {
	script := func(srv *server) *stage { return &stage{t: t, srv: srv} }
	for _, c := range []struct {
		name string
		play func(s *stage)
		code agent.Code
		says string
	}{
		{
			"too old", func(s *stage) { s.answer(s.expect(methodInitialize), `{"userAgent":"turnkeeper/0.99.1 (x)"}`) },
			agent.CodeProviderUnavailable, "0.99.1 is too old",
		},
		{
			"dies", func(s *stage) { s.expect(methodInitialize); s.srv.end("exit 1: unknown approval policy") },
			agent.CodeProviderUnavailable, "unknown approval policy",
		},
		{"refuses the thread", func(s *stage) {
			s.answer(s.expect(methodInitialize), `{"userAgent":"turnkeeper/0.171.0 (x)"}`)
			s.fail(s.expect(methodThreadStart), "no model")
		}, agent.CodeProviderRefused, "no model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := newServer()
			done := opening(t, srv, agent.Session{})
			c.play(script(srv))
			err := <-done
			if !errors.Is(err, &agent.Error{Code: c.code}) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("open ended with %v", err)
			}
		})
	}
}

func TestStartUpIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		done := opening(t, srv, agent.Session{})
		<-time.After(handshakeBound)
		if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeTimeout}) {
			t.Errorf("open ended with %v", err)
		}
	})
}

func TestUnansweredStartFailsAndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		in := s.Submit(s.Root, "go")
		done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
		s.expect(methodTurnStart)
		<-time.After(requestBound)
		if err := <-done; !errors.Is(err, &agent.Error{Code: agent.CodeTimeout}) {
			t.Errorf("start ended with %v", err)
		}
		wantOutcome(t, s.View().RootTurn(), agent.OutcomeFailed)
		s.answer(s.expectInterrupt(rootThread, ""), `{}`)
		s.send(started(rootThread, "r1", "r1")) // it was taken after all
		s.answer(s.expectInterrupt(rootThread, "r1"), `{}`)
		if n := len(turnsOf(s.View(), s.Root)); n != 1 {
			t.Errorf("%d root turns", n)
		}
		s.close()
	})
}

func TestResumeBindsOldChildrenAndRestoresThePolicy(t *testing.T) {
	s := withChild(t)
	s.srv.end("signal: killed")
	<-s.rt.Done()
	s.close()
	before := child(t, s.View(), "T1")

	s.Reopened()
	s.srv = newServer()
	opened := make(chan error, 1)
	a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return s.srv, nil }})
	p := s.OpenParams()
	p.Root.PermissionMode = modeReadOnly
	go func() {
		rt, err := a.Open(t.Context(), p, s.Sink)
		s.rt = rt
		opened <- err
	}()
	s.answer(s.expect(methodInitialize), `{"userAgent":"x/0.171.0"}`)
	line, err := s.srv.next(t.Context())
	for err == nil && strings.Contains(string(line), methodInitialized+`"`) {
		line, err = s.srv.next(t.Context())
	}
	for _, want := range []string{methodThreadResume, `"threadId":"T0"`, `"excludeTurns":true`, `"sandbox":"read-only"`, `"approvalPolicy":"on-request"`} {
		if !strings.Contains(string(line), want) {
			t.Errorf("resume without %s: %s", want, line)
		}
	}
	s.send(`{"id":2,"result":{"thread":{"id":"T0"}}}`)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	s.send(note("thread/tokenUsage/updated", `{"threadId":"T0","turnId":"r1","tokenUsage":{"total":{"inputTokens":90}}}`))
	in := s.Submit(s.Root, "again")
	began := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	m := s.expect(methodTurnStart)
	// What was used before may be told only now.
	s.send(note("thread/tokenUsage/updated", `{"threadId":"T0","turnId":"r1","tokenUsage":{"total":{"inputTokens":100}}}`))
	s.answer(m, turnAnswer("r2"))
	wait(t, began)
	s.send(started(rootThread, "r2", "r2"))
	s.send(note("thread/tokenUsage/updated", `{"threadId":"T0","turnId":"r2","tokenUsage":{"total":{"inputTokens":130}}}`))
	s.send(started("T1", "c2", "r2"), completed("T1", "c2", "r2", "completed")) // no edge in this process
	s.send(completed(rootThread, "r2", "r2", "completed"))
	v := s.View()
	if after := child(t, v, "T1"); after.ID != before.ID || len(v.Sessions) != 2 {
		t.Errorf("the old child became %s", after.ID)
	}
	turns := turnsOf(v, before.ID)
	if len(turns) != 2 || turns[1].RootTurnID != v.RootTurn().ID {
		t.Errorf("turns of the child: %+v", turns)
	}
	if got := v.RootTurn().Usage.InputTokens; got != 30 {
		t.Errorf("the second turn used %d tokens, want its own 30", got)
	}
}

func TestPolicyOfEachMode(t *testing.T) {
	for mode, want := range map[string]string{
		"": "/", modeConfigured: "/", modeReadOnly: "on-request/read-only",
		modeAsk: "on-request/workspace-write", modeFull: "never/danger-full-access",
	} {
		approval, sandbox, err := policy(mode)
		if err != nil || approval+"/"+sandbox != want {
			t.Errorf("%q: %s/%s, %v", mode, approval, sandbox, err)
		}
	}
	if _, _, err := policy("untrusted"); !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) {
		t.Errorf("unknown mode: %v", err)
	}
}

func TestFailedTurnKeepsTheProvidersWord(t *testing.T) {
	s := withChild(t)
	s.send(note("turn/completed", `{"threadId":"T1","turn":{"id":"c1","rootTurnId":"r1","status":"failed","error":{"message":"no room","codexErrorInfo":"contextWindowExceeded"}}}`))
	s.send(note("error", `{"threadId":"T0","turnId":"r1","willRetry":true,"error":{"message":"busy","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":503}}}}`))
	s.send(note("turn/completed", `{"threadId":"T0","turn":{"id":"r1","rootTurnId":"r1","status":"failed"}}`))
	v := s.View()
	c := turnsOf(v, child(t, v, "T1").ID)[0]
	if c.Outcome != agent.OutcomeFailed || c.Error == nil || c.Error.Message != "The conversation is too long for the model: no room" {
		t.Errorf("child failed with %v", c.Error)
	}
	if e := v.RootTurn(); e.Outcome != agent.OutcomeFailed {
		t.Errorf("root is %s", e.Outcome)
	}
	if !slices.ContainsFunc(say(v, s.Root), func(m string) bool {
		return m == "system notice completed: Codex tries again: The model's server could not be reached (HTTP 503): busy"
	}) {
		t.Errorf("the root says %q", say(v, s.Root))
	}
}

func TestUnknownStatusIsNoSuccess(t *testing.T) {
	s := withChild(t)
	s.send(completed("T1", "c1", "r1", "vanished"))
	v := s.View()
	wantOutcome(t, turnsOf(v, child(t, v, "T1").ID)[0], agent.OutcomeInterrupted)
	if s.Diagnosed(provider.Malformed) != 1 {
		t.Error("the unknown status was not counted")
	}
}

func TestCompletedActivityIsNoTerminal(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(spawnV2(rootThread, "r1", "call_a", "T1")...)
	s.send(started("T1", "c1", "r1"))
	s.send(itemNote("started", rootThread, "r1", `{"type":"subAgentActivity","id":"subagent-completed-c1","kind":"completed","agentThreadId":"T1","agentPath":"/root/a"}`))
	v := s.View()
	if got := turnsOf(v, child(t, v, "T1").ID)[0].Phase; got != agent.PhaseRunning {
		t.Errorf("child is %s", got)
	}
}

func TestItemsAfterTheirTurnAreHistory(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(itemNote("started", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"make","status":"inProgress"}`))
	s.send(note("item/commandExecution/outputDelta", `{"threadId":"T0","turnId":"r1","itemId":"x","delta":"one\n"}`))
	s.send(said(rootThread, "r1", "m", "half a sen")[:2]...)
	s.send(completed(rootThread, "r1", "r1", "completed")) // a steer had cut the message
	s.send(note("item/commandExecution/outputDelta", `{"threadId":"T0","turnId":"r1","itemId":"x","delta":"two\n"}`))
	s.send(itemNote("completed", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"make","status":"completed","exitCode":2}`))
	v := s.View()
	want := []string{
		"user text completed: go",
		"tool tool_call interrupted: commandExecution make",
		"assistant text interrupted: half a sen",
	}
	if got := say(v, s.Root); !slices.Equal(got, want) {
		t.Errorf("the root says %q", got)
	}
	wantOutcome(t, v.RootTurn(), agent.OutcomeCompleted)
}

func TestLongOutputIsBounded(t *testing.T) {
	s := newStage(t)
	s.begin("go", "r1")
	s.send(itemNote("started", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"yes","status":"inProgress"}`))
	piece := strings.Repeat("é", 5000)
	for range 100 {
		s.send(note("item/commandExecution/outputDelta", fmt.Sprintf(`{"threadId":"T0","turnId":"r1","itemId":"x","delta":%q}`, piece)))
	}
	s.send(itemNote("completed", rootThread, "r1", `{"type":"commandExecution","id":"x","command":"yes","status":"completed","exitCode":0}`))
	for _, m := range s.View().Messages {
		if m.Kind == agent.MessageToolCall && (len(m.Output) > show.OutputLength+100 || !strings.Contains(m.Output, "bytes left out") || strings.ContainsRune(m.Output, '\uFFFD')) {
			t.Errorf("output of %d bytes", len(m.Output))
		}
	}
}

func TestFindTakesTheProgramBehindTheScript(t *testing.T) {
	dir := t.TempDir()
	write := func(path string) string {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("lib/node_modules/@openai/codex/bin/codex.js")
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(script, filepath.Join(dir, "bin", "codex")); err != nil {
		t.Fatal(err)
	}
	env := func(key string) string { return map[string]string{"PATH": filepath.Join(dir, "bin")}[key] }
	if got, err := Find(env); err != nil || got != filepath.Join(dir, "bin", "codex") {
		t.Errorf("without the program: %s, %v", got, err)
	}
	native := write("lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64/bin/codex")
	if got, err := Find(env); err != nil || got != native {
		t.Errorf("nested package: %s, %v", got, err)
	}
	native = write("lib/node_modules/@openai/codex-linux-x64/vendor/x86_64/bin/codex")
	if got, err := Find(env); err != nil || got != native {
		t.Errorf("package beside it: %s, %v", got, err)
	}
}

func TestMissingProgramSaysWhatHelps(t *testing.T) {
	getenv := func(key string) string {
		if key == "TURNKEEPER_CODEX_BIN" {
			return filepath.Join(t.TempDir(), "nowhere")
		}
		return ""
	}
	a := New(Options{Getenv: getenv})
	info := a.Probe(t.Context())
	if info.Found || !strings.Contains(info.Reason, "TURNKEEPER_CODEX_BIN") {
		t.Errorf("probe: %+v", info)
	}
	sink := providertest.NewSink(t, agent.Session{})
	if _, err := a.Open(t.Context(), sink.OpenParams(), sink); !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) {
		t.Errorf("open ended with %v", err)
	}
}
