// Package tape stands in for the processes of one recording: an adapter that connects
// reads what is played to it and writes what is heard. It owns whose moment it is: which
// process runs, what waits for whoever connects, and when everything played has been
// handled. It must not know what a line means.
package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Tape is the processes of one recording, one after the other. It is safe for concurrent
// use.
type Tape struct {
	idle  func(bool)
	heard func([]byte)

	mu      sync.Mutex
	process int
	link    *Link
	waiting [][]byte // of this process, before anybody has connected
	dead    bool
	why     string
}

// New returns a tape before its first process. idle is told, from the reading goroutine,
// whether everything played has been handled. heard gets each line that is written.
func New(idle func(bool), heard func(line []byte)) *Tape {
	return &Tape{idle: idle, heard: heard, dead: true}
}

// Process is which process runs, or ran last: 1 is the first.
func (t *Tape) Process() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.process
}

// Begin starts the next process.
func (t *Tape) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.process++
	t.dead, t.why, t.link, t.waiting = false, "", nil, nil
}

// End is the death of the process, if it has not died yet.
func (t *Tape) End(why string) {
	t.mu.Lock()
	l := t.link
	if !t.dead {
		t.dead, t.why = true, why
	}
	t.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// Connect gives the process that runs now, which one caller alone can have. Error:
// CodeProviderUnavailable.
func (t *Tape) Connect() (*Link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead || t.link != nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "the recording has no process for this conversation at this moment")
	}
	l := &Link{t: t, moved: sync.NewCond(&sync.Mutex{})}
	for _, line := range t.waiting {
		l.out.Write(line)
	}
	t.waiting, t.link = nil, l
	return l, nil
}

// Play hands a line to whoever is connected, or will be. One that is not JSON goes as it
// is.
func (t *Tape) Play(raw []byte) {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		line.Reset()
		line.Write(raw)
	}
	line.WriteByte('\n')
	t.mu.Lock()
	l := t.link
	if l == nil && !t.dead {
		t.waiting = append(t.waiting, line.Bytes())
	}
	t.mu.Unlock()
	if l != nil {
		l.push(line.Bytes())
	}
}

// Link is one process as an adapter sees it.
type Link struct {
	t     *Tape
	moved *sync.Cond
	out   bytes.Buffer // guarded by moved.L
	ended bool
}

func (l *Link) push(line []byte) {
	l.moved.L.Lock()
	defer l.moved.L.Unlock()
	if l.ended {
		return // nobody reads it any more
	}
	l.out.Write(line)
	l.t.idle(false) // under the lock: the adapter may be quick
	l.moved.Broadcast()
}

func (l *Link) end() {
	l.moved.L.Lock()
	l.ended = true
	l.moved.L.Unlock()
	l.moved.Broadcast()
}

// Read implements io.Reader. The adapter asks for more only when it has handled what it
// has.
func (l *Link) Read(b []byte) (int, error) {
	l.moved.L.Lock()
	defer l.moved.L.Unlock()
	for l.out.Len() == 0 {
		l.t.idle(true)
		if l.ended {
			return 0, io.EOF
		}
		l.moved.Wait()
	}
	return l.out.Read(b)
}

// Write implements io.Writer.
func (l *Link) Write(b []byte) (int, error) {
	l.moved.L.Lock()
	ended := l.ended
	l.moved.L.Unlock()
	if ended {
		return 0, io.ErrClosedPipe
	}
	l.t.heard(b)
	return len(b), nil
}

// Close ends the process for its adapter.
func (l *Link) Close(context.Context) error {
	l.end()
	return nil
}

// Explain says how the process ended, "" while it runs.
func (l *Link) Explain() string {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	return l.t.why
}
