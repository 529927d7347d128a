package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxDrain bounds what is read after the child's exit. A pipe holds less (64
// KiB by default, 1 MiB where an unprivileged process raised it); more can only
// come from a descendant that goes on writing.
const maxDrain = 1 << 20

// drainPipe is the reading end of a pipe whose writers cannot be trusted to
// close it. Before drain it is a plain pipe. After drain it delivers what is
// buffered already and then ends, whoever still holds the other end: all that
// the child wrote was in the buffer before its exit could be seen.
type drainPipe struct {
	file     *os.File
	draining atomic.Bool
	left     int // bytes still allowed while draining; reader only
	ended    bool
}

// Read is for one goroutine at a time.
func (d *drainPipe) Read(b []byte) (int, error) {
	if d.ended {
		return 0, io.EOF
	}
	for !d.draining.Load() {
		n, err := d.file.Read(b)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, d.end(err)
		}
		// Only drain sets a deadline, after the flag: the loop ends here.
	}
	return d.readBuffered(b)
}

// readBuffered reads without waiting; an empty pipe is the end.
func (d *drainPipe) readBuffered(b []byte) (int, error) {
	if d.left == 0 {
		d.left = maxDrain
	}
	for len(b) > 0 {
		n, err := d.tryRead(b[:min(len(b), d.left)])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EINTR):
			continue // drain set its deadline a moment after its flag
		case n > 0:
			if d.left -= n; d.left == 0 {
				d.ended = true // the next Read is the end
				_ = d.file.Close()
			}
			return n, nil
		case err == nil, errors.Is(err, syscall.EAGAIN):
			return 0, d.end(io.EOF)
		default:
			return 0, d.end(err)
		}
	}
	return 0, nil
}

// tryRead is one non-blocking read. The expired deadline that woke the reader
// must go first, because it fails every read.
func (d *drainPipe) tryRead(b []byte) (n int, err error) {
	if err := d.file.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	conn, err := d.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	connErr := conn.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), b)
		return true // never wait
	})
	return max(n, 0), errors.Join(connErr, err)
}

// end closes the pipe on its last read, so that a reader need not.
func (d *drainPipe) end(err error) error {
	if errors.Is(err, io.EOF) {
		d.ended = true
		_ = d.file.Close()
		return io.EOF
	}
	return err
}

// drain is called once the child is gone.
func (d *drainPipe) drain() {
	d.draining.Store(true)
	_ = d.file.SetReadDeadline(time.Now()) // fails only if closed: then nobody reads
}

// Close unblocks a reader.
func (d *drainPipe) Close() error { return d.file.Close() }

// tail keeps the last max bytes added.
type tail struct {
	max int

	mu  sync.Mutex
	buf []byte
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.max {
		// Shift rarely, not for each line.
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-t.max):])
}
