package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// What a cancel or a loss does to a large tree is thousands of events, nearly all of them of
// turns. A row for each costs as much as the change itself, so that many in a row share one:
// see migration 3. Outside this file and the log's reading nobody can tell.
const (
	leastInPage = 16
	mostInPage  = 128
)

// turnRun is how many events at the beginning of a list may share rows.
func turnRun(events []agent.Event) int {
	n := 0
	for n < len(events) && events[n].Kind == agent.TurnUpdated && events[n].RootSessionID == events[0].RootSessionID {
		n++
	}
	return n
}

// insertPages appends a run of turn events.
func (t *tx) insertPages(run []agent.Event) error {
	at := micros(run[0].Time)
	var data []byte
	for page := range slices.Chunk(run, mostInPage) {
		data = data[:0]
		var before []byte
		for i := range page {
			data = appendMember(data, before, page[i].Data)
			before = page[i].Data
		}
		if err := t.q.InsertEventPage(bg, dbgen.InsertEventPageParams{
			PK: t.workspace<<seqBits | page[len(page)-1].Seq, At: at, Kind: agent.TurnUpdated, RootID: run[0].RootSessionID,
			Data: data, Span: int64(len(page)),
		}); err != nil {
			return err
		}
	}
	return nil
}

// appendMember appends an entity as what differs from the one before: how many bytes at the
// beginning and at the end are the same, and what is between. The turns of a large tree differ
// in little but their ids, and what is not written need not be copied out of the log either.
func appendMember(b, before, entity []byte) []byte {
	most := min(len(before), len(entity))
	head := 0
	for head+8 <= most && binary.NativeEndian.Uint64(before[head:]) == binary.NativeEndian.Uint64(entity[head:]) {
		head += 8
	}
	for head < most && before[head] == entity[head] {
		head++
	}
	tail := 0
	for b, e := before, entity; tail+8 <= most-head; tail += 8 {
		if binary.NativeEndian.Uint64(b[len(b)-tail-8:]) != binary.NativeEndian.Uint64(e[len(e)-tail-8:]) {
			break
		}
	}
	for tail < most-head && before[len(before)-1-tail] == entity[len(entity)-1-tail] {
		tail++
	}
	b = binary.AppendUvarint(b, uint64(head))
	b = binary.AppendUvarint(b, uint64(tail))
	b = binary.AppendUvarint(b, uint64(len(entity)-head-tail))
	return append(b, entity[head:len(entity)-tail]...)
}

// nextMember is appendMember backwards; it returns what of b is left.
func nextMember(b, before []byte) (entity, rest []byte, ok bool) {
	var n [3]int
	for i := range n {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > math.MaxInt32 {
			return nil, nil, false
		}
		n[i], b = int(v), b[size:]
	}
	if n[0]+n[1] > len(before) || n[2] > len(b) {
		return nil, nil, false
	}
	entity = make([]byte, 0, n[0]+n[1]+n[2])
	entity = append(append(append(entity, before[:n[0]]...), b[:n[2]]...), before[len(before)-n[1]:]...)
	return entity, b[n[2]:], true
}

// inPage is what an event in a page says of its place. One without a turn was erased.
type inPage struct {
	Session agent.SessionID `json:"agentSessionId"`
	Turn    agent.TurnID    `json:"id,omitempty"`
}

// members are the entities of a page.
func members(r *dbgen.Event) ([][]byte, []inPage, error) {
	all, heads := make([][]byte, r.Span), make([]inPage, r.Span)
	rest, before, whole := r.Data, []byte(nil), true
	for i := range all {
		if all[i], rest, whole = nextMember(rest, before); !whole {
			break
		}
		if err := json.Unmarshal(all[i], &heads[i]); err != nil {
			return nil, nil, fmt.Errorf("event %d: %w", r.PK&seqMask-r.Span+1+int64(i), err)
		}
		before = all[i]
	}
	if !whole || len(rest) > 0 {
		return nil, nil, fmt.Errorf("the %d events up to %d are damaged", r.Span, r.PK&seqMask)
	}
	return all, heads, nil
}

// eventsOf is what a row of the log holds.
func eventsOf(r *dbgen.Event, ws agent.WorkspaceID) ([]agent.Event, error) {
	if r.Span == 1 {
		return []agent.Event{eventOf(r, ws)}, nil
	}
	events := make([]agent.Event, r.Span)
	one := *r
	one.PK -= r.Span
	var all [][]byte
	var heads []inPage
	if len(r.Data) > 0 {
		var err error
		if all, heads, err = members(r); err != nil {
			return nil, err
		}
	}
	for i := range events {
		one.PK++
		if all != nil {
			one.SessionID, one.TurnID, one.Data = heads[i].Session, heads[i].Turn, all[i]
			if one.TurnID == "" {
				one.Data = nil
			}
		}
		events[i] = eventOf(&one, ws)
	}
	return events, nil
}

// span is a stretch of a workspace's log.
type span struct {
	after, oldest, newest int64
	limit                 int
}

// eventsBetween reads up to limit events after a number. From oldest to newest numbers have no
// gaps, so that the rows up to after + limit, and the one that the last of these numbers lies
// in, are all there is to read.
func eventsBetween(ctx context.Context, q *dbgen.Queries, w *dbgen.Workspace, s span) ([]agent.Event, error) {
	s.after = max(s.after, s.oldest-1)
	base, end := w.PK<<seqBits, (w.PK+1)<<seqBits
	last := s.after + int64(s.limit)
	rows, err := q.EventsBetween(ctx, dbgen.EventsBetweenParams{After: base + s.after, Below: min(base+last+1, end), Page: int64(s.limit)})
	if err != nil {
		return nil, err
	}
	if last = min(last, s.newest); len(rows) == 0 && last > s.after || len(rows) > 0 && rows[len(rows)-1].PK < base+last {
		more, err := q.EventsBetween(ctx, dbgen.EventsBetweenParams{After: base + last, Below: end, Page: 1})
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	out := make([]agent.Event, 0, max(int(last-s.after), 0))
	for i := range rows {
		events, err := eventsOf(&rows[i], w.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if s.after < e.Seq && e.Seq <= last {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// erasePages takes what was told of deleted sessions out of the pages of their root.
func (t *tx) erasePages(after, below int64, root agent.SessionID, ids []agent.SessionID) error {
	pages, err := t.q.EventPagesOfTree(bg, dbgen.EventPagesOfTreeParams{After: after, Below: below, RootID: root})
	if err != nil || len(pages) == 0 {
		return err
	}
	gone := make(map[agent.SessionID]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	for i := range pages {
		all, heads, err := members(&pages[i])
		if err != nil {
			return err
		}
		changed := false
		var data, before []byte
		for n, h := range heads {
			if gone[h.Session] && h.Turn != "" {
				all[n], changed = []byte(text(inPage{Session: h.Session})), true
			}
			data = appendMember(data, before, all[n])
			before = all[n]
		}
		if !changed {
			continue
		}
		if err := t.q.WriteEventPage(bg, dbgen.WriteEventPageParams{Data: data, PK: pages[i].PK}); err != nil {
			return err
		}
	}
	return nil
}
