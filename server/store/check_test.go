package store

import (
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// sound are statements that must return nothing: what is summed up in a row equals what
// it sums up, and nothing that the rules forbid is there.
var sound = map[string]string{
	"live below a settled root turn": `SELECT c.id FROM turns c JOIN turns r ON r.pk = c.root_turn WHERE c.phase <> 'settled' AND r.phase = 'settled'`,
	"questions counted on a turn": `SELECT t.id FROM turns t WHERE t.prompts <>
		(SELECT count(*) FROM interactions i WHERE i.turn = t.pk AND i.status IN ('pending', 'answering'))`,
	"questions counted on a session": `SELECT s.id FROM sessions s WHERE s.deleted_at = 0 AND s.pending <>
		(SELECT count(*) FROM interactions i WHERE i.status IN ('pending', 'answering') AND (i.session = s.pk OR s.kind = 'root' AND i.root = s.pk))`,
	"open questions of a settled turn": `SELECT t.id FROM turns t JOIN interactions i ON i.turn = t.pk WHERE t.phase = 'settled' AND i.status IN ('pending', 'answering')`,
	"provider turns counted": `SELECT t.id FROM turns t WHERE t.is_root = 1 AND (t.provider_live <>
		(SELECT count(*) FROM provider_turns p WHERE p.turn = t.pk AND p.phase <> 'ended')
		OR t.provider_reserved <> (SELECT count(*) FROM provider_turns p WHERE p.turn = t.pk AND p.phase = 'reserved'))`,
	"latest turn": `SELECT s.id FROM sessions s WHERE s.deleted_at = 0 AND s.latest_turn <>
		coalesce((SELECT max(t.pk) FROM turns t WHERE t.session = s.pk), 0)`,
	"open messages of a settled turn":    `SELECT m.id FROM messages m JOIN turns t ON t.pk = m.turn WHERE t.phase = 'settled' AND m.status IN ('pending', 'streaming')`,
	"chunks of a message that has ended": `SELECT m.id FROM message_chunks c JOIN messages m ON m.pk = c.pk >> 32 WHERE m.status NOT IN ('pending', 'streaming')`,
	"an open cancel without its turn": `SELECT o.id FROM operations o WHERE o.kind = 'cancel' AND o.status IN ('pending', 'running')
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.pk = o.turn)`,
	"a root turn held by no open cancel": `SELECT t.id FROM turns t WHERE t.is_root = 1 AND t.cancel = 'open' AND NOT EXISTS
		(SELECT 1 FROM operations o WHERE o.turn = t.pk AND o.kind = 'cancel' AND o.status IN ('pending', 'running'))`,
	"rows of a deleted session": `SELECT s.id FROM sessions s WHERE s.deleted_at <> 0 AND (
		EXISTS (SELECT 1 FROM turns t WHERE t.session = s.pk) OR EXISTS (SELECT 1 FROM messages m WHERE m.session = s.pk)
		OR EXISTS (SELECT 1 FROM interactions i WHERE i.session = s.pk))`,
	"a live child of a deleted session": `SELECT c.id FROM sessions c JOIN sessions p ON p.pk = c.parent WHERE p.deleted_at <> 0 AND c.deleted_at = 0`,
}

// verifyRows checks that the rows are sound.
func (w *world) verifyRows() {
	w.Helper()
	for name, q := range sound {
		if id := query[string](w, q+" LIMIT 1"); id != "" {
			w.Fatalf("%s: %s", name, id)
		}
	}
}

// verify checks that the file is sound, that events are numbered without gaps, and that
// whoever folds the events holds what a reader is told.
func (w *world) verify() {
	w.Helper()
	w.verifyRows()
	var fold follower
	fold.init()
	for after := int64(0); ; {
		log, err := w.Events(background(w), w.ws, after, maxLogPage)
		w.must(err)
		for _, e := range log.Items {
			if e.Seq != after+1 && after != 0 {
				w.Fatalf("event %d follows %d", e.Seq, after)
			}
			after = e.Seq
			fold.apply(w, e)
		}
		if len(log.Items) == 0 {
			if after != log.Seq {
				w.Fatalf("the last event is %d, the newest number %d", after, log.Seq)
			}
			break
		}
	}
	fold.compare(w)
}

// follower is what a client holds that has applied every event.
type follower struct {
	sessions map[agent.SessionID]agent.Session
	turns    map[agent.TurnID]agent.Turn
	messages map[agent.MessageID]agent.Message
	asked    map[string]agent.Interaction
	gone     map[agent.SessionID]bool
}

func (f *follower) init() {
	f.sessions, f.turns = map[agent.SessionID]agent.Session{}, map[agent.TurnID]agent.Turn{}
	f.messages, f.asked = map[agent.MessageID]agent.Message{}, map[string]agent.Interaction{}
	f.gone = map[agent.SessionID]bool{}
}

func (f *follower) apply(w *world, e agent.Event) {
	w.Helper()
	// An event whose content was erased with its session reads as the deletion.
	if f.gone[e.SessionID] && e.Kind != agent.OperationUpdated && e.Kind != agent.SessionDeleted {
		w.Fatalf("%s of the deleted session %s", e.Kind, e.SessionID)
	}
	switch e.Kind {
	case agent.SessionCreated, agent.SessionUpdated:
		f.sessions[e.SessionID] = as[agent.Session](w, e)
	case agent.SessionDeleted:
		f.gone[e.SessionID] = true
		delete(f.sessions, e.SessionID)
	case agent.TurnCreated, agent.TurnUpdated:
		f.turns[e.TurnID] = as[agent.Turn](w, e)
	case agent.MessageCreated, agent.MessageUpdated:
		m := as[agent.Message](w, e)
		f.messages[m.ID] = m
	case agent.InteractionCreated, agent.InteractionUpdated:
		i := as[agent.Interaction](w, e)
		f.asked[string(i.TurnID)+"/"+string(i.RequestID)] = i
	}
}

func as[T any](w *world, e agent.Event) T {
	w.Helper()
	var v T
	w.must(json.Unmarshal(e.Data, &v))
	return v
}

// compare reads everything that the client holds and checks that it is the same.
func (f *follower) compare(w *world) {
	w.Helper()
	same := func(what string, id any, folded, read any) {
		if a, b := text(folded), text(read); a != b {
			w.Fatalf("%s %v\nby events %s\nby a read %s", what, id, a, b)
		}
	}
	for id, s := range f.sessions {
		read, err := w.Session(background(w), w.ws, id)
		w.must(err)
		for _, v := range []*agent.Session{&s, &read} { // these two follow from turn events
			v.ActiveTurn, v.LatestTurn = nil, nil
		}
		same("session", id, s, read)
	}
	for id, t := range f.turns {
		if !f.gone[t.SessionID] {
			read, err := w.Turn(background(w), w.ws, t.SessionID, id)
			w.must(err)
			same("turn", id, t, read)
		}
	}
	for id, m := range f.messages {
		if !f.gone[m.SessionID] && m.Status.Ended() { // what streams comes as deltas
			read, err := w.Message(background(w), w.ws, m.SessionID, id)
			w.must(err)
			same("message", id, m, read)
		}
	}
	for id, i := range f.asked {
		if !f.gone[i.SessionID] {
			read, err := w.Interaction(background(w), w.ws, i.SessionID, i.TurnID, i.RequestID)
			w.must(err)
			same("question", id, i, read)
		}
	}
	if n := query[int64](w, "SELECT count(*) FROM sessions WHERE deleted_at = 0"); n != int64(len(f.sessions)) {
		w.Fatalf("%d sessions are there, %d by events", n, len(f.sessions))
	}
}
