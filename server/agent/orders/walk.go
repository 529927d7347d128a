package orders

import "github.com/turnkeeper/turnkeeper/server/agent"

// Graph is every world that any legal order reaches.
type Graph struct {
	Worlds map[World][]Event // with what may happen next
	Edges  int
	Orders float64 // how many whole orders there are; a float64, since they are many
}

// Walk visits every transition of every legal order once and calls visit with the world
// before, the event and the world after. with limits the alphabet (nil: all events).
func Walk(start World, with func(Event) bool, visit func(from World, e Event, to World, v agent.Verdict)) Graph {
	g := Graph{Worlds: map[World][]Event{}}
	counts := map[World]float64{}
	var walk func(w World) float64
	walk = func(w World) float64 {
		if n, seen := counts[w]; seen {
			return n
		}
		next := filter(w.Legal(), with)
		g.Worlds[w] = next
		var n float64
		for _, e := range next {
			to, verdict := w.Apply(e)
			g.Edges++
			visit(w, e, to, verdict)
			n += walk(to)
		}
		if len(next) == 0 {
			n = 1
		}
		counts[w] = n
		return n
	}
	g.Orders = walk(start)
	return g
}

func filter(events []Event, with func(Event) bool) []Event {
	if with == nil {
		return events
	}
	out := events[:0]
	for _, e := range events {
		if with(e) {
			out = append(out, e)
		}
	}
	return out
}

// All yields each legal order over the given alphabet, one after the other, until yield
// returns false. Only for small alphabets: their number grows like a factorial.
func All(start World, with func(Event) bool, yield func([]Event) bool) {
	var path []Event
	var walk func(w World) bool
	walk = func(w World) bool {
		next := filter(w.Legal(), with)
		if len(next) == 0 {
			return yield(path)
		}
		for _, e := range next {
			path = append(path, e)
			to, _ := w.Apply(e)
			ok := walk(to)
			path = path[:len(path)-1]
			if !ok {
				return false
			}
		}
		return true
	}
	walk(start)
}

// Cover yields whole legal orders that together take every transition at least once.
// Since a world decides what follows it, these stand for all orders where walking each
// of them would take too long, as on a real database.
func Cover(start World, with func(Event) bool, yield func([]Event) bool) {
	c := cover{with: with, taken: map[step]bool{}, spent: map[World]bool{}}
	for c.open(start) {
		if !yield(c.path(start)) {
			return
		}
	}
}

type step struct {
	from World
	e    Event
}

type cover struct {
	with  func(Event) bool
	taken map[step]bool
	spent map[World]bool // everything below was taken
}

// open reports whether anything below w is still to be taken.
func (c *cover) open(w World) bool {
	if c.spent[w] {
		return false
	}
	for _, e := range filter(w.Legal(), c.with) {
		if !c.taken[step{w, e}] {
			return true
		}
		if to, _ := w.Apply(e); c.open(to) {
			return true
		}
	}
	c.spent[w] = true
	return false
}

// path goes from w to an end, by untaken transitions where there are any.
func (c *cover) path(w World) []Event {
	var path []Event
	for {
		next := filter(w.Legal(), c.with)
		if len(next) == 0 {
			return path
		}
		e := c.pick(w, next)
		c.taken[step{w, e}] = true
		path = append(path, e)
		w, _ = w.Apply(e)
	}
}

func (c *cover) pick(w World, next []Event) Event {
	for _, e := range next {
		if !c.taken[step{w, e}] {
			return e
		}
	}
	for _, e := range next {
		if to, _ := w.Apply(e); c.open(to) {
			return e
		}
	}
	return next[0]
}

// Only returns an alphabet of the given events.
func Only(events ...Event) func(Event) bool {
	var set uint32
	for _, e := range events {
		set |= 1 << e
	}
	return func(e Event) bool { return set&(1<<e) != 0 }
}
