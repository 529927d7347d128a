package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// CreateWorkspace records a directory; the same path gives the same workspace.
func (s *Store) CreateWorkspace(ctx context.Context, name, path string) (agent.Workspace, error) {
	var out agent.Workspace
	_, err := s.write(ctx, func(t *tx) error {
		row, err := t.q.WorkspaceByPath(bg, path)
		if errors.Is(err, sql.ErrNoRows) {
			row, err = t.q.InsertWorkspace(bg, dbgen.InsertWorkspaceParams{
				ID: t.s.opt.Mint.Workspace(), Name: name, Path: path, CreatedAt: t.now,
			})
		}
		if err != nil {
			return fmt.Errorf("workspace %s: %w", path, err)
		}
		out = workspaceOf(&row)
		return nil
	})
	return out, err
}

func liveWorkspace(ctx context.Context, q *dbgen.Queries, id agent.WorkspaceID) (dbgen.Workspace, error) {
	row, err := q.WorkspaceByID(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound("workspace", id)
	}
	return row, err
}

// Workspaces returns all workspaces, oldest first.
func (s *Store) Workspaces(ctx context.Context) ([]agent.Workspace, error) {
	out := []agent.Workspace{}
	err := s.read(ctx, func(q *dbgen.Queries) error {
		rows, err := q.Workspaces(ctx)
		for i := range rows {
			out = append(out, workspaceOf(&rows[i]))
		}
		return err
	})
	return out, err
}

// Workspace returns one workspace. CodeNotFound.
func (s *Store) Workspace(ctx context.Context, id agent.WorkspaceID) (agent.Workspace, error) {
	var out agent.Workspace
	err := s.read(ctx, func(q *dbgen.Queries) error {
		row, err := liveWorkspace(ctx, q, id)
		out = workspaceOf(&row)
		return err
	})
	if err != nil {
		return agent.Workspace{}, err
	}
	return out, nil
}

// RenameWorkspace gives a workspace another name. CodeNotFound.
func (s *Store) RenameWorkspace(ctx context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error) {
	var out agent.Workspace
	_, err := s.write(ctx, func(t *tx) error {
		row, err := t.q.RenameWorkspace(bg, dbgen.RenameWorkspaceParams{Name: name, ID: id})
		if errors.Is(err, sql.ErrNoRows) {
			return notFound("workspace", id)
		}
		out = workspaceOf(&row)
		return err
	})
	return out, err
}

// DeleteWorkspace tombstones a workspace and every tree in it, and says what is left to do
// outside storage. Its log is no longer served from here on, and removed in the background.
// CodeNotFound.
func (s *Store) DeleteWorkspace(ctx context.Context, id agent.WorkspaceID) ([]agent.Deleted, error) {
	out := []agent.Deleted{}
	_, err := s.write(ctx, func(t *tx) error {
		out = out[:0]
		w, err := liveWorkspace(bg, t.q, id)
		if err != nil {
			return err
		}
		roots, err := t.q.RootsOfWorkspace(bg, w.PK)
		if err != nil {
			return fmt.Errorf("roots of %s: %w", id, err)
		}
		for i := range roots {
			root, err := t.session(roots[i].ID)
			if err != nil {
				return err
			}
			d, err := t.deleteTree(root)
			if err != nil {
				return err
			}
			out = append(out, d)
		}
		return t.q.TombstoneWorkspace(bg, dbgen.TombstoneWorkspaceParams{DeletedAt: t.now, PK: w.PK})
	})
	if err == nil {
		s.check.trimNow()
	}
	return out, err
}
