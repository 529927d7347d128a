package proc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// sweepBound is how long marked processes may take to die.
const sweepBound = 2 * time.Second

// Sweep ends every process of this user whose environment carries OwnerEnv with
// exactly this value, and returns their ids. It spares this process and its
// ancestors. Call it at daemon start, after the lock on the data directory is
// held and before any child is started. A descendant that was started with a
// cleaned environment cannot be found. The error names processes that did not
// die. Where processes cannot be inspected (other than Linux) it is
// errors.ErrUnsupported.
func Sweep(owner string) (killed []int, err error) {
	if owner == "" {
		return nil, errors.New("proc: sweep needs an owner")
	}
	return sweep(OwnerEnv + "=" + owner)
}

// sweepRun ends what left the group of one run. Its failures are reported by
// nothing but the processes themselves; Sweep meets them again.
func sweepRun(run string) []int {
	killed, _ := sweep(RunEnv + "=" + run)
	return killed
}

// sweep kills until no process carries entry: a marked process may fork while
// it is being looked for, or be changing its program.
func sweep(entry string) ([]int, error) {
	spared := ancestry(os.Getpid())
	killed := map[int]bool{}
	left := poll(sweepBound, func() []int {
		var left []int
		for _, pid := range pids() {
			if spared[pid] {
				continue
			}
			seen := look(pid, entry)
			if seen == other {
				continue
			}
			left = append(left, pid)
			if seen == marked && killMarked(pid, entry) {
				killed[pid] = true
			}
		}
		return left
	})
	left = slices.DeleteFunc(left, func(pid int) bool { return look(pid, entry) != marked })
	out := slices.Sorted(maps.Keys(killed))
	if len(left) > 0 {
		return out, fmt.Errorf("proc: processes %v with %s: %w", left, entry, ErrStuck)
	}
	return out, nil
}

// killMarked kills pid if it is still the process that carries entry. The
// handle pins the process, so the number cannot change hands between the look
// and the kill.
func killMarked(pid int, entry string) bool {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer handle.Release() //nolint:errcheck // nothing can be done about it
	return look(pid, entry) == marked && handle.Signal(syscall.SIGKILL) == nil
}

type mark int

const (
	other  mark = iota // it does not carry the entry, is not ours to read, or is dying
	marked             // it carries the entry
	unsure             // it is changing its program, and has no environment for the moment
)

// look reads whether the environment pid was started with has exactly this
// entry. Processes of other users cannot be read; a dying process has no
// environment any more.
func look(pid int, entry string) mark {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return other
	}
	if len(env) == 0 {
		if st, ok := stat(pid); ok && st.changing() {
			return unsure
		}
		return other
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == entry {
			return marked
		}
	}
	return other
}

// ancestry is pid and all above it: a daemon that was itself started from a
// marked shell must not end the shell it runs in.
func ancestry(pid int) map[int]bool {
	out := map[int]bool{}
	for pid > 0 && !out[pid] {
		out[pid] = true
		st, ok := stat(pid)
		if !ok {
			break
		}
		pid = st.ppid
	}
	return out
}
