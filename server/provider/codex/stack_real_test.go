//go:build providers

package codex_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
	"github.com/turnkeeper/turnkeeper/server/live"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
	"github.com/turnkeeper/turnkeeper/server/replay"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// The whole of it with the real app-server: commands, their worker, storage, runtimes.
// Everything on the wire is recorded, and the recording replayed in virtual time must
// come to the same end.

type stack struct {
	t       *testing.T
	ctx     context.Context
	model   *Model
	place   Place
	store   *store.Store
	live    *live.Live
	service *command.Service
	ws      agent.WorkspaceID
	root    agent.SessionID

	mu      sync.Mutex
	changed chan struct{}
	began   time.Time
	tape    bytes.Buffer
}

func startStack(t *testing.T, script Script, o Options) *stack {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(stop)
	s := &stack{t: t, ctx: ctx, model: NewModel(t, script), changed: make(chan struct{}), began: time.Now()}
	o.BaseURL = s.model.BaseURL()
	s.place = Home(t, o)
	mint := agent.NewMinter(uuid.NewString)
	var err error
	s.store, err = store.Open(ctx, store.Options{Path: store.Memory, Synchronous: "normal", Mint: mint, OnCommit: func([]agent.Event) { s.bump() }})
	s.must(err)
	quiet := slog.New(slog.DiscardHandler)
	a := codex.New(codex.Options{Binary: Binary(t), Owner: t.Name(), Logger: quiet, Record: s.record})
	s.live = live.New(live.Options{
		Adapters: map[string]provider.Adapter{"codex": a}, Recorder: s.store, Mint: mint, Env: s.place.Env, Logger: quiet,
	})
	s.service = command.New(command.Options{
		Store: s.store, Live: live.Port{Live: s.live}, Logger: quiet,
		Card: func(context.Context, string) (agent.Capabilities, error) { return agent.Capabilities{}, nil },
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.service.Run(ctx)
	}()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for _, err := range []error{s.service.Close(ctx), s.live.Close(ctx), s.store.Close()} {
			if err != nil {
				t.Errorf("close: %v", err)
			}
		}
		<-done
		if left := ProcessesOf(t, s.place.Home); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	})
	ws, err := s.service.CreateWorkspace(ctx, "", s.place.Work)
	s.must(err)
	s.ws = ws.ID
	sub, err := s.service.CreateSession(ctx, agent.NewSession{Workspace: ws.ID, Provider: "codex"})
	s.must(err)
	s.root = sub.Session.ID
	s.note(`{"event":"process_started"}`)
	return s
}

func (s *stack) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) bump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// record writes a line of the recording.
func (s *stack) record(dir string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.tape, `{"t":%d,"dir":%q,"msg":%s}`+"\n", time.Since(s.began).Milliseconds(), dir, line)
}

func (s *stack) note(text string) { s.record("meta", []byte(text)) }

func (s *stack) detail() agent.SessionDetail {
	s.t.Helper()
	d, err := s.store.Detail(s.ctx, s.ws, s.root)
	s.must(err)
	return d
}

func (s *stack) until(what string, holds func(agent.SessionDetail) bool) agent.SessionDetail {
	s.t.Helper()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		d := s.detail()
		if holds(d) {
			return d
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			s.t.Fatalf("never: %s\n%+v\n%+v", what, d, s.live.Diagnostics())
		}
	}
}

func (s *stack) say(text string) agent.Delivery {
	s.t.Helper()
	sub, err := s.service.Send(s.ctx, s.ws, agent.NewMessage{Session: s.root, Text: text, Client: "test"})
	s.must(err)
	return sub.Delivery
}

func (s *stack) held(gates ...string) {
	s.t.Helper()
	for _, g := range gates {
		s.must(s.model.WaitHeld(s.ctx, g))
	}
}

