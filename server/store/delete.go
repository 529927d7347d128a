package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Delete tombstones a session and everything below it in one transaction: turns,
// questions and messages go, the sessions' rows stay so that late facts meet a closed
// door. Each tombstone is an event. Where the deletion removes what still ran, the gate of
// the root turn is asked. It says what is left to stop outside storage; a second call finds
// nothing to do.
func (s *Store) Delete(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID) (agent.Deleted, error) {
	var out agent.Deleted
	_, err := s.write(ctx, func(t *tx) error {
		out = agent.Deleted{}
		i, err := t.session(id)
		if err == nil && (i == nil || i.workspaceID != ws) {
			err = notFound("session", id)
		}
		if err != nil || i.deleted {
			return err
		}
		out, err = t.deleteTree(i)
		if err == nil {
			err = t.eraseEvents(i, out.Sessions)
		}
		return err
	})
	return out, err
}

func (t *tx) deleteTree(i *ident) (agent.Deleted, error) {
	out := agent.Deleted{WasRoot: i.kind == agent.KindRoot}
	root, err := t.root(i)
	if err != nil {
		return out, err
	}
	if out.Root, err = t.sessionEntity(root); err != nil {
		return out, err
	}
	rows, err := t.subtree(i)
	if err != nil {
		return out, err
	}
	keys := make([]int64, len(rows))
	for n := range rows {
		keys[n], out.Sessions = rows[n].PK, append(out.Sessions, rows[n].ID)
	}
	list := keysJSON(keys)
	if !out.WasRoot {
		if err := t.releaseRoot(i, list); err != nil {
			return out, err
		}
	}
	if err := t.failOperations(root, list); err != nil {
		return out, err
	}
	if err := t.removeRows(i, list); err != nil {
		return out, err
	}
	t.dropDeleted(out.Sessions, keys)
	for n := range rows {
		t.emit(pendingEvent{kind: agent.SessionDeleted, session: identOf(&rows[n]).home, entity: t.tombstone(rows[n])})
	}
	if out.WasRoot {
		t.s.activity.dropTree(i.pk)
	}
	return out, nil
}

// tombstone is a deleted session as its last event shows it: who it was, and nothing of what
// was said.
func (t *tx) tombstone(r dbgen.Session) agent.Session {
	return t.s.sessionOf(&dbgen.Session{
		PK: r.PK, ID: r.ID, WorkspaceID: r.WorkspaceID, Kind: r.Kind, ParentID: r.ParentID, ParentTurnID: r.ParentTurnID,
		ParentCallID: r.ParentCallID, RootID: r.RootID, RootTurnID: r.RootTurnID, Provider: r.Provider,
		CreatedAt: r.CreatedAt, UpdatedAt: t.now,
	}, nil, 0)
}

// eraseEvents takes out of the log what it told of deleted sessions before.
func (t *tx) eraseEvents(i *ident, ids []agent.SessionID) error {
	first := max(i.row.Seq, 1)
	after, below := i.workspace<<seqBits|first-1, (i.workspace+1)<<seqBits
	var err error
	if i.kind == agent.KindRoot {
		err = t.q.EraseEventsOfTree(bg, dbgen.EraseEventsOfTreeParams{After: after, Below: below, RootID: i.id})
	} else {
		err = t.q.EraseEventsOfSessions(bg, dbgen.EraseEventsOfSessionsParams{
			After: after, Below: below, RootID: i.rootID, Gone: text(ids),
		})
		if err == nil {
			err = t.erasePages(after, below, i.rootID, ids)
		}
	}
	if err != nil {
		return fmt.Errorf("events of %s: %w", i.id, err)
	}
	return nil
}

