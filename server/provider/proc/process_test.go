package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start starts a child in a role and stops it at the end of the test.
func start(t *testing.T, role string, change ...func(*Config)) *Process {
	t.Helper()
	cfg := Config{
		Path: self(), Env: []string{roleEnv + "=" + role, fastExit},
		StdinGrace: 20 * time.Millisecond, TermGrace: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	p, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.Stdout().Close()
		<-p.Done()
	})
	return p
}

func patient(c *Config) { c.StdinGrace, c.TermGrace = time.Minute, time.Minute }

// ready waits for the child's first line and returns the pid it names, if any. A chatty
// descendant may have been faster.
func ready(t *testing.T, p *Process) (pid int, rest *bufio.Reader) {
	t.Helper()
	r := bufio.NewReader(p.Stdout())
	line, err := r.ReadString('\n')
	for err == nil && strings.HasPrefix(line, "y") {
		line, err = r.ReadString('\n')
	}
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("child said %q, %v", line, err)
	}
	fmt.Sscanf(line, "ready %d", &pid)
	return pid, r
}

func waitDone(t *testing.T, p *Process) Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("process does not end")
	}
	return p.Exit()
}

func TestStopClosesStdinFirst(t *testing.T) {
	p := start(t, "echo", patient)
	if e := p.Exit(); !errors.Is(e.Err, ErrRunning) || e.String() != "running" {
		t.Errorf("exit while running: %+v", e)
	}
	fmt.Fprintln(p.Stdin(), "hello")
	r := bufio.NewReader(p.Stdout())
	if line, _ := r.ReadString('\n'); line != "hello\n" {
		t.Fatalf("echo said %q", line)
	}
	e, err := p.Stop(t.Context())
	if err != nil || e.Code != 0 || e.Err != nil || e.String() != "exit 0" {
		t.Errorf("exit %+v, %v", e, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("stdout after the end: %v", err)
	}
	if e2, err := p.Stop(t.Context()); err != nil || e2.Code != 0 {
		t.Errorf("second stop: %+v, %v", e2, err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signal after the end: %v", err)
	}
}

func TestStopLadder(t *testing.T) {
	for _, c := range []struct {
		role string
		want string
	}{
		{"polite", "exit 7"},
		{"stubborn", "signal: killed"},
	} {
		t.Run(c.role, func(t *testing.T) {
			p := start(t, c.role, func(cfg *Config) {
				if c.role == "polite" {
					cfg.TermGrace = time.Minute
				}
			})
			ready(t, p)
			e, err := p.Stop(t.Context())
			if err != nil || e.String() != c.want || e.Err == nil {
				t.Errorf("exit %v (%v), %v", e, e.Err, err)
			}
		})
	}
}

func TestStopKillsAtOnceWhenContextEnds(t *testing.T) {
	p := start(t, "stubborn", patient)
	ready(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := p.Stop(ctx)
	if err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("exit %v, %v", e, err)
	}
}

func TestConcurrentStops(t *testing.T) {
	p := start(t, "polite", func(c *Config) { c.TermGrace = time.Minute })
	ready(t, p)
	ends := make(chan Exit, 4)
	for range cap(ends) {
		go func() {
			e, err := p.Stop(context.Background())
			if err != nil {
				t.Error(err)
			}
			ends <- e
		}()
	}
	for range cap(ends) {
		if e := <-ends; e.Code != 7 {
			t.Errorf("exit %v", e)
		}
	}
}

func TestFailureIsReported(t *testing.T) {
	var lines []string
	p := start(t, "fail", func(c *Config) {
		c.StderrTail = 10
		c.OnStderr = func(l string) { lines = append(lines, l) }
	})
	e := waitDone(t, p)
	if e.Code != 3 || e.Signal != 0 || e.Err == nil || e.String() != "exit 3" {
		t.Errorf("exit %+v", e)
	}
	if got := p.StderrTail(); got != "xxxxx\nlast" {
		t.Errorf("tail %q", got)
	}
	want := []string{"first", strings.Repeat("x", maxStderrLine), "last"}
	if !slices.Equal(lines, want) {
		t.Errorf("lines of length %d: %.80q", len(lines), lines)
	}
}

func TestStartFailsVisibly(t *testing.T) {
	_, err := Start(Config{Path: "/nonexistent/tool"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("SECRET_OF_THE_DAEMON", "x")
	p := start(t, "environ", func(c *Config) {
		c.Owner = "me"
		c.Env = append(c.Env, "A=1", OwnerEnv+"=forged", RunEnv+"=forged")
	})
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	slices.Sort(got)
	want := []string{"A=1", fastExit, roleEnv + "=environ", OwnerEnv + "=me", RunEnv + "=" + p.run}
	if !slices.Equal(got, want) {
		t.Errorf("environment %q", got)
	}
}

func TestEnviron(t *testing.T) {
	got := Environ([]string{"HOME", "LC_*"},
		[]string{"HOME=/h", "HOMEX=1", "LC_ALL=C", "LC_=", "OPENAI_API_KEY=s", "broken"},
		map[string]string{"HOME": "/other", "NEW": "a=b"})
	want := []string{"HOME=/other", "LC_=", "LC_ALL=C", "NEW=a=b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if e := Environ(nil, []string{"A=1"}, nil); e == nil || len(e) != 0 {
		t.Errorf("empty environment is %#v", e)
	}
	for _, name := range BaseAllow() {
		if strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") {
			t.Errorf("%s looks like a credential", name)
		}
	}
}

func TestTail(t *testing.T) {
	tail := &tail{max: 4}
	for _, s := range []string{"a", "bc", "", "defghijkl", "m"} {
		tail.add([]byte(s))
	}
	if tail.String() != "jklm" || cap(tail.buf) > 64 {
		t.Errorf("tail %q, capacity %d", tail, cap(tail.buf))
	}
}

func TestDrainIsBounded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	io.WriteString(w, strings.Repeat("x", 100))
	d := &drainPipe{file: r, left: 10}
	d.drain()
	if n, err := d.Read(nil); n != 0 || err != nil {
		t.Errorf("empty read: %d, %v", n, err)
	}
	// As when the reader meets the flag before the deadline is set.
	d.file.SetReadDeadline(time.Now())
	if b, err := io.ReadAll(d); string(b) != "xxxxxxxxxx" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestCloseUnblocksTheReader(t *testing.T) {
	p := start(t, "stubborn")
	_, rest := ready(t, p)
	got := make(chan error)
	go func() {
		_, err := rest.ReadByte()
		got <- err
	}()
	p.Stdout().Close()
	if err := <-got; !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// The way of systems that cannot wait without collecting.
func TestCollectThenKill(t *testing.T) {
	cmd := exec.Command(self())
	cmd.Env = []string{roleEnv + "=fail", fastExit}
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{pid: cmd.Process.Pid}
	if err := p.collectThenKill(cmd); err == nil || !p.reaped {
		t.Errorf("error %v, reaped %v", err, p.reaped)
	}
	if e := exitOf(cmd.ProcessState, nil); e.Code != 3 {
		t.Errorf("exit %+v", e)
	}
	if e := exitOf(nil, os.ErrInvalid); e.Code != -1 || !errors.Is(e.Err, os.ErrInvalid) {
		t.Errorf("without a state: %+v", e)
	}
}
