package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

const (
	// maxTerminals bounds how many commands an agent may have at a time.
	maxTerminals = 32
	// keptOutput is how much of a command's output is kept when the agent sets no limit.
	keptOutput = 1 << 20
	// killBound is how long a command has to end after it was told to.
	killBound = 5 * time.Second
)

var (
	errNoTerminal   = errors.New("there is no such terminal")
	errTooManyTerms = errors.New("too many terminals are open")
)

// terminal is one command that runs for the agent, in the workspace.
type terminal struct {
	session string
	process *proc.Process
	read    chan struct{} // closed when all of its output was read

	mu        sync.Mutex
	output    []byte
	limit     int
	truncated bool
}

// createTerminal runs a command. One line without arguments goes to the shell, because that
// is what agents mean by it.
func (r *runtime) createTerminal(q *acp.CreateTerminalRequest) (any, error) {
	dir, err := r.terminalDir(q.Cwd)
	if err != nil {
		return nil, err
	}
	// The shell puts both outputs into one, in the order in which they are written.
	args := append([]string{"-c", `exec "$0" "$@" 2>&1`, q.Command}, q.Args...)
	if len(q.Args) == 0 && strings.ContainsAny(q.Command, " \t\n|&;<>$`") {
		args = []string{"-c", "exec 2>&1\n" + q.Command}
	}
	env := slices.Clone(r.params.Env)
	for _, v := range q.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	t := &terminal{session: q.SessionID, read: make(chan struct{}), limit: keptOutput}
	if q.OutputByteLimit != nil {
		t.limit = min(max(*q.OutputByteLimit, 0), keptOutput)
	}
	var id string
	full := false
	r.Do(func() {
		if full = len(r.terminals) >= maxTerminals || r.gone() != nil; full {
			return
		}
		id = fmt.Sprintf("term-%s", r.Mint.Request())
	})
	if full {
		return nil, errTooManyTerms
	}
	t.process, err = proc.Start(proc.Config{Path: "/bin/sh", Args: args, Dir: dir, Env: env, Owner: r.o.Owner, StdinGrace: -1, TermGrace: time.Second})
	if err != nil {
		return nil, err
	}
	_ = t.process.Stdin().Close() // nobody types
	go t.collect()
	late := false
	r.Do(func() {
		if late = r.gone() != nil; !late {
			r.terminals[id] = t
		}
	})
	if late {
		t.end()
		return nil, errNoTerminal
	}
	return acp.CreateTerminalResponse{TerminalID: id}, nil
}

// terminalDir is where a command runs: in the workspace, or below it.
func (r *runtime) terminalDir(dir string) (string, error) {
	cwd := r.params.Root.Cwd
	if dir == "" || dir == cwd {
		if cwd == "" {
			return "", errDenied
		}
		return cwd, nil
	}
	root, rel, err := within(cwd, dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat(rel)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &os.PathError{Op: "chdir", Path: dir, Err: errors.New("it is not a directory")}
	}
	return dir, nil
}

// collect reads the output to its end, and keeps the latest of it.
func (t *terminal) collect() {
	defer close(t.read)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.process.Stdout().Read(buf)
		t.keep(buf[:n])
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.keep([]byte("\n" + err.Error()))
			}
			return
		}
	}
}

func (t *terminal) keep(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, b...)
	if over := len(t.output) - t.limit; over > 0 {
		for over < len(t.output) && !utf8.RuneStart(t.output[over]) {
			over++
		}
		t.output = slices.Clone(t.output[over:])
		t.truncated = true
	}
}

// terminal serves what is asked of a command that was run.
func (r *runtime) terminal(method string, q *acp.TerminalRef) (any, error) {
	var t *terminal
	r.Do(func() {
		if t = r.terminals[q.TerminalID]; t != nil && t.session != q.SessionID {
			t = nil
		}
		if t != nil && method == acp.MethodReleaseTerminal {
			delete(r.terminals, q.TerminalID)
		}
	})
	if t == nil {
		return nil, errNoTerminal
	}
	switch method {
	case acp.MethodTerminalOutput:
		return t.shown(), nil
	case acp.MethodWaitForTerminal:
		<-t.read
		<-t.process.Done()
		return t.exit(), nil
	}
	t.end() // kill, release
	return acp.Empty{}, nil
}

func (t *terminal) shown() acp.TerminalOutputResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := acp.TerminalOutputResponse{Output: strings.ToValidUTF8(string(t.output), "\uFFFD"), Truncated: t.truncated}
	select {
	case <-t.process.Done():
		e := t.exit()
		out.ExitStatus = &e
	default:
	}
	return out
}

// exit is how the command ended. Called when it has.
func (t *terminal) exit() acp.ExitStatus {
	e := t.process.Exit()
	if e.Signal != 0 {
		name := e.Signal.String()
		return acp.ExitStatus{Signal: &name}
	}
	return acp.ExitStatus{ExitCode: &e.Code}
}

// end stops the command and everything it started.
func (t *terminal) end() {
	ctx, stop := context.WithTimeout(context.Background(), killBound)
	defer stop()
	_, _ = t.process.Stop(ctx) // what will not die is swept with the agent
	<-t.read
}

// endTerminals ends every command of the agent. Called with the lock held.
func (r *runtime) endTerminals() {
	for _, id := range slices.Sorted(maps.Keys(r.terminals)) {
		t := r.terminals[id]
		r.served.Add(1)
		r.Later(func() {
			go func() {
				defer r.served.Done()
				t.end()
			}()
		})
	}
	clear(r.terminals)
}
