package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// ErrMessageTooLong refuses an outgoing message beyond the line limit. Nothing
// was written; the stream is intact.
var ErrMessageTooLong = errors.New("wire: message is over the line limit")

// WriteError reports that the transport failed. How much of the line arrived
// is unknown, so the stream cannot be used again: the same error answers every
// later write.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "wire: write: " + e.Err.Error() }
func (e *WriteError) Unwrap() error { return e.Err }

// Writer writes whole JSON lines. It is safe for use by many goroutines; lines
// never interleave. A message is encoded and checked before its first byte is
// written, so a message that cannot be encoded leaves no trace on the stream.
type Writer struct {
	max     int
	timeout time.Duration
	hook    func(line []byte) // called under mu, before the write

	mu  sync.Mutex
	dst io.Writer
	err error // first transport failure
}

// NewWriter writes lines of at most limit bytes to w; limit <= 0 means
// [DefaultMaxLine]. If timeout is positive and w has SetWriteDeadline (pipes
// and sockets do), a write that the other side does not take within it fails:
// a provider that stopped reading must not hold its callers for ever.
func NewWriter(w io.Writer, limit int, timeout time.Duration) *Writer {
	if limit <= 0 {
		limit = DefaultMaxLine
	}
	return &Writer{dst: w, max: limit, timeout: timeout}
}

// Write encodes v as one line and writes it. Errors: the encoding error of v,
// [ErrMessageTooLong], or [*WriteError].
func (w *Writer) Write(v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // recordings stay readable; JSON needs no HTML safety
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("wire: encode: %w", err)
	}
	return w.put(buf.Bytes())
}

// WriteRaw writes one message that is already JSON. It is refused unless it is
// exactly one JSON value; line breaks between tokens are removed.
func (w *Writer) WriteRaw(raw []byte) error {
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return fmt.Errorf("wire: encode: %w", err)
	}
	buf.WriteByte('\n')
	return w.put(buf.Bytes())
}

// put writes one finished line, newline included.
func (w *Writer) put(line []byte) error {
	if len(line)-1 > w.max {
		return ErrMessageTooLong
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.hook != nil {
		w.hook(line[:len(line)-1])
	}
	if d, ok := w.dst.(interface{ SetWriteDeadline(time.Time) error }); ok && w.timeout > 0 {
		// A transport without deadlines still works, only without the bound.
		_ = d.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	n, err := w.dst.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = &WriteError{Err: err}
	}
	return w.err
}

// Tap shows every line to f before it is written, without its line end and in the order of
// the wire. f may neither keep the line nor use the writer. Call it before the first Write.
func (w *Writer) Tap(f func(line []byte)) { w.hook = f }
