package acpagent

import (
	"encoding/json"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
)

// rules judges an editor's whole conversation by what must hold in every one: children are
// announced first and on one parent, announcements grant nothing, a grant is an object and
// is given in live states only, nothing is granted while a setup is open or left when idle,
// and who asks is in need of an answer.
type rules struct {
	t       *testing.T
	e       *editor
	parents map[string]string
	states  map[string]acp.SessionState
	granted map[string]bool
	setups  map[string]bool // open setups by request id
}

// checkRules walks the lines in the order in which they came.
func checkRules(t *testing.T, e *editor) {
	r := &rules{t: t, e: e, parents: map[string]string{}, states: map[string]acp.SessionState{}, granted: map[string]bool{}, setups: map[string]bool{}}
	for i, l := range e.all() {
		for id, at := range e.setupAt {
			if at == i {
				r.setups[id] = true
				clear(r.granted)
				clear(r.states)
			}
		}
		r.line(l)
	}
	for id, given := range r.granted {
		if given && (r.states[id] == acp.StateIdle || r.states[id] == acp.StateUnknown) {
			t.Errorf("child %s ended and can still be stopped", id)
		}
	}
}

func (r *rules) line(l line) {
	if l.Method == "" {
		delete(r.setups, string(l.ID))
		return
	}
	var about acp.SessionRef
	if json.Unmarshal(l.Params, &about) == nil && about.SessionID != "" {
		r.known(about.SessionID, l)
	}
	if u := l.child(""); u != nil {
		r.patch(l.note.SessionID, u, l)
	}
	if (l.Method == acp.MethodRequestPermission || l.Method == acp.MethodElicit) && r.parents[about.SessionID] != "" && r.states[about.SessionID] != acp.StateRequires {
		r.t.Errorf("a child asks while it is %q: %s", r.states[about.SessionID], l.raw)
	}
}

// known: whoever has a stream is a root that the editor took up, or was announced.
func (r *rules) known(id string, l line) {
	r.e.mu.Lock()
	root := r.e.roots[id]
	r.e.mu.Unlock()
	if !root && r.parents[id] == "" {
		r.t.Errorf("a line of a session that was not announced: %s", l.raw)
	}
}

func (r *rules) patch(parent string, u *acp.SubagentUpdate, l line) {
	first := r.parents[u.SessionID] == ""
	if !first && r.parents[u.SessionID] != parent {
		r.t.Errorf("a child got another parent: %s", l.raw)
	}
	r.parents[u.SessionID] = parent
	if s, ok := u.State.Get(); ok {
		r.states[u.SessionID] = s.State
	}
	c, said := u.Capabilities.Get()
	if first && (!said || c.Cancel.Said() || u.State.Said()) {
		r.t.Errorf("an announcement grants or says too much: %s", l.raw)
	}
	if !said {
		return
	}
	if !c.MayCancel() {
		r.granted[u.SessionID] = false
		return
	}
	r.granted[u.SessionID] = true
	if len(r.setups) > 0 {
		r.t.Errorf("a grant while a setup is open: %s", l.raw)
	}
	if !r.states[u.SessionID].Live() {
		r.t.Errorf("a grant while the child is %q: %s", r.states[u.SessionID], l.raw)
	}
}
