package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// readAll renders what a reader yields: lines as they are, faults in brackets.
func readAll(r *Reader) []string {
	var out []string
	for {
		line, err := r.Next()
		var long *LineTooLongError
		var half *HalfLineError
		switch {
		case err == nil:
			out = append(out, string(line))
		case errors.As(err, &long):
			out = append(out, fmt.Sprintf("<long %d>", long.Size))
		case errors.As(err, &half):
			out = append(out, fmt.Sprintf("<half %s>", half.Line))
		case errors.Is(err, io.EOF):
			return out
		default:
			return append(out, "<"+err.Error()+">")
		}
	}
}

func TestReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"nothing", "", 0, nil},
		{"lines", "a\nb\n", 0, []string{"a", "b"}},
		{"CRLF and blanks", "a\r\n\r\n\n  \t\nb\r\n", 0, []string{"a", "b"}},
		{"CR inside stays", "a\rb\n", 0, []string{"a\rb"}},
		{"half line", "a\nb", 0, []string{"a", "<half b>"}},
		{"blank rest is no half line", "a\n  ", 0, []string{"a"}},
		{"exactly the limit", "12345\n12345\r\n", 5, []string{"12345", "12345"}},
		{"over the limit", "123456\nok\n", 5, []string{"<long 6>", "ok"}},
		{"over the limit at the end", "ok\n123456", 5, []string{"ok", "<long 6>"}},
		{"over the limit twice", "123456\n1234567\r\nok\n", 5, []string{"<long 6>", "<long 7>", "ok"}},
		{
			"beyond the buffer", strings.Repeat("x", 3*readBuffer) + "\nok\n", 4 * readBuffer,
			[]string{strings.Repeat("x", 3*readBuffer), "ok"},
		},
		{
			"limit above the buffer", strings.Repeat("x", 3*readBuffer) + "\nok\n", 2 * readBuffer,
			[]string{fmt.Sprintf("<long %d>", 3*readBuffer), "ok"},
		},
		{
			"limit met across buffers", strings.Repeat("x", 2*readBuffer) + "\r\nok\n", 2 * readBuffer,
			[]string{strings.Repeat("x", 2*readBuffer), "ok"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := readAll(NewReader(strings.NewReader(c.in), c.limit)); !slices.Equal(got, c.want) {
				t.Errorf("whole: %.200q", got)
			}
			one := iotest.OneByteReader(strings.NewReader(c.in))
			if got := readAll(NewReader(one, c.limit)); !slices.Equal(got, c.want) {
				t.Errorf("byte by byte: %.200q", got)
			}
		})
	}
}

func TestReaderKeepsItsFinalError(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 0)
	if line, err := r.Next(); string(line) != "a" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
}

// endless is a line that never ends within n bytes.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	e.n -= int64(len(b))
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestReaderMemoryIsBounded(t *testing.T) {
	const limit = 4 << 20
	r := NewReader(io.MultiReader(&endless{n: 64 << 20}, strings.NewReader("\nok\n")), limit)
	_, err := r.Next()
	var long *LineTooLongError
	if !errors.As(err, &long) || long.Size < 64<<20 || len(long.Head) != headSize || long.Limit != limit {
		t.Fatalf("error %v", err)
	}
	if cap(r.long) > 3*limit {
		t.Errorf("assembly buffer of %d bytes", cap(r.long))
	}
	if line, err := r.Next(); string(line) != "ok" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if cap(r.long) > keepBuffer {
		t.Errorf("buffer of %d bytes is kept", cap(r.long))
	}
}

func TestWriter(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf, 20, 0)
	if err := w.Write(map[string]string{"a": "<\n>"}); err != nil {
		t.Error(err)
	}
	if err := w.Write(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
	if err := w.WriteRaw([]byte("{\"b\":\n 1 }")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "{", "{}{}", "nonsense"} {
		if err := w.WriteRaw([]byte(bad)); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
	if err := w.Write(strings.Repeat("x", 19)); !errors.Is(err, ErrMessageTooLong) {
		t.Errorf("too long: %v", err)
	}
	if err := w.Write(strings.Repeat("x", 18)); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	want := "{\"a\":\"<\\n>\"}\n{\"b\":1}\n\"xxxxxxxxxxxxxxxxxx\"\n"
	if buf.String() != want {
		t.Errorf("wrote %q", buf.String())
	}
}

// flaky takes n bytes in all.
type flaky struct {
	n   int
	err error
}

func (f *flaky) Write(b []byte) (int, error) {
	n := min(f.n, len(b))
	f.n -= n
	if n < len(b) {
		return n, f.err
	}
	return n, nil
}

func TestWriterFailureIsFinal(t *testing.T) {
	for _, cause := range []error{io.ErrClosedPipe, nil} {
		w := NewWriter(&flaky{n: 3, err: cause}, 0, 0)
		if err := w.Write(1); err != nil {
			t.Fatal(err)
		}
		want := cause
		if want == nil {
			want = io.ErrShortWrite
		}
		for range 2 {
			err := w.Write(22)
			var we *WriteError
			if !errors.As(err, &we) || !errors.Is(err, want) {
				t.Errorf("error %v", err)
			}
		}
	}
}

func TestWriterNeverInterleaves(t *testing.T) {
	r, pw := io.Pipe()
	w := NewWriter(pw, 0, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := w.Write(strings.Repeat(string(rune('a'+i)), 100*i+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); pw.Close() }()
	lines := readAll(NewReader(r, 0))
	for _, l := range lines {
		if body := strings.Trim(l, `"`); strings.Trim(body, body[:1]) != "" {
			t.Fatalf("mixed line %q", l)
		}
	}
	if len(lines) != 400 {
		t.Errorf("%d lines", len(lines))
	}
}

func TestWriterGivesUpOnAStuckReader(t *testing.T) {
	r, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pw.Close()
	w := NewWriter(pw, 0, 10*time.Millisecond)
	err = w.Write(strings.Repeat("x", 1<<20)) // more than any pipe takes at once
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
