package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// stream is what the writer remembers of a message that streams, so that a chunk costs
// one statement.
type stream struct {
	row  dbgen.Message // as it is stored
	size int64         // bytes so far
}

// chunkKey is where a message's text at an offset is stored; the text of one message lies
// between its key at 0 and the next message's.
func chunkKey(message, offset int64) int64 { return message<<32 | offset }

func (t *tx) emitMessage(kind agent.EventKind, of home, r *dbgen.Message) int64 {
	return t.emit(pendingEvent{kind: kind, session: of, turnID: r.TurnID, entity: messageOf(r, "")})
}

// message returns a message by id, or nil.
func (t *tx) message(id agent.MessageID) (*dbgen.Message, error) {
	if st := t.s.w.streams[id]; st != nil {
		row := st.row
		return &row, nil
	}
	row, err := t.q.MessageByID(bg, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", id, err)
	}
	return &row, nil
}

// putMessage creates a message or says more about it.
func (t *tx) putMessage(owner *ident, m agent.Message) (agent.Applied, error) {
	r, err := t.turn(owner, m.TurnID)
	if err != nil {
		return agent.Applied{}, err
	}
	if r == nil {
		return refused(agent.CodeUnknownOwner), nil
	}
	out := agent.Applied{Verdict: agent.VerdictApplied, Turn: r.ID}
	if r.Phase != agent.PhaseSettled {
		t.s.activity.heard(r.PK, owner.root, t.now)
	} else {
		out.Verdict = agent.VerdictLate
		if r.IsRoot == 1 && r.Outcome == agent.OutcomeCanceled {
			return out, nil // output of a canceled root run is dropped (spec, cancel boundary)
		}
		if !m.Status.Ended() {
			m.Status = agent.MessageInterrupted // nothing streams in a turn that has ended
		}
	}
	row, err := t.message(m.ID)
	if err != nil {
		return out, err
	}
	if row == nil {
		_, err = t.insertMessage(owner, r, m, dbgen.InsertMessageParams{})
		return out, err
	}
	if row.Session != owner.pk {
		return refused(agent.CodeUnknownOwner), nil
	}
	changed, err := t.mergeMessage(owner, row, m)
	if err == nil && !changed && out.Verdict == agent.VerdictApplied {
		out.Verdict = agent.VerdictUnchanged
	}
	return out, err
}

// insertMessage stores a new message; p brings what only a person's message has.
func (t *tx) insertMessage(owner *ident, r *turnRow, m agent.Message, p dbgen.InsertMessageParams) (*dbgen.Message, error) {
	t.s.w.messageKey++
	row := dbgen.Message{
		PK: t.s.w.messageKey, ID: m.ID, Session: owner.pk, SessionID: owner.id, Turn: r.PK, TurnID: r.ID, Role: m.Role,
		Kind: m.Kind, Status: m.Status, Body: m.Content, CallID: m.CallID, Name: m.Name, Title: m.Title, Input: m.Input,
		Output: m.Output, ChildID: m.ChildSessionID, ClientID: p.ClientID, Client: p.Client, Delivery: p.Delivery,
		CreatedAt: t.now, UpdatedAt: t.now,
	}
	e := pendingEvent{kind: agent.MessageCreated, session: owner.home, turnID: r.ID}
	row.Seq = t.emit(e)
	t.pending[len(t.pending)-1].entity = messageOf(&row, "")
	if err := t.q.InsertMessage(bg, dbgen.InsertMessageParams(row)); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	if row.Status.Ended() {
		return &row, nil
	}
	r.mayHaveOpen = true
	t.s.w.streams[row.ID] = &stream{row: row, size: int64(len(row.Body))}
	return &row, nil
}

// mergeMessage says more about a message that is known. An ended status is never left;
// content that is put replaces what streamed.
func (t *tx) mergeMessage(owner *ident, row *dbgen.Message, m agent.Message) (bool, error) {
	before := *row
	take := func(mine *string, theirs string) {
		if theirs != "" {
			*mine = theirs
		}
	}
	take(&row.Name, m.Name)
	take(&row.Title, m.Title)
	take(&row.Input, m.Input)
	take(&row.Output, m.Output)
	take((*string)(&row.CallID), string(m.CallID))
	take((*string)(&row.ChildID), string(m.ChildSessionID))
	if m.Status != "" && !row.Status.Ended() {
		row.Status = m.Status
	}
	ends := row.Status.Ended() && !before.Status.Ended()
	streamed, err := t.streamed(&before)
	if err != nil {
		return false, err
	}
	compacts := streamed != "" && (ends || m.Content != "")
	switch {
	case m.Content != "":
		row.Body = m.Content
	case ends:
		row.Body += streamed
	}
	if *row == before && !compacts {
		return false, nil
	}
	if compacts {
		if err := t.q.DeleteChunks(bg, dbgen.DeleteChunksParams{First: chunkKey(row.PK, 0), Below: chunkKey(row.PK+1, 0)}); err != nil {
			return false, fmt.Errorf("compact %s: %w", row.ID, err)
		}
		streamed = ""
	}
	if err := t.writeMessage(owner, row, streamed); err != nil {
		return false, err
	}
	if ends {
		delete(t.s.w.streams, row.ID)
	} else if st := t.s.w.streams[row.ID]; st != nil {
		st.row, st.size = *row, int64(len(row.Body)+len(streamed))
	}
	return true, nil
}

