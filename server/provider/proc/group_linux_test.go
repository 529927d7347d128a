package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// grip holds on to a process that is not our child, so that its death can be
// waited for and its number cannot change hands.
func grip(t *testing.T, pid int) (died func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return func() {} // dead already
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return func() {
		t.Helper()
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n != 1 || err != nil {
				t.Errorf("process %d lives on (%v)", pid, err)
			}
			return
		}
	}
}

func TestGroupDiesWithTheChild(t *testing.T) {
	p := start(t, "wrapper")
	pid, rest := ready(t, p)
	died := grip(t, pid)
	// The descendant holds stdout open and would do so for ever.
	if b, err := io.ReadAll(rest); err != nil || len(b) > 0 {
		t.Errorf("rest of stdout: %q, %v", b, err)
	}
	died()
	if e := waitDone(t, p); e.Code != 0 || len(e.Swept) > 0 || len(e.Survivors) > 0 {
		t.Errorf("exit %+v", e)
	}
}

func TestStopReachesTheWholeGroup(t *testing.T) {
	p := start(t, "wrapper-waits")
	pid, _ := ready(t, p)
	died := grip(t, pid)
	if e, err := p.Stop(t.Context()); err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("exit %v, %v", e, err)
	}
	died()
}

func TestEscapedDescendantIsSwept(t *testing.T) {
	p := start(t, "escape-marked")
	pid, rest := ready(t, p)
	died := grip(t, pid)
	if b, err := io.ReadAll(rest); err != nil || len(b) > 0 {
		t.Errorf("rest of stdout: %q, %v", b, err)
	}
	died()
	if e := waitDone(t, p); !slices.Equal(e.Swept, []int{pid}) {
		t.Errorf("swept %v, want %d", e.Swept, pid)
	}
}

// The reader is late, the writer is gone, and a descendant that nothing can
// recognise keeps the pipe open: all is delivered, then it ends.
func TestStdoutEndsThoughUnknownDescendantHoldsIt(t *testing.T) {
	p := start(t, "escape-clean")
	waitDone(t, p)
	pid, rest := ready(t, p)
	grip(t, pid) // ends it with the test
	b, err := io.ReadAll(rest)
	if err != nil || string(b) != strings.Repeat("z", 32<<10) {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	if n, err := p.Stdout().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestStdoutEndsThoughDescendantWritesOn(t *testing.T) {
	p := start(t, "escape-chatty")
	pid, rest := ready(t, p)
	grip(t, pid)
	waitDone(t, p)
	n, err := io.Copy(io.Discard, rest)
	if err != nil || n > 2*maxDrain {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestChildDiesWithTheDaemon(t *testing.T) {
	daemon := start(t, "daemon")
	pid, _ := ready(t, daemon)
	died := grip(t, pid)
	if err := syscall.Kill(daemon.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	died() // it ignores SIGTERM and the end of its input
	if e := waitDone(t, daemon); e.Signal != syscall.SIGKILL {
		t.Errorf("daemon ended by %v", e)
	}
}

// The thread that asked for the child may end long before the child.
func TestChildOutlivesTheCallingThread(t *testing.T) {
	type result struct {
		p   *Process
		tid int
		err error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		p, err := Start(Config{Path: self(), Env: []string{roleEnv + "=echo", fastExit}})
		got <- result{p, unix.Gettid(), err}
	}()
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", r.tid))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if r.tid == os.Getpid() || time.Now().After(deadline) {
			break // the main thread is parked instead of ended
		}
		runtime.Gosched()
	}
	fmt.Fprintln(r.p.Stdin(), "alive")
	r.p.Stdin().Close()
	if b, err := io.ReadAll(r.p.Stdout()); string(b) != "alive\n" {
		t.Errorf("child said %q, %v, %v", b, err, waitDone(t, r.p))
	}
	if e := waitDone(t, r.p); e.Code != 0 {
		t.Errorf("exit %v", e)
	}
}

func TestSweepTouchesExactlyItsOwn(t *testing.T) {
	owner := t.Name()
	mine := exec.Command(self())
	mine.Env = []string{OwnerEnv + "=" + owner}
	other := exec.Command(self())
	other.Env = []string{OwnerEnv + "=" + owner + "2", "X" + OwnerEnv + "=" + owner}
	for _, c := range []*exec.Cmd{mine, other} {
		c.Env = append(c.Env, roleEnv+"=stubborn")
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
		})
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := Sweep(owner)
	if err != nil || !slices.Equal(killed, []int{mine.Process.Pid}) {
		t.Errorf("killed %v, %v; want %d", killed, err, mine.Process.Pid)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other one: %v", err)
	}
	if st, ok := stat(other.Process.Pid); !ok || st.state == 'Z' {
		t.Errorf("the other one is gone")
	}
	if killed, err := Sweep(owner); err != nil || len(killed) > 0 {
		t.Errorf("second sweep: %v, %v", killed, err)
	}
	if _, err := Sweep(""); err == nil {
		t.Error("sweep without an owner is accepted")
	}
}

func TestSweepSparesItself(t *testing.T) {
	p := start(t, "sweeper", patient, func(c *Config) { c.Owner = t.Name() })
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "ready [] <nil>\n" {
		t.Errorf("sweeper said %q, %v", out, err)
	}
	if e := waitDone(t, p); e.Code != 0 {
		t.Errorf("exit %v", e)
	}
}

// A crashed daemon's escaped descendants are found by its next start.
func TestSweepAfterCrash(t *testing.T) {
	pid := spawn("stubborn-mute", &syscall.SysProcAttr{Setsid: true}, []string{OwnerEnv + "=" + t.Name()})
	died := grip(t, pid)
	killed, err := Sweep(t.Name())
	if err != nil || !slices.Equal(killed, []int{pid}) {
		t.Errorf("killed %v, %v", killed, err)
	}
	died()
	var ws syscall.WaitStatus
	syscall.Wait4(pid, &ws, 0, nil)
}

func TestNoDescriptorLeaks(t *testing.T) {
	count := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	run := func() {
		p, err := Start(Config{Path: self(), Env: []string{roleEnv + "=echo", fastExit}})
		if err != nil {
			t.Fatal(err)
		}
		p.Stdin().Close()
		io.Copy(io.Discard, p.Stdout())
		waitDone(t, p)
	}
	run()
	before := count()
	for range 5 {
		run()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if _, err := Start(Config{Path: "/nonexistent"}); err == nil || count() > before {
		t.Errorf("failed start: %v, %d descriptors", err, count())
	}
}

// A process that is replacing its program shows no environment for a moment, and is not
// missed for that: this one does nothing else.
func TestEscapedDescendantThatChangesItsProgramIsSwept(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(again, []byte("exec /bin/sh \"$0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `setsid /bin/sh -c 'echo $$; exec /bin/sh "$0" >/dev/null' ` + again + ` & wait`
	for range 100 {
		p, err := Start(Config{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}})
		if err != nil {
			t.Fatal(err)
		}
		var pid int // it has left the group, and runs
		if _, err := fmt.Fscanln(p.Stdout(), &pid); err != nil {
			t.Fatal(err)
		}
		died := grip(t, pid)
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := waitDone(t, p); !slices.Equal(e.Swept, []int{pid}) {
			t.Fatalf("swept %v, not %d", e.Swept, pid)
		}
		died()
	}
}
