package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func kept(t *testing.T, configured, path string) string {
	t.Helper()
	k, err := newTokenKeeper(configured, path)
	if err != nil {
		t.Fatal(err)
	}
	return k.token
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	made := kept(t, "", path)
	if m := mode(t, path); m != 0o600 {
		t.Errorf("mode %o", m)
	}
	if len(made) < 40 || strings.ContainsAny(made, " \n") {
		t.Errorf("a token of %d characters", len(made))
	}
	if kept(t, "", path) != made {
		t.Error("a second start reads another one")
	}
	const own = "a-token-of-my-own-that-nobody-guesses"
	if kept(t, own, path) != own {
		t.Error("a configured token does not outrank the file")
	}
	rotated, err := NewToken(path)
	if err != nil || rotated == made || mode(t, path) != 0o600 {
		t.Errorf("rotated: same %v, mode %o, %v", rotated == made, mode(t, path), err)
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, c := range []struct {
		name, content, says string
		mode                fs.FileMode
	}{
		{"others can read it", long, "other users", 0o640},
		{"empty", "\n", "empty", 0o600},
		{"short", "hunter2\n", "at least 32", 0o600},
		{"one less than enough", strings.Repeat("x", 31), "at least 32", 0o600},
		{"not visible", long + " " + long, "visible ASCII", 0o600},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := errors.Join(os.WriteFile(path, []byte(c.content), c.mode), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := newTokenKeeper("", path)
		if codeOf(err) != CodeToken || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--rotate") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the token is in %v", c.name, err)
		}
	}
}

// A daemon that runs follows its token file, and is not locked out by one that is gone or
// cannot be used.
func TestTheTokenFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	k, err := newTokenKeeper("", path)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	var log strings.Builder
	k.follow(slog.New(slog.NewTextHandler(&log, nil)), func(token string) { changes = append(changes, token) })
	first := k.token
	k.look()
	if len(changes) != 0 {
		t.Errorf("nothing was changed, and yet %v", changes)
	}
	second, err := NewToken(path)
	if err != nil {
		t.Fatal(err)
	}
	k.look()
	k.look()
	if !slices.Equal(changes, []string{second}) || !slices.Equal(k.secrets(), []string{first, second}) {
		t.Errorf("changes %v, secrets %v, log %s", changes, k.secrets(), log.String())
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(path, []byte("short\n"), 0o600) },
		func() error { return os.Chmod(path, 0o644) },
		func() error { return os.Remove(path) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		k.look()
		k.look()
	}
	if len(changes) != 1 || strings.Count(log.String(), "level=WARN") != 2 || strings.Contains(log.String(), second) {
		t.Errorf("a file that cannot be used: changes %v, log %s", changes, log.String())
	}
	if _, err := NewToken(path); err != nil {
		t.Fatal(err)
	}
	k.look()
	if len(changes) != 2 {
		t.Errorf("after a good file again: %v", changes)
	}
}