// agent is the child session that runs as an agent of the script.
func (s *stack) agent(name string) agent.Session {
	s.t.Helper()
	s.must(s.model.WaitRequests(s.ctx, name, 1)) // from then on the model knows its thread
	var found agent.Session
	s.until("session of "+name, func(d agent.SessionDetail) bool {
		for _, c := range d.ChildSessions {
			if thread := s.model.Thread(name); thread != "" && c.Handles.ThreadID == thread && c.LatestTurn.NativeID != "" {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

func (s *stack) settles(outcome agent.Outcome) {
	s.t.Helper()
	d := s.until("the root settles", func(d agent.SessionDetail) bool {
		return d.Session.ActiveTurn == nil && d.Session.LatestTurn != nil
	})
	if got := d.Session.LatestTurn.Outcome; got != outcome {
		s.t.Errorf("the root is %s (%v), want %s", got, d.Session.LatestTurn.Error, outcome)
	}
}

func (s *stack) cancel(session agent.SessionID, turn agent.TurnID) {
	s.t.Helper()
	op, _, err := s.service.Cancel(s.ctx, s.ws, session, turn, "test")
	s.must(err)
	s.until("the stop is carried out", func(agent.SessionDetail) bool {
		now, err := s.store.Operation(s.ctx, s.ws, op.ID)
		s.must(err)
		if !now.Status.Open() && now.Status != agent.OperationSucceeded {
			s.t.Errorf("the stop is %s: %+v", now.Status, now.Targets)
		}
		return !now.Status.Open()
	})
}

// summary is an end without ids and times.
func summary(sessions []agent.Session, turns []agent.Turn, messages []agent.Message, asks []agent.Interaction) []string {
	name := map[agent.SessionID]string{}
	for _, x := range sessions {
		name[x.ID] = x.Handles.ThreadID
	}
	var out []string
	for _, x := range sessions {
		out = append(out, fmt.Sprintf("session %s %s below %s by %s: %s, used %d", x.Kind, name[x.ID], name[x.ParentSessionID], x.ParentToolCallID, x.Title, x.Usage.InputTokens))
	}
	for _, x := range turns {
		out = append(out, fmt.Sprintf("turn of %s: %s %s %s", name[x.SessionID], x.Trigger, x.Phase, x.Outcome))
	}
	for _, x := range messages {
		out = append(out, fmt.Sprintf("message of %s: %s %s %s %q %s", name[x.SessionID], x.Role, x.Kind, x.Status, x.Content, x.Title))
	}
	for _, x := range asks {
		out = append(out, fmt.Sprintf("question of %s: %s %s", name[x.SessionID], x.Title, x.Status))
	}
	slices.Sort(out)
	return out
}

// end reads what storage holds, and compares it with the replay of what was recorded.
func (s *stack) end() {
	s.t.Helper()
	d := s.detail()
	sessions := append([]agent.Session{d.Session}, d.ChildSessions...)
	var turns []agent.Turn
	var messages []agent.Message
	for _, x := range sessions {
		page, err := s.store.Turns(s.ctx, s.ws, x.ID, "", 100)
		s.must(err)
		turns = append(turns, page.Items...)
		texts, err := s.store.Messages(s.ctx, s.ws, x.ID, agent.MessageRange{Limit: 500})
		s.must(err)
		messages = append(messages, texts.Items...)
	}
	asks, err := s.store.Interactions(s.ctx, s.ws, s.root, "")
	s.must(err)
	counts, err := s.store.Counts(s.ctx)
	s.must(err)
	if counts.OpenBelowSettled != 0 || counts.LiveTurns != 0 || counts.OpenOperations != 0 {
		s.t.Errorf("counts %+v", counts)
	}
	s.mu.Lock()
	tape := s.tape.String()
	s.mu.Unlock()
	again, err := replay.Run(s.ctx, "codex", strings.NewReader(tape))
	s.must(err)
	if again.Invariants != (replay.Invariants{}) {
		s.t.Errorf("invariants of the replay: %+v", again.Invariants)
	}
	want := summary(sessions, turns, messages, asks)
	if diff := cmp.Diff(want, summary(again.Sessions, again.Turns, again.Messages, again.Interactions)); diff != "" {
		s.t.Errorf("the replay came to another end (-live +replay):\n%s\n%s", diff, tape)
	}
}

func TestRealStackRootEndsBeforeItsChildren(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Say("Started both.")}},
			"a":    {{Gate("a"), Say("Child a done.")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		s.say("Use two sub-agents")
		s.held("a", "b")
		s.until("the root waits for both", func(d agent.SessionDetail) bool {
			return d.Session.ActiveTurn != nil && d.Session.ActiveTurn.Phase == agent.PhaseWaiting && d.Session.ActiveChildCount == 2
		})
		s.model.Open("a")
		d := s.until("one is left", func(d agent.SessionDetail) bool { return d.Session.ActiveChildCount == 1 })
		gate, err := s.store.Gate(s.ctx, s.ws, s.root, d.Session.ActiveTurn.ID)
		s.must(err)
		if gate.HeldBy != agent.HeldByChildren || gate.RetainedOutcome != agent.OutcomeCompleted || len(gate.OpenChildren) != 1 {
			t.Errorf("gate %+v", gate)
		}
		s.model.Open("b")
		s.settles(agent.OutcomeCompleted)
		s.end()
	})
}

func TestRealStackApprovals(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {v.Wait("call_w", "call_a")}, {Say("Root done.")}},
			"a":    {{AskShell("call_one", "touch one.txt", "May I?")}, {AskShell("call_two", "touch two.txt", "May I?")}, {Say("Child done.")}},
		}, Options{V2: v == V2, Approval: "on-request", Sandbox: "read-only"})
		s.say("Use one sub-agent that runs commands")
		for _, option := range []string{"accept", "decline"} {
			var open []agent.Interaction
			s.until("a question", func(agent.SessionDetail) bool {
				var err error
				open, err = s.store.Interactions(s.ctx, s.ws, s.root, agent.InteractionPending)
				s.must(err)
				return len(open) > 0
			})
			_, _, err := s.service.Answer(s.ctx, s.ws, agent.NewAnswer{
				Session: open[0].SessionID, Turn: open[0].TurnID, Request: open[0].RequestID,
				Response: agent.Response{OptionID: option}, Client: "test",
			})
			s.must(err)
		}
		s.settles(agent.OutcomeCompleted)
		s.end()
	})
}

