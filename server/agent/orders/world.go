// Package orders is the reference that tests compare storage with: a small world with
// one root turn, a continuation, three children and one nested, two cancels, a delete,
// a death and a restart, moved by the rules of package agent and nothing else.
//
// A World is a comparable value and every event happens at most once, so the worlds
// form a finite graph without cycles whose paths are exactly the legal orders. A
// property checked on every world and every transition therefore holds for every
// order, without walking each of them by hand.
//
// It is test support: nothing in the daemon imports it.
package orders

import "github.com/turnkeeper/turnkeeper/server/agent"

// Event is one thing that can happen, at most once.
type Event uint8

const (
	ProviderStart Event = iota
	ProviderEnd
	ContinuationStart
	ContinuationEnd
	ChildAStart
	ChildAEnd
	ChildBStart
	ChildBEnd
	ChildCStart
	ChildCEnd
	NestedStart // below A
	NestedEnd
	CancelPrepare // of the root turn
	CancelComplete
	StopAPrepare // a cancel of child A alone, with what runs below it
	StopAComplete
	DeleteB
	Death   // the provider process is gone
	Restart // the daemon is started again: the process is gone too, leases are requeued
	eventCount
)

var names = [eventCount]string{
	"provider+", "provider-", "continuation+", "continuation-", "A+", "A-", "B+", "B-", "C+", "C-", "N+", "N-",
	"cancel+", "cancel-", "stopA+", "stopA-", "deleteB", "death", "restart",
}

func (e Event) String() string { return names[e] }

// Child names one of the four children.
type Child uint8

const (
	A Child = iota
	B
	C
	N
	childCount
)

// Children lists them, parents first.
var Children = []Child{A, B, C, N}

func (c Child) String() string { return [...]string{"A", "B", "C", "N"}[c] }

// Outcomes are the words with which the provider ends things.
type Outcomes struct {
	Provider, Continuation, Child agent.Outcome
}

// ProviderState is one provider turn.
type ProviderState uint8

const (
	ProviderNone ProviderState = iota
	ProviderRefused
	ProviderLive
	ProviderOver
)

// ChildState is one child session with its only turn.
type ChildState struct {
	Exists  bool // created and not refused
	Gone    bool // tombstoned
	Phase   agent.Phase
	Outcome agent.Outcome
	Target  bool // of a prepared cancel
}

// Live reports whether the child holds the root open.
func (c ChildState) Live() bool { return c.Exists && !c.Gone && c.Phase != agent.PhaseSettled }

// World is everything there is, as the rules leave it.
type World struct {
	Said         Outcomes
	Done         uint32 // bit set of events that have happened
	Phase        agent.Phase
	Outcome      agent.Outcome
	Held         agent.HeldBy
	Provider     ProviderState
	Continuation ProviderState
	Retained     agent.Outcome
	Kids         [childCount]ChildState
	Cancel       agent.CancelStage // of the root
	StopA        agent.CancelStage
	Lost         bool
	Settles      uint8 // how often the root turn came to be settled
}

// New returns a world whose root turn was just submitted.
func New(said Outcomes) World {
	return World{Said: said, Phase: agent.PhaseSubmitted, Held: agent.HeldByProvider}
}

// Has reports whether e has happened.
func (w World) Has(e Event) bool { return w.Done&(1<<e) != 0 }

// Legal lists what may happen next. After a loss the provider says nothing more; a
// report about something that was refused is legal, since providers do not know.
func (w World) Legal() []Event {
	var out []Event
	for e := range eventCount {
		if !w.Has(e) && w.allows(e) {
			out = append(out, e)
		}
	}
	return out
}

func (w World) allows(e Event) bool {
	if w.Lost && e <= NestedEnd {
		return false
	}
	switch e {
	case ProviderStart, CancelPrepare:
		return true
	case ProviderEnd, ContinuationStart, ChildAStart, ChildBStart, ChildCStart, Death, Restart:
		return w.Has(ProviderStart) && (e < Death || !w.Lost)
	case ContinuationEnd:
		return w.Has(ContinuationStart)
	case ChildAEnd, NestedStart, StopAPrepare:
		return w.Has(ChildAStart) && (e != StopAPrepare || w.Kids[A].Exists)
	case ChildBEnd, DeleteB:
		return w.Has(ChildBStart) && (e != DeleteB || w.Kids[B].Exists)
	case ChildCEnd:
		return w.Has(ChildCStart)
	case NestedEnd:
		return w.Has(NestedStart)
	case CancelComplete:
		return w.Cancel == agent.CancelOpen
	case StopAComplete:
		return w.StopA == agent.CancelOpen
	}
	return false
}
