package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Variables set on every child, so that descendants can be recognised.
const (
	// OwnerEnv names the daemon: the same for all of its children and for all
	// of its runs. [Sweep] looks for it.
	OwnerEnv = "TURNKEEPER_OWNER"
	// RunEnv is unique to one [Start], so that stopping one session can never
	// touch another one's processes.
	RunEnv = "TURNKEEPER_RUN"
)

// Bounds used where a [Config] leaves them zero.
const (
	DefaultStdinGrace = 3 * time.Second
	DefaultTermGrace  = 3 * time.Second
	DefaultKillGrace  = 5 * time.Second
	DefaultStderrTail = 64 << 10
)

// Config says what to run and how to end it.
type Config struct {
	Path string   // the executable, best absolute, see [LookPath]
	Args []string // without the program name
	Dir  string   // working directory; empty: the daemon's
	// Env is the whole environment, see [Environ]: nothing is inherited.
	// OwnerEnv and RunEnv are added to it.
	Env []string
	// Owner is the value of OwnerEnv; empty: the variable is not set.
	Owner string

	StdinGrace time.Duration // from closing stdin to SIGTERM; negative: none
	TermGrace  time.Duration // from SIGTERM to SIGKILL; negative: none
	KillGrace  time.Duration // from SIGKILL to giving up

	StderrTail int               // bytes of stderr kept, see [Process.StderrTail]
	OnStderr   func(line string) // called line by line, long lines cut; must return promptly
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit code; -1 if it died by a signal or is not known
	Signal syscall.Signal // 0 if it exited by itself
	// Err is nil for exit code 0. It is [ErrRunning] before the end.
	Err error
	// Swept are descendants that had left the group and were ended by their
	// run marker (Linux only).
	Swept []int
	// Survivors are members of the group that even SIGKILL did not end in
	// time, as happens to a process that hangs in the kernel (Linux only).
	Survivors []int
}

// String is for people: "exit 0", "exit 3", "signal: killed".
func (e Exit) String() string {
	switch {
	case errors.Is(e.Err, ErrRunning):
		return "running"
	case e.Signal != 0:
		return "signal: " + e.Signal.String()
	default:
		return fmt.Sprintf("exit %d", e.Code)
	}
}

var (
	// ErrRunning is the Err of an [Exit] asked for before the end.
	ErrRunning = errors.New("proc: process is running")
	// ErrStuck tells that a process survived SIGKILL for KillGrace, as one
	// does that hangs in the kernel.
	ErrStuck = errors.New("proc: process did not die")
)

// Process is a running or ended child. All methods may be called by many
// goroutines at once.
type Process struct {
	cfg    Config
	run    string
	pid    int
	stdin  *os.File
	stdout *drainPipe
	stderr *drainPipe
	tail   *tail

	mu     sync.Mutex // signals and reaping exclude each other
	reaped bool       // the pid may belong to someone else from here on

	exit Exit // written before done is closed, read after
	term sync.Once
	done chan struct{}
}

// PID is the process id of the child and the id of its group.
func (p *Process) PID() int { return p.pid }

// Stdin is the child's input. It supports SetWriteDeadline. Close is the
// child's end of input; closing twice is harmless. It is closed at the end.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout is the child's output. It ends (io.EOF) after the child has exited and
// everything the child wrote was read, even while a descendant keeps the pipe
// open. For one reader at a time; Close unblocks it.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// StderrTail is the end of what the child wrote to stderr so far.
func (p *Process) StderrTail() string { return p.tail.String() }

// Done is closed when the child has ended and been reaped, its group is gone,
// its marked descendants are gone, and its stderr was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the child ended; its Err is [ErrRunning] until Done is closed.
func (p *Process) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{Code: -1, Err: ErrRunning}
	}
}