func TestRealStackCancelAll(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Gate("never"), Say("x")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		s.say("Use two sub-agents")
		s.agent("a")
		s.agent("b")
		s.must(s.model.WaitRequests(s.ctx, "root", 2))
		s.cancel(s.root, s.detail().Session.ActiveTurn.ID)
		s.settles(agent.OutcomeCanceled)
		for _, c := range s.detail().ChildSessions {
			if c.LatestTurn.Outcome != agent.OutcomeCanceled {
				t.Errorf("child %s is %s", c.Title, c.LatestTurn.Outcome)
			}
		}
		s.end()
	})
}

func TestRealStackCancelOneThenGuide(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a"), v.Spawn("call_b", "b", "task b")}, {Say("Started both.")}, {Say("Noted.")}},
			"a":    {{Gate("never"), Say("x")}},
			"b":    {{Gate("b"), Say("Child b done.")}},
		}, Options{V2: v == V2})
		s.say("Use two sub-agents")
		s.held("b")
		a := s.agent("a")
		s.until("the root waits", func(d agent.SessionDetail) bool { return d.Session.ActiveTurn.Phase == agent.PhaseWaiting })
		s.cancel(a.ID, a.LatestTurn.ID)
		if d := s.say("And one more thing"); d != agent.DeliveryGuided {
			t.Errorf("the message was %s", d)
		}
		s.until("the root has said that it noted", func(agent.SessionDetail) bool {
			page, err := s.store.Messages(s.ctx, s.ws, s.root, agent.MessageRange{Limit: 500})
			s.must(err)
			return slices.ContainsFunc(page.Items, func(m agent.Message) bool { return m.Content == "Noted." && m.Status.Ended() })
		})
		s.until("it waits again", func(d agent.SessionDetail) bool { return d.Session.ActiveTurn.Phase == agent.PhaseWaiting })
		s.model.Open("b")
		s.settles(agent.OutcomeCompleted)
		s.end()
	})
}

func TestRealStackKillAndResume(t *testing.T) {
	both(t, func(t *testing.T, v Version) {
		s := startStack(t, Script{
			"root": {{v.Spawn("call_a", "a", "task a")}, {Gate("never"), Say("x")}, {Say("After the resume.")}},
			"a":    {{Gate("never"), Say("x")}},
		}, Options{V2: v == V2})
		s.say("Use one sub-agent")
		s.agent("a")
		s.must(s.model.WaitRequests(s.ctx, "root", 2))
		killServer(t, s.place.Home)
		s.settles(agent.OutcomeInterrupted)
		s.note(`{"event":"process_exited","status":"signal: killed"}`)
		s.note(`{"event":"process_started"}`)
		s.say("Go on")
		s.until("it runs", func(d agent.SessionDetail) bool {
			return d.Session.ActiveTurn != nil || d.Session.LatestTurn.Outcome == agent.OutcomeCompleted
		})
		s.settles(agent.OutcomeCompleted)
		s.end()
	})
}
