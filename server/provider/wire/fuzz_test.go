package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// FuzzReader: whatever the stream holds, every byte of it is accounted for,
// lines stay within the limit, and it ends.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "a\nb", "{\"id\":0}\r\n\r\n", "0123456789abcdef0\n1\n", "\r\r\n\x00\n \n", "\n \r"} {
		f.Add([]byte(s), 16)
	}
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = 1 + (limit&0x7fffffff)%100
		r := NewReader(bytes.NewReader(stream), limit)
		var want []int // sizes of the lines that are not blank
		for line := range bytes.Lines(stream) {
			if bytes.HasSuffix(line, []byte("\n")) { // a CR is part of the line end only before an LF
				line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
			}
			if len(bytes.TrimSpace(line)) > 0 || len(line) > limit {
				want = append(want, len(line))
			}
		}
		for i := 0; ; i++ {
			line, err := r.Next()
			var long *LineTooLongError
			var half *HalfLineError
			size := len(line)
			switch {
			case errors.Is(err, io.EOF):
				if i != len(want) {
					t.Fatalf("%d lines, want %d", i, len(want))
				}
				return
			case errors.As(err, &long):
				size = int(long.Size)
			case errors.As(err, &half):
				size = len(half.Line)
			case err != nil:
				t.Fatal(err)
			}
			if err == nil && size > limit {
				t.Fatalf("line of %d bytes, limit %d", size, limit)
			}
			if i >= len(want) || size != want[i] {
				t.Fatalf("line %d has %d bytes, want %v", i, size, want)
			}
		}
	})
}

// FuzzPeer: no line makes the peer stop, panic or write something malformed.
func FuzzPeer(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":{}}`, `{"id":0,"method":"m","params":[1]}`, `{"method":"n"}`, `[{}]`, `{"id":1,"error":null}`,
		`{"ID":1,"Method":"m"}`, `{"id":1e3,"method":"m"}`, `{"id":"\ud800","method":"m"}`, `null`, `{"error":{"code":"x"},"id":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var out bytes.Buffer
		var p *Peer
		sentinel := 0
		p = NewPeer(io.MultiReader(bytes.NewReader(line), bytes.NewReader([]byte("\n{\"method\":\"sentinel\"}\n"))), &out, Options{
			Handler: func(f Frame) {
				if f.Method == "" || (f.Kind == KindRequest) != (f.ID != "") {
					t.Errorf("frame %+v", f)
				}
				if f.Method == "sentinel" {
					sentinel++
				}
				if f.Kind == KindRequest {
					if err := p.Reply(f.ID, nil); err != nil {
						t.Errorf("reply to %s: %v", f.ID, err)
					}
				}
			},
		})
		answers := 0
		if _, err := p.Go("m", nil, func(Answer) { answers++ }); err != nil {
			t.Fatal(err)
		}
		if err := p.Run(); err != nil || sentinel == 0 || answers != 1 {
			t.Errorf("run %v, %d sentinels, %d answers", err, sentinel, answers)
		}
		for l := range bytes.Lines(out.Bytes()) {
			if !json.Valid(l) {
				t.Errorf("wrote %q", l)
			}
		}
	})
}
