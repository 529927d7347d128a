package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Stop walks the ladder: close stdin, wait StdinGrace, SIGTERM to the group,
// wait TermGrace, SIGKILL to the group, wait KillGrace. It returns as soon as
// Done closes; the error is nil or [ErrStuck]. When ctx ends, the ladder goes
// straight to SIGKILL. Calls at the same time are harmless: each waits its own
// bounds, SIGTERM is sent once.
func (p *Process) Stop(ctx context.Context) (Exit, error) {
	_ = p.stdin.Close() // closed already is just as good
	if p.waitFor(ctx, p.cfg.StdinGrace) {
		return p.exit, nil
	}
	if ctx.Err() == nil {
		p.term.Do(func() { _ = p.Signal(syscall.SIGTERM) }) // the next rung is the answer to a failure
		if p.waitFor(ctx, p.cfg.TermGrace) {
			return p.exit, nil
		}
	}
	p.Kill()
	if p.waitFor(context.WithoutCancel(ctx), p.cfg.KillGrace) {
		return p.exit, nil
	}
	return p.Exit(), ErrStuck
}

// waitFor reports whether the process ended within d and before ctx.
func (p *Process) waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// Kill sends SIGKILL to the whole group now. It does not wait.
func (p *Process) Kill() { _ = p.Signal(syscall.SIGKILL) }

// Signal sends a signal to the whole group; nothing happens after the end.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil // the number may be another process's by now
	}
	if err := syscall.Kill(-p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("proc: signal %v: %w", sig, err)
	}
	return nil
}

// collectThenKill waits for the child, collects it and kills the rest of its
// group, for systems that cannot wait without collecting. In theory the group's
// number could be given away in between; a group that still has members, the
// only one worth killing, keeps its number.
func (p *Process) collectThenKill(cmd *exec.Cmd) error {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // nobody left is the good case
	p.reaped = true
	return err
}
