-- The insert is not here: it repeats its VALUES group, which this generator cannot
-- express. See db/bulk.go.

-- name: EventsBetween :many
SELECT * FROM events WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER) ORDER BY pk LIMIT @page;

-- name: NewestEvent :one
SELECT pk FROM events WHERE pk < CAST(@below AS INTEGER) ORDER BY pk DESC LIMIT 1;

-- name: OldestEvent :one
SELECT pk FROM events WHERE pk > CAST(@after AS INTEGER) ORDER BY pk LIMIT 1;

-- name: TrimEvents :execrows
DELETE FROM events WHERE pk > CAST(@after AS INTEGER) AND pk < CAST(@below AS INTEGER);
