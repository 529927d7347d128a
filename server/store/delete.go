package store

import (
	"context"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Delete tombstones a session and everything below it in one transaction: turns,
// questions and messages go, the sessions' rows stay so that late facts meet a closed
// door. Where it removes what still ran, the gate of the root turn is asked. It says what is
// left to stop outside storage; a second call finds nothing to do.
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
	last, err := t.sessionEntity(i) // before its turn goes
	if err != nil {
		return out, err
	}
	keys, err := t.keysOf(i, &out)
	if err != nil {
		return out, err
	}
	list := keysJSON(keys)
	if !out.WasRoot {
		if err := t.releaseRoot(i, list); err != nil {
			return out, err
		}
	}
	if err := t.removeRows(i, list); err != nil {
		return out, err
	}
	t.dropDeleted(out.Sessions, keys)
	t.emit(pendingEvent{kind: agent.SessionDeleted, session: i, entity: last})
	if out.WasRoot {
		t.s.activity.dropTree(i.pk)
	}
	return out, nil
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

// keysOf lists the sessions of the subtree, parents first.
func (t *tx) keysOf(i *ident, out *agent.Deleted) ([]int64, error) {
	keys := []int64{i.pk}
	out.Sessions = []agent.SessionID{i.id}
	if i.kind == agent.KindRoot {
		rows, err := t.q.KeysOfTree(bg, i.pk)
		for _, r := range rows {
			if r.PK != i.pk {
				keys, out.Sessions = append(keys, r.PK), append(out.Sessions, r.ID)
			}
		}
		return keys, err
	}
	rows, err := t.q.KeysBelowChild(bg, i.pk)
	for _, r := range rows {
		keys, out.Sessions = append(keys, r.PK), append(out.Sessions, r.ID)
	}
	return keys, err
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

// removeRows removes what the sessions own and leaves their tombstones. What is still
// to be carried out for them ends here.
func (t *tx) removeRows(i *ident, list string) error {
	code, words := codeText(agent.Errorf(agent.CodeSessionDeleted, "the session was deleted"))
	steps := []func() error{
		func() error {
			return t.q.FailOperationsOf(bg, dbgen.FailOperationsOfParams{
				ErrorCode: code, ErrorText: words, UpdatedAt: t.now, Root: i.root, Sessions: list})
		},
		func() error {
			return t.q.DeleteTargetsOf(bg, dbgen.DeleteTargetsOfParams{Root: i.root, Sessions: list})
		},
		func() error { return t.q.DeleteChunksOfSessions(bg, list) },
		func() error { return t.q.DeleteMessages(bg, list) },
		func() error { return t.q.DeleteInteractions(bg, list) },
		func() error { return t.q.DeleteProviderTurns(bg, list) },
		func() error { return t.q.DeleteTurns(bg, list) },
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
