package wire

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrClosed matches every [*ClosedError] with errors.Is.
var ErrClosed = errors.New("wire: conversation is over")

// ClosedError tells that the conversation ended, and why. Reason is io.EOF for
// a clean end of the stream, what [Peer.Close] was given, or the read error.
type ClosedError struct{ Reason error }

func (e *ClosedError) Error() string        { return ErrClosed.Error() + ": " + e.Reason.Error() }
func (e *ClosedError) Unwrap() error        { return e.Reason }
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

// Direction is the way a line went.
type Direction uint8

// The two directions, seen from this side.
const (
	In Direction = iota + 1
	Out
)

// String is the word for it in recordings.
func (d Direction) String() string {
	if d == In {
		return "in"
	}
	return "out"
}

// DefaultWriteTimeout bounds one write when [Options.WriteTimeout] is zero.
const DefaultWriteTimeout = 30 * time.Second

// Options of a [Peer]. All are optional, but without a Handler the requests of
// the other side are never answered.
type Options struct {
	// Handler gets every request and notification in wire order, in the
	// reading goroutine. The next line is read when it returns. It may call
	// Reply, ReplyError, Notify and Go, but never Call: the answer could not
	// be read while it waits.
	Handler func(Frame)
	// OnDiagnostic is told about unusable lines, in the reading goroutine.
	OnDiagnostic func(Diagnostic)
	// OnFrame sees every whole line, usable or not, before it is handled (In)
	// or written (Out). Calls never overlap and their order is the order of
	// the wire. The slice is valid during the call only, and OnFrame must not
	// use the peer.
	OnFrame func(dir Direction, line []byte)
	// Version is written as the "jsonrpc" member; empty leaves the member out.
	// It is never demanded of incoming messages.
	Version string
	// MaxLine bounds lines in both directions, in bytes; 0 is DefaultMaxLine.
	MaxLine int
	// Refuse answers a line that is no message, a batch above all, with an error whose id is
	// null, as JSON-RPC asks of whoever serves. Without it such a line is only diagnosed.
	Refuse bool
	// WriteTimeout bounds one write where the transport has deadlines; 0 is
	// DefaultWriteTimeout, negative is no bound.
	WriteTimeout time.Duration
}

// Peer is one side of a JSON-RPC conversation. All methods but Run may be
// called by many goroutines at once. Nothing is read before [Peer.Run].
type Peer struct {
	opts Options
	src  io.Reader
	in   *Reader
	out  *Writer

	record sync.Mutex // serialises OnFrame

	mu      sync.Mutex
	lastID  int64
	pending map[RawID]pendingCall
	diags   map[DiagnosticKind]int
	closed  *ClosedError

	closing chan struct{} // closed with p.closed set
	done    chan struct{} // closed when Run is through
}

type pendingCall struct {
	method string
	done   func(Answer)
}

