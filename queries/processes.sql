-- name: Process :one
SELECT * FROM processes WHERE session = @session AND id = @id;

-- name: InsertProcess :one
INSERT INTO processes (id, session, session_id, root, turn_id, call_id, command, cwd, stoppable, created_at, updated_at, ended_at)
VALUES (@id, @session, @session_id, @root, @turn_id, @call_id, @command, @cwd, @stoppable, @created_at, @updated_at, @ended_at)
RETURNING *;

-- name: EndProcess :one
UPDATE processes SET ended_at = @ended_at, updated_at = @ended_at WHERE pk = @pk RETURNING *;

-- name: RunningProcesses :many
SELECT * FROM processes WHERE root = @root AND ended_at = 0 ORDER BY pk;

-- name: ProcessesOfTree :many
SELECT * FROM processes WHERE root = @root ORDER BY pk;

-- name: ProcessesOfSession :many
SELECT * FROM processes WHERE session = @session ORDER BY pk;

-- name: RootsWithProcesses :many
SELECT DISTINCT s.id FROM processes p JOIN sessions s ON s.pk = p.root WHERE p.ended_at = 0;

-- name: DeleteProcesses :exec
DELETE FROM processes WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));
