package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

// DefaultOutbox is how many bytes may wait in an [Outbox] when no other bound is given.
const DefaultOutbox = 8 << 20

var errOutboxClosed = errors.New("wire: outbox is closed")

// Outbox is an io.Writer that takes whole lines at once and writes them in order from one
// goroutine of its own, for a side that must not wait for a slow reader at each line. What
// waits is bounded: when it is full, Write waits like any other pipe. It also tells when a
// line has really left, see [Outbox.Written]. It is safe for concurrent use.
type Outbox struct {
	dst     io.Writer
	limit   int
	timeout time.Duration

	mu     sync.Mutex
	moved  *sync.Cond
	queue  []parcel
	size   int // bytes in queue
	err    error
	closed bool
	done   chan struct{}
}

// parcel is a line, or somebody who waits for the lines before it.
type parcel struct {
	line    []byte
	written func(error)
}

// NewOutbox starts writing to dst; limit <= 0 is [DefaultOutbox]. A timeout above 0 bounds
// each write where dst has deadlines. Close ends it.
func NewOutbox(dst io.Writer, limit int, timeout time.Duration) *Outbox {
	if limit <= 0 {
		limit = DefaultOutbox
	}
	o := &Outbox{dst: dst, limit: limit, timeout: timeout, done: make(chan struct{})}
	o.moved = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// Write queues one line. It waits while the queue is full, though never for a line that is
// larger than the whole of it. The error is the one of a write before.
func (o *Outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && !o.closed && o.size > 0 && o.size+len(b) > o.limit {
		o.moved.Wait()
	}
	if err := o.fault(); err != nil {
		return 0, err
	}
	o.queue = append(o.queue, parcel{line: append([]byte(nil), b...)})
	o.size += len(b)
	o.moved.Broadcast()
	return len(b), nil
}

// Written calls f, in the writing goroutine, when everything queued so far has been
// written, or could not be. f may neither write nor wait: the goroutine is the one that makes
// room.
func (o *Outbox) Written(f func(err error)) {
	o.mu.Lock()
	if err := o.fault(); err != nil {
		o.mu.Unlock()
		f(err)
		return
	}
	o.queue = append(o.queue, parcel{written: f})
	o.moved.Broadcast()
	o.mu.Unlock()
}

// Size is how many bytes wait.
func (o *Outbox) Size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size
}

// Close writes what is queued, waits for that, and ends the goroutine. Error: of the first
// write that failed.
func (o *Outbox) Close() error {
	o.mu.Lock()
	o.closed = true
	o.moved.Broadcast()
	o.mu.Unlock()
	<-o.done
	return o.err
}

func (o *Outbox) fault() error {
	if o.err == nil && o.closed {
		return errOutboxClosed
	}
	return o.err
}

func (o *Outbox) run() {
	defer close(o.done)
	for {
		p, ok := o.next()
		switch {
		case !ok:
			return
		case p.written != nil:
			p.written(o.err) // only this goroutine sets it
		default:
			o.put(p.line)
		}
	}
}

func (o *Outbox) next() (parcel, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed {
		o.moved.Wait()
	}
	if len(o.queue) == 0 {
		return parcel{}, false
	}
	p := o.queue[0]
	o.queue = o.queue[1:]
	return p, true
}

// put writes one line, unless one before it has failed: after half a line nothing can
// follow.
func (o *Outbox) put(line []byte) {
	var err error
	if o.err == nil {
		if d, ok := o.dst.(interface{ SetWriteDeadline(time.Time) error }); ok && o.timeout > 0 {
			_ = d.SetWriteDeadline(time.Now().Add(o.timeout)) // without deadlines there is no bound
		}
		_, err = o.dst.Write(line)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= len(line)
	if err != nil {
		o.err = err
	}
	o.moved.Broadcast()
}
