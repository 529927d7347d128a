package live

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// keptDiagnostics bounds how many of the latest diagnostics are kept whole.
const keptDiagnostics = 200

// Diagnosed is one thing that could not become a fact, with where it came from.
type Diagnosed struct {
	Time     time.Time       `json:"time"`
	Root     agent.SessionID `json:"rootAgentSessionId"`
	Provider string          `json:"provider"`
	provider.Diagnostic
}

// Diagnostics is what could not become a fact since the daemon started.
type Diagnostics struct {
	Counts map[string]uint64 `json:"counts"` // by kind
	Recent []Diagnosed       `json:"recent"` // the latest, oldest first
}

type diagnostics struct {
	mu     sync.Mutex
	counts map[string]uint64
	recent []Diagnosed
}

// Diagnostics returns the counts and the latest entries.
func (l *Live) Diagnostics() Diagnostics {
	d := &l.diagnostics
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := maps.Clone(d.counts)
	if counts == nil {
		counts = map[string]uint64{}
	}
	return Diagnostics{Counts: counts, Recent: slices.Clone(d.recent)}
}

func (a *actor) diagnose(e provider.Diagnostic) {
	d := &a.l.diagnostics
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts = map[string]uint64{}
	}
	d.counts[string(e.Kind)]++
	if len(d.recent) == keptDiagnostics {
		d.recent = slices.Delete(d.recent, 0, 1)
	}
	d.recent = append(d.recent, Diagnosed{a.l.Clock.Now(), a.root, a.provider, e})
}
