package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// model is one conversation as the rules of package agent have it, without rows. It is
// compared with the store after each of many random steps.
type model struct {
	kids  map[string]*modelTurn // the latest turn of each child, by name
	names []string              // in order of creation
	root  agent.GateView
	keys  map[string]string // provider turns: key → reserved, running, ended
}

type modelTurn struct {
	parent  string // name, "" is the root
	id      agent.TurnID
	state   agent.TurnState
	prompts int
	target  bool // of the root's open cancel
	gone    bool
}

func newModel() *model {
	return &model{kids: map[string]*modelTurn{}, keys: map[string]string{}, root: agent.GateView{Phase: agent.PhaseSubmitted}}
}

func (m *model) live() (out []string) {
	for _, n := range m.names {
		if k := m.kids[n]; !k.gone && k.state.Phase != agent.PhaseSettled {
			out = append(out, n)
		}
	}
	return out
}

// gate looks, as it does after every change.
func (m *model) gate() {
	m.root.LiveChildren = len(m.live()) > 0
	d := agent.Gate(m.root)
	m.root.Phase, m.root.Outcome = d.Phase, d.Outcome
	if d.Phase == agent.PhaseSettled {
		m.root.OwnPrompts = 0
	}
}

func (m *model) step(name string, c agent.Change) {
	k := m.kids[name]
	k.state, _, _ = agent.NextTurn(k.state, c)
	if k.state.Phase == agent.PhaseSettled {
		k.prompts = 0
	}
}

func (m *model) open() bool {
	return m.root.Phase != agent.PhaseSettled && m.root.Cancel == agent.CancelNone
}

func (m *model) below(name, of string) bool {
	for p := m.kids[name].parent; p != ""; p = m.kids[p].parent {
		if p == of {
			return true
		}
	}
	return name == of
}

// run is a model and a store that live the same life.
type run struct {
	*tree
	m    *model
	op   agent.OperationID // the root's cancel
	next int
}

func (r *run) name(t *rapid.T, from []string) string {
	if len(from) == 0 {
		t.Skip("nobody there")
	}
	return rapid.SampledFrom(from).Draw(t, "who")
}

func (r *run) of(name string) child {
	if name == "" {
		return child{r.root, r.turn}
	}
	return child{named(r.root, name).session, r.m.kids[name].id}
}

func (r *run) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"provider starts":       r.providerStarts,
		"provider reserves":     r.providerReserves,
		"provider ends":         r.providerReports,
		"child starts":          r.childStarts,
		"child runs":            r.childRuns,
		"child begins again":    r.childBeginsAgain,
		"child ends":            r.childEnds,
		"asks":                  r.somebodyAsks,
		"is answered elsewhere": r.answeredElsewhere,
		"stop is asked":         r.stopIsAsked,
		"stop is done":          r.stopIsDone,
		"child is deleted":      r.childIsDeleted,
		"process dies":          r.processDies,
		"":                      r.agrees,
	}
}

var (
	keys     = rapid.SampledFrom([]string{"p1", "p2", "p3"})
	outcomes = rapid.SampledFrom([]agent.Outcome{agent.OutcomeCompleted, agent.OutcomeFailed, agent.OutcomeInterrupted})
)

func (r *run) providerStarts(t *rapid.T) {
	m := r.m
	k := keys.Draw(t, "key")
	r.apply(agent.ProviderTurnStarted{Session: r.root, Turn: r.turn, Key: agent.ProviderTurnID(k)})
	if was := m.keys[k]; m.root.Phase == agent.PhaseSettled || was == "running" || was == "ended" || was == "" && !m.open() {
		return
	} else if was == "reserved" {
		m.root.Reserved--
	} else {
		m.root.LiveProvider++
	}
	m.keys[k], m.root.Retained = "running", ""
}

func (r *run) providerReserves(t *rapid.T) {
	m := r.m
	k := keys.Draw(t, "key")
	until := r.clock.now()
	r.apply(agent.ProviderTurnStarted{Session: r.root, Turn: r.turn, Key: agent.ProviderTurnID(k), Reserved: &until})
	if m.open() && m.keys[k] == "" {
		m.keys[k] = "reserved"
		m.root.LiveProvider++
		m.root.Reserved++
	}
}

