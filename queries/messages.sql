-- name: MaxMessageKey :one
SELECT CAST(max(coalesce((SELECT max(x.pk) FROM messages x), 0), coalesce((SELECT m.message_key FROM meta m), 0)) AS INTEGER) AS pk;

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
INSERT INTO message_chunks (message, start, text) VALUES (@message, @start, @text);

-- name: Chunks :many
SELECT start, text FROM message_chunks WHERE message = @message ORDER BY start;

-- name: LastChunk :one
SELECT start, text FROM message_chunks WHERE message = @message ORDER BY start DESC LIMIT 1;

-- name: ChunksOf :many
SELECT message, start, text FROM message_chunks
WHERE message IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) ORDER BY message, start;

-- name: DeleteChunks :exec
DELETE FROM message_chunks WHERE message = @message;

-- name: DeleteChunksOf :exec
DELETE FROM message_chunks WHERE message IN (SELECT value FROM json_each(CAST(@keys AS TEXT)));

-- name: OpenMessagesOf :many
SELECT * FROM messages
WHERE turn IN (SELECT value FROM json_each(CAST(@turns AS TEXT))) AND status IN ('pending', 'streaming') ORDER BY seq;

-- name: EndOpenMessages :exec
-- What streamed becomes the body, and nothing can be added any more.
UPDATE messages SET
    body = body || coalesce((SELECT group_concat(k.text, '') FROM (
        SELECT c.text FROM message_chunks c WHERE c.message = messages.pk ORDER BY c.start) k), ''),
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
DELETE FROM message_chunks WHERE message IN (
    SELECT m.pk FROM messages m WHERE m.session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT))));

-- name: DeleteMessages :exec
DELETE FROM messages WHERE session IN (SELECT value FROM json_each(CAST(@sessions AS TEXT)));

-- name: MessagesByPK :many
SELECT * FROM messages WHERE pk IN (SELECT value FROM json_each(CAST(@keys AS TEXT))) ORDER BY seq;
