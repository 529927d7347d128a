package providertest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// View is a copy of a model at one moment, to look at without a lock. Everything in it
// stands in the order of creation.
type View struct {
	Sessions      []agent.Session // each with ActiveTurn and LatestTurn
	Turns         []agent.Turn    // a root turn with its latest provider turn
	ProviderTurns []agent.ProviderTurn
	Messages      []agent.Message
	Interactions  []agent.Interaction
	Processes     []agent.Process
	Held          map[agent.TurnID]agent.HeldBy  // why each open root turn is open
	Retained      map[agent.TurnID]agent.Outcome // of root turns
}

// View copies the model.
func (m *Model) View() View {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := View{Held: map[agent.TurnID]agent.HeldBy{}, Retained: map[agent.TurnID]agent.Outcome{}}
	for _, s := range m.sessions {
		if !m.gone[s.ID] {
			v.Sessions = append(v.Sessions, m.shown(s))
		}
	}
	for _, t := range m.turns {
		v.Turns = append(v.Turns, m.shownTurn(t))
		if t.IsRoot() {
			v.Held[t.ID] = agent.Gate(m.gateView(t)).Held
			v.Retained[t.ID] = t.retained
		}
	}
	for _, r := range m.runs {
		v.ProviderTurns = append(v.ProviderTurns, r.ProviderTurn)
	}
	for _, msg := range m.messages {
		v.Messages = append(v.Messages, *msg)
	}
	for _, i := range m.asks {
		v.Interactions = append(v.Interactions, *i)
	}
	v.Processes = slices.Clone(m.processes)
	return v
}

func (m *Model) shown(s *agent.Session) agent.Session {
	c := *s
	if t := m.latest(s.ID); t != nil {
		shown := m.shownTurn(t)
		c.LatestTurn = &shown
		if t.Live() {
			c.ActiveTurn = &shown
		}
	}
	return c
}

func (m *Model) shownTurn(t *turnRow) agent.Turn {
	shown := t.Turn
	for _, r := range m.runs {
		if r.turn == t.ID {
			run := r.ProviderTurn
			shown.ProviderTurn = &run
		}
	}
	return shown
}

// Root returns the first root session.
func (v View) Root() agent.Session { return v.Sessions[0] }

// RootTurn returns the newest root turn of the first root session; its ID is empty
// before any.
func (v View) RootTurn() agent.Turn {
	if t := v.Root().LatestTurn; t != nil {
		return *t
	}
	return agent.Turn{}
}

// Children returns every child session, in order of creation.
func (v View) Children() []agent.Session {
	return slices.DeleteFunc(slices.Clone(v.Sessions), func(s agent.Session) bool { return s.IsRoot() })
}

// LiveChildren counts the children with a live turn.
func (v View) LiveChildren() int {
	n := 0
	for _, s := range v.Children() {
		if s.ActiveTurn != nil {
			n++
		}
	}
	return n
}

// Session returns the session with this id; its ID is empty if there is none.
func (v View) Session(id agent.SessionID) agent.Session {
	for _, s := range v.Sessions {
		if s.ID == id {
			return s
		}
	}
	return agent.Session{}
}

// Turn returns the turn with this id; its ID is empty if there is none.
func (v View) Turn(id agent.TurnID) agent.Turn {
	for _, t := range v.Turns {
		if t.ID == id {
			return t
		}
	}
	return agent.Turn{}
}

// MessagesOf returns the transcript of one session.
func (v View) MessagesOf(id agent.SessionID) []agent.Message {
	return slices.DeleteFunc(slices.Clone(v.Messages), func(m agent.Message) bool { return m.SessionID != id })
}

// Holder returns the session with a message of an agent that contains text; its ID is
// empty if there is none.
func (v View) Holder(text string) agent.Session {
	for _, m := range v.Messages {
		if m.Role != agent.RoleUser && strings.Contains(m.Content, text) {
			return v.Session(m.SessionID)
		}
	}
	return agent.Session{}
}

// Pending returns the questions that nobody has answered yet.
func (v View) Pending() []agent.Interaction {
	return slices.DeleteFunc(slices.Clone(v.Interactions), func(i agent.Interaction) bool { return i.Status != agent.InteractionPending })
}

// waitLimit is how long Await waits for something that a correct adapter does at once.
// In a synctest bubble it is virtual time.
const waitLimit = 20 * time.Second

// Await waits until the model satisfies cond and returns that view. It fails the test,
// saying what was awaited and what there is, when waitLimit has passed.
func (m *Model) Await(t testing.TB, what string, cond func(View) bool) View {
	t.Helper()
	return m.AwaitFor(t, waitLimit, what, cond)
}

// AwaitFor is Await with a limit of its own.
func (m *Model) AwaitFor(t testing.TB, limit time.Duration, what string, cond func(View) bool) View {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		changed := m.Changed() // before the look, so that no change is missed
		v := m.View()
		if cond(v) {
			return v
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("never happened: %s\n%s", what, v)
		}
	}
}

// String prints a view for the message of a failed test.
func (v View) String() string {
	var b strings.Builder
	for _, s := range v.Sessions {
		b.WriteString(string(s.Kind) + " " + string(s.ID) + " " + s.Title + "\n")
		for _, t := range v.Turns {
			if t.SessionID == s.ID {
				b.WriteString("  turn " + string(t.ID) + " " + string(t.Phase) + " " + string(t.Outcome) + " " + string(v.Held[t.ID]) + "\n")
			}
		}
		for _, m := range v.MessagesOf(s.ID) {
			b.WriteString("  " + string(m.Role) + " " + string(m.Kind) + " " + string(m.Status) + " " + m.Title + " " + m.Content + "\n")
		}
	}
	for _, i := range v.Interactions {
		b.WriteString("question " + string(i.SessionID) + " " + string(i.Status) + " " + i.Title + "\n")
	}
	for _, k := range slices.Sorted(maps.Keys(v.Retained)) {
		b.WriteString("retained " + string(k) + " " + string(v.Retained[k]) + "\n")
	}
	return b.String()
}
