package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

const (
	maxTurnPage    = 200
	maxMessagePage = 500
)

// turnIn is one turn of exactly that session.
func turnIn(ctx context.Context, q *dbgen.Queries, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (*dbgen.Turn, error) {
	row, err := sessionRow(ctx, q, ws, id)
	if err != nil {
		return nil, err
	}
	t, err := q.TurnByID(ctx, turn)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && t.Session != row.PK:
		return nil, notFound("turn", turn)
	case err != nil:
		return nil, fmt.Errorf("turn %s: %w", turn, err)
	}
	return &t, nil
}

// Turn returns one turn. CodeNotFound.
func (s *Store) Turn(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (out agent.Turn, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		t, err := turnIn(ctx, q, ws, id, turn)
		if err == nil {
			out = turnOf(t)
		}
		return err
	})
	return out, err
}

// Turns returns one page of a session's turns, newest first. CodeNotFound, CodeInvalid.
func (s *Store) Turns(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, from string, limit int) (out agent.TurnPage, err error) {
	out.Items = []agent.Turn{}
	limit = min(max(limit, 1), maxTurnPage)
	before := int64(math.MaxInt64)
	if from != "" {
		if _, before, err = parseCursor(from); err != nil {
			return out, err
		}
	}
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		rows, err := q.TurnsOfSession(ctx, dbgen.TurnsOfSessionParams{Session: row.PK, Before: before, Page: int64(limit) + 1})
		if err != nil {
			return fmt.Errorf("turns of %s: %w", id, err)
		}
		if len(rows) > limit {
			rows = rows[:limit]
			out.NextCursor = cursor(0, rows[limit-1].PK)
		}
		for i := range rows {
			out.Items = append(out.Items, turnOf(&rows[i]))
		}
		return nil
	})
	return out, err
}

// Gate answers why a turn is still open (decisions.md 7), from the view that the gate
// itself decides on. Of a child's turn it tells its phase. CodeNotFound.
func (s *Store) Gate(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID) (out agent.GateReport, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		t, err := turnIn(ctx, q, ws, id, turn)
		if err != nil {
			return err
		}
		out = agent.GateReport{TurnID: t.ID, Phase: t.Phase, Outcome: t.Outcome, RetainedOutcome: t.Retained, OpenChildren: []agent.OpenChild{}}
		if t.IsRoot == 0 || t.Phase == agent.PhaseSettled {
			return nil
		}
		rows, err := q.OpenChildren(ctx, t.PK)
		if err != nil {
			return fmt.Errorf("open children: %w", err)
		}
		for i := range rows {
			out.OpenChildren = append(out.OpenChildren, s.openChild(&rows[i]))
		}
		out.HeldBy = agent.Gate(viewOf(t, len(rows) > 0)).Held
		if t.ProviderReserved == 0 {
			return nil
		}
		deadline, err := q.Reservation(ctx, t.PK)
		if err == nil {
			out.Continuation = &agent.Continuation{Deadline: timeOf(deadline)}
		}
		return err
	})
	return out, err
}

func (s *Store) openChild(r *dbgen.OpenChildrenRow) agent.OpenChild {
	t := &r.Turn
	c := agent.OpenChild{SessionID: t.SessionID, TurnID: t.ID, Title: r.Title, Phase: t.Phase, Since: timeOf(max(t.StartedAt, t.CreatedAt))}
	switch {
	case t.Phase == agent.PhaseSettling:
		c.WaitingFor = "stop"
	case t.Prompts > 0:
		c.WaitingFor = "answer"
	case t.Phase == agent.PhaseSubmitted:
		c.WaitingFor = "start"
	}
	if last := timeOf(s.activity.lastOf(t)); s.opt.Now().Sub(last) >= s.opt.StallAfter {
		c.StalledSince = &last
	}
	return c
}

