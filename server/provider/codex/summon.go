package codex

// A root agent can give a child that has ended its work another task, and end its own turn
// before the child's new turn has begun. Nothing announces that turn but the call itself,
// and below a settled root turn nothing may run: so the end of the turn that made the call
// waits until the child has begun, for a bounded time. The call may be a mere message that
// starts nothing.

// summon notes that a turn has asked an idle child to work again.
func (r *runtime) summon(on *thread, by *turn, child string) {
	t := r.byID[child]
	if t == nil || t == r.root || !t.owned() || t.active != nil || t.pending != nil || by.ended || r.closedBelow(by) {
		return
	}
	t.summoned, t.summonedOn = by, on
}

// holdFor pauses a thread before the terminal of a turn that has summoned a child which
// has not begun yet.
func (r *runtime) holdFor(u *turn) bool {
	held := false
	for _, c := range r.byID {
		if c.summoned != u || r.closedBelow(u) {
			continue
		}
		held = true
		if c.stopSummon == nil {
			c.stopSummon = r.Clock.AfterFunc(adoptBound, func() { r.Do(func() { r.answerSummons(c) }) })
		}
	}
	return held
}

// answerSummons lets the summoning thread go on: the child has begun, or does not come.
func (r *runtime) answerSummons(c *thread) {
	by := c.summonedOn
	c.summoned, c.summonedOn = nil, nil
	if c.stopSummon != nil {
		c.stopSummon()
		c.stopSummon = nil
	}
	r.resume(by)
}
