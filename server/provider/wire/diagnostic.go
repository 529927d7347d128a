package wire

import (
	"bytes"
	"maps"
)

// DiagnosticKind names what was wrong with a line. The set is closed.
type DiagnosticKind string

// The kinds of diagnostic.
const (
	DiagLineTooLong   DiagnosticKind = "line_too_long"  // skipped, see [LineTooLongError]
	DiagHalfLine      DiagnosticKind = "half_line"      // the stream ended inside a line
	DiagNotJSON       DiagnosticKind = "not_json"       // for example a log line on stdout
	DiagNotMessage    DiagnosticKind = "not_message"    // JSON, but no JSON-RPC message
	DiagBatch         DiagnosticKind = "batch"          // an array of messages: not supported
	DiagUnknownAnswer DiagnosticKind = "unknown_answer" // answers an id this side never used
	DiagLateAnswer    DiagnosticKind = "late_answer"    // answers a call already answered or given up
)

// Diagnostic is one line that could not be used. The conversation goes on.
type Diagnostic struct {
	Kind DiagnosticKind
	ID   RawID  // of an unknown or late answer
	Size int64  // length of the line in bytes
	Head []byte // the first bytes of the line, at most 512; may be kept
	Err  error  // what was wrong; never nil
}

// head copies the beginning of a line for a diagnostic.
func head(line []byte) []byte { return bytes.Clone(line[:min(len(line), headSize)]) }

// Diagnostics tells how many lines of each kind were met so far.
func (p *Peer) Diagnostics() map[DiagnosticKind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.diags)
}

func (p *Peer) diagnose(d Diagnostic) {
	p.mu.Lock()
	p.diags[d.Kind]++
	p.mu.Unlock()
	if p.opts.OnDiagnostic != nil {
		p.opts.OnDiagnostic(d)
	}
}