func (r *run) providerReports(t *rapid.T) {
	m := r.m
	k, o, silent := keys.Draw(t, "key"), outcomes.Draw(t, "outcome"), rapid.Bool().Draw(t, "silent")
	r.apply(agent.ProviderTurnEnded{Session: r.root, Turn: r.turn, Key: agent.ProviderTurnID(k), Outcome: o, Silent: silent})
	if m.keys[k] == "" || m.keys[k] == "ended" {
		return
	}
	m.root.LiveProvider--
	if m.keys[k] == "reserved" {
		m.root.Reserved--
	}
	m.keys[k] = "ended"
	if !silent || m.root.Retained == "" {
		m.root.Retained = o
	}
}

func (r *run) childStarts(t *rapid.T) {
	m := r.m
	parents := append([]string{""}, m.names...)
	parent := r.name(t, parents)
	if parent != "" && m.kids[parent].gone {
		t.Skip("gone")
	}
	r.next++
	name := fmt.Sprint("c", r.next)
	from := r.of(parent)
	_, f := r.start(name, from.session, from.turn)
	a := r.apply(f)
	if !m.open() {
		if a.Verdict != agent.VerdictRefused {
			t.Fatalf("a child started behind the fence: %+v", a)
		}
		return
	}
	m.kids[name] = &modelTurn{parent: parent, id: f.Turn, state: agent.TurnState{Phase: agent.PhaseSubmitted}}
	m.names = append(m.names, name)
}

func (r *run) childRuns(t *rapid.T) {
	m := r.m
	name := r.name(t, m.live())
	r.apply(agent.TurnStarted{Session: r.of(name).session, Turn: r.of(name).turn})
	m.step(name, agent.Change{Step: agent.StepBegin})
}

func (r *run) childBeginsAgain(t *rapid.T) {
	m := r.m
	name := r.name(t, m.names)
	r.next++
	id := agent.TurnID(fmt.Sprintf("%s-again-%d", r.root, r.next))
	a := r.apply(agent.TurnStarted{Session: r.of(name).session, Turn: id, Trigger: agent.TriggerGuidance})
	k := m.kids[name]
	if may := m.open() && !k.gone && k.state.Phase == agent.PhaseSettled; may != (a.Verdict == agent.VerdictApplied) {
		t.Fatalf("may begin: %v, got %+v", may, a)
	} else if may {
		k.id, k.state, k.prompts = id, agent.TurnState{Phase: agent.PhaseRunning}, 0
	}
}

func (r *run) childEnds(t *rapid.T) {
	m := r.m
	name, o := r.name(t, m.names), outcomes.Draw(t, "outcome")
	r.apply(agent.TurnSettled{Session: r.of(name).session, Turn: r.of(name).turn, Outcome: o})
	if !m.kids[name].gone {
		m.step(name, agent.Change{Step: agent.StepEnd, Outcome: o})
	}
}

func (r *run) somebodyAsks(t *rapid.T) {
	m := r.m
	name := r.name(t, append([]string{""}, m.live()...))
	r.next++
	a := r.apply(agent.InteractionAsked{Interaction: question(r.of(name), fmt.Sprint("q", r.next))})
	if a.Verdict != agent.VerdictApplied {
		return
	}
	if name == "" {
		m.root.OwnPrompts++
	} else {
		m.kids[name].prompts++
		m.step(name, agent.Change{Step: agent.StepPrompt})
	}
}

func (r *run) answeredElsewhere(t *rapid.T) {
	m := r.m
	i := query[string](r.world, "SELECT request_id || '/' || session_id || '/' || turn_id FROM interactions WHERE status = 'pending' AND root = (SELECT pk FROM sessions WHERE id = ?) LIMIT 1", r.root)
	if i == "" {
		t.Skip("no question")
	}
	parts := slices.Collect(splitSeq(i))
	r.apply(agent.InteractionEnded{Session: agent.SessionID(parts[1]), Turn: agent.TurnID(parts[2]), Request: agent.RequestID(parts[0]), Step: agent.AskResolved})
	if parts[1] == string(r.root) {
		m.root.OwnPrompts--
		return
	}
	for n, k := range m.kids {
		if named(r.root, n).session == agent.SessionID(parts[1]) {
			if k.prompts--; k.prompts == 0 {
				m.step(n, agent.Change{Step: agent.StepResume})
			}
		}
	}
}

