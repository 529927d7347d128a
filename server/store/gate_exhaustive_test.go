package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/agent/orders"
)

// Every transition that any legal order of events can take is taken on the real schema, in
// whole orders from the beginning, and after each event storage must stand where the pure
// rules do: phases, outcomes, what holds the root, and that it settled once.
func TestEveryOrderOnStorageAgreesWithTheRules(t *testing.T) {
	said := []orders.Outcomes{
		{Provider: agent.OutcomeCompleted, Continuation: agent.OutcomeFailed, Child: agent.OutcomeFailed},
		{Provider: agent.OutcomeFailed, Continuation: agent.OutcomeCompleted, Child: agent.OutcomeInterrupted},
	}
	for _, name := range slices.Sorted(maps.Keys(orders.Alphabets)) {
		t.Run(name, func(t *testing.T) {
			w := open(t, onDisk(Memory))
			only := orders.Only(orders.Alphabets[name]...)
			steps, paths := 0, 0
			compared := compareStatement(w)
			for i, words := range said {
				if i > 0 && name == "children" {
					break // the largest alphabet; other words change nothing in it that the others do not show
				}
				orders.Cover(orders.New(words), only, func(path []orders.Event) bool {
					if paths++; raceEnabled && paths%64 != 0 {
						return true // a sample: the run without the detector takes every one
					}
					replay(w, compared, words, path)
					steps += len(path)
					return !t.Failed()
				})
			}
			counts, err := w.Counts(background(t))
			w.must(err)
			if counts.OpenBelowSettled != 0 {
				t.Errorf("%d turns live below a settled root turn", counts.OpenBelowSettled)
			}
			t.Logf("%d orders, %d events", paths, steps)
		})
	}
}

// player carries out orders on a store.
type player struct {
	*tree
	said  orders.Outcomes
	query *sql.Stmt
	kids  [4]child
	stops map[orders.Event]agent.OperationID
}

func replay(w *world, query *sql.Stmt, said orders.Outcomes, path []orders.Event) {
	w.Helper()
	p := &player{tree: w.begin(), said: said, query: query, stops: map[orders.Event]agent.OperationID{}}
	for _, c := range orders.Children {
		p.kids[c] = named(p.root, c.String())
	}
	model := orders.New(said)
	for i, e := range path {
		model, _ = model.Apply(e)
		p.play(e)
		if diff := p.compare(model); diff != "" {
			w.Fatalf("after %v: %s", path[:i+1], diff)
		}
	}
	p.settledOnce(model)
	g, err := p.Gate(background(p), p.ws, p.root, p.turn)
	p.must(err)
	if g.HeldBy != model.Held {
		w.Fatalf("after %v: the report says held by %q, the rules %q", path, g.HeldBy, model.Held)
	}
}

// settledOnce counts in the log how often the root turn settled. What is told of it after that
// may only be its provider's late word on its own turn; anything else is another settlement.
func (p *player) settledOnce(m orders.World) {
	p.Helper()
	settles := 0
	var last agent.Turn
	for _, e := range p.events() {
		if e.TurnID != p.turn || e.Kind != agent.TurnUpdated {
			continue
		}
		var turn agent.Turn
		p.must(json.Unmarshal(e.Data, &turn))
		switch {
		case turn.Phase != agent.PhaseSettled && settles > 0:
			p.Fatalf("a settled root turn was shown %s again", turn.Phase)
		case turn.Phase != agent.PhaseSettled:
		case settles > 0 && turn.Outcome == last.Outcome && !sameProviderTurn(turn.ProviderTurn, last.ProviderTurn):
		default:
			settles++
		}
		last = turn
	}
	if settles != int(m.Settles) {
		p.Fatalf("settled %d times in events, %d by the rules", settles, m.Settles)
	}
}

func sameProviderTurn(a, b *agent.ProviderTurn) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// compareStatement reads every turn of a tree with what the gate looks at.
func compareStatement(w *world) *sql.Stmt {
	st, err := w.db.Readers.Prepare(`SELECT t.id, t.phase, t.outcome, t.is_root, t.provider_live, t.provider_reserved, t.retained, t.prompts, t.cancel
		FROM sessions s JOIN turns t ON t.session = s.pk WHERE s.root = (SELECT pk FROM sessions WHERE id = ?) AND s.deleted_at = 0`)
	w.must(err)
	w.Cleanup(func() { _ = st.Close() })
	return st
}

