package daemon

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is the test binary in one of its other roles.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	done  chan struct{} // closed when it has been collected
}

// spawn starts the role on a directory. It is killed when the test ends.
func spawn(tb testing.TB, role, home string, env ...string) *process {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append([]string{
		roleEnv + "=" + role, "TURNKEEPER_HOME=" + home, "TURNKEEPER_LISTEN=127.0.0.1:0", "TURNKEEPER_LOG=info",
	}, env...)...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.lines = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.kill)
	return p
}

// listener reads the first line: where it listens, or what else it said.
func (p *process) listener() (l Listener, said string) {
	line, err := p.lines.ReadString('\n')
	if err != nil && line == "" {
		return l, err.Error()
	}
	if json.Unmarshal([]byte(line), &l) != nil {
		return l, strings.TrimSpace(line)
	}
	return l, ""
}

// kill is kill -9. It returns once the process is gone.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// end sends a signal and waits.
func (p *process) end(sig syscall.Signal) {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
	p.wait()
}

// wait reads what is left and collects the process.
func (p *process) wait() int {
	_, _ = io.Copy(io.Discard, p.lines)
	_ = p.cmd.Wait() // the exit code says it
	close(p.done)
	return p.cmd.ProcessState.ExitCode()
}

// spawnDaemon starts a daemon of its own process and waits until it serves.
func spawnDaemon(tb testing.TB, home string, env ...string) (*process, *client) {
	tb.Helper()
	p := spawn(tb, roleDaemon, home, env...)
	l, said := p.listener()
	if said != "" {
		tb.Fatalf("the daemon did not start: %s", said)
	}
	return p, newClient(tb, l, home)
}

// startTime measures from the start of the process to its first 200.
func startTime(tb testing.TB, role, home string, env ...string) (time.Duration, *process) {
	tb.Helper()
	begin := time.Now()
	p := spawn(tb, role, home, env...)
	l, said := p.listener()
	if said != "" {
		tb.Fatalf("%s did not start: %s", role, said)
	}
	c := &client{tb: tb, url: l.URL, http: plainHTTP(tb)}
	if status, problem := c.do("GET", "/healthz", nil, nil); status != 200 {
		tb.Fatalf("%s answers %d %s", role, status, problem)
	}
	return time.Since(begin), p
}