func (r *run) stopIsAsked(t *rapid.T) {
	m := r.m
	op, settled, err := r.PrepareCancel(background(r), r.root, r.turn, "test")
	r.must(err)
	if settled {
		return
	}
	r.op = op.ID
	m.root.Cancel, m.root.OwnPrompts = agent.CancelOpen, 0
	for _, n := range m.live() {
		m.kids[n].target, m.kids[n].prompts = true, 0
		m.step(n, agent.Change{Step: agent.StepClose})
	}
}

func (r *run) stopIsDone(t *rapid.T) {
	m := r.m
	if m.root.Cancel != agent.CancelOpen {
		t.Skip("no stop")
	}
	_, err := r.CompleteCancel(background(r), r.op, nil)
	r.must(err)
	m.root.Cancel = agent.CancelDone
	for _, n := range m.live() {
		o, _ := agent.CancelOutcome(agent.CancelTarget{Evidence: agent.TargetRequested})
		m.step(n, agent.Change{Step: agent.StepStop, Outcome: o})
	}
}

func (r *run) childIsDeleted(t *rapid.T) {
	m := r.m
	name := r.name(t, m.names)
	_, err := r.Delete(background(r), r.ws, r.of(name).session)
	r.must(err)
	for _, n := range m.names {
		if m.below(n, name) {
			m.kids[n].gone = true
		}
	}
}

func (r *run) processDies(t *rapid.T) {
	m := r.m
	if rapid.IntRange(0, 9).Draw(t, "luck") > 0 {
		t.Skip("it lives")
	}
	r.apply(agent.SessionLost{Session: r.root, Err: failed("gone")})
	if m.root.Phase != agent.PhaseSettled && (m.root.LiveProvider > m.root.Reserved || m.root.Retained == "") {
		m.root.Retained = agent.OutcomeInterrupted
	}
	m.root.LiveProvider, m.root.Reserved = 0, 0
	for k := range m.keys {
		m.keys[k] = "ended"
	}
	for _, n := range m.live() {
		m.step(n, agent.Change{Step: agent.StepLose})
	}
}

func (r *run) agrees(t *rapid.T) {
	m := r.m
	m.gate()
	want := map[agent.TurnID]string{r.turn: string(m.root.Phase) + " " + string(m.root.Outcome)}
	for _, k := range m.kids {
		if !k.gone {
			want[k.id] = string(k.state.Phase) + " " + string(k.state.Outcome)
		}
	}
	if got := r.latestTurns(); !maps.Equal(got, want) {
		t.Fatalf("storage has %v\nthe model says %v", got, want)
	}
}

func splitSeq(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for from, i := 0, 0; i <= len(s); i++ {
			if i == len(s) || s[i] == '/' {
				if !yield(s[from:i]) {
					return
				}
				from = i + 1
			}
		}
	}
}

// latestTurns is the phase and outcome of the latest turn of each session of the tree.
func (t *tree) latestTurns() map[agent.TurnID]string {
	t.Helper()
	d, err := t.Detail(background(t), t.ws, t.root)
	t.must(err)
	out := map[agent.TurnID]string{}
	for _, s := range append(d.ChildSessions, d.Session) {
		out[s.LatestTurn.ID] = string(s.LatestTurn.Phase) + " " + string(s.LatestTurn.Outcome)
	}
	return out
}

// Random sequences, beyond the alphabet of the exhaustive orders, against a model; and at the
// end of each the file is sound and whoever folded the events holds the same.
func TestRandomLivesAgreeWithTheModel(t *testing.T) {
	w := open(t, onDisk(Memory))
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{tree: w.begin(), m: newModel()}
		rt.Repeat(r.actions())
		if rapid.Bool().Draw(rt, "deleted") {
			w.deletes(r.root)
		}
	})
	w.verify()
}
