-- Parameters that meet an index are CAST: where somebody has run ANALYZE, SQLite would else
-- compile the statement again for each new value (its SQLITE_ENABLE_STAT4), at twenty times
-- the price of running it.

-- name: MaxTurnKey :one
SELECT CAST(max(coalesce((SELECT max(t.pk) FROM turns t), 0), coalesce((SELECT turn_key FROM meta), 0)) AS INTEGER) AS pk;

-- name: TurnByID :one
SELECT * FROM turns WHERE id = @id;

-- name: TurnByPK :one
SELECT * FROM turns WHERE pk = @pk;

-- name: TurnForFact :one
-- Whether messages stand open is asked here, so that a terminal needs no statement for a
-- turn that has none.
SELECT sqlc.embed(turns),
    EXISTS (SELECT 1 FROM messages m WHERE m.turn = turns.pk AND m.status IN ('pending', 'streaming')) AS open_messages
FROM turns WHERE turns.id = @id;

-- name: GateRow :one
SELECT sqlc.embed(turns),
    EXISTS (SELECT 1 FROM turns c WHERE c.root_turn = turns.pk AND c.settled_at = 0 AND c.is_root = 0) AS live_children,
    EXISTS (SELECT 1 FROM messages m WHERE m.turn = turns.pk AND m.status IN ('pending', 'streaming')) AS open_messages
FROM turns WHERE turns.pk = @pk;

-- name: HasLiveBelow :one
SELECT EXISTS (SELECT 1 FROM turns c WHERE c.root_turn = CAST(@root_turn AS INTEGER) AND c.settled_at = 0 AND c.is_root = 0) AS live;

-- name: CountLiveBelow :one
SELECT count(*) FROM turns WHERE root_turn = CAST(@root_turn AS INTEGER) AND settled_at = 0 AND is_root = 0;

-- name: CountLiveBelowEach :many
SELECT root_turn, count(*) AS live FROM turns
WHERE root_turn IN (SELECT value FROM json_each(CAST(@root_turns AS TEXT))) AND settled_at = 0 AND is_root = 0
GROUP BY root_turn;

-- name: LiveRootTurn :one
SELECT * FROM turns WHERE session = CAST(@session AS INTEGER) AND settled_at = 0 AND is_root = 1;

-- name: LiveRootTurns :many
SELECT t.pk, t.session_id FROM turns t WHERE t.settled_at = 0 AND t.is_root = 1 ORDER BY t.session;

-- name: SettledWithProvider :many
-- Settled root turns of a session whose provider turns have not all ended.
SELECT pk FROM turns WHERE session = CAST(@session AS INTEGER) AND settled_at <> 0 AND provider_live > 0 ORDER BY pk;

-- name: RootsSettledWithProvider :many
-- Their sessions, of every root.
SELECT DISTINCT session_id FROM turns WHERE settled_at <> 0 AND provider_live > 0;

-- name: HasLiveChildTurn :one
SELECT EXISTS (SELECT 1 FROM turns WHERE root_turn = CAST(@root_turn AS INTEGER) AND session = CAST(@session AS INTEGER)
    AND settled_at = 0 AND is_root = 0) AS live;

-- name: ClosedAbove :one
-- Whether a cancel closed a live turn of the session itself or of an ancestor below the root.
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT CAST(@session AS INTEGER) AS session
        UNION ALL SELECT c.ancestor FROM session_closure c WHERE c.descendant = CAST(@session AS INTEGER)
    ) x CROSS JOIN turns t ON t.session = x.session
    WHERE t.root_turn = CAST(@root_turn AS INTEGER) AND t.settled_at = 0 AND t.is_root = 0 AND t.closed = 1) AS closed;

-- name: InsertTurn :exec
INSERT INTO turns (pk, id, session, session_id, root_turn, root_turn_id, is_root, cause, phase, native_id, created_at, started_at)
VALUES (@pk, @id, @session, @session_id, @root_turn, @root_turn_id, @is_root, @cause, @phase, @native_id, @created_at, @started_at);

-- name: MoveChildTurn :execrows
UPDATE turns SET phase = @phase, native_id = @native_id, prompts = @prompts, started_at = @started_at
WHERE pk = @pk AND settled_at = 0 AND is_root = 0;

-- name: SettleChildTurn :execrows
UPDATE turns SET phase = 'settled', outcome = @outcome, error_code = @error_code, error_text = @error_text,
    prompts = 0, settled_at = @settled_at
WHERE pk = @pk AND settled_at = 0 AND is_root = 0;

-- name: MoveRootTurn :execrows
UPDATE turns SET phase = @phase, closed = @closed, prompts = @prompts, cancel = @cancel,
    provider_live = @provider_live, provider_reserved = @provider_reserved,
    retained = @retained, retained_code = @retained_code, retained_text = @retained_text,
    provider_id = @provider_id, provider_native = @provider_native,
    provider_outcome = @provider_outcome, provider_until = @provider_until, started_at = @started_at
