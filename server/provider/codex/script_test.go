package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

// stage is an adapter's runtime, a sink behind it and a scripted server before it.
// Nothing in it waits for time: send returns when every line was handled.
type stage struct {
	*providertest.Sink
	t    *testing.T
	srv  *server
	rt   provider.Runtime
	text map[string]agent.MessageID
}

// rootThread is the thread of the root session on every stage.
const rootThread = "T0"

func newStage(t *testing.T) *stage { return openStage(t, agent.Session{Provider: "codex"}) }

func openStage(t *testing.T, root agent.Session) *stage {
	t.Helper()
	s := &stage{Sink: providertest.NewSink(t, root), t: t, srv: newServer(), text: map[string]agent.MessageID{}}
	s.open()
	return s
}

func (s *stage) open() {
	s.t.Helper()
	a := New(Options{Connect: func(context.Context, provider.OpenParams) (Transport, error) { return s.srv, nil }})
	opened := make(chan error, 1)
	go func() {
		rt, err := a.Open(s.t.Context(), s.OpenParams(), s.Sink)
		s.rt = rt
		opened <- err
	}()
	s.answer(s.expect(methodInitialize), `{"userAgent":"x/0.171.0 (test)"}`)
	s.answer(s.expect("thread/"), `{"thread":{"id":"`+rootThread+`"},"model":"m"}`)
	if err := <-opened; err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.close)
}

func (s *stage) close() {
	if err := s.rt.Close(context.Background()); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.Closed()
}

// begin submits a message and runs its provider turn up to turn/started.
func (s *stage) begin(text, native string) provider.Input {
	s.t.Helper()
	in := s.Submit(s.Root, text)
	done := s.goes(func(ctx context.Context) error { return s.rt.Start(ctx, in) })
	s.answer(s.expect(methodTurnStart), turnAnswer(native))
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	s.send(started(rootThread, native, native))
	return in
}

// goes runs a call of the daemon beside the test.
func (s *stage) goes(f func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f(s.t.Context()) }()
	return done
}

func (s *stage) send(lines ...string) {
	s.t.Helper()
	if err := s.srv.send(lines...); err != nil {
		s.t.Fatal(err)
	}
}

// sent is one line that the adapter wrote.
type sent struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ThreadID       string `json:"threadId"`
		TurnID         string `json:"turnId"`
		ExpectedTurnID string `json:"expectedTurnId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// expect is the next line that the adapter writes: a request whose method has the
// prefix, "answer" for an answer, "refusal" for an error answer.
func (s *stage) expect(what string) sent {
	s.t.Helper()
	line, err := s.srv.next(s.t.Context())
	if err != nil {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
	var m sent
	if err := json.Unmarshal(line, &m); err != nil {
		s.t.Fatal(err)
	}
	got := m.Method
	switch {
	case m.Method == methodInitialized:
		return s.expect(what)
	case m.Result != nil:
		got = "answer"
	case m.Error != nil:
		got = "refusal"
	}
	if (got == methodThreadRead || got == methodShells) && what != got {
		s.fail(m, "thread not loaded") // names and shells are not what the test is about
		return s.expect(what)
	}
	if !strings.HasPrefix(got, what) {
		s.t.Fatalf("the adapter wrote %s, not %s", line, what)
	}
	return m
}

// expectInterrupt is the next line, which must be an interrupt of that turn.
func (s *stage) expectInterrupt(thread, turn string) sent {
	s.t.Helper()
	m := s.expect(methodTurnInterrupt)
	if m.Params.ThreadID != thread || m.Params.TurnID != turn {
		s.t.Fatalf("interrupt of %s %q, not of %s %q", m.Params.ThreadID, m.Params.TurnID, thread, turn)
	}
	return m
}

// quiet fails if the adapter has written anything that was not expected.
func (s *stage) quiet() {
	s.t.Helper()
	for line := s.srv.peek(); line != nil; line = s.srv.peek() {
		asks := methodThreadRead
		if strings.Contains(string(line), methodShells) {
			asks = methodShells
		} else if !strings.Contains(string(line), asks) {
			s.t.Errorf("the adapter wrote %s", line)
			return
		}
		s.fail(s.expect(asks), "thread not loaded")
	}
}

func (s *stage) answer(m sent, result string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"id":%s,"result":%s}`, m.ID, result))
}

func (s *stage) fail(m sent, message string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"id":%s,"error":{"code":-32600,"message":%q}}`, m.ID, message))
}

// Lines of the server.

func turnAnswer(native string) string {
	return fmt.Sprintf(`{"turn":{"id":%q,"rootTurnId":%q,"status":"inProgress"}}`, native, native)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"method":%q,"params":%s}`, method, params)
}

func started(thread, turn, rootTurn string) string {
	return note("turn/started", fmt.Sprintf(`{"threadId":%q,"turn":{"id":%q,"rootTurnId":%q,"status":"inProgress"}}`, thread, turn, rootTurn))
}

