package api

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	corkFlushAt  = 64 << 10         // bytes after which a held write goes out in the middle of a batch
	writeBound   = 30 * time.Second // a peer that takes nothing for that long is given up
	socketBuffer = 512              // the WebSocket library's own buffer; the cork is the real one
)

// corkBuffers are shared by all sockets: an idle one holds none.
var corkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, corkFlushAt+4096); return &b }}

// cork is a connection that can hold what is written and send it as one write. The
// WebSocket library writes each frame on its own; with the cork, a batch of frames costs
// one system call.
type cork struct {
	net.Conn
	writes *atomic.Int64 // system calls, for tests

	mu     sync.Mutex
	held   *[]byte // nil while nothing is held back
	broken error   // of the write that failed: what follows half a frame is nobody's

	// Apart from mu, which a write that waits for its peer keeps.
	boundMu sync.Mutex
	end     time.Time // when everything on the connection ends; zero: it does not
}

func (c *cork) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.send(p)
	}
	*c.held = append(*c.held, p...)
	if len(*c.held) < corkFlushAt {
		return len(p), nil
	}
	_, err := c.send(*c.held)
	*c.held = (*c.held)[:0]
	return len(p), err
}

func (c *cork) send(p []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if err := c.bound(); err != nil {
		return 0, err
	}
	c.writes.Add(1)
	n, err := c.Conn.Write(p)
	c.broken = err
	return n, err
}

// bound says how long the next write may take.
func (c *cork) bound() error {
	c.boundMu.Lock()
	defer c.boundMu.Unlock()
	until := time.Now().Add(writeBound)
	if !c.end.IsZero() && c.end.Before(until) {
		until = c.end
	}
	return c.SetWriteDeadline(until)
}

// endBy makes everything on the connection end at t, also a write that waits for its peer
// now.
func (c *cork) endBy(t time.Time) {
	c.boundMu.Lock()
	defer c.boundMu.Unlock()
	c.end = t
	_ = c.SetDeadline(t) // fails on a closed connection, which has ended
}

// hold begins to hold writes back.
func (c *cork) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = corkBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	}
}

// release sends what was held.
func (c *cork) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return nil
	}
	var err error
	if len(*c.held) > 0 {
		_, err = c.send(*c.held)
	}
	if cap(*c.held) <= 2*corkFlushAt { // one that a large frame has grown is not kept
		*c.held = (*c.held)[:0]
		corkBuffers.Put(c.held)
	}
	c.held = nil
	return err
}

// corkWriter hands a corked connection to whoever hijacks the response.
type corkWriter struct {
	http.ResponseWriter
	writes *atomic.Int64
	cork   *cork
}

// Hijack implements http.Hijacker.
func (w *corkWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.cork = &cork{Conn: conn, writes: w.writes}
	return w.cork, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(w.cork, socketBuffer)), nil
}
