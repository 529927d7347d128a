package daemon

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// ReadToken returns the token of the file at path. A file that others can read is
// refused: whoever read it once still has it.
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
	return token, nil
}

// NewToken puts a fresh token into the file at path, mode 0600, and returns it.
func NewToken(path string) (string, error) {
	// Two texts of 26 letters and digits: 260 random bits.
	token := rand.Text() + rand.Text()
	if err := writeFile(path, []byte(token+"\n")); err != nil {
		return "", startErrorf(CodeToken, err, "%v", err)
	}
	return token, nil
}

// ensureToken is the configured token, or the file's, or a fresh one put there.
func ensureToken(configured, path string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	token, err := ReadToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return NewToken(path)
	}
	return token, err
}
