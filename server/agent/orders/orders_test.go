package orders_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/agent/orders"
)

var said = orders.Outcomes{
	Provider: agent.OutcomeCompleted, Continuation: agent.OutcomeCompleted, Child: agent.OutcomeFailed,
}

// Cover must take each transition that Walk finds, in legal orders only.
func TestCoverTakesEveryTransition(t *testing.T) {
	type edge struct {
		from orders.World
		e    orders.Event
	}
	for _, name := range slices.Sorted(maps.Keys(orders.Alphabets)) {
		t.Run(name, func(t *testing.T) {
			only := orders.Only(orders.Alphabets[name]...)
			want := map[edge]bool{}
			g := orders.Walk(orders.New(said), only, func(w orders.World, e orders.Event, _ orders.World, _ agent.Verdict) {
				want[edge{w, e}] = true
			})
			paths := 0
			orders.Cover(orders.New(said), only, func(path []orders.Event) bool {
				paths++
				w := orders.New(said)
				for _, e := range path {
					if !slices.Contains(w.Legal(), e) {
						t.Fatalf("%v is not legal in %v", e, path)
					}
					delete(want, edge{w, e})
					w, _ = w.Apply(e)
				}
				return true
			})
			if len(want) > 0 {
				t.Errorf("%d transitions were not taken", len(want))
			}
			t.Logf("%d worlds, %d transitions, %.3g orders, covered by %d", len(g.Worlds), g.Edges, g.Orders, paths)
		})
	}
}

// All and Walk must agree on how many orders there are.
func TestAllYieldsEveryOrderOnce(t *testing.T) {
	only := orders.Only(orders.ProviderStart, orders.ProviderEnd, orders.ChildAStart, orders.ChildAEnd, orders.CancelPrepare, orders.CancelComplete)
	g := orders.Walk(orders.New(said), only, func(orders.World, orders.Event, orders.World, agent.Verdict) {})
	seen := map[string]bool{}
	orders.All(orders.New(said), only, func(path []orders.Event) bool {
		key := ""
		for _, e := range path {
			key += e.String() + " "
		}
		if seen[key] {
			t.Fatalf("twice: %s", key)
		}
		seen[key] = true
		return true
	})
	if float64(len(seen)) != g.Orders || len(seen) < 40 {
		t.Errorf("All yields %d orders, Walk counts %v", len(seen), g.Orders)
	}
}
