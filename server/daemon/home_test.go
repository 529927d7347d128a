package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func codeOf(err error) Code {
	var e *StartError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestTheDirectoryIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := prepareDir(dir); err != nil {
		t.Fatal(err)
	}
	if m := mode(t, dir); m != 0o700 {
		t.Errorf("a new directory has mode %o", m)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := prepareDir(dir); err != nil {
		t.Fatal(err)
	}
	if m := mode(t, dir); m != 0o700 {
		t.Errorf("a directory of ours was left at mode %o", m)
	}
}

func TestADirectoryOfSomethingElseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := prepareDir(dir); codeOf(err) != CodeDirectory {
		t.Errorf("got %v", err)
	}
	if m := mode(t, dir); m != 0o755 {
		t.Errorf("its mode became %o", m)
	}
}

func TestOneDaemonPerDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, _, err := Locked(path); held || err != nil {
		t.Fatalf("nobody was there: %v, %v", held, err)
	}
	first, err := acquire(path, "DIR", true)
	if err != nil {
		t.Fatal(err)
	}
	_, err = acquire(path, "DIR", true)
	var e *StartError
	if !errors.As(err, &e) || e.Code != CodeRunning || e.PID != os.Getpid() {
		t.Errorf("a second one got %v", err)
	}
	if held, pid, err := Locked(path); !held || pid != os.Getpid() || err != nil {
		t.Errorf("Locked says %v, %d, %v", held, pid, err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	again, err := acquire(path, "DIR", true)
	if err != nil {
		t.Fatalf("after the first had ended: %v", err)
	}
	if err := again.release(); err != nil {
		t.Fatal(err)
	}
}

func TestListenSaysWhoIsInTheWayAndFindsAWayAround(t *testing.T) {
	first, err := listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	taken := first.Addr().String()
	if _, err := listen(t.Context(), taken, false); codeOf(err) != CodeAddressTaken || !strings.Contains(err.Error(), taken) {
		t.Errorf("a taken address: %v", err)
	}
	other, err := listen(t.Context(), taken, true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if url := urlOf(other.Addr()); !strings.HasPrefix(url, "http://127.0.0.1:") || url == "http://"+taken {
		t.Errorf("beside it: %s", url)
	}
	if _, err := listen(t.Context(), "203.0.113.1:1", false); codeOf(err) != CodeAddress {
		t.Errorf("an address of another machine: %v", err)
	}
}

func TestLogHidesSecretsAndRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "daemon.log")
	var console strings.Builder
	log, file, err := newLogger(path, &console, "info", func() []string { return []string{"s3cret-token"} })
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hello s3cret-token", "authorization", "Bearer x", "url", "http://h/?t=s3cret-token", "error", errors.New("bad s3cret-token"))
	log.Debug("not at this level")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"file": string(raw), "console": console.String()} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "Bearer") || strings.Contains(text, "level") && strings.Contains(text, "not at") {
			t.Errorf("%s: %s", name, text)
		}
		if strings.Count(text, redacted) != 4 {
			t.Errorf("%s hides %d of 4: %s", name, strings.Count(text, redacted), text)
		}
	}
	if m := mode(t, path); m != 0o600 {
		t.Errorf("mode %o", m)
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	r, err := openRotating(path, 100)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 39) + "\n")
	var writers sync.WaitGroup
	for range 5 {
		writers.Go(func() {
			for range 4 {
				if _, err := r.Write(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(line); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	for _, p := range []string{path, path + ".1"} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 100 || info.Size()%40 != 0 {
			t.Errorf("%s has %d bytes", filepath.Base(p), info.Size())
		}
	}
}
