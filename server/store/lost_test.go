package store

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A canceled root turn settles without its provider's word. When the process goes, that
// word will never come: what is shown ends with it, and nothing else of the turn changes.
func TestLossEndsWhatIsLeftUnderSettledTurns(t *testing.T) {
	gone := failed("the process ended")
	lose := map[string]func(*tree){
		"the process ends": func(tr *tree) {
			tr.verdict(agent.SessionLost{Session: tr.root, Err: gone}, agent.VerdictApplied, "")
			tr.verdict(agent.SessionLost{Session: tr.root, Err: gone}, agent.VerdictUnchanged, "")
		},
		"the daemon is started again": func(tr *tree) {
			tr.reopen()
			tr.must(tr.Recover(background(tr)))
			tr.must(tr.Recover(background(tr)))
		},
	}
	for name, lost := range lose {
		t.Run(name, func(t *testing.T) {
			tr := open(t).begin()
			first := tr.turn
			tr.provider("p")
			tr.canceledAtOnce()
			before := tr.rootTurn()
			if p := before.ProviderTurn; p.Phase != agent.ProviderRunning || p.EndedAt != nil {
				t.Fatalf("the provider turn is %+v", p)
			}
			tr.turn = tr.says(tr.root, "go on").Turn.ID // what was left need not be of the latest turn
			tr.provider("q")
			tr.providerEnds("q", agent.OutcomeCompleted)
			tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
			second := tr.rootTurn()
			tr.events()
			tr.clock.advance(time.Minute)

			lost(tr)
			tr.turn = first
			after := tr.rootTurn()
			if p := after.ProviderTurn; p.Phase != agent.ProviderEnded || p.Outcome != agent.OutcomeInterrupted || p.EndedAt == nil || !p.EndedAt.After(*second.SettledAt) {
				t.Errorf("the provider turn is %+v", p)
			}
			if after.Outcome != agent.OutcomeCanceled || after.Error != nil || !after.SettledAt.Equal(*before.SettledAt) {
				t.Errorf("the root turn is %+v", after)
			}
			events := tr.events()
			var told agent.Turn
			if len(events) != 1 || events[0].Kind != agent.TurnUpdated || json.Unmarshal(events[0].Data, &told) != nil || told.ID != first || !told.ProviderTurn.EndedAt.Equal(*after.ProviderTurn.EndedAt) {
				t.Errorf("told %v, %+v", kinds(events), told)
			}
			if a := tr.providerEnds("p", agent.OutcomeCompleted); a.Verdict != agent.VerdictLate || tr.rootTurn().ProviderTurn.Outcome != agent.OutcomeInterrupted {
				t.Errorf("what comes later is %+v", a)
			}
			tr.turn = second.ID
			if got := tr.rootTurn(); got.Outcome != agent.OutcomeCompleted || got.ProviderTurn.Outcome != agent.OutcomeCompleted || !got.ProviderTurn.EndedAt.Equal(*second.ProviderTurn.EndedAt) {
				t.Errorf("the other turn is %+v", got)
			}
		})
	}
}

// canceledAtOnce cancels the tree and completes that without a word of the provider.
func (t *tree) canceledAtOnce() {
	t.Helper()
	op := t.cancels(t.root, t.turn)
	_, err := t.CompleteCancel(background(t), op.ID, nil)
	t.must(err)
	t.is(agent.PhaseSettled, agent.OutcomeCanceled)
}

// The loss of a tree takes along what was left under the turns before.
func TestLossOfAnOpenTurnAndWhatIsLeft(t *testing.T) {
	tr := open(t).begin()
	first := tr.turn
	tr.provider("p")
	tr.canceledAtOnce()
	tr.turn = tr.says(tr.root, "go on").Turn.ID
	tr.provider("q")
	tr.verdict(agent.SessionLost{Session: tr.root, Err: failed("gone")}, agent.VerdictApplied, "")
	tr.is(agent.PhaseSettled, agent.OutcomeInterrupted)
	for _, turn := range []agent.TurnID{tr.turn, first} {
		tr.turn = turn
		if p := tr.rootTurn().ProviderTurn; p.Phase != agent.ProviderEnded || p.Outcome != agent.OutcomeInterrupted || p.EndedAt == nil {
			t.Errorf("the provider turn of %s is %+v", turn, p)
		}
	}
}

// The end of the provider's own turn has its time, for as long as that is the turn shown.
func TestProviderTurnHasTheTimeOfItsEnd(t *testing.T) {
	tr := open(t).begin()
	tr.provider("p")
	kid := tr.child("kid")
	ended := func() *time.Time { return tr.rootTurn().ProviderTurn.EndedAt }
	if ended() != nil {
		t.Errorf("it runs, and ended at %v", ended())
	}
	tr.clock.advance(time.Second)
	tr.providerEnds("p", agent.OutcomeCompleted)
	at := ended()
	tr.clock.advance(time.Second)
	if turn := tr.rootTurn(); at == nil || !at.After(*turn.StartedAt) {
		t.Fatalf("it ended at %v, started %v", at, turn.StartedAt)
	}
	// A name that comes afterwards is no end, nor is that of a child.
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "p", NativeID: "native"}, agent.VerdictApplied, "")
	if got := ended(); got == nil || !got.Equal(*at) {
		t.Errorf("it ended at %v, want %v", got, at)
	}
	until := tr.clock.now()
	tr.verdict(agent.ProviderTurnStarted{Session: tr.root, Turn: tr.turn, Key: "q", Reserved: &until}, agent.VerdictApplied, "")
	if p := tr.rootTurn().ProviderTurn; p.Phase != agent.ProviderReserved || p.EndedAt != nil {
		t.Errorf("the next is expected: %+v", p)
	}
	tr.provider("q") // the child lives: the root goes on
	if ended() != nil {
		t.Errorf("the next runs, and ended at %v", ended())
	}
	tr.providerEnds("q", agent.OutcomeCompleted)
	at = ended()
	tr.clock.advance(time.Second)
	tr.ends(kid, agent.OutcomeCompleted)
	tr.is(agent.PhaseSettled, agent.OutcomeCompleted)
	if turn := tr.rootTurn(); !turn.ProviderTurn.EndedAt.Equal(*at) || !turn.SettledAt.After(*at) {
		t.Errorf("it ended at %v, want %v, and the turn at %v", turn.ProviderTurn.EndedAt, at, turn.SettledAt)
	}
	tr.reopen()
	if got := ended(); !got.Equal(*at) {
		t.Errorf("read again: %v, want %v", got, at)
	}
}

var leftIndex = regexp.MustCompile(`INDEX turns_provider_left\b|TEMP B-TREE FOR DISTINCT`)

// The plan test asks for no scan; these must use the index of what is left, which is small.
func TestWhatIsLeftIsFoundByItsIndex(t *testing.T) {
	w := open(t)
	all := statements(t)
	for _, name := range []string{"SettledWithProvider", "RootsSettledWithProvider"} {
		for _, line := range plan(t, w, all[name]) {
			if !leftIndex.MatchString(line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
