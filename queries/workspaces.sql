-- name: Epoch :one
SELECT epoch FROM meta WHERE pk = 1;

-- name: SetEpoch :exec
INSERT INTO meta (pk, epoch) VALUES (1, @epoch);

-- name: NoteKeys :exec
-- Before rows are removed: what was given out is not given again, also after a restart.
UPDATE meta SET turn_key = max(turn_key, CAST(@turn_key AS INTEGER)), message_key = max(message_key, CAST(@message_key AS INTEGER))
WHERE pk = 1;

-- name: WorkspaceByID :one
SELECT * FROM workspaces WHERE id = @id AND deleted_at = 0;

-- name: WorkspaceByPath :one
SELECT * FROM workspaces WHERE path = @path AND deleted_at = 0;

-- name: Workspaces :many
SELECT * FROM workspaces WHERE deleted_at = 0 ORDER BY pk;

-- name: WorkspaceKeys :many
SELECT pk, CAST(deleted_at <> 0 AS INTEGER) AS deleted FROM workspaces ORDER BY pk;

-- name: InsertWorkspace :one
INSERT INTO workspaces (id, name, path, created_at) VALUES (@id, @name, @path, @created_at) RETURNING *;

-- name: RenameWorkspace :one
UPDATE workspaces SET name = @name WHERE id = @id AND deleted_at = 0 RETURNING *;

-- name: TombstoneWorkspace :exec
UPDATE workspaces SET deleted_at = @deleted_at WHERE pk = @pk;

-- name: IdempotencyKey :one
SELECT * FROM idempotency WHERE workspace = @workspace AND key = @key;

-- name: InsertIdempotencyKey :exec
INSERT INTO idempotency (workspace, key, fingerprint, session, turn, message_id, created_at)
VALUES (@workspace, @key, @fingerprint, @session, @turn, @message_id, @created_at);