// streamed is the text of a message's chunks; one that has ended has none.
func (t *tx) streamed(r *dbgen.Message) (string, error) {
	if st := t.s.w.streams[r.ID]; r.Status.Ended() || st != nil && st.size == int64(len(r.Body)) {
		return "", nil
	}
	chunks, err := t.q.Chunks(bg, dbgen.ChunksParams{First: chunkKey(r.PK, 0), Below: chunkKey(r.PK+1, 0)})
	if err != nil {
		return "", fmt.Errorf("chunks: %w", err)
	}
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(c)
	}
	return b.String(), nil
}

func (t *tx) writeMessage(owner *ident, r *dbgen.Message, streamed string) error {
	r.UpdatedAt = t.now
	if err := t.q.UpdateMessage(bg, dbgen.UpdateMessageParams{
		Status: r.Status, Body: r.Body, CallID: r.CallID, Name: r.Name, Title: r.Title, Input: r.Input, Output: r.Output,
		ChildID: r.ChildID, UpdatedAt: r.UpdatedAt, PK: r.PK,
	}); err != nil {
		return fmt.Errorf("message %s: %w", r.ID, err)
	}
	t.emit(pendingEvent{kind: agent.MessageUpdated, session: owner.home, turnID: r.TurnID, entity: messageOf(r, streamed)})
	return nil
}

// appendText adds a chunk to a streaming message, without an event: what streams is shown
// by deltas, and the message when it is whole.
func (t *tx) appendText(owner *ident, f agent.TextAppended) (agent.Applied, error) {
	out := agent.Applied{Verdict: agent.VerdictApplied, Turn: f.Turn}
	st, code, err := t.stream(f)
	if err != nil {
		return out, err
	}
	switch {
	case code != "":
		return refused(code), nil
	case st == nil: // it has ended
		out.Verdict = agent.VerdictLate
		return out, nil
	case f.Offset > st.size: // what comes before it is missing: nothing is invented
		return refused(agent.CodeInvalid), nil
	case f.Offset+int64(len(f.Text)) <= st.size:
		out.Verdict = agent.VerdictUnchanged
		return out, nil
	}
	text := f.Text[st.size-f.Offset:]
	if err := t.q.InsertChunk(bg, dbgen.InsertChunkParams{PK: chunkKey(st.row.PK, st.size), Text: text}); err != nil {
		return out, fmt.Errorf("text of %s: %w", f.Message, err)
	}
	st.size += int64(len(text))
	t.s.activity.heard(st.row.Turn, owner.root, t.now)
	return out, nil
}

// stream finds the streaming message that text is for: nil if it has ended, a code if
// the text has no owner.
func (t *tx) stream(f agent.TextAppended) (*stream, agent.Code, error) {
	st := t.s.w.streams[f.Message]
	if st == nil {
		row, err := t.message(f.Message)
		switch {
		case err != nil:
			return nil, "", err
		case row == nil || row.SessionID != f.Session || row.TurnID != f.Turn:
			return nil, agent.CodeUnknownOwner, nil
		case row.Status.Ended():
			return nil, "", nil
		}
		st = &stream{row: *row, size: int64(len(row.Body))}
		last, err := t.q.LastChunk(bg, dbgen.LastChunkParams{First: chunkKey(row.PK, 0), Below: chunkKey(row.PK+1, 0)})
		switch {
		case err == nil:
			st.size = last.PK - chunkKey(row.PK, 0) + int64(len(last.Text))
		case !errors.Is(err, sql.ErrNoRows):
			return nil, "", fmt.Errorf("chunks of %s: %w", f.Message, err)
		}
		t.s.w.streams[f.Message] = st
	}
	if st.row.SessionID != f.Session || st.row.TurnID != f.Turn {
		return nil, agent.CodeUnknownOwner, nil
	}
	return st, "", nil
}
