package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bench is a peer whose other side is played by the test.
type bench struct {
	*Peer
	t     *testing.T
	in    *io.PipeWriter // to the peer
	out   *Reader        // from the peer
	outR  *io.PipeReader
	ended chan error

	mu  sync.Mutex
	log []string // what the peer handed over, in order
}

func newBench(t *testing.T, opts Options) *bench {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &bench{t: t, in: inW, out: NewReader(outR, 0), outR: outR, ended: make(chan error, 1)}
	if opts.Handler == nil {
		opts.Handler = func(f Frame) { b.note(fmt.Sprintf("%s %s%s", f.Method, f.ID, f.Params)) }
	}
	opts.OnDiagnostic = func(d Diagnostic) { b.note(fmt.Sprintf("<%s %s>", d.Kind, d.ID)) }
	b.Peer = NewPeer(inR, outW, opts)
	go func() { b.ended <- b.Run() }()
	t.Cleanup(func() {
		b.Close(nil)
		outR.Close()
		<-b.Done()
	})
	return b
}

func (b *bench) note(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, s)
}

func (b *bench) notes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

func (b *bench) says(lines ...string) {
	b.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(b.in, l+"\n"); err != nil {
			b.t.Error(err)
		}
	}
}

func (b *bench) hears(want string) {
	b.t.Helper()
	if line, err := b.out.Next(); err != nil || string(line) != want {
		b.t.Errorf("peer wrote %s, %v; want %s", line, err, want)
	}
}

// finish ends the stream and waits until everything was handled.
func (b *bench) finish() error {
	b.in.Close()
	return <-b.ended
}

func TestCall(t *testing.T) {
	b := newBench(t, Options{})
	go func() {
		b.hears(`{"id":1,"method":"sum","params":{"a":1}}`)
		b.says(`{"id":1,"result":{"n":42}}`)
		b.hears(`{"id":2,"method":"sum"}`)
		b.says(`{"id":2,"error":{"code":-32600,"message":"no active turn","data":[1]}}`)
		b.hears(`{"id":3,"method":"void","params":[]}`)
		b.says(`{"id":3,"result":null,"error":null}`)
		b.hears(`{"id":4,"method":"odd"}`)
		b.says(`{"id":4,"error":"plain text"}`)
		b.hears(`{"id":5,"method":"sum"}`)
		b.says(`{"id":5,"result":"text"}`)
	}()
	var got struct{ N int }
	if err := b.Call(t.Context(), "sum", map[string]int{"a": 1}, &got); err != nil || got.N != 42 {
		t.Errorf("result %+v, %v", got, err)
	}
	var e *Error
	if err := b.Call(t.Context(), "sum", nil, &got); !errors.As(err, &e) ||
		e.Code != -32600 || e.Message != "no active turn" || string(e.Data) != "[1]" {
		t.Errorf("error answer: %v", err)
	}
	if err := b.Call(t.Context(), "void", []int{}, nil); err != nil {
		t.Errorf("null result: %v", err)
	}
	if err := b.Call(t.Context(), "odd", nil, nil); !errors.As(err, &e) || string(e.Data) != `"plain text"` {
		t.Errorf("error of unknown shape: %v", err)
	}
	if err := b.Call(t.Context(), "sum", nil, &got); err == nil || errors.As(err, new(*Error)) {
		t.Errorf("result of the wrong type: %v", err)
	}
}

