-- The insert of single events is not here: it repeats its VALUES group, which this generator
-- cannot express. See db/bulk.go.

-- name: InsertEventPage :exec
INSERT INTO events (pk, at, kind, session_id, turn_id, root_id, data, span)
VALUES (@pk, @at, @kind, @root_id, '', @root_id, @data, @span);

-- name: EventsBetween :many
SELECT * FROM events WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER) ORDER BY pk LIMIT @page;

-- name: NewestEvent :one
SELECT pk FROM events WHERE pk < CAST(@below AS INTEGER) ORDER BY pk DESC LIMIT 1;

-- name: OldestEvent :one
SELECT CAST(pk - span + 1 AS INTEGER) AS oldest FROM events WHERE pk > CAST(@after AS INTEGER) ORDER BY pk LIMIT 1;

-- name: TrimEvents :execrows
DELETE FROM events WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER);

-- name: EraseEventsOfTree :exec
-- What was told of a deleted tree becomes the news of its end: the numbers stay, the content
-- goes. No index helps: one more page for every commit would cost more than a deletion's scan of
-- what was told since the tree began.
UPDATE events SET kind = 'session.deleted', turn_id = '', data = substr(data, 1, 0)
WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER) AND root_id = @root_id AND kind <> 'session.deleted';

-- name: EraseEventsOfSessions :exec
UPDATE events SET kind = 'session.deleted', turn_id = '', data = substr(data, 1, 0)
WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER) AND root_id = @root_id AND kind <> 'session.deleted'
    AND session_id IN (SELECT value FROM json_each(CAST(@gone AS TEXT)));

-- name: EventPagesOfTree :many
SELECT * FROM events
WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER) AND root_id = @root_id AND span > 1 AND kind <> 'session.deleted'
ORDER BY pk;

-- name: WriteEventPage :exec
UPDATE events SET data = @data WHERE pk = @pk;