WHERE pk = @pk AND settled_at = 0 AND is_root = 1;

-- name: SettleRootTurn :execrows
-- The only statement that settles a root turn. It repeats the gate's essential condition:
-- where function and guard disagree, no row changes and the transaction is an error.
UPDATE turns SET phase = 'settled', outcome = @outcome, error_code = @error_code, error_text = @error_text,
    closed = @closed, prompts = 0, cancel = @cancel,
    provider_live = @provider_live, provider_reserved = @provider_reserved,
    retained = @retained, retained_code = @retained_code, retained_text = @retained_text,
    provider_id = @provider_id, provider_native = @provider_native,
    provider_outcome = @provider_outcome, provider_until = @provider_until, settled_at = @settled_at
WHERE turns.pk = @pk AND turns.settled_at = 0 AND turns.is_root = 1 AND NOT EXISTS (
    SELECT 1 FROM turns c WHERE c.root_turn = @pk AND c.settled_at = 0 AND c.is_root = 0);

-- name: WriteLateProvider :exec
-- What a provider says of its own turn after the root turn ended: shown, and nothing more.
UPDATE turns SET provider_live = @provider_live, provider_reserved = @provider_reserved,
    provider_id = @provider_id, provider_native = @provider_native,
    provider_outcome = @provider_outcome, provider_until = @provider_until
WHERE pk = @pk;

-- name: SetTurnUsage :exec
UPDATE turns SET usage = @usage WHERE pk = @pk;

-- name: LiveBelow :many
SELECT pk FROM turns WHERE root_turn = CAST(@root_turn AS INTEGER) AND settled_at = 0 AND is_root = 0 ORDER BY session;

-- name: LiveOfSubtree :many
SELECT t.pk FROM (
    SELECT CAST(@session AS INTEGER) AS session
    UNION ALL SELECT c.descendant FROM session_closure c WHERE c.ancestor = CAST(@session AS INTEGER)
) x CROSS JOIN turns t ON t.session = x.session
WHERE t.root_turn = CAST(@root_turn AS INTEGER) AND t.settled_at = 0 AND t.is_root = 0
ORDER BY t.session;

-- name: CloseTurns :execrows
UPDATE turns SET closed = 1, phase = 'settling', prompts = 0
WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) AND settled_at = 0 AND is_root = 0;

-- name: CloseLiveBelow :execrows
-- CloseTurns of everything that lives below a root turn: rows are changed as they are found. OR
-- FAIL for the reason that db/bulk.go gives.
UPDATE OR FAIL turns SET closed = 1, phase = 'settling', prompts = 0
WHERE root_turn = CAST(@root_turn AS INTEGER) AND settled_at = 0 AND is_root = 0;

-- name: SettleLiveBelow :execrows
-- SettleChildTurns of everything that lives below a root turn.
UPDATE OR FAIL turns SET phase = 'settled', outcome = @outcome, error_code = @error_code, error_text = @error_text,
    prompts = 0, settled_at = @settled_at
WHERE root_turn = CAST(@root_turn AS INTEGER) AND settled_at = 0 AND is_root = 0;

-- name: SettleChildTurns :execrows
UPDATE turns SET phase = 'settled', outcome = @outcome, error_code = @error_code, error_text = @error_text,
    prompts = 0, settled_at = @settled_at
WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) AND settled_at = 0 AND is_root = 0;

-- name: TurnsByPK :many
SELECT * FROM turns WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT)));

-- name: TurnsOfSession :many
SELECT * FROM turns WHERE session = CAST(@session AS INTEGER) AND pk < CAST(@before AS INTEGER) ORDER BY pk DESC LIMIT @page;

-- name: OpenChildren :many
SELECT sqlc.embed(t), s.title FROM turns t CROSS JOIN sessions s ON s.pk = t.session
WHERE t.root_turn = CAST(@root_turn AS INTEGER) AND t.settled_at = 0 AND t.is_root = 0 ORDER BY t.session;

-- name: DeleteTurns :exec
DELETE FROM turns WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: CountLiveBelowOf :one
SELECT count(*) FROM turns WHERE root_turn = CAST(@root_turn AS INTEGER) AND settled_at = 0 AND is_root = 0
    AND session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: CountLiveTurns :one
SELECT (SELECT count(*) FROM turns WHERE settled_at = 0 AND is_root = 0)
    + (SELECT count(*) FROM turns WHERE settled_at = 0 AND is_root = 1) AS live;

-- name: CountOpenBelowSettled :one
SELECT count(*) FROM turns c CROSS JOIN turns r ON r.pk = c.root_turn
WHERE c.settled_at = 0 AND c.is_root = 0 AND r.phase = 'settled';
