package claude

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// spending is what a turn has used. The program counts exactly what it has spent on the
// root agent's own turn, and on everything since the last result, and not what each child
// has; the messages of a child tell how much of it is whose.
type spending struct {
	messages map[string]float64 // weight of each message of the model, as told last
	counted  float64            // weight that a result has accounted for
	total    agent.Usage
}

func (s *spending) weight() float64 {
	sum := 0.0
	for _, w := range s.messages {
		sum += w
	}
	return sum
}

// books is the part of the runtime that knows what was spent.
type books struct {
	model   string       // of the root, as its messages name it
	cost    int64        // of the program so far, in millionths of a US dollar
	spentOn agent.TurnID // the root turn that spent is of
	spent   agent.Usage
	earners []*turn // children's turns with weight that no result has accounted for
}

// messageUsage notes what a message of the model took. A message comes in several lines,
// each with its use so far.
func (r *runtime) messageUsage(u *turn, m *apiMessage) {
	if m.Usage == nil || m.ID == "" {
		return
	}
	if u.lane.isRoot() {
		r.books.model = m.Model
		return
	}
	if u.spent.messages == nil {
		u.spent.messages = map[string]float64{}
	}
	u.spent.messages[m.ID] = m.Usage.weight()
	if !slices.Contains(r.earners, u) {
		r.earners = append(r.earners, u)
	}
}

// resultUsage books what was spent since the last result: the root's own part on its root
// turn, the rest on the children that worked, by what their messages took.
func (r *runtime) resultUsage(u *turn, f *resultFrame) {
	own, children := f.Usage.usage(), agent.Usage{}
	if len(f.SinceLast) > 0 {
		own, children = f.split(r.books.model)
	} else {
		own.CostMicros = max(micros(f.TotalCostUSD)-r.cost, 0)
	}
	r.cost = max(micros(f.TotalCostUSD), r.cost)
	earners := slices.DeleteFunc(r.earners, func(e *turn) bool { return e.dropped || e.lane.shut })
	r.earners = nil
	if len(earners) == 0 {
		own, children = own.Add(children), agent.Usage{}
	}
	weights := make([]float64, len(earners))
	for i, e := range earners {
		weights[i] = e.spent.weight() - e.spent.counted
		e.spent.counted = e.spent.weight()
	}
	for i, part := range apportion(children, weights) {
		e := earners[i]
		e.spent.total = e.spent.total.Add(part)
		r.apply(agent.UsageReported{Session: e.lane.session, Turn: e.id, Usage: e.spent.total})
	}
	if r.spentOn != u.id {
		r.spentOn, r.books.spent = u.id, agent.Usage{}
	}
	r.books.spent = r.books.spent.Add(own)
	r.apply(agent.UsageReported{Session: r.root.session, Turn: u.id, Usage: r.books.spent})
}
