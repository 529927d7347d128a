package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxLine is the longest line, in bytes without its line end, that is
// read or written when no other limit is given. Providers send whole tool
// outputs and base64 images in one line, so the limit is generous: it guards
// memory, not manners.
const DefaultMaxLine = 64 << 20

const (
	// readBuffer is the unit of reading; lines up to this size cost no copy.
	readBuffer = 64 << 10
	// keepBuffer is the largest assembly buffer kept for the next long line.
	// One huge line must not pin its memory for the rest of the session.
	keepBuffer = 1 << 20
	// headSize is how much of an unusable line is kept for people to read.
	headSize = 512
)

// LineTooLongError reports a line beyond the limit. The line was skipped up to
// and including its newline; the stream is intact and reading can go on.
type LineTooLongError struct {
	Limit int    // longest line allowed, in bytes
	Size  int64  // bytes skipped, without the line end
	Head  []byte // the first bytes of the line, at most 512
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("wire: line of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// HalfLineError reports bytes after the last newline when the stream ended:
// the writer died in the middle of a message. The next call returns io.EOF.
type HalfLineError struct {
	Line []byte // what arrived; valid until the next call
}

func (e *HalfLineError) Error() string {
	return fmt.Sprintf("wire: stream ended inside a line after %d bytes", len(e.Line))
}

// Reader splits a stream into lines of bounded length. It is for one
// goroutine. Memory is bounded by the line limit whatever the stream does.
type Reader struct {
	src  *bufio.Reader
	max  int
	long []byte // assembly of lines that exceed readBuffer
	err  error  // final error, returned for ever
}

// NewReader reads lines of at most limit bytes from r; limit <= 0 means
// [DefaultMaxLine].
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultMaxLine
	}
	return &Reader{src: bufio.NewReaderSize(r, readBuffer), max: limit}
}

// Next returns the next line that is not blank, without its line end (LF or
// CRLF). The slice is valid until the next call.
//
// A [*LineTooLongError] is about that line alone: call Next again. A
// [*HalfLineError] is followed by io.EOF. Every other error is final; io.EOF
// is the clean end of the stream.
func (r *Reader) Next() ([]byte, error) {
	for r.err == nil {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
	return nil, r.err
}

// line reads one line, blank or not, and keeps a final error in r.err.
func (r *Reader) line() ([]byte, error) {
	if cap(r.long) > keepBuffer {
		r.long = nil
	}
	part, err := r.src.ReadSlice('\n')
	if err == nil && len(part) <= r.max {
		return trimEnd(part), nil
	}
	r.long = append(r.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		// One byte more than the limit is allowed for a CR before the LF.
		if len(r.long) > r.max+1 {
			return nil, r.skip(int64(len(r.long)))
		}
		part, err = r.src.ReadSlice('\n')
		r.long = append(r.long, part...)
	}
	return r.finish(err)
}

// finish judges an assembled line that ended with err.
func (r *Reader) finish(err error) ([]byte, error) {
	line := trimEnd(r.long)
	if err != nil {
		r.err = err
	}
	if len(line) > r.max {
		return nil, r.tooLong(int64(len(line)))
	}
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, &HalfLineError{Line: line}
	default:
		return nil, fmt.Errorf("wire: read: %w", err)
	}
}

// skip drops the rest of a line whose first size bytes are already too many.
func (r *Reader) skip(size int64) error {
	for {
		part, err := r.src.ReadSlice('\n')
		size += int64(len(trimEnd(part)))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			r.err = err
		}
		return r.tooLong(size)
	}
}

func (r *Reader) tooLong(size int64) error {
	head := bytes.Clone(r.long[:min(len(r.long), headSize)])
	return &LineTooLongError{Limit: r.max, Size: size, Head: head}
}

// trimEnd removes one LF or CRLF.
func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n > 1 && line[n-2] == '\r' {
			line = line[:n-2]
		}
	}
	return line
}
