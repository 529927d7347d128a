package daemon

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The log is two files of this size at most, the older one with ".1" behind its name.
const logSize = 10 << 20

// secretKeys are attributes that are never written, whatever they hold.
var secretKeys = []string{"token", "authorization", "cookie", "login_code", "secret", "password", "api_key"}

const redacted = "(redacted)"

// newLogger writes JSON lines to the file and short lines to console (nil for none).
// Close the returned closer last: what is logged after it is lost.
func newLogger(path string, console io.Writer, level string, secrets func() []string) (*slog.Logger, io.Closer, error) {
	var min slog.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, err
	}
	file, err := openRotating(path, logSize)
	if err != nil {
		return nil, nil, err
	}
	clean := func(_ []string, a slog.Attr) slog.Attr { return redact(a, secrets()) }
	handlers := []slog.Handler{slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min, ReplaceAttr: clean})}
	if console != nil {
		handlers = append(handlers, slog.NewTextHandler(console, &slog.HandlerOptions{
			Level: max(min, slog.LevelInfo),
			ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey && len(groups) == 0 {
					return slog.String(slog.TimeKey, a.Value.Time().Format(time.TimeOnly))
				}
				return clean(groups, a)
			},
		}))
	}
	return slog.New(slog.NewMultiHandler(handlers...)), file, nil
}

// redact hides attributes whose name says that they are secret, and the secrets
// themselves wherever they appear in a text.
func redact(a slog.Attr, secrets []string) slog.Attr {
	if slices.Contains(secretKeys, strings.ToLower(a.Key)) {
		return slog.String(a.Key, redacted)
	}
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
		a.Value = slog.StringValue(text)
	default:
		return a
	}
	for _, s := range secrets {
		if s != "" && strings.Contains(text, s) {
			text = strings.ReplaceAll(text, s, redacted)
			a.Value = slog.StringValue(text)
		}
	}
	return a
}

// rotating is a file that is put aside once it is full.
type rotating struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

func openRotating(path string, max int64) (*rotating, error) {
	if err := os.MkdirAll(filepath.Dir(path), private); err != nil {
		return nil, err
	}
	r := &rotating{path: path, max: max}
	return r, r.open()
}

func (r *rotating) open() error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.file, r.size = f, info.Size()
	return nil
}

// Write never fails for want of rotation: a log that grows is better than none.
func (r *rotating) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return 0, os.ErrClosed
	}
	if r.size+int64(len(p)) > r.max && r.size > 0 {
		if err := os.Rename(r.path, r.path+".1"); err == nil {
			old := r.file
			if err := r.open(); err == nil {
				_ = old.Close() // its lines are in the system's hands already
			}
		}
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

func (r *rotating) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
