package proc

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes make the child lead its own group and die with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the child, kills the rest of its group and collects it. The
// child is left a zombie until the group is killed: as long as it is not
// collected, its number, which is the group's, cannot be given to others.
func (p *Process) reap(cmd *exec.Cmd) error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil { // some emulated kernels lack it
		return p.collectThenKill(cmd)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // nobody left is the good case
	err = cmd.Wait()
	p.reaped = true
	return err
}

// awaitGroup waits until the group has no living member and returns those left
// when the bound is over.
func awaitGroup(pgid int, bound time.Duration) []int {
	return poll(bound, func() []int {
		if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
			return nil
		}
		return groupMembers(pgid)
	})
}

// poll asks again with growing pauses until nothing is left or time is up. The
// kernel offers no event for the death of a process that is not our child.
func poll(bound time.Duration, left func() []int) []int {
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		pids := left()
		if len(pids) == 0 {
			return nil
		}
		select {
		case <-deadline.C:
			return pids
		case <-time.After(pause):
		}
	}
}

// groupMembers are the processes of a group that are not zombies. A zombie
// waits for whoever is its parent now; nothing of ours runs in it.
func groupMembers(pgid int) []int {
	return slices.DeleteFunc(pids(), func(pid int) bool {
		st, ok := stat(pid)
		return !ok || st.pgrp != pgid || st.state == 'Z' || st.state == 'X'
	})
}

// pids are all processes that can be seen now.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error still counts
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

type procStat struct {
	state  byte
	ppid   int
	pgrp   int
	flags  uint64
	envLen uint64 // bytes of the environment
	envEnd uint64 // its address, 0 while the program is being replaced
}

// Fields of /proc/PID/stat by their place after the command name (proc(5) counts from 1,
// and the name is the second).
const (
	statState    = 0
	statParent   = 1
	statGroup    = 2
	statFlags    = 6
	statEnvStart = 47
	statEnvEnd   = 48
)

// kernelThread is PF_KTHREAD.
const kernelThread = 0x00200000

// changing says of a process whose environment reads as empty that it is one moment's: a
// program takes the place of another, and has none until it is laid out, or by now has one.
// A program that was started without any has an empty one at an address.
func (s procStat) changing() bool {
	return s.state != 'Z' && s.state != 'X' && s.flags&kernelThread == 0 && (s.envEnd == 0 || s.envLen > 0)
}

// stat reads the fields after the command name, which may itself contain
// anything and therefore ends at the last parenthesis.
func stat(pid int) (procStat, bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) <= statEnvEnd {
		return procStat{}, false
	}
	var bad bool
	number := func(at int) uint64 {
		n, err := strconv.ParseUint(string(f[at]), 10, 64)
		bad = bad || err != nil
		return n
	}
	st := procStat{
		state: f[statState][0], ppid: int(number(statParent)), pgrp: int(number(statGroup)), flags: number(statFlags),
		envLen: number(statEnvEnd) - number(statEnvStart), envEnd: number(statEnvEnd),
	}
	return st, !bad
}
