package replay

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// judge watches every commit: what was created in which order, and whether the
// invariants held after it.
type judge struct {
	mu    sync.Mutex
	state map[agent.TurnID]agent.Turn
	gone  map[agent.SessionID]bool
	findings
}

// findings are what a judge has seen: everything in the order of creation.
type findings struct {
	sessions     []agent.SessionID
	turns        []turnID
	messages     []messageID
	interactions []interactionID
	operations   []agent.OperationID
	processes    []agent.Process // as they were told last
	grants       []Grant
	Invariants
}

type turnID struct {
	session agent.SessionID
	turn    agent.TurnID
}

type messageID struct {
	session agent.SessionID
	message agent.MessageID
}

type interactionID struct {
	session agent.SessionID
	turn    agent.TurnID
	request agent.RequestID
}

func newJudge() *judge {
	return &judge{state: map[agent.TurnID]agent.Turn{}, gone: map[agent.SessionID]bool{}}
}

// watch is storage's OnCommit: the events of one commit.
func (j *judge) watch(events []agent.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[agent.OperationID]bool{}
	for _, id := range j.operations {
		seen[id] = true
	}
	for _, e := range events {
		j.note(e, seen)
	}
	for _, t := range j.state {
		root := j.state[t.RootTurnID]
		if t.Phase != agent.PhaseSettled && root.Phase == agent.PhaseSettled && !j.gone[t.SessionID] {
			j.OpenBelowSettled++
		}
	}
}

func (j *judge) note(e agent.Event, seen map[agent.OperationID]bool) {
	switch e.Kind {
	case agent.SessionCreated:
		j.sessions = append(j.sessions, e.SessionID)
	case agent.SessionDeleted:
		j.gone[e.SessionID] = true
	case agent.TurnCreated, agent.TurnUpdated:
		t := decode[agent.Turn](e)
		before, known := j.state[t.ID]
		if !known {
			j.turns = append(j.turns, turnID{t.SessionID, t.ID})
		}
		if before.Phase == agent.PhaseSettled && (t.Phase != agent.PhaseSettled || t.Outcome != before.Outcome) {
			j.SettledTwice++
		}
		j.state[t.ID] = t
	case agent.MessageCreated:
		j.messages = append(j.messages, messageID{e.SessionID, decode[agent.Message](e).ID})
	case agent.InteractionCreated:
		i := decode[agent.Interaction](e)
		j.interactions = append(j.interactions, interactionID{i.SessionID, i.TurnID, i.RequestID})
	case agent.OperationUpdated:
		if o := decode[agent.Operation](e); !seen[o.ID] {
			seen[o.ID] = true
			j.operations = append(j.operations, o.ID)
		}
	case agent.ProcessUpdated:
		p := decode[agent.Process](e)
		at := slices.IndexFunc(j.processes, func(o agent.Process) bool { return o.SessionID == p.SessionID && o.ID == p.ID })
		if at < 0 {
			j.processes = append(j.processes, p)
		} else {
			j.processes[at] = p
		}
	case agent.SessionUpdated:
		j.grant(decode[agent.Session](e))
	case agent.MessageUpdated, agent.InteractionUpdated:
	}
}

// grant notes whether a child may be stopped alone, when that has changed.
func (j *judge) grant(s agent.Session) {
	if s.IsRoot() {
		return
	}
	was := false
	for _, g := range j.grants {
		if g.Session == s.ID {
			was = g.Given
		}
	}
	if can := s.Capabilities.ChildCancel; can != was {
		j.grants = append(j.grants, Grant{s.ID, can})
	}
}

func decode[T any](e agent.Event) T {
	var v T
	_ = json.Unmarshal(e.Data, &v) // we encoded it ourselves; a gap would show in the end
	return v
}
