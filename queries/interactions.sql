-- name: Interaction :one
SELECT * FROM interactions WHERE turn = @turn AND request_id = @request_id;

-- name: InsertInteraction :one
INSERT INTO interactions (session, session_id, root, turn, turn_id, request_id, kind, title, detail, options, status,
    provider_turn_id, owner, created_at, updated_at)
VALUES (@session, @session_id, @root, @turn, @turn_id, @request_id, @kind, @title, @detail, @options, 'pending',
    @provider_turn_id, @owner, @created_at, @updated_at)
RETURNING *;

-- name: WriteInteraction :one
UPDATE interactions SET status = @status, answered_by = @answered_by, response = @response, error_code = @error_code,
    error_text = @error_text, updated_at = @updated_at
WHERE pk = @pk
RETURNING *;

-- name: OpenInteractionsOf :many
SELECT * FROM interactions
WHERE turn IN (SELECT value FROM json_each(CAST(@turns AS TEXT))) AND status IN ('pending', 'answering') ORDER BY pk;

-- name: SupersedeInteractions :exec
UPDATE interactions SET status = 'superseded', response = '', answered_by = '', error_code = '', error_text = '',
    updated_at = @updated_at
WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) AND status IN ('pending', 'answering');

-- name: InteractionsOfTree :many
SELECT * FROM interactions WHERE root = @root
    AND (CAST(@status AS TEXT) = '' OR status = CAST(@status AS TEXT)) ORDER BY pk;

-- name: InteractionsOfSession :many
SELECT * FROM interactions WHERE session = @session
    AND (CAST(@status AS TEXT) = '' OR status = CAST(@status AS TEXT)) ORDER BY pk;

-- name: CountOpenOfSessions :one
SELECT count(*) FROM interactions
WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT))) AND status IN ('pending', 'answering');

-- name: DeleteInteractions :exec
DELETE FROM interactions WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: CountOpenInteractions :one
SELECT count(*) FROM interactions WHERE status IN ('pending', 'answering');
