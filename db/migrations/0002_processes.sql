-- Commands that outlive the turn which started them. They hold nothing open: no turn, no
-- gate and no counter knows of them.
CREATE TABLE processes (
    pk         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    session    INTEGER NOT NULL REFERENCES sessions (pk),
    session_id TEXT    NOT NULL,
    root       INTEGER NOT NULL REFERENCES sessions (pk),
    turn_id    TEXT    NOT NULL,
    call_id    TEXT    NOT NULL DEFAULT '',
    command    TEXT    NOT NULL,
    cwd        TEXT    NOT NULL DEFAULT '',
    stoppable  INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL DEFAULT 0, -- 0 while it runs
    CONSTRAINT processes_id UNIQUE (session, id)
) STRICT;

CREATE INDEX processes_of_tree ON processes (root, pk);
CREATE INDEX processes_running ON processes (root) WHERE ended_at = 0;

CREATE TRIGGER processes_end_once
AFTER UPDATE OF ended_at ON processes WHEN OLD.ended_at <> 0 AND NEW.ended_at <> OLD.ended_at
BEGIN
    SELECT RAISE(ABORT, 'processes_end_once');
END;