func TestVersionMember(t *testing.T) {
	b := newBench(t, Options{Version: "2.0"})
	go func() {
		b.Notify("hi", nil)
		b.Reply(`"x"`, map[string]string{"s": "<&>"})
		b.ReplyError("0", CodeMethodNotFound, "no such method")
		b.Refuse("null", &Error{Code: 1, Message: "m", Data: json.RawMessage(`{"d":1}`)})
		b.Reply("1", nil)
	}()
	b.hears(`{"jsonrpc":"2.0","method":"hi"}`)
	b.hears(`{"jsonrpc":"2.0","id":"x","result":{"s":"<&>"}}`)
	b.hears(`{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no such method"}}`)
	b.hears(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":{"d":1}}}`)
	b.hears(`{"jsonrpc":"2.0","id":1,"result":null}`)
}

func TestMalformedMessagesAreNeverWritten(t *testing.T) {
	b := newBench(t, Options{MaxLine: 100})
	for name, err := range map[string]error{
		"params":      b.Notify("m", 7),
		"method":      b.Notify("", nil),
		"encoding":    b.Notify("m", make(chan int)),
		"raw params":  b.Notify("m", json.RawMessage("{")),
		"call":        b.Call(t.Context(), "m", "text", nil),
		"no id":       b.Reply("", nil),
		"broken id":   b.Reply("{}", nil),
		"two values":  b.ReplyError("1,2", 1, "m"),
		"result":      b.Reply("1", func() {}),
		"raw result":  b.Reply("1", json.RawMessage("]")),
		"error data":  b.Refuse("1", &Error{Data: json.RawMessage("x")}),
		"long params": b.Notify("m", []string{strings.Repeat("x", 100)}),
		"long call":   b.Call(t.Context(), "m", []string{strings.Repeat("x", 100)}, nil),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	go b.Notify("good", nil)
	b.hears(`{"method":"good"}`)
	if len(b.pending) != 0 {
		t.Errorf("calls left open: %v", b.pending)
	}
}

// Answers take their place among notifications and requests.
func TestWireOrder(t *testing.T) {
	b := newBench(t, Options{})
	for range 2 {
		go b.Go("m", nil, func(a Answer) { b.note(fmt.Sprintf("answer %s %s %v", a.ID, a.Result, a.Err)) })
		b.out.Next()
	}
	b.says(
		`{"method":"n1"}`,
		`{"id":2,"result":"b"}`,
		`{"method":"n2","params":{"x":1},"emittedAtMs":5}`,
		`{"id":0,"method":"ask"}`,
		`{"id":1,"error":{"code":1,"message":"no"}}`,
		`{"id":"s-1","method":"ask","jsonrpc":"2.0"}`,
		`{"id":null,"method":"ask"}`,
	)
	if err := b.finish(); err != nil {
		t.Error(err)
	}
	want := []string{
		"n1 ", `answer 2 "b" <nil>`, `n2 {"x":1}`, "ask 0", "answer 1  peer answered with error 1: no",
		`ask "s-1"`, "ask null",
	}
	if got := b.notes(); !slices.Equal(got, want) {
		t.Errorf("order %q", got)
	}
}

func TestDiagnostics(t *testing.T) {
	b := newBench(t, Options{MaxLine: 200})
	go b.Go("m", nil, func(Answer) {})
	b.out.Next()
	b.says(
		`warming up...`, `{"method":"x"`, `[{"method":"x"}]`, `[1`, `7`, `{}`, `{"id":1}`, `{"method":""}`,
		`{"method":7}`, `{"id":{},"method":"x"}`, `{"id":[1],"result":1}`, strings.Repeat("x", 300),
		`{"id":9,"result":1}`, `{"id":"1","result":1}`, `{"id":null,"error":{"code":-32700,"message":"?"}}`,
		`{"id":1,"result":1}`, `{"id":1,"result":1}`, `{"method":"fine"}`,
	)
	io.WriteString(b.in, `{"method":"cut`)
	if err := b.finish(); err != nil {
		t.Error(err)
	}
	want := map[DiagnosticKind]int{
		DiagNotJSON: 3, DiagBatch: 1, DiagNotMessage: 7, DiagLineTooLong: 1,
		DiagUnknownAnswer: 3, DiagLateAnswer: 1, DiagHalfLine: 1,
	}
	if got := b.Diagnostics(); !maps.Equal(got, want) {
		t.Errorf("counts %v", got)
	}
	if got := b.notes(); got[len(got)-2] != "fine " || !slices.Contains(got, `<unknown_answer "1">`) {
		t.Errorf("log %q", got)
	}
}

func TestEndOfStreamFailsOpenCalls(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		end    func(*bench)
		reason error
		run    error
	}{
		{"clean", func(b *bench) { b.in.Close() }, io.EOF, nil},
		{"failed", func(b *bench) { b.in.CloseWithError(broken) }, broken, broken},
		{"closed", func(b *bench) { b.Close(broken); b.Close(io.EOF) }, broken, broken},
		{"closed without reason", func(b *bench) { b.Close(nil) }, io.ErrClosedPipe, io.ErrClosedPipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Options{})
			if b.Err() != nil {
				t.Error(b.Err())
			}
			for range 11 { // two digits: the order is by number
				go b.Go("go", nil, func(a Answer) {
					if !errors.Is(a.Err, ErrClosed) || !errors.Is(a.Err, c.reason) || a.Method != "go" {
						t.Errorf("answer %+v", a)
					}
					b.note(string(a.ID))
				})
				b.out.Next()
			}
			called := make(chan error)
			go func() { called <- b.Call(context.Background(), "call", nil, nil) }()
			b.out.Next()
			c.end(b)
			err := <-called
			var closed *ClosedError
			if !errors.As(err, &closed) || !errors.Is(closed.Reason, c.reason) {
				t.Errorf("call: %v", err)
			}
			if err := <-b.ended; !errors.Is(err, c.run) {
				t.Errorf("run: %v", err)
			}
			if got := strings.Join(b.notes(), " "); got != "1 2 3 4 5 6 7 8 9 10 11" {
				t.Errorf("callbacks %s", got)
			}
			_, goErr := b.Go("m", nil, func(Answer) { t.Error("called") })
			for _, err := range []error{b.Err(), goErr, b.Notify("m", nil), b.Reply("1", nil), b.Call(t.Context(), "m", nil, nil)} {
				if !errors.Is(err, ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			}
		})
	}
}