func completed(thread, turn, rootTurn, status string) string {
	return note("turn/completed", fmt.Sprintf(`{"threadId":%q,"turn":{"id":%q,"rootTurnId":%q,"status":%q}}`, thread, turn, rootTurn, status))
}

func itemNote(half, thread, turn, item string) string {
	return note("item/"+half, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"item":%s}`, thread, turn, item))
}

// spawnV1 is both halves of a spawn of the first version; child "" leaves it open.
func spawnV1(thread, turn, call, child string) []string {
	const item = `{"type":"collabAgentToolCall","id":%q,"tool":"spawnAgent","status":%q,"prompt":"do %s","receiverThreadIds":%s}`
	lines := []string{itemNote("started", thread, turn, fmt.Sprintf(item, call, statusInProgress, call, "[]"))}
	if child != "" {
		lines = append(lines, itemNote("completed", thread, turn, fmt.Sprintf(item, call, statusCompleted, call, fmt.Sprintf("[%q]", child))))
	}
	return lines
}

// spawnV2 is both halves of a spawn of the second version.
func spawnV2(thread, turn, call, child string) []string {
	item := fmt.Sprintf(`{"type":"subAgentActivity","id":%q,"kind":"started","agentThreadId":%q,"agentPath":"/root/%s"}`, call, child, child)
	return []string{itemNote("started", thread, turn, item), itemNote("completed", thread, turn, item)}
}

func said(thread, turn, id, text string) []string {
	item := `{"type":"agentMessage","id":%q,"text":%q}`
	return []string{
		itemNote("started", thread, turn, fmt.Sprintf(item, id, "")),
		note("item/agentMessage/delta", fmt.Sprintf(`{"threadId":%q,"turnId":%q,"itemId":%q,"delta":%q}`, thread, turn, id, text)),
		itemNote("completed", thread, turn, fmt.Sprintf(item, id, text)),
	}
}

func heardUser(thread, turn, id, clientID, text string) string {
	return itemNote("completed", thread, turn,
		fmt.Sprintf(`{"type":"userMessage","id":%q,"clientId":%q,"content":[{"type":"text","text":%q}]}`, id, clientID, text))
}

func approval(id int, thread, turn, item string) string {
	return fmt.Sprintf(`{"id":%d,"method":%q,"params":{"threadId":%q,"turnId":%q,"itemId":%q,"command":"/bin/bash -lc 'touch x'",`+
		`"cwd":"/w","reason":"May I?","commandActions":[{"command":"touch x"}],`+
		`"availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch","x"]}},"cancel"]}}`,
		id, askCommand, thread, turn, item)
}

func resolvedNote(thread string, id int) string {
	return note("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":%d}`, thread, id))
}

// server is a Transport whose other end is a test. The adapter is idle when it asks for
// more and everything it was sent has been handed over.
type server struct {
	mu     sync.Mutex
	moved  chan struct{} // closed and replaced whenever something changes
	out    bytes.Buffer  // to the adapter
	in     [][]byte      // from the adapter
	idle   bool
	closed bool
	why    string
}

func newServer() *server { return &server{moved: make(chan struct{})} }

func (s *server) bump() {
	close(s.moved)
	s.moved = make(chan struct{})
}

var errPatience = errors.New("nothing happened for 20 s")

// await blocks until f holds, with the lock taken at each look.
func (s *server) await(ctx context.Context, f func() bool) error {
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	return s.awaitUntil(ctx, patience.C, f)
}

func (s *server) awaitUntil(ctx context.Context, patience <-chan time.Time, f func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !f() {
		moved := s.moved
		s.mu.Unlock()
		var err error
		select {
		case <-moved:
		case <-ctx.Done():
			err = ctx.Err()
		case <-patience:
			err = errPatience
		}
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Read(b []byte) (int, error) {
	s.mu.Lock()
	s.idle = s.out.Len() == 0
	s.bump()
	s.mu.Unlock()
	_ = s.awaitUntil(context.Background(), nil, func() bool { return s.out.Len() > 0 || s.closed })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	if s.out.Len() == 0 {
		return 0, io.EOF
	}
	return s.out.Read(b)
}

func (s *server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.in = append(s.in, bytes.Clone(b))
	s.bump()
	return len(b), nil
}

func (s *server) Close(context.Context) error {
	s.end("")
	return nil
}

// end is the death of the process.
func (s *server) end(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.why = true, why
		s.bump()
	}
}

func (s *server) Explain() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// send writes lines and waits until the adapter has handled them.
func (s *server) send(lines ...string) error {
	s.mu.Lock()
	for _, l := range lines {
		s.out.WriteString(l + "\n")
	}
	s.idle = false
	s.bump()
	s.mu.Unlock()
	return s.await(context.Background(), func() bool { return s.idle || s.closed })
}

func (s *server) next(ctx context.Context) ([]byte, error) {
	var line []byte
	err := s.await(ctx, func() bool {
		if len(s.in) == 0 {
			return false
		}
		line, s.in = s.in[0], s.in[1:]
		return true
	})
	return line, err
}

func (s *server) peek() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.in) == 0 {
		return nil
	}
	return s.in[0]
}
