-- name: InsertOperation :one
INSERT INTO operations (id, workspace, root, session, session_id, turn, turn_id, root_turn_id, kind, status, due, client,
    deadline, message_id, request_id, created_at, updated_at)
VALUES (@id, @workspace, @root, @session, @session_id, @turn, @turn_id, @root_turn_id, @kind, 'pending', @due, @client,
    @deadline, @message_id, @request_id, @created_at, @updated_at)
RETURNING *;

-- name: OperationByID :one
SELECT * FROM operations WHERE id = @id;

-- name: LatestOperation :one
-- The cancel of a turn, the answer to a question or the guidance of a message that was recorded last.
SELECT * FROM operations WHERE turn = @turn AND turn_id = @turn_id AND kind = @kind AND request_id = @request_id AND message_id = @message_id
ORDER BY pk DESC LIMIT 1;

-- name: WriteOperation :one
UPDATE operations SET status = @status, attempts = @attempts, due = @due, worker = @worker, deadline = @deadline,
    error_code = @error_code, error_text = @error_text, updated_at = @updated_at
WHERE pk = @pk
RETURNING *;

-- name: OperationsOfTree :many
-- Newest first. With a session only those about it, or with a turn of it among their targets.
SELECT * FROM operations
WHERE root = @root AND pk < @before
    AND (CAST(@kind AS TEXT) = '' OR kind = CAST(@kind AS TEXT))
    AND (CAST(@session_id AS TEXT) = '' OR session_id = CAST(@session_id AS TEXT)
        OR EXISTS (SELECT 1 FROM operation_targets t WHERE t.operation = operations.pk AND t.session_id = CAST(@session_id AS TEXT)))
ORDER BY pk DESC LIMIT @page;

-- name: TargetsOfOperations :many
SELECT * FROM operation_targets
WHERE operation IN (SELECT value FROM json_each(CAST(@operations AS TEXT))) ORDER BY operation, turn;

-- name: DueOperations :many
SELECT * FROM operations WHERE status IN ('pending', 'running') AND due <= @now ORDER BY due, pk LIMIT @page;

-- name: NextDue :one
SELECT due FROM operations WHERE status IN ('pending', 'running') ORDER BY due, pk LIMIT 1;

-- name: RequeueOperations :execrows
UPDATE operations SET status = 'pending', worker = '', due = @due, updated_at = @due WHERE status IN ('pending', 'running') AND worker <> '';

-- name: FailOperationsOf :many
UPDATE operations SET status = 'failed', error_code = @error_code, error_text = @error_text, updated_at = @updated_at
WHERE root = @root AND status IN ('pending', 'running')
    AND session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)))
RETURNING *;

-- name: InsertTargets :exec
INSERT INTO operation_targets (operation, turn, session_id, turn_id, state)
SELECT CAST(@operation AS INTEGER), t.pk, t.session_id, t.id, 'requested'
FROM json_each(CAST(@keys AS TEXT)) j CROSS JOIN turns t ON t.pk = j.value WHERE true
ON CONFLICT (operation, turn) DO UPDATE SET state = 'requested', evidence = '';

-- name: InsertTargetsBelow :exec
-- InsertTargets of everything that lives below a root turn, for a cancel that has none yet.
INSERT OR FAIL INTO operation_targets (operation, turn, session_id, turn_id, state)
SELECT CAST(@operation AS INTEGER), t.pk, t.session_id, t.id, 'requested'
FROM turns t WHERE t.root_turn = CAST(@root_turn AS INTEGER) AND t.settled_at = 0 AND t.is_root = 0;

-- name: Targets :many
SELECT * FROM operation_targets WHERE operation = @operation ORDER BY turn;

-- name: WriteTarget :exec
UPDATE operation_targets SET state = @state, evidence = @evidence WHERE operation = @operation AND turn = @turn;

-- name: WriteAllTargets :exec
UPDATE OR FAIL operation_targets SET state = @state WHERE operation = @operation;

-- name: WriteTargets :exec
UPDATE operation_targets SET state = @state WHERE operation = @operation AND turn IN (SELECT value FROM json_each(CAST(@turns AS TEXT)));

-- name: CountOpenOperations :one
SELECT count(*) FROM operations WHERE status IN ('pending', 'running');
