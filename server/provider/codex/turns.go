package codex

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// turn is one app-server turn: a provider turn of the root thread (id is then the
// canonical root turn it runs under) or a child's own turn.
type turn struct {
	native  string
	id      agent.TurnID
	key     agent.ProviderTurnID // of a provider turn
	begun   bool                 // turn/started was seen
	ended   bool                 // turn/completed was seen
	closed  bool                 // a target of a cancel
	dropped bool                 // interrupted by us and never shown
	items   map[string]*item
	texts   []*userText // of a person, that its userMessage item has not shown yet
	base    agent.Usage // of the thread, when the canonical turn began
	counted bool        // it has used something of its own
	diff    standing    // of all that it changed
	lastErr *turnError
	began   []*serial.Waiter // guidance that waits for it to begin
}

// userText is a person's message on its way into a turn.
type userText struct {
	turn    agent.TurnID // the canonical turn it was said in
	message agent.MessageID
	text    string
	// accepted: the provider took it. That is not delivery: an interrupt loses it.
	accepted bool
	opens    bool // its turn was started with it
}

// turnState is the part of the runtime that knows the root's provider turns.
type turnState struct {
	keys     provider.TurnKeys
	boundary bool   // the last root turn was canceled: the server may start none by itself
	limit    string // of the account, as it was told last: "" if none is reached
}

func newTurnState() turnState { return turnState{} }

