package hub

import (
	"unicode/utf8"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// text is what has come of one streaming message. Bytes once written are never changed,
// so a slice of them can be read without the lock.
type text struct {
	message agent.MessageID
	session agent.SessionID
	root    agent.SessionID
	base    int64 // offset of buf[0] in the message
	buf     []byte
	changed uint64 // value of the texts' clock at the last change

	// The newest piece as it was last encoded: clients that keep up all want the same.
	pieceFrom, pieceEnd int64
	piece               []byte

	newer, older *text // in the order of change
}

func (t *text) end() int64 { return t.base + int64(len(t.buf)) }

// texts holds the streaming messages of one workspace, most recently changed first, so
// that a reader looks only at what has changed since it last looked.
type texts struct {
	byID   map[agent.MessageID]*text
	newest *text
	oldest *text
	clock  uint64
	bytes  int

	maxText  int // bytes kept of one message
	maxBytes int // bytes kept of all

	ended   gone[agent.MessageID]
	deleted gone[agent.SessionID]
}

// late reports whether d belongs to what has ended or was deleted meanwhile: a provider
// goes on talking until it has heard of it.
func (x *texts) late(d *agent.Delta) bool {
	return x.ended.has(d.MessageID) || x.deleted.has(d.SessionID) || x.deleted.has(d.RootSessionID)
}

func (x *texts) add(d *agent.Delta) {
	t := x.byID[d.MessageID]
	if t == nil {
		if x.byID == nil {
			x.byID = map[agent.MessageID]*text{}
		}
		t = &text{message: d.MessageID, session: d.SessionID, root: d.RootSessionID, base: d.Offset}
		x.byID[d.MessageID] = t
	} else {
		x.unlink(t)
	}
	x.bytes -= len(t.buf)
	t.append(d.Offset, d.Text, x.maxText)
	x.bytes += len(t.buf)
	x.clock++
	t.changed = x.clock
	x.pushNewest(t)
	for x.bytes > x.maxBytes && x.oldest != t {
		x.drop(x.oldest)
	}
}

// append adds what is new of a piece. A piece that begins beyond the end means that
// something was missed: what came before is of no use any more.
func (t *text) append(offset int64, s string, limit int) {
	switch end := t.end(); {
	case offset > end:
		t.base, t.buf = offset, nil
	case offset < end:
		if offset+int64(len(s)) <= end {
			return
		}
		s = s[end-offset:]
	}
	t.buf = append(t.buf, s...)
	if len(t.buf) <= limit {
		return
	}
	// Keep the newer three quarters, from the beginning of a character on. The copy
	// leaves the old bytes to whoever still reads them.
	cut := len(t.buf) - limit*3/4
	for cut < len(t.buf) && !utf8.RuneStart(t.buf[cut]) {
		cut++
	}
	t.base += int64(cut)
	t.buf = append(make([]byte, 0, limit+limit/4), t.buf[cut:]...)
}

func (x *texts) drop(t *text) {
	x.unlink(t)
	delete(x.byID, t.message)
	x.bytes -= len(t.buf)
}

// dropWhere drops every text that f accepts.
func (x *texts) dropWhere(f func(*text) bool) {
	for t := x.newest; t != nil; {
		older := t.older
		if f(t) {
			x.drop(t)
		}
		t = older
	}
}

// of reports whether a message of session streams.
func (x *texts) of(session agent.SessionID) bool {
	for t := x.newest; t != nil; t = t.older {
		if t.session == session {
			return true
		}
	}
	return false
}

func (x *texts) pushNewest(t *text) {
	t.newer, t.older = nil, x.newest
	if x.newest != nil {
		x.newest.newer = t
	} else {
		x.oldest = t
	}
	x.newest = t
}

func (x *texts) unlink(t *text) {
	if t.newer != nil {
		t.newer.older = t.older
	} else {
		x.newest = t.older
	}
	if t.older != nil {
		t.older.newer = t.newer
	} else {
		x.oldest = t.newer
	}
}
