package claude

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// spending is what a child's turn has used. The program counts exactly what it has spent on
// the root agent's own turn, and on everything since the last result, and not what each
// child has; the messages of a child tell how much of it is whose.
type spending struct {
	messages map[string]float64 // weight of each message of the model, as told last
	counted  float64            // weight of what is settled
	settled  agent.Usage
	total    agent.Usage // as reported
}

func (s *spending) weight() float64 {
	sum := -s.counted
	for _, w := range s.messages {
		sum += w
	}
	return sum
}

// books is the part of the runtime that knows what was spent. What children have spent is
// shared out among those that have worked since the program was idle last: only then have
// all of their messages come, and no result tells whose it is.
type books struct {
	speaks  string       // model of the root, as its messages name it
	cost    int64        // of the program so far, in millionths of a US dollar
	spentOn agent.TurnID // the root turn that booked is of
	booked  agent.Usage
	pool    agent.Usage // of children, since idle
	earners []*turn     // children's turns that have worked since idle
}

// messageUsage notes what a message of the model took. A message comes in several lines,
// each with its use so far.
func (r *runtime) messageUsage(u *turn, m *apiMessage) {
	if m.Usage == nil || m.ID == "" {
		return
	}
	if u.lane.isRoot() {
		r.speaks = m.Model
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
// turn, the rest on its children.
func (r *runtime) resultUsage(under agent.TurnID, f *resultFrame) {
	if under == "" {
		return
	}
	own, children := f.Usage.usage(), agent.Usage{}
	if len(f.SinceLast) > 0 {
		own, children = f.split(r.speaks)
	} else {
		own.CostMicros = max(micros(f.TotalCostUSD)-r.cost, 0)
	}
	r.cost = max(micros(f.TotalCostUSD), r.cost)
	r.pool = r.pool.Add(children)
	r.share()
	r.spend(under, own)
}

func (r *runtime) spend(under agent.TurnID, own agent.Usage) {
	if r.spentOn != under {
		r.spentOn, r.booked = under, agent.Usage{}
	}
	r.booked = r.booked.Add(own)
	r.Apply(agent.UsageReported{Session: r.root.session, Turn: under, Usage: r.booked})
}

// share divides what children have spent by what their messages took.
func (r *runtime) share() {
	earners := slices.DeleteFunc(r.earners, func(e *turn) bool { return e.dropped || e.lane.shut })
	weights := make([]float64, len(earners))
	for i, e := range earners {
		weights[i] = e.spent.weight()
	}
	for i, part := range apportion(r.pool, weights) {
		e := earners[i]
		if total := e.spent.settled.Add(part); total != e.spent.total {
			e.spent.total = total
			r.Apply(agent.UsageReported{Session: e.lane.session, Turn: e.id, Usage: total})
		}
	}
	r.earners = earners
}

// closeBooks settles what was shared out: the program is idle, so all has been told. What
// nobody has earned is the root's.
func (r *runtime) closeBooks() {
	r.share()
	for _, e := range r.earners {
		e.spent.settled = e.spent.total
		e.spent.counted += e.spent.weight()
	}
	if len(r.earners) == 0 && r.pool != (agent.Usage{}) && r.spentOn != "" {
		r.spend(r.spentOn, r.pool)
	}
	r.pool, r.earners = agent.Usage{}, nil
}
