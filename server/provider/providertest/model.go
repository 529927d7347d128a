package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Model keeps what an adapter reports, as storage would: it moves turns and questions
// by the rules of package agent and settles root turns by [agent.Gate]. On top of that
// it notes every report that no correct adapter makes ([Model.Violations]). It may hold
// several root sessions and is safe for concurrent use.
type Model struct {
	// Fail, if set, is asked before a fact is applied; its error is Apply's. Tests use
	// it to play a storage that is busy or broken.
	Fail func(agent.Fact) error

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced by every change
	mint       agent.Minter
	clock      provider.Clock
	seq        int64
	sessions   []*agent.Session
	gone       map[agent.SessionID]bool // tombstones
	turns      []*turnRow
	runs       []*runRow
	messages   []*agent.Message
	asks       []*agent.Interaction
	processes  []agent.Process
	records    []Record
	violations []string
}

// turnRow is a turn with what storage keeps beside it.
type turnRow struct {
	agent.Turn
	closed      bool              // a cancel that targets it was prepared
	cancel      agent.CancelStage // of a cancel that targets this root turn
	retained    agent.Outcome     // a root turn's last provider outcome
	retainedErr *agent.Error
}

// runRow is one provider turn.
type runRow struct {
	session agent.SessionID
	turn    agent.TurnID
	agent.ProviderTurn
}

// Record is one fact with what became of it.
type Record struct {
	Fact    agent.Fact
	Applied agent.Applied
}

// NewModel returns an empty model. Time comes from clock.
func NewModel(mint agent.Minter, clock provider.Clock) *Model {
	return &Model{changed: make(chan struct{}), mint: mint, clock: clock, gone: map[agent.SessionID]bool{}}
}

// Counter returns a Minter of ids that count up from 1, for tests that print them.
func Counter() agent.Minter {
	var mu sync.Mutex
	n := 0
	return agent.NewMinter(func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%04d", n)
	})
}

// AddRoot registers a root session. An empty id is minted.
func (m *Model) AddRoot(s agent.Session) agent.Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.ID == "" {
		s.ID = m.mint.Session()
	}
	s.Kind = agent.KindRoot
	m.sessions = append(m.sessions, &s)
	m.bump()
	return s
}