// turnStarted handles turn/started of an owned thread.
func (r *runtime) turnStarted(t *thread, f frame) {
	if f.Turn == nil || f.Turn.ID == "" {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	u := t.turns[f.Turn.ID]
	if u != nil && (u.begun || u.ended) {
		return // said before
	}
	if t == r.root {
		r.rootTurnStarted(f, u)
		return
	}
	r.childTurnStarted(t, f)
}

// rootTurnStarted handles a provider turn that begins: ours, or the server's own.
func (r *runtime) rootTurnStarted(f frame, u *turn) {
	if u == nil && r.root.pending != nil {
		// It may be the one we asked for, whose answer is on its way; or the server
		// was quicker. The answer tells, so this thread waits for it.
		r.root.paused = true
		r.root.held = append([]frame{f}, r.root.held...)
		return
	}
	if u == nil {
		if u = r.serverTurn(f.Turn.ID); u == nil {
			return
		}
	}
	u.begun = true
	r.root.active = u
	r.wakeGuides(u)
	if u.closed || u.dropped {
		r.stopOrphan(r.root.id, u.native)
	}
}

// serverTurn places a root turn that the server began by itself, a goal for one
// (decisions.md 3). It returns nil when storage failed.
func (r *runtime) serverTurn(native string) *turn {
	u := &turn{key: r.keys.Next(), base: r.root.total}
	r.root.add(native, u)
	if r.boundary {
		u.dropped = true
		r.Diagnose(provider.Refused, "turn/started", native)
		return u
	}
	applied, ok := r.Apply(agent.ProviderTurnStarted{Session: r.root.session, Key: u.key, NativeID: native})
	if !ok {
		return nil
	}
	if applied.Verdict == agent.VerdictRefused {
		u.dropped = true
		return u
	}
	u.id = applied.Turn
	r.owners[native] = u.id
	return u
}

// childTurnStarted binds the announced first turn of a child, or opens a later one.
func (r *runtime) childTurnStarted(t *thread, f frame) {
	u, trigger := t.pending, agent.TriggerDelegation
	if u == nil {
		u, trigger = &turn{id: r.Mint.Turn()}, agent.TriggerGuidance
		if r.canceled[r.owners[f.Turn.RootTurnID]] {
			u.dropped = true
			r.Diagnose(provider.Refused, f.method, t.id)
		}
	}
	t.pending = nil
	t.add(f.Turn.ID, u)
	if t.summoned != nil {
		defer r.answerSummons(t)
	}
	u.begun, u.base = true, t.total
	t.active = u
	if !u.dropped {
		applied, ok := r.Apply(agent.TurnStarted{Session: t.session, Turn: u.id, NativeID: u.native, Trigger: trigger})
		if !ok {
			return
		}
		u.dropped = applied.Verdict == agent.VerdictRefused
	}
	if u.dropped || u.closed {
		r.stopOrphan(t.id, u.native)
		return
	}
	r.lookUp(t)
}

// turnCompleted handles the terminal of one exact turn.
func (r *runtime) turnCompleted(t *thread, f frame) {
	if f.Turn == nil || f.Turn.ID == "" {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	u := t.turns[f.Turn.ID]
	if u == nil && t.pending != nil {
		if t == r.root {
			r.root.paused = true // as in rootTurnStarted
			r.root.held = append([]frame{f}, r.root.held...)
			return
		}
		u, t.pending = t.pending, nil
		t.add(f.Turn.ID, u)
	}
	if u == nil || u.ended {
		r.Diagnose(provider.Late, f.method, t.id)
		return
	}
	if t == r.root && r.holdRootFor(u.native) || r.holdFor(u) {
		t.paused = true
		t.held = append([]frame{f}, t.held...)
		return
	}
	outcome, err := r.outcomeOf(u, f.Turn)
	r.endTurn(t, u, outcome, err)
}

// outcomeOf reads a terminal status. A word nobody knows is no success.
func (r *runtime) outcomeOf(u *turn, info *turnInfo) (agent.Outcome, *agent.Error) {
	switch info.Status {
	case statusCompleted:
		return agent.OutcomeCompleted, nil
	case statusTurnInterrupted:
		return agent.OutcomeInterrupted, nil
	case statusFailed:
		reason := info.Error
		if reason == nil {
			reason = u.lastErr
		}
		if reason == nil {
			reason = &turnError{Message: "Codex gave no reason"}
		}
		return agent.OutcomeFailed, reason.asError()
	}
	r.Diagnose(provider.Malformed, "turn/completed", "unknown status "+show.Bounded(info.Status, 40))
	return agent.OutcomeInterrupted, agent.Errorf(agent.CodeProviderRefused, "Codex ended the turn with an unknown status")
}

// endTurn closes what was open in a turn and reports its terminal.
func (r *runtime) endTurn(t *thread, u *turn, outcome agent.Outcome, why *agent.Error) {
	u.ended = true
	if t.active == u {
		t.active = nil
	}
	r.wakeGuides(u)
	if u.dropped {
		u.items = nil
		r.confirm(t, u, outcome)
		return
	}
	r.showDiff(t, u)
	u.diff = standing{}
	r.findShells(t, u)
	r.closeItems(t, u)
	if len(u.texts) > 0 && u.texts[0].opens && outcome == agent.OutcomeCompleted {
		// A turn that ran to its own end has read what it was started with.
		r.putText(t, u.texts[0], agent.MessageCompleted)
		u.texts = u.texts[1:]
	}
	r.loseTexts(t, u)
	if t == r.root {
		r.Apply(agent.ProviderTurnEnded{Session: t.session, Turn: u.id, Key: u.key, Outcome: outcome, Err: why})
	} else {
		r.Apply(agent.TurnSettled{Session: t.session, Turn: u.id, Outcome: outcome, Err: why})
		r.withdrawAsked(func(q *question) bool { return q.turn == u })
	}
	r.confirm(t, u, outcome)
}

// loseTexts marks what a person said and the turn never took: an accepted steer that
// an interrupt overtook is lost for good at the provider.
func (r *runtime) loseTexts(t *thread, u *turn) {
	u.texts = slices.DeleteFunc(u.texts, func(x *userText) bool {
		if x.accepted {
			r.putText(t, x, agent.MessageUndelivered)
		}
		return x.accepted
	})
}

// putText says what became of a person's message.
func (r *runtime) putText(t *thread, x *userText, status agent.MessageStatus) {
	r.Apply(agent.MessagePut{Message: agent.Message{
		ID: x.message, SessionID: t.session, TurnID: x.turn, Role: agent.RoleUser, Kind: agent.MessageText, Status: status,
	}})
}

// wakeGuides lets guidance go on that waited for a turn to begin or end.
func (r *runtime) wakeGuides(u *turn) {
	for _, w := range u.began {
		r.Finish(w, nil)
	}
	u.began = nil
}

// tokenUsage reports what one turn has used so far. The server counts per thread, so a
// turn's own share is the thread's total less what it was when the turn began.
func (r *runtime) tokenUsage(t *thread, f frame) {
	var p tokenUsageParams
	if err := json.Unmarshal(f.params, &p); err != nil {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	t.total = p.TokenUsage.Total.usage()
	u := t.turns[f.TurnID]
	if u == nil && t.pending != nil && t != r.root {
		u = t.pending
	}
	if u == nil || u.dropped || u.ended {
		t.spent()
		return
	}
	u.counted = true
	r.Apply(agent.UsageReported{Session: t.session, Turn: u.id, Usage: less(t.total, u.base)})
}

// spent takes the total for what earlier turns have used: a resumed thread repeats it under
// the name of an old one, and does so at any time, even when the next turn has begun. What the
// turns that have not used anything yet will report is counted from there.
func (t *thread) spent() {
	counted := map[agent.TurnID]bool{}
	for _, u := range t.turns {
		counted[u.id] = counted[u.id] || u.counted
	}
	for _, u := range t.turns {
		if !u.ended && !counted[u.id] {
			u.base = t.total
		}
	}
	if u := t.pending; u != nil && !counted[u.id] {
		u.base = t.total
	}
}

func less(a, b agent.Usage) agent.Usage {
	return agent.Usage{
		InputTokens:       max(a.InputTokens-b.InputTokens, 0),
		CachedInputTokens: max(a.CachedInputTokens-b.CachedInputTokens, 0),
		OutputTokens:      max(a.OutputTokens-b.OutputTokens, 0),
		ReasoningTokens:   max(a.ReasoningTokens-b.ReasoningTokens, 0),
	}
}

func sortThreads(ts []*thread) {
	slices.SortFunc(ts, func(a, b *thread) int { return strings.Compare(a.id, b.id) })
}