func (p *player) play(e orders.Event) {
	ctx := background(p)
	switch e {
	case orders.ProviderStart:
		p.apply(agent.ProviderTurnStarted{Session: p.root, Turn: p.turn, Key: "first"})
	case orders.ProviderEnd:
		p.providerEnds("first", p.said.Provider)
	case orders.ContinuationStart:
		p.apply(agent.ProviderTurnStarted{Session: p.root, Turn: p.turn, Key: "second"})
	case orders.ContinuationEnd:
		p.providerEnds("second", p.said.Continuation)
	case orders.ChildAStart:
		p.spawn(orders.A, p.root, p.turn)
	case orders.ChildBStart:
		p.spawn(orders.B, p.root, p.turn)
	case orders.ChildCStart:
		p.spawn(orders.C, p.root, p.turn)
	case orders.NestedStart:
		p.spawn(orders.N, p.kids[orders.A].session, p.kids[orders.A].turn)
	case orders.ChildAEnd:
		p.ends(p.kids[orders.A], p.said.Child)
	case orders.ChildBEnd:
		p.ends(p.kids[orders.B], p.said.Child)
	case orders.ChildCEnd:
		p.ends(p.kids[orders.C], p.said.Child)
	case orders.NestedEnd:
		p.ends(p.kids[orders.N], p.said.Child)
	case orders.CancelPrepare:
		p.prepare(e, child{p.root, p.turn})
	case orders.StopAPrepare:
		p.prepare(e, p.kids[orders.A])
	case orders.CancelComplete:
		p.complete(p.stops[orders.CancelPrepare])
	case orders.StopAComplete:
		p.complete(p.stops[orders.StopAPrepare])
	case orders.DeleteB:
		_, err := p.Delete(ctx, p.ws, p.kids[orders.B].session)
		p.must(err)
	case orders.Death:
		p.apply(agent.SessionLost{Session: p.root, Err: failed("gone")})
	case orders.Restart:
		p.apply(agent.SessionLost{Session: p.root, Err: agent.Errorf(agent.CodeDaemonRestart, "restart")})
	default:
		p.Fatalf("no way to play %s", e)
	}
}

func (p *player) spawn(c orders.Child, parent agent.SessionID, turn agent.TurnID) {
	_, f := p.start(c.String(), parent, turn)
	p.apply(f)
}

func (p *player) prepare(e orders.Event, c child) {
	op, settled, err := p.PrepareCancel(background(p), c.session, c.turn, "test")
	p.must(err)
	if !settled {
		p.stops[e] = op.ID
	}
}

func (p *player) complete(id agent.OperationID) {
	a := p.kids[orders.Acknowledged]
	p.must(p.Hear(background(p), id, []agent.Evidence{{SessionID: a.session, TurnID: a.turn, State: agent.TargetAcknowledged}}))
	_, err := p.CompleteCancel(background(p), id, nil)
	p.must(err)
}

// compare says where storage and model differ, "" if nowhere.
func (p *player) compare(m orders.World) string {
	rows, err := p.query.Query(p.root)
	p.must(err)
	defer func() { _ = rows.Close() }()
	got := map[agent.TurnID]string{}
	var view agent.GateView
	for rows.Next() {
		var r dbgen.Turn
		p.must(rows.Scan(&r.ID, &r.Phase, &r.Outcome, &r.IsRoot, &r.ProviderLive, &r.ProviderReserved, &r.Retained, &r.Prompts, &r.Cancel))
		got[r.ID] = string(r.Phase) + " " + string(r.Outcome)
		if r.IsRoot == 1 {
			live := view.LiveChildren
			view = viewOf(&r, live)
		} else if r.Phase != agent.PhaseSettled {
			view.LiveChildren = true
		}
	}
	p.must(rows.Err())
	want := map[agent.TurnID]string{p.turn: string(m.Phase) + " " + string(m.Outcome)}
	for _, c := range orders.Children {
		if k := m.Kids[c]; k.Exists && !k.Gone {
			want[p.kids[c].turn] = string(k.Phase) + " " + string(k.Outcome)
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Sprintf("storage has %v, the rules say %v", got, want)
	}
	if held := agent.Gate(view).Held; held != m.Held {
		return fmt.Sprintf("storage is held by %q, the rules say %q", held, m.Held)
	}
	return ""
}
