package hub

import "github.com/turnkeeper/turnkeeper/server/agent"

// entry is one event, encoded.
type entry struct {
	frame   []byte
	session agent.SessionID
	root    agent.SessionID
	// deletion marks the event of a session's own end: it stays when the others go.
	deletion bool
}

// ring is the newest stretch of a log without gaps, bounded in number and bytes. Its
// entries' numbers follow from the first one's, so that a cursor is an index.
type ring struct {
	entries []entry
	first   int64 // number of entries[0]
	bytes   int

	maxEntries int
	maxBytes   int
}

func (r *ring) push(seq int64, e entry) {
	if len(r.entries) > 0 && seq != r.first+int64(len(r.entries)) {
		r.clear() // a stretch is missing: the log has it
	}
	if len(r.entries) == 0 {
		r.first = seq
	}
	r.entries = append(r.entries, e)
	r.bytes += len(e.frame)
	drop := 0
	for len(r.entries)-drop > 1 && (len(r.entries)-drop > r.maxEntries || r.bytes > r.maxBytes) {
		r.bytes -= len(r.entries[drop].frame)
		r.entries[drop] = entry{} // let go of the frame
		drop++
	}
	// Slicing from the front makes append move the rest to a new array once in a while:
	// amortised, each entry is moved about once.
	r.entries = r.entries[drop:]
	r.first += int64(drop)
}

func (r *ring) clear() { r.entries, r.bytes = nil, 0 }

// after returns the entries with a number above seq; ok is false where the ring does not
// reach back to the next one.
func (r *ring) after(seq int64) (entries []entry, ok bool) {
	i := seq + 1 - r.first
	if len(r.entries) == 0 || i < 0 || i >= int64(len(r.entries)) {
		return nil, false
	}
	return r.entries[i:], true
}
