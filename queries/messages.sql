-- name: MaxMessageKey :one
SELECT CAST(max(coalesce((SELECT max(x.pk) FROM messages x), 0), coalesce((SELECT message_key FROM meta), 0)) AS INTEGER) AS pk;

-- name: MessageByID :one
SELECT * FROM messages WHERE id = @id;

-- name: MessageByClientID :one
SELECT * FROM messages WHERE session = @session AND client_id = @client_id AND client_id <> '';

-- name: InsertMessage :exec
INSERT INTO messages (pk, id, session, session_id, turn, turn_id, seq, role, kind, status, body, call_id, name, title,
    input, output, child_id, client_id, client, delivery, created_at, updated_at)
VALUES (@pk, @id, @session, @session_id, @turn, @turn_id, @seq, @role, @kind, @status, @body, @call_id, @name, @title,
    @input, @output, @child_id, @client_id, @client, @delivery, @created_at, @updated_at);

-- name: UpdateMessage :exec
UPDATE messages SET status = @status, body = @body, call_id = @call_id, name = @name, title = @title, input = @input,
    output = @output, child_id = @child_id, updated_at = @updated_at
WHERE pk = @pk;

-- name: InsertChunk :exec
INSERT INTO message_chunks (pk, text) VALUES (@pk, @text);

-- name: Chunks :many
SELECT text FROM message_chunks WHERE pk >= CAST(@first AS INTEGER) AND pk < CAST(@below AS INTEGER) ORDER BY pk;

-- name: LastChunk :one
SELECT * FROM message_chunks WHERE pk >= CAST(@first AS INTEGER) AND pk < CAST(@below AS INTEGER) ORDER BY pk DESC LIMIT 1;

-- name: ChunksOf :many
SELECT c.* FROM json_each(CAST(@keys AS TEXT)) j
CROSS JOIN message_chunks c ON c.pk >= j.value * 4294967296 AND c.pk < (j.value + 1) * 4294967296
ORDER BY c.pk;

-- name: DeleteChunks :exec
DELETE FROM message_chunks WHERE pk >= CAST(@first AS INTEGER) AND pk < CAST(@below AS INTEGER);

-- name: DeleteChunksOf :exec
DELETE FROM message_chunks WHERE pk IN (
    SELECT c.pk FROM json_each(CAST(@keys AS TEXT)) j
    CROSS JOIN message_chunks c ON c.pk >= j.value * 4294967296 AND c.pk < (j.value + 1) * 4294967296);

-- name: OpenMessagesOf :many
SELECT * FROM messages
WHERE turn IN (SELECT value FROM json_each(CAST(@turns AS TEXT))) AND status IN ('pending', 'streaming') ORDER BY seq;

-- name: OpenMessagesBelow :many
-- OpenMessagesOf of the children of a root turn: few messages are open anywhere, and where
-- thousands of turns end, looking for each of them is dearer.
SELECT m.* FROM messages m INDEXED BY messages_open CROSS JOIN turns t ON t.pk = m.turn
WHERE m.status IN ('pending', 'streaming') AND t.root_turn = CAST(@root_turn AS INTEGER) AND t.is_root = 0 ORDER BY m.seq;

-- name: EndOpenMessages :exec
-- What streamed becomes the body, and nothing can be added any more.
UPDATE messages SET
    body = body || coalesce((SELECT group_concat(k.text, '') FROM (
        SELECT c.text FROM message_chunks c
        WHERE c.pk >= messages.pk * 4294967296 AND c.pk < (messages.pk + 1) * 4294967296 ORDER BY c.pk) k), ''),
    status = CASE status WHEN 'pending' THEN 'undelivered' ELSE 'interrupted' END,
    updated_at = @updated_at
WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT)));

-- name: MessagesAfter :many
SELECT * FROM messages WHERE session = @session AND seq > CAST(@after AS INTEGER) ORDER BY seq LIMIT @page;

-- name: MessagesBefore :many
SELECT * FROM messages WHERE session = @session AND seq < CAST(@before AS INTEGER) ORDER BY seq DESC LIMIT @page;

-- name: HasMessageBefore :one
SELECT EXISTS (SELECT 1 FROM messages WHERE session = @session AND seq < CAST(@seq AS INTEGER)) AS found;

-- name: HasMessageAfter :one
SELECT EXISTS (SELECT 1 FROM messages WHERE session = @session AND seq > CAST(@seq AS INTEGER)) AS found;

-- name: DeleteChunksOfSessions :exec
DELETE FROM message_chunks WHERE pk IN (
    SELECT c.pk FROM json_each(CAST(@sessions AS TEXT)) j CROSS JOIN messages m ON m.session = j.value
    CROSS JOIN message_chunks c ON c.pk >= m.pk * 4294967296 AND c.pk < (m.pk + 1) * 4294967296);

-- name: DeleteMessages :exec
DELETE FROM messages WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: MessagesByPK :many
SELECT * FROM messages WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) ORDER BY seq;
