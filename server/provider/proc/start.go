package proc

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// groupGrace bounds the wait for the rest of the group after SIGKILL.
const groupGrace = time.Second

// maxStderrLine is the longest line handed to OnStderr, in bytes.
const maxStderrLine = 8 << 10

// Start starts the child. Stdout must be read by the caller to its end, or the
// child blocks when the pipe is full. The error wraps what the system said.
func Start(cfg Config) (*Process, error) {
	p := &Process{cfg: withDefaults(cfg), run: rand.Text(), done: make(chan struct{})}
	p.tail = &tail{max: p.cfg.StderrTail}
	cmd := &exec.Cmd{
		Path:        p.cfg.Path,
		Args:        append([]string{p.cfg.Path}, p.cfg.Args...),
		Dir:         p.cfg.Dir,
		Env:         p.environ(),
		SysProcAttr: attributes(),
	}
	theirs, err := p.openPipes(cmd)
	if err == nil {
		started := make(chan error)
		go p.guard(cmd, started)
		err = <-started
	}
	closeAll(theirs)
	if err != nil {
		p.closePipes()
		return nil, fmt.Errorf("proc: start %s: %w", cfg.Path, err)
	}
	return p, nil
}

func withDefaults(cfg Config) Config {
	if cfg.StdinGrace == 0 {
		cfg.StdinGrace = DefaultStdinGrace
	}
	if cfg.TermGrace == 0 {
		cfg.TermGrace = DefaultTermGrace
	}
	if cfg.KillGrace <= 0 {
		cfg.KillGrace = DefaultKillGrace
	}
	if cfg.StderrTail <= 0 {
		cfg.StderrTail = DefaultStderrTail
	}
	return cfg
}

// environ is the child's environment. It is never nil: an exec.Cmd would take
// that as leave to inherit everything.
func (p *Process) environ() []string {
	env := slices.DeleteFunc(slices.Clone(p.cfg.Env), func(kv string) bool {
		return strings.HasPrefix(kv, OwnerEnv+"=") || strings.HasPrefix(kv, RunEnv+"=")
	})
	if p.cfg.Owner != "" {
		env = append(env, OwnerEnv+"="+p.cfg.Owner)
	}
	return append(env, RunEnv+"="+p.run)
}

// openPipes gives the child its three streams and returns the child's ends,
// which the parent must close after the start.
func (p *Process) openPipes(cmd *exec.Cmd) (theirs []*os.File, err error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, cmd.Stdin = stdin, in
	theirs = append(theirs, in)
	stdout, out, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stdout, cmd.Stdout = &drainPipe{file: stdout}, out
	theirs = append(theirs, out)
	stderr, errs, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stderr, cmd.Stderr = &drainPipe{file: stderr}, errs
	return append(theirs, errs), nil
}

func (p *Process) closePipes() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	for _, d := range []*drainPipe{p.stdout, p.stderr} {
		if d != nil {
			_ = d.Close()
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // the child has its own copies
	}
}

// guard starts the child and stays with it to its end. The parent death signal
// of Linux belongs to the thread that forked, not to the process: when that
// thread ends, the child is killed. So guard keeps its thread for itself until
// the child is gone. The thread costs nothing extra, as it is the one that
// blocks in wait.
func (p *Process) guard(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	stderrRead := make(chan struct{})
	go p.readStderr(stderrRead)
	started <- nil

	err = p.reap(cmd)
	p.exit = exitOf(cmd.ProcessState, err)
	_ = p.stdin.Close() // nobody reads it; a second close is harmless
	p.stdout.drain()
	p.stderr.drain()
	p.exit.Survivors = awaitGroup(p.pid, groupGrace)
	p.exit.Swept = sweepRun(p.run)
	<-stderrRead
	close(p.done)
}

func exitOf(state *os.ProcessState, err error) Exit {
	if state == nil {
		return Exit{Code: -1, Err: fmt.Errorf("proc: wait: %w", err)}
	}
	e := Exit{Code: state.ExitCode(), Err: err}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code, e.Signal = -1, ws.Signal()
	}
	return e
}

// readStderr keeps the tail and hands lines on until the pipe ends.
func (p *Process) readStderr(finished chan<- struct{}) {
	defer close(finished)
	r := bufio.NewReaderSize(p.stderr, maxStderrLine)
	whole := true // the next piece begins a line
	for {
		piece, err := r.ReadSlice('\n')
		p.tail.add(piece)
		if whole && len(piece) > 0 && p.cfg.OnStderr != nil {
			p.cfg.OnStderr(strings.TrimRight(string(piece), "\r\n"))
		}
		whole = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
