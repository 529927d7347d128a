-- name: MaxSessionKey :one
SELECT CAST(coalesce(max(pk), 0) AS INTEGER) AS pk FROM sessions;

-- name: SessionByID :one
SELECT * FROM sessions WHERE id = @id;

-- name: SessionByPK :one
SELECT * FROM sessions WHERE pk = @pk;

-- name: InsertSession :exec
INSERT INTO sessions (pk, id, workspace, workspace_id, kind, root, parent, parent_id, parent_turn_id, parent_call_id,
    root_id, root_turn_id, provider, title, titled, cwd, model, agent_type, prompt, permission_mode, scenario, handles,
    capabilities, latest_turn, seq, created_at, updated_at)
VALUES (@pk, @id, @workspace, @workspace_id, @kind, @root, @parent, @parent_id, @parent_turn_id, @parent_call_id,
    @root_id, @root_turn_id, @provider, @title, @titled, @cwd, @model, @agent_type, @prompt, @permission_mode, @scenario, @handles,
    @capabilities, @latest_turn, @seq, @created_at, @updated_at);

-- name: CountSession :exec
-- updated_at is not here: it is indexed, and a counter must not cost a page of that index.
UPDATE sessions SET pending = @pending, latest_turn = @latest_turn WHERE pk = @pk;

-- name: CountAndTouchSession :exec
UPDATE sessions SET pending = @pending, latest_turn = @latest_turn,
    updated_at = @updated_at
WHERE pk = @pk;

-- name: DescribeSession :exec
UPDATE sessions SET title = @title, model = @model, permission_mode = @permission_mode, agent_type = @agent_type, prompt = @prompt,
    provider_session_id = @provider_session_id, handles = @handles, capabilities = @capabilities
WHERE pk = @pk;

-- name: RenameSession :exec
UPDATE sessions SET title = @title, titled = @titled, pinned = @pinned, permission_mode = @permission_mode, model = @model,
    updated_at = @updated_at
WHERE pk = @pk;

-- name: SetSessionUsage :exec
UPDATE sessions SET own_usage = @own_usage, tree_usage = @tree_usage WHERE pk = @pk;

-- name: InsertAliases :exec
INSERT INTO session_aliases (root, kind, value, session)
SELECT CAST(@root AS INTEGER), j.key, j.value, CAST(@session AS INTEGER) FROM json_each(CAST(@handles AS TEXT)) j WHERE true
ON CONFLICT DO NOTHING;

-- name: InsertClosure :exec
INSERT INTO session_closure (ancestor, descendant, depth)
SELECT c.ancestor, CAST(@child AS INTEGER), c.depth + 1 FROM session_closure c WHERE c.descendant = @parent
UNION ALL SELECT CAST(@parent AS INTEGER), CAST(@child AS INTEGER), 1;

-- name: AncestorsBelowRoot :many
SELECT s.id FROM session_closure c CROSS JOIN sessions s ON s.pk = c.ancestor WHERE c.descendant = @session;

-- name: TreeBelowRoot :many
SELECT sqlc.embed(s), sqlc.embed(t)
FROM sessions s CROSS JOIN turns t ON t.pk = s.latest_turn
WHERE s.root = @root AND s.deleted_at = 0 AND s.pk > @root
ORDER BY s.pk;

-- name: TreeBelowChild :many
SELECT sqlc.embed(s), sqlc.embed(t)
FROM session_closure c CROSS JOIN sessions s ON s.pk = c.descendant CROSS JOIN turns t ON t.pk = s.latest_turn
WHERE c.ancestor = @ancestor AND s.deleted_at = 0
ORDER BY c.descendant;

-- name: RowsOfTree :many
SELECT * FROM sessions WHERE root = @root AND deleted_at = 0 ORDER BY pk;

-- name: RowsBelowChild :many
SELECT s.* FROM session_closure c CROSS JOIN sessions s ON s.pk = c.descendant
WHERE c.ancestor = @ancestor AND s.deleted_at = 0 ORDER BY c.descendant;

-- name: TombstoneSessions :exec
-- What a tombstone keeps is who it was, and nothing of what was said.
UPDATE sessions SET deleted_at = CAST(@deleted_at AS INTEGER), pending = 0, latest_turn = 0, title = '', cwd = '', model = '',
    agent_type = '', prompt = '', permission_mode = '', scenario = '', provider_session_id = '', handles = '', capabilities = ''
WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT)));

-- name: RootsOfWorkspace :many
SELECT * FROM sessions WHERE workspace = @workspace AND kind = 'root' AND deleted_at = 0 ORDER BY updated_at, pk;

-- name: ListRoots :many
SELECT s.* FROM sessions s
WHERE s.workspace = @workspace AND s.kind = 'root' AND s.deleted_at = 0
    AND (s.updated_at, s.pk) < (CAST(@before_at AS INTEGER), CAST(@before_pk AS INTEGER))
    AND (CAST(@provider AS TEXT) = '' OR s.provider = CAST(@provider AS TEXT))
    AND (CAST(@query AS TEXT) = ''
        OR instr((SELECT x.title || char(10) || x.message FROM session_search x WHERE x.session = s.pk), CAST(@query AS TEXT)) > 0)
    AND (CAST(@attention AS TEXT) = '' OR CAST(@attention AS TEXT) = CASE
        WHEN s.pending > 0 THEN 'waiting'
        WHEN (SELECT t.outcome FROM turns t WHERE t.pk = s.latest_turn) = 'failed' THEN 'failed'
        WHEN s.pk IN (SELECT value FROM json_each(CAST(@stalled AS TEXT))) THEN 'stalled'
        ELSE 'none' END)
ORDER BY s.updated_at DESC, s.pk DESC
LIMIT @page;

-- name: SearchTitle :exec
INSERT INTO session_search (session, title) VALUES (@session, @title)
ON CONFLICT (session) DO UPDATE SET title = excluded.title;

-- name: SearchMessage :exec
-- The first message stands.
INSERT INTO session_search (session, message) VALUES (@session, @message)
ON CONFLICT (session) DO UPDATE SET message = excluded.message WHERE session_search.message = '';

-- name: DeleteSearch :exec
DELETE FROM session_search WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: CountRootSessions :one
SELECT count(*) FROM sessions WHERE kind = 'root' AND deleted_at = 0;

-- name: CountSessions :one
SELECT count(*) FROM sessions WHERE deleted_at = 0;
