package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	// Killed are descendants that outlived the child outside of its group and
	// were ended by the marker.
	Killed []int
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
	reaped bool
	exit   Exit

	stop   sync.Once
	exited chan struct{} // the child itself is gone; its group may not be
	done   chan struct{}
}

// Start starts the child. Stdout must be read by the caller to its end, or the
// child blocks when the pipe is full.
func Start(cfg Config) (*Process, error) { panic("unwritten") }

// PID is the process id of the child and the id of its group.
func (p *Process) PID() int { return p.pid }

// Stdin is the child's input. It supports SetWriteDeadline. Close is the
// child's end of input; closing twice is harmless.
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

// Stop walks the ladder: close stdin, wait StdinGrace, SIGTERM to the group,
// wait TermGrace, SIGKILL to the group, wait KillGrace. It returns as soon as
// Done closes; the error is nil or [ErrStuck]. When ctx ends, the ladder goes
// straight to SIGKILL. Calls at the same time share one ladder.
func (p *Process) Stop(ctx context.Context) (Exit, error) { panic("unwritten") }

// Kill sends SIGKILL to the whole group now. It does not wait.
func (p *Process) Kill() { panic("unwritten") }

// Signal sends a signal to the whole group; nothing happens after the end.
func (p *Process) Signal(sig syscall.Signal) error { panic("unwritten") }

// Sweep ends every process of this user whose environment carries OwnerEnv with
// exactly this value, and returns their ids. It spares this process and its
// ancestors. Call it at daemon start, after the lock on the data directory is
// held and before any child is started. Where processes cannot be inspected
// (other than Linux) the error is errors.ErrUnsupported.
func Sweep(owner string) (killed []int, err error) { panic("unwritten") }

// Environ builds a child's environment: the variables of lookup that allow
// names ("LC_*" stands for all with that prefix), then set on top.
func Environ(allow, environ []string, set map[string]string) []string { panic("unwritten") }

// LookPath finds an installed command line tool: the variable
// TURNKEEPER_<NAME>_BIN, then PATH, then the usual places beyond it, then
// extra (directories; "~/" is the home directory).
func LookPath(name string, env func(string) string, extra ...string) (string, error) {
	panic("unwritten")
}

type (
	drainPipe struct{ io.ReadCloser }
	tail      struct{}
)

func (*tail) String() string { return "" }

var _ = exec.Command
