package hub_test

// Fan-out, measured from outside: one publisher, N clients of the loopback in a process
// of their own (perf.md, rows 11 to 14). Three servers take turns: rawloop writes to plain
// connections one after another, naive gives each client a queue and a Write for each
// message, impl is the hub behind the API's stream.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/hub"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(clientEnv); addr != "" {
		if err := runClients(addr, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	payload  = 1000 // bytes of one message's data
	inFlight = 32   // messages that clients may lag before the publisher waits
	secret   = "token"
)

func BenchmarkFanout(b *testing.B) {
	for _, kind := range []string{"rawloop", "naive", "impl"} {
		for _, n := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s/%s", kind, short(n)), func(b *testing.B) { fanOut(b, kind, n) })
		}
	}
}

// BenchmarkFanoutStalled paces 100 clients at 200 messages/s, without and with one more
// that reads nothing: what the others see must not depend on it.
func BenchmarkFanoutStalled(b *testing.B) {
	for _, stalled := range []int{0, 1} {
		b.Run(strconv.Itoa(stalled), func(b *testing.B) { fanOutPaced(b, stalled) })
	}
}

func short(n int) string {
	if n >= 1000 {
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// counted is a listener that counts the writes of its connections.
type counted struct {
	net.Listener
	writes atomic.Int64
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{c, &l.writes}, nil
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// broadcaster is a server under test.
type broadcaster interface {
	serve(l net.Listener)
	broadcast() // one message to every client
	clients() int
	close()
}

func newBroadcaster(kind string) broadcaster {
	switch kind {
	case "rawloop":
		return &rawLoop{}
	case "naive":
		return &naive{queues: map[chan []byte]struct{}{}}
	}
	return newImpl()
}

// rawLoop is the limit of plain writes: no protocol beyond a frame's header.
type rawLoop struct {
	mu    sync.Mutex
	conns []net.Conn
	l     net.Listener
	wg    sync.WaitGroup
}

func (s *rawLoop) serve(l net.Listener) {
	s.l = l
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReaderSize(c, 1024)
			if req, err := http.ReadRequest(r); err != nil || req.URL == nil {
				_ = c.Close()
				continue
			}
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
		}
	})
}

func (s *rawLoop) broadcast() {
	for _, c := range s.conns {
		_, _ = c.Write(rawFrame)
	}
}

func (s *rawLoop) clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *rawLoop) close() {
	_ = s.l.Close()
	s.wg.Wait()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

var (
	event    = hub.AppendEvent(nil, &agent.Event{Seq: 1, Kind: agent.MessageUpdated, SessionID: "ses_1", Data: data})
	data     = json.RawMessage(`"` + strings.Repeat("x", payload-2) + `"`)
	rawFrame = append([]byte{0x81, 126, byte(len(event) >> 8), byte(len(event) & 0xff)}, event...)
)

// naive is what is usually written with coder/websocket: a queue and a writer for each
// client, one Write for each message.
type naive struct {
	mu     sync.Mutex
	queues map[chan []byte]struct{}
	server *http.Server
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (s *naive) serve(l net.Listener) {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.server = &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: time.Minute}
	s.wg.Go(func() { _ = s.server.Serve(l) })
}

func (s *naive) handle(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	if _, _, err := c.Read(s.ctx); err != nil { // hello
		return
	}
	q := make(chan []byte, 2*inFlight)
	s.mu.Lock()
	s.queues[q] = struct{}{}
	s.mu.Unlock()
	defer func() { s.mu.Lock(); delete(s.queues, q); s.mu.Unlock() }()
	ctx := c.CloseRead(s.ctx)
	for {
		select {
		case m := <-q:
			if c.Write(ctx, websocket.MessageText, m) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *naive) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		select {
		case q <- event:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *naive) clients() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.queues) }

func (s *naive) close() {
	s.cancel()
	_ = s.server.Close()
	s.wg.Wait()
}

// impl is the hub behind the stream, over a log in memory that forgets nothing.
type impl struct {
	api.Reader
	hub    *hub.Hub
	api    *api.API
	server *http.Server
	wg     sync.WaitGroup
	mu     sync.Mutex
	log    []agent.Event
}

func newImpl() *impl {
	s := &impl{}
	s.hub = hub.New(s, hub.Options{})
	s.api = api.New(http.NewServeMux(), api.Deps{Reader: s, Hub: s.hub, Token: secret, Logger: slog.New(slog.DiscardHandler)})
	s.server = api.Server(s.api.Handler())
	return s
}

func (s *impl) Head(context.Context, agent.WorkspaceID) (int64, string, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.log)), "e", 1, nil
}

