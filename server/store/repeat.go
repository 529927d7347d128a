package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// noteKey keeps what a request with an Idempotency-Key made.
func (t *tx) noteKey(ws int64, root *ident, n agent.NewSession, turn int64, message agent.MessageID) error {
	if n.Key == "" {
		return nil
	}
	if err := t.q.InsertIdempotencyKey(bg, dbgen.InsertIdempotencyKeyParams{
		Workspace: ws, Key: n.Key, Fingerprint: fingerprint(n), Session: root.pk, Turn: turn, MessageID: message, CreatedAt: t.now,
	}); err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	return nil
}

// RepeatSession returns what an earlier CreateSession with the same Key made, and false if
// there was none. It only looks. CodeConflict where the key was used for another request,
// CodeNotFound where the workspace or what was made is gone.
func (s *Store) RepeatSession(ctx context.Context, n agent.NewSession) (out agent.Submitted, found bool, err error) {
	err = s.read(ctx, func(q *dbgen.Queries) error {
		w, err := liveWorkspace(ctx, q, n.Workspace)
		if err != nil {
			return err
		}
		known, err := s.repeated(ctx, q, w.PK, n)
		if known != nil {
			out, found = *known, true
		}
		return err
	})
	return out, found, err
}

// repeated is what an Idempotency-Key already made, or nil.
func (s *Store) repeated(ctx context.Context, q *dbgen.Queries, ws int64, n agent.NewSession) (*agent.Submitted, error) {
	if n.Key == "" {
		return nil, nil
	}
	row, err := q.IdempotencyKey(ctx, dbgen.IdempotencyKeyParams{Workspace: ws, Key: n.Key})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("idempotency key: %w", err)
	}
	if row.Fingerprint != fingerprint(n) {
		return nil, agent.Errorf(agent.CodeConflict, "this Idempotency-Key was used for another request")
	}
	session, err := q.SessionByPK(ctx, row.Session)
	if err == nil && session.DeletedAt != 0 {
		err = agent.Errorf(agent.CodeNotFound, "the session that this Idempotency-Key made was deleted")
	}
	if err != nil {
		return nil, err
	}
	out := agent.Submitted{Repeated: true}
	if out.Session, err = s.entity(ctx, q, &session); err != nil || row.Turn == 0 {
		return &out, err
	}
	turn, err := q.TurnByPK(ctx, row.Turn)
	if err != nil {
		return nil, fmt.Errorf("first turn of %s: %w", session.ID, err)
	}
	message, err := q.MessageByID(ctx, row.MessageID)
	if err != nil {
		return nil, fmt.Errorf("first message of %s: %w", session.ID, err)
	}
	first, said := turnOf(&turn), messageOf(&message, "")
	out.Turn, out.Message, out.Delivery = &first, &said, message.Delivery
	return &out, nil
}

// fingerprint is of everything a person chose. What the provider can do is not part of it.
func fingerprint(n agent.NewSession) string {
	n.Capabilities = agent.Capabilities{}
	sum := sha256.Sum256([]byte(text(n)))
	return hex.EncodeToString(sum[:])
}