// NewPeer makes a peer that reads from r and writes to w. The transport stays
// the caller's: the peer closes r only in [Peer.Close], and w never.
func NewPeer(r io.Reader, w io.Writer, opts Options) *Peer {
	timeout := opts.WriteTimeout
	if timeout == 0 {
		timeout = DefaultWriteTimeout
	}
	p := &Peer{
		opts:    opts,
		src:     r,
		in:      NewReader(r, opts.MaxLine),
		out:     NewWriter(w, opts.MaxLine, timeout),
		pending: map[RawID]pendingCall{},
		diags:   map[DiagnosticKind]int{},
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	p.out.Tap(func(line []byte) { p.recordLine(Out, line) })
	return p
}

// Run reads until the stream ends or [Peer.Close] is called and returns the
// reason: nil for a clean end, the read error, or what Close was given. Call it
// once. When it returns, every call has had its answer and no callback will
// run any more.
func (p *Peer) Run() error {
	defer close(p.done)
	for !p.isClosed() {
		line, err := p.in.Next()
		if p.isClosed() {
			break // what came in after Close is not wanted
		}
		var long *LineTooLongError
		var half *HalfLineError
		switch {
		case err == nil:
			p.handle(bytes.Clone(line))
		case errors.As(err, &long):
			p.diagnose(Diagnostic{Kind: DiagLineTooLong, Size: long.Size, Head: long.Head, Err: err})
		case errors.As(err, &half):
			p.recordLine(In, half.Line)
			p.diagnose(Diagnostic{Kind: DiagHalfLine, Size: int64(len(half.Line)), Head: head(half.Line), Err: err})
		default:
			p.shut(err)
		}
	}
	reason := p.failPending()
	if errors.Is(reason, io.EOF) {
		return nil
	}
	return reason
}

// handle is one line's turn in the wire order.
func (p *Peer) handle(line []byte) {
	p.recordLine(In, line)
	msg, fault, err := decodeLine(line)
	switch {
	case err != nil:
		p.diagnose(Diagnostic{Kind: fault, Size: int64(len(line)), Head: head(line), Err: err})
		p.refuse(fault, err)
	case msg.Method == nil:
		p.settle(msg, line)
	case p.opts.Handler != nil:
		kind := KindNotification
		if msg.ID != "" {
			kind = KindRequest
		}
		p.opts.Handler(Frame{Kind: kind, ID: msg.ID, Method: *msg.Method, Params: msg.Params, Raw: line})
	}
}

// refuse says to the other side that its line was no message. It cannot name the message,
// so the id is null.
func (p *Peer) refuse(fault DiagnosticKind, err error) {
	if !p.opts.Refuse {
		return
	}
	e := Error{Code: CodeInvalidRequest, Message: err.Error()}
	if fault == DiagNotJSON {
		e.Code = CodeParseError
	}
	if fault == DiagBatch {
		e.Message = "JSON-RPC batches are not supported"
	}
	// A transport that cannot be written to is met by whoever writes next.
	_ = p.Refuse(nullID, &e)
}

// settle gives an answer to the call that waits for it.
func (p *Peer) settle(msg envelope, line []byte) {
	p.mu.Lock()
	call, found := p.pending[msg.ID]
	delete(p.pending, msg.ID)
	last := p.lastID
	p.mu.Unlock()
	if !found {
		// Ids are handed out in order, so a past one needs no memory of its own.
		d := Diagnostic{
			Kind: DiagUnknownAnswer, ID: msg.ID, Size: int64(len(line)), Head: head(line),
			Err: errors.New("answer to an id that was never used"),
		}
		if n, ok := msg.ID.Int(); ok && n >= 1 && n <= last {
			d.Kind, d.Err = DiagLateAnswer, errors.New("answer to a call that is over")
		}
		p.diagnose(d)
		return
	}
	a := Answer{ID: msg.ID, Method: call.method, Err: msg.answerError(), Raw: line}
	if a.Err == nil {
		a.Result = msg.Result
	}
	call.done(a)
}

// failPending ends all open calls, oldest first, and returns the reason.
func (p *Peer) failPending() error {
	p.mu.Lock()
	closed := p.closed
	open := p.pending
	p.pending = nil // Go checks closed before it looks here
	p.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(open), func(a, b RawID) int {
		x, _ := a.Int()
		y, _ := b.Int()
		return cmp.Compare(x, y)
	})
	for _, id := range ids {
		open[id].done(Answer{ID: id, Method: open[id].method, Err: closed})
	}
	return closed.Reason
}

// Close ends the conversation for the given reason (nil: io.ErrClosedPipe). No
// further frame is handled, waiting Calls return at once, and r is closed if it
// is an io.Closer so that Run can return. Close does not wait for Run.
func (p *Peer) Close(reason error) {
	if reason == nil {
		reason = io.ErrClosedPipe
	}
	p.shut(reason)
	if c, ok := p.src.(io.Closer); ok {
		_ = c.Close() // the stream is given up; its error has no reader
	}
}

// shut keeps the first reason.
func (p *Peer) shut(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = &ClosedError{Reason: reason}
		close(p.closing)
	}
}

// isClosed reports whether the conversation is over.
func (p *Peer) isClosed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// Done is closed when Run has returned.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Err is nil while the conversation lasts, then its [*ClosedError].
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		return nil // not the typed nil
	}
	return p.closed
}

func (p *Peer) recordLine(dir Direction, line []byte) {
	if p.opts.OnFrame == nil {
		return
	}
	p.record.Lock()
	defer p.record.Unlock()
	p.opts.OnFrame(dir, line)
}