func (s *impl) Events(_ context.Context, _ agent.WorkspaceID, after int64, limit int) (agent.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := min(after+int64(limit), int64(len(s.log)))
	return agent.Log{Items: s.log[after:to], Seq: int64(len(s.log)), Epoch: "e", Oldest: 1}, nil
}

func (s *impl) serve(l net.Listener) { s.wg.Go(func() { _ = s.server.Serve(l) }) }

func (s *impl) broadcast() {
	s.mu.Lock()
	e := agent.Event{Seq: int64(len(s.log) + 1), Time: time.Now(), Kind: agent.MessageUpdated, SessionID: "ses_1", WorkspaceID: "ws_1", Data: data}
	s.log = append(s.log, e)
	s.mu.Unlock()
	s.hub.Publish([]agent.Event{e})
}

func (s *impl) clients() int { return s.hub.Stats().Subscriptions }

func (s *impl) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = s.api.Close(ctx)
	_ = s.server.Close()
	s.wg.Wait()
}

// crowd is the process of the clients.
type crowd struct {
	cmd   *exec.Cmd
	out   *bufio.Scanner
	total atomic.Int64
	p99   atomic.Int64 // of the last second's deliveries, µs
	done  chan struct{}
	stdin io.WriteCloser
}

func newCrowd(b *testing.B, addr string, n int) *crowd {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := &crowd{cmd: exec.Command(exe, strconv.Itoa(n)), done: make(chan struct{})} //nolint:gosec // the test itself
	c.cmd.Env = append(os.Environ(), clientEnv+"="+addr)
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(c.done)
		for c.out.Scan() {
			total, p99, _ := strings.Cut(c.out.Text(), " ")
			if v, err := strconv.ParseInt(total, 10, 64); err == nil {
				c.total.Store(v)
			}
			if v, err := strconv.ParseInt(p99, 10, 64); err == nil && v >= 0 {
				c.p99.Store(v)
			}
		}
	}()
	return c
}

// reach waits until the clients have together got at least n messages.
func (c *crowd) reach(b *testing.B, n int64) {
	for c.total.Load() < n {
		select {
		case <-c.done:
			b.Fatal("the clients have ended")
		case <-time.After(200 * time.Microsecond):
		}
	}
}

func (c *crowd) end() {
	_ = c.stdin.Close()
	<-c.done
	_ = c.cmd.Wait()
}

func listen(b *testing.B) *counted {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return &counted{Listener: l}
}

// gather connects n clients and returns when the server has them all.
func gather(b *testing.B, s broadcaster, l *counted, n int) *crowd {
	b.Helper()
	s.serve(l)
	c := newCrowd(b, l.Addr().String(), n)
	for s.clients() < n {
		select {
		case <-c.done:
			b.Fatal("the clients have ended")
		case <-time.After(time.Millisecond):
		}
	}
	return c
}

func fanOut(b *testing.B, kind string, n int) {
	l := listen(b)
	s := newBroadcaster(kind)
	defer s.close()
	before := memoryInUse()
	c := gather(b, s, l, n)
	defer c.end()
	perConn := float64(memoryInUse()-before) / float64(n)
	writes, cpu := l.writes.Load(), cpuTime()
	start := c.total.Load()
	b.ResetTimer()
	for i := range b.N {
		c.reach(b, start+int64(i-inFlight)*int64(n))
		s.broadcast()
	}
	c.reach(b, start+int64(b.N)*int64(n))
	b.StopTimer()
	deliveries := float64(b.N) * float64(n)
	b.ReportMetric(deliveries/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/deliveries, "cpu-us/delivery")
	b.ReportMetric(float64(l.writes.Load()-writes)/deliveries, "syscalls/delivery")
	b.ReportMetric(perConn, "B/conn")
}

// fanOutPaced measures what clients see at a steady pace.
func fanOutPaced(b *testing.B, stalled int) {
	const n, pace = 100, 5 * time.Millisecond
	l := listen(b)
	s := newImpl()
	defer s.close()
	c := gather(b, s, l, n)
	defer c.end()
	for range stalled {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the benchmark has ended
		if err := handshake(conn, bufio.NewReader(conn)); err != nil {
			b.Fatal(err)
		}
	}
	for s.clients() < n+stalled {
		<-time.After(time.Millisecond)
	}
	heap := s.hub.Stats()
	start := c.total.Load()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	b.ResetTimer()
	for range b.N {
		<-tick.C
		s.broadcast()
	}
	c.reach(b, start+int64(b.N)*n)
	b.StopTimer()
	b.ReportMetric(float64(c.p99.Load())/1000, "p99-ms")
	b.ReportMetric(float64(s.hub.Stats().RingBytes-heap.RingBytes), "ring-B")
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// memoryInUse is heap and stacks after a collection; resident memory would still hold
// what an earlier server left.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func percentile(d []int64, p float64) int64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(float64(len(d))*p), len(d)-1)]
}