// Apply commits one fact. Its error is Fail's alone.
func (m *Model) Apply(_ context.Context, f agent.Fact) (agent.Applied, error) {
	if m.Fail != nil {
		if err := m.Fail(f); err != nil {
			return agent.Applied{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.settledRoots()
	applied := m.apply(f)
	if applied.Verdict == agent.VerdictApplied {
		m.seq++
		applied.Seq = m.seq
	}
	applied.RootSettled = m.settledRoots() > before
	m.records = append(m.records, Record{f, applied})
	m.bump()
	return applied, nil
}

func (m *Model) apply(f agent.Fact) agent.Applied {
	if code := m.owned(f); code != "" {
		return refused(code)
	}
	switch f := f.(type) {
	case agent.SessionDescribed:
		return m.describe(f)
	case agent.ProviderTurnStarted:
		return m.startRun(f)
	case agent.ProviderTurnEnded:
		return m.endRun(f)
	case agent.ChildStarted:
		return m.startChild(f)
	case agent.TurnStarted:
		return m.startTurn(f)
	case agent.TurnSettled:
		return m.settleChild(f)
	case agent.MessagePut:
		return m.putMessage(f.Message)
	case agent.TextAppended:
		return m.appendText(f)
	case agent.InteractionAsked:
		return m.ask(f.Interaction)
	case agent.InteractionEnded:
		return m.endAsk(f)
	case agent.UsageReported:
		return m.use(f)
	case agent.SessionLost:
		return m.lose(f)
	case agent.ProcessSeen:
		return m.seeProcess(f.Process)
	}
	return m.violate(agent.CodeInvalid, "fact of unknown type %T", f)
}

// owned checks that the fact has an owner that is registered and not deleted.
func (m *Model) owned(f agent.Fact) agent.Code {
	owner := f.Owner()
	if c, ok := f.(agent.ChildStarted); ok {
		owner = c.Parent
	}
	switch {
	case m.gone[owner]:
		return agent.CodeSessionDeleted
	case m.session(owner) == nil:
		m.violate(agent.CodeUnknownOwner, "%T of session %q, which nobody registered", f, owner)
		return agent.CodeUnknownOwner
	}
	return ""
}

func (m *Model) describe(f agent.SessionDescribed) agent.Applied {
	s := m.session(f.Session)
	take := func(mine *string, theirs string) {
		if theirs != "" {
			*mine = theirs
		}
	}
	take(&s.Title, f.Title)
	take(&s.Model, f.Model)
	take(&s.PermissionMode, f.PermissionMode)
	take(&s.AgentType, f.AgentType)
	take(&s.Prompt, f.Prompt)
	take(&s.ProviderSessionID, f.ProviderSessionID)
	s.Handles = s.Handles.Merge(f.Handles)
	if f.Capabilities != nil {
		s.Capabilities = *f.Capabilities
	}
	return agent.Applied{Verdict: agent.VerdictApplied}
}

func (m *Model) use(f agent.UsageReported) agent.Applied {
	t := m.turn(f.Session, f.Turn)
	if t == nil {
		return m.violate(agent.CodeUnknownOwner, "usage of turn %q, which is none of session %q", f.Turn, f.Session)
	}
	t.Usage = f.Usage
	return agent.Applied{Verdict: agent.VerdictApplied, Turn: t.ID}
}

// Violations lists the reports that no correct adapter makes, in order.
func (m *Model) Violations() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.violations)
}

// Records lists every fact so far with what became of it.
func (m *Model) Records() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// Remember says what storage knows of a root's tree.
func (m *Model) Remember(_ context.Context, root agent.SessionID) (agent.Remembered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(root)
	if s == nil || m.gone[root] {
		return agent.Remembered{}, agent.Errorf(agent.CodeNotFound, "no session %s", root)
	}
	r := agent.Remembered{Root: m.shown(s)}
	for _, c := range m.sessions {
		if c.RootSessionID == root && !m.gone[c.ID] {
			r.Children = append(r.Children, m.shown(c))
		}
	}
	for _, p := range m.runs {
		if p.session == root {
			r.ProviderTurns = append(r.ProviderTurns, agent.RememberedProviderTurn{Turn: p.turn, Key: p.ID, NativeID: p.NativeID})
		}
	}
	return r, nil
}

// Changed returns a channel that is closed by the next change.
func (m *Model) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// bump wakes whoever waits for a change.
func (m *Model) bump() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Model) violate(code agent.Code, format string, args ...any) agent.Applied {
	m.violations = append(m.violations, fmt.Sprintf(format, args...))
	return refused(code)
}

func refused(code agent.Code) agent.Applied {
	return agent.Applied{Verdict: agent.VerdictRefused, Code: code}
}

func (m *Model) session(id agent.SessionID) *agent.Session {
	for _, s := range m.sessions {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (m *Model) turnByID(id agent.TurnID) *turnRow {
	for _, t := range m.turns {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// turn returns the turn if it is one of the session.
func (m *Model) turn(session agent.SessionID, id agent.TurnID) *turnRow {
	if t := m.turnByID(id); t != nil && t.SessionID == session {
		return t
	}
	return nil
}

// latest returns a session's newest turn, or nil.
func (m *Model) latest(session agent.SessionID) *turnRow {
	for _, t := range slices.Backward(m.turns) {
		if t.SessionID == session {
			return t
		}
	}
	return nil
}

func (m *Model) rootOf(s *agent.Session) agent.SessionID {
	if s.IsRoot() {
		return s.ID
	}
	return s.RootSessionID
}

func (m *Model) settledRoots() int {
	n := 0
	for _, t := range m.turns {
		if t.IsRoot() && !t.Live() {
			n++
		}
	}
	return n
}
