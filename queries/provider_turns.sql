-- name: ProviderTurn :one
SELECT * FROM provider_turns WHERE turn = @turn AND id = @id;

-- name: LatestProviderTurn :one
SELECT * FROM provider_turns WHERE session = @session AND id = @id ORDER BY pk DESC LIMIT 1;

-- name: InsertProviderTurn :exec
INSERT INTO provider_turns (turn, turn_id, session, id, native_id, phase, deadline, created_at)
VALUES (@turn, @turn_id, @session, @id, @native_id, @phase, @deadline, @created_at);

-- name: UpdateProviderTurn :exec
UPDATE provider_turns SET native_id = @native_id, phase = @phase, outcome = @outcome, error_code = @error_code,
    error_text = @error_text, deadline = @deadline, ended_at = @ended_at
WHERE pk = @pk;

-- name: LoseProviderTurns :exec
UPDATE provider_turns SET phase = 'ended', outcome = 'interrupted', error_code = @error_code, error_text = @error_text,
    deadline = 0, ended_at = @ended_at
WHERE turn = @turn AND phase <> 'ended';

-- name: ProviderTurnsOfSession :many
SELECT turn_id, id, native_id FROM provider_turns WHERE session = @session ORDER BY pk;

-- name: Reservation :one
SELECT deadline FROM provider_turns WHERE turn = @turn AND phase = 'reserved' ORDER BY deadline DESC LIMIT 1;

-- name: DeleteProviderTurns :exec
DELETE FROM provider_turns WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));