// dropDeleted forgets what is remembered of sessions that are tombstones now.
func (t *tx) dropDeleted(ids []agent.SessionID, keys []int64) {
	gone := make(map[int64]bool, len(keys))
	for n, id := range ids {
		delete(t.s.w.idents, id)
		gone[keys[n]] = true
	}
	for pk, r := range t.s.w.turns {
		if gone[r.Session] {
			delete(t.s.w.turns, pk)
			delete(t.s.w.turnIDs, r.ID)
			t.s.activity.drop(pk)
		}
	}
	clear(t.s.w.streams) // read again where one is still needed
}

// subtree lists a session and every one below it, parents first.
func (t *tx) subtree(i *ident) (rows []dbgen.Session, err error) {
	if i.kind == agent.KindRoot {
		rows, err = t.q.RowsOfTree(bg, i.pk) // the root has the least key of its tree
	} else if rows, err = t.q.RowsBelowChild(bg, i.pk); err == nil {
		rows = slices.Insert(rows, 0, *i.row)
	}
	if err != nil {
		return nil, fmt.Errorf("tree below %s: %w", i.id, err)
	}
	return rows, nil
}

// releaseRoot takes from the root what the subtree held: live children and questions.
func (t *tx) releaseRoot(i *ident, list string) error {
	root, err := t.root(i)
	if err != nil {
		return err
	}
	open, err := t.openRootTurn(root)
	if err != nil {
		return err
	}
	asked, err := t.q.CountOpenOfSessions(bg, list)
	if err != nil {
		return fmt.Errorf("open questions below %s: %w", i.id, err)
	}
	if asked != 0 {
		t.count(root, -asked)
	}
	if open == nil {
		return nil
	}
	live, err := t.q.CountLiveBelowOf(bg, dbgen.CountLiveBelowOfParams{RootTurn: open.PK, Sessions: list})
	if err != nil {
		return fmt.Errorf("live turns below %s: %w", i.id, err)
	}
	if live != 0 {
		t.countLive(root, -live)
	}
	t.touch(open.PK)
	return nil
}

// failOperations ends what is still to be carried out for the sessions. Their targets stay
// with what was heard of them (decisions.md 11).
func (t *tx) failOperations(root *ident, list string) error {
	code, words := codeText(agent.Errorf(agent.CodeSessionDeleted, "the session was deleted"))
	ops, err := t.q.FailOperationsOf(bg, dbgen.FailOperationsOfParams{
		ErrorCode: code, ErrorText: words, UpdatedAt: t.now, Root: root.pk, Sessions: list,
	})
	if err != nil {
		return fmt.Errorf("operations of %s: %w", root.id, err)
	}
	slices.SortFunc(ops, func(a, b dbgen.Operation) int { return cmp.Compare(a.PK, b.PK) })
	for n := range ops {
		op := &ops[n]
		targets, err := t.targets(op)
		if err != nil {
			return err
		}
		delete(t.s.w.targets, op.PK)
		t.emitOperation(below(root, op.SessionID), op, targets)
	}
	return nil
}

// removeRows removes what the sessions own and leaves their tombstones. The keys that go are
// noted first: operations go on naming turns by them.
func (t *tx) removeRows(i *ident, list string) error {
	steps := []func() error{
		func() error {
			return t.q.NoteKeys(bg, dbgen.NoteKeysParams{TurnKey: t.s.w.turnKey, MessageKey: t.s.w.messageKey})
		},
		func() error { return t.q.DeleteChunksOfSessions(bg, list) },
		func() error { return t.q.DeleteMessages(bg, list) },
		func() error { return t.q.DeleteInteractions(bg, list) },
		func() error { return t.q.DeleteProcesses(bg, list) },
		func() error { return t.q.DeleteProviderTurns(bg, list) },
		func() error { return t.q.DeleteTurns(bg, list) },
		func() error { return t.q.DeleteSearch(bg, list) },
		func() error {
			return t.q.TombstoneSessions(bg, dbgen.TombstoneSessionsParams{DeletedAt: t.now, Keys: list})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("delete %s: %w", i.id, err)
		}
	}
	return nil
}
