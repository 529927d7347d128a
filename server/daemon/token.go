package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/config"
)

// ReadToken returns the token of the file at path. A file that others can read is
// refused: whoever read it once still has it. So is a token that could be guessed.
func ReadToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", startErrorf(CodeToken, nil, "%s can be read by other users; make a new one with: turnkeeper token --rotate", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", startErrorf(CodeToken, nil, "%s is empty; make a new one with: turnkeeper token --rotate", path)
	}
	if err := config.CheckToken(token); err != nil {
		return "", startErrorf(CodeToken, nil, "%s: %v; make a new one with: turnkeeper token --rotate", path, err)
	}
	return token, nil
}

// NewToken puts a fresh token into the file at path, mode 0600, and returns it. A daemon
// that runs takes it as soon as somebody shows it, and within tokenLook anyway.
func NewToken(path string) (string, error) {
	// Two texts of 26 letters and digits: 260 random bits.
	token := rand.Text() + rand.Text()
	if err := writeFile(path, []byte(token+"\n")); err != nil {
		return "", startErrorf(CodeToken, err, "%v", err)
	}
	return token, nil
}

// tokenLook is how often the token file is looked at. Whoever replaces it with the command
// line shows the new token at once; this is for those who write the file themselves.
const tokenLook = 2 * time.Second

// tokenKeeper holds the token that counts. One that comes from the file follows the file;
// one that was configured stays as it is until the daemon ends.
type tokenKeeper struct {
	path string // "": the token was configured

	mu     sync.Mutex
	token  string
	known  []string    // every token of this run: none is ever logged
	seen   os.FileInfo // the file as it was looked at last
	log    *slog.Logger
	change func(token string)
}

// newTokenKeeper takes the configured token, or the file's, or a fresh one that it puts
// there.
func newTokenKeeper(configured, path string) (*tokenKeeper, error) {
	if configured != "" {
		return &tokenKeeper{token: configured, known: []string{configured}}, nil
	}
	k := &tokenKeeper{path: path}
	k.seen, _ = os.Stat(path) // before it is read: what is written meanwhile is looked at again
	token, err := ReadToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = NewToken(path)
	}
	if err != nil {
		return nil, err
	}
	k.token, k.known = token, []string{token}
	return k, nil
}

// follow says what to do with another token from now on.
func (k *tokenKeeper) follow(log *slog.Logger, change func(token string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log, k.change = log, change
}

// secrets are what must not be in the log.
func (k *tokenKeeper) secrets() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.known)
}

// look takes the file's token if the file is another one than it was. A file that is gone,
// or cannot be used, changes nothing: the daemon would otherwise answer to nobody.
func (k *tokenKeeper) look() {
	if k.path == "" {
		return
	}
	replaced, err := k.lookOnce()
	switch {
	case err != nil:
		k.log.Warn("the token file cannot be used; the token stays as it is", "error", err)
	case replaced:
		k.log.Info("the token was replaced; who came with the old one must sign in again")
	}
}

// lookOnce leaves what is to be logged to its caller: a log line needs the lock too.
func (k *tokenKeeper) lookOnce() (replaced bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err != nil || k.change == nil || sameFile(info, k.seen) {
		return false, nil
	}
	k.seen = info
	token, err := ReadToken(k.path)
	if err != nil || token == k.token {
		return false, err
	}
	k.token = token
	k.known = append(k.known, token)
	k.change(token)
	return true, nil
}

func sameFile(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// run looks at the file until ctx ends.
func (k *tokenKeeper) run(ctx context.Context) {
	if k.path == "" {
		return
	}
	tick := time.NewTicker(tokenLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.look()
		}
	}
}