// Messages returns one page of a session's transcript, in ascending order. CodeNotFound.
func (s *Store) Messages(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, r agent.MessageRange) (out agent.MessagePage, err error) {
	out.Items = []agent.Message{}
	limit := int64(min(max(r.Limit, 1), maxMessagePage))
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		var rows []dbgen.Message
		if r.After > 0 {
			rows, err = q.MessagesAfter(ctx, dbgen.MessagesAfterParams{Session: row.PK, After: r.After, Page: limit})
		} else {
			before := r.Before
			if before <= 0 {
				before = math.MaxInt64
			}
			rows, err = q.MessagesBefore(ctx, dbgen.MessagesBeforeParams{Session: row.PK, Before: before, Page: limit})
			slices.Reverse(rows)
		}
		if err != nil {
			return fmt.Errorf("messages of %s: %w", id, err)
		}
		if out.Items, err = withStreamed(ctx, q, rows); err != nil {
			return err
		}
		first, last := r.After+1, r.Before-1 // around an empty page
		if len(rows) > 0 {
			first, last = rows[0].Seq, rows[len(rows)-1].Seq
		} else if r.After > 0 {
			last = r.After
		} else {
			first = max(r.Before, 0)
		}
		if out.HasBefore, err = q.HasMessageBefore(ctx, dbgen.HasMessageBeforeParams{Session: row.PK, Seq: first}); err != nil {
			return err
		}
		out.HasAfter, err = q.HasMessageAfter(ctx, dbgen.HasMessageAfterParams{Session: row.PK, Seq: last})
		return err
	})
	return out, err
}

// withStreamed adds to messages that have not ended what has streamed so far.
func withStreamed(ctx context.Context, q *dbgen.Queries, rows []dbgen.Message) ([]agent.Message, error) {
	var open []int64
	for i := range rows {
		if !rows[i].Status.Ended() {
			open = append(open, rows[i].PK)
		}
	}
	streamed := map[int64]*strings.Builder{}
	if len(open) > 0 {
		chunks, err := q.ChunksOf(ctx, keysJSON(open))
		if err != nil {
			return nil, fmt.Errorf("chunks: %w", err)
		}
		for _, c := range chunks {
			message := c.PK >> 32
			b := streamed[message]
			if b == nil {
				b = &strings.Builder{}
				streamed[message] = b
			}
			b.WriteString(c.Text)
		}
	}
	out := make([]agent.Message, len(rows))
	for i := range rows {
		var more string
		if b := streamed[rows[i].PK]; b != nil {
			more = b.String()
		}
		out[i] = messageOf(&rows[i], more)
	}
	return out, nil
}

// Message returns one message with what has streamed so far. CodeNotFound.
func (s *Store) Message(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, message agent.MessageID) (out agent.Message, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		m, err := q.MessageByID(ctx, message)
		if errors.Is(err, sql.ErrNoRows) || err == nil && m.Session != row.PK {
			return notFound("message", message)
		}
		if err != nil {
			return fmt.Errorf("message %s: %w", message, err)
		}
		all, err := withStreamed(ctx, q, []dbgen.Message{m})
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// Interactions returns a session's questions in the order they were asked, of a root those
// of every descendant too; "" is every status. CodeNotFound.
func (s *Store) Interactions(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, status agent.InteractionStatus) ([]agent.Interaction, error) {
	out := []agent.Interaction{}
	err := s.read(ctx, func(q *dbgen.Queries) error {
		row, err := sessionRow(ctx, q, ws, id)
		if err != nil {
			return err
		}
		var rows []dbgen.Interaction
		if row.Kind == agent.KindRoot {
			rows, err = q.InteractionsOfTree(ctx, dbgen.InteractionsOfTreeParams{Root: row.PK, Status: string(status)})
		} else {
			rows, err = q.InteractionsOfSession(ctx, dbgen.InteractionsOfSessionParams{Session: row.PK, Status: string(status)})
		}
		for i := range rows {
			out = append(out, interactionOf(&rows[i]))
		}
		return err
	})
	return out, err
}

// Interaction returns one question by its tuple. CodeNotFound.
func (s *Store) Interaction(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, turn agent.TurnID, request agent.RequestID) (out agent.Interaction, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		t, err := turnIn(ctx, q, ws, id, turn)
		if err != nil {
			return err
		}
		row, err := q.Interaction(ctx, dbgen.InteractionParams{Turn: t.PK, RequestID: request})
		if errors.Is(err, sql.ErrNoRows) {
			return notFound("question", request)
		}
		out = interactionOf(&row)
		return err
	})
	return out, err
}

// Operation returns one operation with its targets. CodeNotFound.
func (s *Store) Operation(ctx context.Context, ws agent.WorkspaceID, id agent.OperationID) (out agent.Operation, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		w, err := liveWorkspace(ctx, q, ws)
		if err != nil {
			return err
		}
		row, err := q.OperationByID(ctx, id)
		if errors.Is(err, sql.ErrNoRows) || err == nil && row.Workspace != w.PK {
			return notFound("operation", id)
		}
		if err != nil {
			return fmt.Errorf("operation %s: %w", id, err)
		}
		targets, err := q.Targets(ctx, row.PK)
		out = operationOf(&row, targets)
		return err
	})
	return out, err
}
