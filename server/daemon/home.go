package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// private is the mode of the directory: prompts, answers and the token are in it.
const private fs.FileMode = 0o700

// prepareDir makes dir and closes it to other users. A directory that is open to others
// and holds somebody else's files is refused rather than closed: TURNKEEPER_HOME=/tmp
// would otherwise take /tmp from everyone.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, private); err != nil {
		return startErrorf(CodeDirectory, err, "%v", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return startErrorf(CodeDirectory, err, "%v", err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if !isHome(dir) {
		return startErrorf(CodeDirectory, nil, "%s is open to other users and holds other files; choose a directory of its own, or run: chmod 700 %s", dir, dir)
	}
	if err := os.Chmod(dir, private); err != nil {
		return startErrorf(CodeDirectory, err, "%v", err)
	}
	return nil
}

// isHome reports whether dir is empty or has files of ours in it.
func isHome(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == "lock" || e.Name() == "config.toml" {
			return true
		}
	}
	return len(entries) == 0
}

// lock holds the directory for this process. The kernel releases it with the process,
// however that ends.
type lock struct{ held *flock.Flock }

// acquire takes the lock at path or says who has it. The holder's number is in the file;
// it is there for people, the lock is what counts. chosen says that dir is not where one
// looks unless told to.
func acquire(path, dir string, chosen bool) (*lock, error) {
	held := flock.New(path, flock.SetPermissions(0o600))
	ok, err := held.TryLock()
	if err != nil {
		return nil, startErrorf(CodeDirectory, err, "%v", err)
	}
	if !ok {
		pid := holder(path)
		who := "another daemon"
		if pid > 0 {
			who = "a daemon with pid " + strconv.Itoa(pid)
		}
		open := "turnkeeper open"
		if chosen {
			open += " --home " + dir
		}
		e := startErrorf(CodeRunning, nil, "%s already serves %s; open its page with: %s; or give this one a directory of its own with --home", who, dir, open)
		e.PID = pid
		return nil, e
	}
	// The file is written in place: a rename would leave the lock on a file without a name.
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(startErrorf(CodeDirectory, err, "%v", err), held.Unlock())
	}
	return &lock{held}, nil
}

func (l *lock) release() error { return l.held.Unlock() }

// holder is the process number that the lock file names, 0 if none.
func holder(path string) int {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid
}

// Locked reports whether a daemon holds the directory of this lock file now, and its
// process number if it is known. It leaves no trace.
func Locked(path string) (held bool, pid int, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	f := flock.New(path)
	ok, err := f.TryRLock()
	if err != nil {
		return false, 0, err
	}
	if ok {
		return false, 0, f.Unlock()
	}
	return true, holder(path), nil
}

// writeFile replaces path by content, mode 0600, so that a reader sees all or nothing.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
