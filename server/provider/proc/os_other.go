//go:build unix && !linux

package proc

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// attributes make the child lead its own group. Only Linux has a parent death
// signal; elsewhere the closed stdin is what tells the child.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap cannot wait without collecting here.
func (p *Process) reap(cmd *exec.Cmd) error { return p.collectThenKill(cmd) }

// awaitGroup cannot tell the living from zombies here and does not wait.
func awaitGroup(int, time.Duration) []int { return nil }

// sweepRun has no means to read environments here.
func sweepRun(string) []int { return nil }

// Sweep has no means to read environments here: errors.ErrUnsupported.
func Sweep(string) (killed []int, err error) { return nil, errors.ErrUnsupported }