func TestWriteFailureIsTheCallersError(t *testing.T) {
	b := newBench(t, Options{})
	b.outR.CloseWithError(io.ErrUnexpectedEOF)
	var we *WriteError
	if err := b.Call(t.Context(), "m", nil, nil); !errors.As(err, &we) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("call: %v", err)
	}
	if err := b.Reply("0", nil); !errors.As(err, &we) {
		t.Errorf("reply: %v", err)
	}
	b.says(`{"method":"still read"}`)
	if err := b.finish(); err != nil || len(b.notes()) != 1 || len(b.pending) != 0 {
		t.Errorf("%v, %q", err, b.notes())
	}
}

func TestCallGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		go func() {
			b.hears(`{"id":1,"method":"slow"}`)
			time.Sleep(time.Minute) // the bubble's clock: costs nothing
			b.says(`{"id":1,"result":1}`)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Call(ctx, "slow", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := b.Diagnostics(); got[DiagLateAnswer] != 1 || len(got) != 1 {
			t.Errorf("diagnostics %v", got)
		}
		if err := b.Call(ctx, "never", nil, nil); !errors.Is(err, context.DeadlineExceeded) || b.lastID != 1 {
			t.Errorf("a call with an ended context: %v, %d sent", err, b.lastID)
		}
	})
}

// A handler may use everything but Call, and calls from many goroutines find
// their own answers.
func TestBothWaysAtOnce(t *testing.T) {
	aR, bW := io.Pipe()
	bR, aW := io.Pipe()
	var left, right *Peer
	answer := func(p **Peer) func(Frame) {
		return func(f Frame) {
			if f.Kind == KindRequest {
				(*p).Reply(f.ID, f.Params)
			}
		}
	}
	// A pipe without a buffer would let both sides wait on each other's write.
	left = NewPeer(aR, buffered(t, aW), Options{Handler: answer(&left)})
	right = NewPeer(bR, buffered(t, bW), Options{Handler: answer(&right)})
	var runs, calls sync.WaitGroup
	runs.Go(func() { left.Run() })
	runs.Go(func() { right.Run() })
	for i := range 100 {
		calls.Go(func() {
			p := []*Peer{left, right}[i%2]
			var got []int
			if err := p.Call(t.Context(), "echo", []int{i}, &got); err != nil || !slices.Equal(got, []int{i}) {
				t.Errorf("%d: %v, %v", i, got, err)
			}
		})
	}
	calls.Wait()
	left.Close(nil)
	right.Close(nil)
	runs.Wait()
}

// buffered forwards writes through a queue, as a system pipe does.
func buffered(t *testing.T, w *io.PipeWriter) io.Writer {
	q := make(queue, 1000)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for b := range q {
			w.Write(b)
		}
	}()
	t.Cleanup(func() { close(q); <-finished })
	return q
}

type queue chan []byte

func (q queue) Write(b []byte) (int, error) { q <- slices.Clone(b); return len(b), nil }

func TestOnFrameSeesTheWire(t *testing.T) {
	var tape []string
	b := newBench(t, Options{OnFrame: func(dir Direction, line []byte) {
		tape = append(tape, fmt.Sprintf("%d %s", dir, line))
	}})
	go b.Go("m", nil, func(Answer) { tape = append(tape, "callback") })
	b.out.Next()
	b.says(`{"id":1, "result":1}`, `garbage`)
	io.WriteString(b.in, "half")
	b.finish()
	want := []string{`2 {"id":1,"method":"m"}`, `1 {"id":1, "result":1}`, "callback", "1 garbage", "1 half"}
	if !slices.Equal(tape, want) {
		t.Errorf("tape %q", tape)
	}
}

func TestRawID(t *testing.T) {
	if s := StringID("a\"b"); s != `"a\"b"` {
		t.Errorf("string id %s", s)
	}
	if n, ok := IntID(-7).Int(); n != -7 || !ok {
		t.Errorf("integer id %d, %v", n, ok)
	}
	if _, ok := StringID("7").Int(); ok {
		t.Error("a string is no integer")
	}
	for _, id := range []RawID{"0", "-1", "1.5", "null", `"x"`, "12345678901234567890"} {
		var back RawID
		b, err := json.Marshal(id)
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back != id {
			t.Errorf("%s came back as %s, %v", id, back, err)
		}
	}
	for _, id := range []RawID{"", "true", "{}", "1 2", "x"} {
		if _, err := json.Marshal(id); err == nil {
			t.Errorf("%q was accepted", string(id))
		}
	}
}
