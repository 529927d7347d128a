package acpagent

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// view is what the editor has been told of one root session and everything below it. One
// goroutine at a time uses it: the teller, or a setup in its place.
type view struct {
	flat  bool
	quiet bool // history: no states, grants or questions
	nodes map[string]*node
	order []*node // as they became known: parents first
}

// node is one agent of the tree.
type node struct {
	id, parent string
	about      agent.Session
	turn       *agent.Turn                      // the newest
	pending    map[agent.RequestID]struct{}     // open questions
	cards      map[agent.RequestID]string       // tool calls that stand for a question alone
	messages   map[agent.MessageID]*toldMessage // what was told
	last       int64                            // the newest entry of the transcript that was told
	base       int64                            // entries up to here were told before this view began

	announced  bool
	title      string
	state      acp.StateUpdate // told last; "" before any
	turnTold   agent.TurnID    // whose state that is
	granted    bool
	concluded  agent.TurnID // of a root: the newest turn whose end was told
	planShown  string
	cardOutput string // of a child that is shown as a tool call
}

func newView(flat bool, root agent.Session) *view {
	v := &view{flat: flat, nodes: map[string]*node{}}
	v.add(root)
	return v
}

func (v *view) add(a agent.Session) *node {
	n := &node{
		id: string(a.ID), parent: string(a.ParentSessionID), about: a, title: a.Title,
		pending: map[agent.RequestID]struct{}{}, cards: map[agent.RequestID]string{}, messages: map[agent.MessageID]*toldMessage{},
	}
	v.nodes[n.id] = n
	v.order = append(v.order, n)
	return n
}

func (n *node) isRoot() bool { return n.parent == "" }

// inOrder is every agent, parents before their children.
func (v *view) inOrder() []*node { return slices.Clone(v.order) }

func (v *view) root() *node { return v.order[0] }

// stream is whose stream an agent's traffic is on.
func (v *view) stream(n *node) string {
	if v.flat {
		return v.root().id
	}
	return n.id
}

// know takes over who there is from a snapshot, and says nothing of states. A child whose
// parent is not known stays unexposed, as the protocol wants it.
func (v *view) know(s *session, d agent.SessionDetail) {
	for _, a := range append([]agent.Session{d.Session}, d.ChildSessions...) {
		v.session(s, a)
	}
}

// session is what became known of an agent.
func (v *view) session(s *session, a agent.Session) {
	n := v.nodes[string(a.ID)]
	if n == nil {
		if a.IsRoot() || v.nodes[string(a.ParentSessionID)] == nil {
			return
		}
		n = v.add(a)
		v.announce(s, n)
		return
	}
	before := n.about
	n.about = a
	if n.isRoot() && !v.quiet && (before.PermissionMode != a.PermissionMode || before.Model != a.Model) {
		v.rechosen(s, a)
	}
	if !n.isRoot() {
		s.c.adopt(a.Handles.ThreadID, a.Handles.TaskID, a.Handles.AgentID)
	}
	if n.title != a.Title {
		n.title = a.Title
		v.retitle(s, n)
	}
	v.sync(s, n) // what can be stopped may have changed
}

func (v *view) retitle(s *session, n *node) {
	switch {
	case n.isRoot():
		s.c.say(n.id, acp.UpdateSessionInfo, &acp.SessionInfoUpdate{Title: acp.Some(n.title)})
	case v.flat:
		v.card(s, n)
	case n.announced:
		s.c.say(n.parent, acp.UpdateSubagent, &acp.SubagentUpdate{SessionID: n.id, Title: acp.Some(n.title)})
	}
}

// deleted ends what is told of an agent. A child's grant is taken back.
func (v *view) deleted(s *session, a agent.Session) {
	n := v.nodes[string(a.ID)]
	if n == nil {
		return
	}
	if n.isRoot() {
		s.failHeld(agent.Errorf(agent.CodeNotFound, "the session was deleted"))
	}
	if t := n.turn; t != nil && t.Live() {
		ended := *t
		ended.Phase, ended.Outcome = agent.PhaseSettled, agent.OutcomeInterrupted
		v.turn(s, ended)
	}
}

// turn is what became known of an agent's turn. One that is older than the newest says
// nothing of the agent any more.
func (v *view) turn(s *session, t agent.Turn) {
	n := v.nodes[string(t.SessionID)]
	if n == nil || n.turn != nil && n.turn.ID != t.ID && n.turn.Live() && !t.Live() {
		return
	}
	n.turn = &t
	if !t.Live() {
		clear(n.pending)
	}
	v.sync(s, n)
}

// sync brings the editor's idea of an agent's state and grant up to date.
func (v *view) sync(s *session, n *node) {
	switch {
	case v.flat && !n.isRoot():
		v.card(s, n) // a card is history like any other tool call
	case v.quiet:
	case n.isRoot():
		v.rootState(s, n)
	default:
		v.childState(s, n)
	}
}

// settle takes over states from a snapshot.
func (v *view) settle(s *session, d agent.SessionDetail) {
	for _, a := range append(d.ChildSessions, d.Session) {
		if t := a.ActiveTurn; t != nil {
			v.turn(s, *t)
		} else if t := a.LatestTurn; t != nil {
			v.turn(s, *t)
		}
	}
}

// conclude tells the end of a root turn, after everything below it.
func (v *view) conclude(s *session) {
	n := v.root()
	t := n.turn
	if t == nil || t.Live() || n.concluded == t.ID || v.quiet {
		return
	}
	for _, c := range v.order[1:] {
		if c.turn != nil && c.turn.Live() && c.turn.RootTurnID == t.ID {
			return // its end is in the same commit
		}
	}
	n.concluded = t.ID
	v.rootState(s, n)
	s.conclude(*t)
}

// delta is streaming text.
func (v *view) delta(s *session, d goclient.StreamDelta) {
	if n := v.nodes[d.AgentSessionID]; n != nil {
		v.text(s, n, agent.MessageID(d.MessageID), d.Offset, d.Text)
	}
}
