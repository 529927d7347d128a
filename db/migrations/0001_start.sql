-- Rows are addressed by integer keys (pk) inside the file and by string ids outside
-- it. An immutable string that every read needs (the creator edge of a child, the root
-- turn of a turn) is kept beside its key, so that a read joins nothing.
--
-- A CHECK compares one by one what would read better as IN: for a list of more than two SQLite
-- builds a table of it each time the statement runs, which costs as much as the row.
--
-- Empty text means "none" where a column is not nullable. Times are microseconds since
-- 1970 in UTC, for people to read: nothing is ever ordered by them but lists.

-- Operations name turns by key and outlive them. So that no key is ever given twice, the
-- greatest ones given are noted when rows are removed.
CREATE TABLE meta (
    pk          INTEGER PRIMARY KEY CONSTRAINT meta_has_one_row CHECK (pk = 1),
    epoch       TEXT    NOT NULL,
    turn_key    INTEGER NOT NULL DEFAULT 0,
    message_key INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE workspaces (
    pk         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT workspaces_id UNIQUE (id)
) STRICT;

CREATE UNIQUE INDEX workspaces_path ON workspaces (path) WHERE deleted_at = 0;

-- How many children live is not here: it would be a page for every child that ends. The
-- writer counts in memory, a read counts over turns_live_below.
CREATE TABLE sessions (
    pk              INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL,
    workspace       INTEGER NOT NULL REFERENCES workspaces (pk),
    workspace_id    TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    root            INTEGER NOT NULL REFERENCES sessions (pk), -- its own pk for a root
    parent          INTEGER REFERENCES sessions (pk),
    parent_id       TEXT    NOT NULL DEFAULT '',
    parent_turn_id  TEXT    NOT NULL DEFAULT '',
    parent_call_id  TEXT    NOT NULL DEFAULT '',
    root_id         TEXT    NOT NULL DEFAULT '',
    root_turn_id    TEXT    NOT NULL DEFAULT '',
    provider        TEXT    NOT NULL,
    title           TEXT    NOT NULL DEFAULT '',
    titled          INTEGER NOT NULL DEFAULT 0, -- a person chose the title: providers no longer change it
    cwd             TEXT    NOT NULL DEFAULT '',
    model           TEXT    NOT NULL DEFAULT '',
    agent_type      TEXT    NOT NULL DEFAULT '',
    prompt          TEXT    NOT NULL DEFAULT '',
    permission_mode TEXT    NOT NULL DEFAULT '',
    scenario        TEXT    NOT NULL DEFAULT '',
    pinned          INTEGER NOT NULL DEFAULT 0,
    provider_session_id TEXT NOT NULL DEFAULT '',
    handles         TEXT    NOT NULL DEFAULT '', -- JSON of agent.Handles; the rows are session_aliases
    capabilities    TEXT    NOT NULL DEFAULT '', -- JSON of agent.Capabilities
    latest_turn     INTEGER NOT NULL DEFAULT 0,  -- pk of the turn that began last; it is the live one, if any is
    pending         INTEGER NOT NULL DEFAULT 0,  -- open interactions; of a root: of the whole tree
    own_usage       TEXT    NOT NULL DEFAULT '', -- JSON array of five counts, see store/row.go
    tree_usage      TEXT    NOT NULL DEFAULT '',
    seq             INTEGER NOT NULL DEFAULT 0, -- number of the event that created it: before it nothing is told of it
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT sessions_id UNIQUE (id),
    CONSTRAINT sessions_kind CHECK (kind IN ('root', 'child')),
    CONSTRAINT sessions_root_has_no_parent CHECK (
        kind <> 'root'
        OR (root = pk AND parent IS NULL AND parent_id = '' AND parent_turn_id = '' AND parent_call_id = ''
            AND root_id = '' AND root_turn_id = '')),
    CONSTRAINT sessions_child_has_whole_edge CHECK (
        kind <> 'child'
        OR (root <> pk AND parent IS NOT NULL AND parent <> pk AND parent_id <> '' AND parent_turn_id <> ''
            AND root_id <> '' AND root_turn_id <> '')),
    CONSTRAINT sessions_counters CHECK (pending >= 0),
    CONSTRAINT sessions_flags CHECK (pinned IN (0, 1) AND titled IN (0, 1))
) STRICT;

-- A tree is read by its root; the list shows roots that are not deleted.
CREATE INDEX sessions_tree ON sessions (root, pk) WHERE deleted_at = 0;
CREATE INDEX sessions_list ON sessions (workspace, updated_at, pk) WHERE kind = 'root' AND deleted_at = 0;

CREATE TRIGGER sessions_edge_is_immutable
BEFORE UPDATE OF id, workspace, kind, root, parent, parent_id, parent_turn_id, parent_call_id, root_id, root_turn_id ON sessions
BEGIN
    SELECT RAISE(ABORT, 'sessions_edge_is_immutable');
END;

CREATE TRIGGER sessions_are_never_removed BEFORE DELETE ON sessions
BEGIN
    SELECT RAISE(ABORT, 'sessions_are_never_removed');
END;

CREATE TRIGGER sessions_tombstone_is_final
BEFORE UPDATE OF deleted_at ON sessions WHEN OLD.deleted_at <> 0 AND NEW.deleted_at <> OLD.deleted_at
BEGIN
    SELECT RAISE(ABORT, 'sessions_tombstone_is_final');
END;

CREATE TRIGGER sessions_no_child_of_deleted
AFTER INSERT ON sessions WHEN NEW.kind = 'child'
    AND EXISTS (SELECT 1 FROM sessions p WHERE p.pk IN (NEW.parent, NEW.root) AND p.deleted_at <> 0)
BEGIN
    SELECT RAISE(ABORT, 'sessions_no_child_of_deleted');
END;

-- The title of a root as it is shown, and its first message, case folded: for the search in
-- the list.
CREATE TABLE session_search (
    session INTEGER PRIMARY KEY REFERENCES sessions (pk),
    title   TEXT    NOT NULL DEFAULT '',
    message TEXT    NOT NULL DEFAULT ''
) STRICT;

-- Proper ancestors below the root. The root itself has no rows here: everything under it
-- is sessions.root, so that the common child, one below the root, costs nothing.
CREATE TABLE session_closure (
    ancestor   INTEGER NOT NULL REFERENCES sessions (pk),
    descendant INTEGER NOT NULL REFERENCES sessions (pk),
    depth      INTEGER NOT NULL CONSTRAINT session_closure_is_proper CHECK (depth > 0),
    PRIMARY KEY (ancestor, descendant)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_closure_up ON session_closure (descendant, ancestor, depth);

CREATE TRIGGER session_closure_is_immutable BEFORE UPDATE ON session_closure
BEGIN
    SELECT RAISE(ABORT, 'session_closure_is_immutable');
END;

-- The provider's own names for a session. One name means one session of a tree: the
-- first binding stands.
CREATE TABLE session_aliases (
    root    INTEGER NOT NULL REFERENCES sessions (pk),
    kind    TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions (pk),
    PRIMARY KEY (root, kind, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    pk           INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL,
    session      INTEGER NOT NULL REFERENCES sessions (pk),
    session_id   TEXT    NOT NULL,
    root_turn    INTEGER NOT NULL, -- its own pk for a root turn
    root_turn_id TEXT    NOT NULL,
    is_root      INTEGER NOT NULL,
    cause        TEXT    NOT NULL, -- agent.Trigger
    phase        TEXT    NOT NULL,
    outcome      TEXT    NOT NULL DEFAULT '',
    error_code   TEXT    NOT NULL DEFAULT '',
    error_text   TEXT    NOT NULL DEFAULT '',
    native_id    TEXT    NOT NULL DEFAULT '',
    closed       INTEGER NOT NULL DEFAULT 0, -- a cancel that targets it was prepared: the fence
    prompts      INTEGER NOT NULL DEFAULT 0, -- its own open interactions

    -- What the gate needs to know of a root turn's provider turns, summed up here so that
    -- it reads one row.
    cancel            TEXT    NOT NULL DEFAULT '', -- agent.CancelStage
    provider_live     INTEGER NOT NULL DEFAULT 0,
    provider_reserved INTEGER NOT NULL DEFAULT 0,
    retained          TEXT    NOT NULL DEFAULT '', -- outcome that waits for the children
    retained_code     TEXT    NOT NULL DEFAULT '',
    retained_text     TEXT    NOT NULL DEFAULT '',
    -- The provider turn that spoke last, as people see it.
    provider_id       TEXT    NOT NULL DEFAULT '',
    provider_native   TEXT    NOT NULL DEFAULT '',
    provider_phase    TEXT    NOT NULL DEFAULT '',
    provider_outcome  TEXT    NOT NULL DEFAULT '',

    usage        TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    started_at   INTEGER NOT NULL DEFAULT 0,
    settled_at   INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT turns_id UNIQUE (id),
    CONSTRAINT turns_phase CHECK (phase = 'settled' OR phase = 'running' OR phase = 'waiting' OR phase = 'submitted' OR phase = 'settling'),
    CONSTRAINT turns_outcome CHECK (outcome = '' OR outcome = 'completed' OR outcome = 'failed' OR outcome = 'canceled'
        OR outcome = 'interrupted'),
    CONSTRAINT turns_settled_has_outcome CHECK ((phase = 'settled') = (outcome <> '')),
    CONSTRAINT turns_settled_has_time CHECK ((phase = 'settled') = (settled_at <> 0)),
    CONSTRAINT turns_error_of_failure CHECK (error_code = '' OR outcome = 'failed' OR outcome = 'interrupted'),
    CONSTRAINT turns_cause CHECK (cause = 'user' OR cause = 'delegation' OR cause = 'guidance' OR cause = 'provider'),
    CONSTRAINT turns_root_runs_under_itself CHECK (is_root = (root_turn = pk) AND (is_root = 1) = (root_turn_id = id)),
    CONSTRAINT turns_counters CHECK (prompts >= 0 AND provider_reserved >= 0 AND provider_live >= provider_reserved),
    CONSTRAINT turns_cancel CHECK ((cancel = '' OR cancel = 'open' OR cancel = 'done') AND closed IN (0, 1)),
    CONSTRAINT turns_child_has_no_provider_turn CHECK (is_root = 1 OR (provider_live = 0 AND retained = '' AND cancel = ''))
) STRICT;

-- What lives below a root turn; and, as nothing lives below a settled one and a root has
-- one live turn, that a child has one live turn at most. A turn lives while it has no
-- settled_at: were it the phase that these indexes look at, every move of a live turn would
-- rewrite them.
CREATE UNIQUE INDEX turns_live_below ON turns (root_turn, session) WHERE settled_at = 0 AND is_root = 0;
CREATE UNIQUE INDEX turns_live_root ON turns (session) WHERE settled_at = 0 AND is_root = 1;
CREATE INDEX turns_of_session ON turns (session, pk);

-- AFTER, not BEFORE: as good a refusal, and the statement need not find its row again.
CREATE TRIGGER turns_start
AFTER INSERT ON turns
BEGIN
    SELECT CASE
        WHEN s.deleted_at <> 0 THEN RAISE(ABORT, 'turns_of_deleted_session')
        WHEN (s.kind = 'root') <> (NEW.is_root = 1) THEN RAISE(ABORT, 'turns_root_of_root_session')
        WHEN NEW.is_root = 1 THEN NULL
        WHEN r.pk IS NULL THEN RAISE(ABORT, 'turns_root_turn_exists')
        WHEN r.is_root = 0 THEN RAISE(ABORT, 'turns_root_turn_is_root')
        WHEN r.session <> s.root THEN RAISE(ABORT, 'turns_root_turn_of_its_root')
        WHEN r.phase = 'settled' THEN RAISE(ABORT, 'turns_nothing_below_settled')
        WHEN r.closed = 1 THEN RAISE(ABORT, 'turns_nothing_below_closed')
    END
    FROM sessions s LEFT JOIN turns r ON r.pk = NEW.root_turn WHERE s.pk = NEW.session;
END;

-- By the CHECKs a turn cannot leave 'settled' without losing its settled_at, so that this
-- trigger need not run when a live turn moves.
CREATE TRIGGER turns_settle
AFTER UPDATE OF settled_at, outcome ON turns WHEN OLD.settled_at <> 0 OR NEW.is_root = 1
BEGIN
    SELECT RAISE(ABORT, 'turns_settled_is_final')
        WHERE OLD.settled_at <> 0 AND (NEW.settled_at <> OLD.settled_at OR NEW.outcome <> OLD.outcome);
    SELECT RAISE(ABORT, 'turns_root_settles_last')
        WHERE NEW.settled_at <> 0 AND NEW.is_root = 1
            AND EXISTS (SELECT 1 FROM turns c WHERE c.root_turn = NEW.pk AND c.settled_at = 0 AND c.is_root = 0);
END;

CREATE TRIGGER turns_owner_is_immutable
BEFORE UPDATE OF id, session, session_id, root_turn, root_turn_id, is_root, cause ON turns
BEGIN
    SELECT RAISE(ABORT, 'turns_owner_is_immutable');
END;

CREATE TABLE provider_turns (
    pk         INTEGER PRIMARY KEY,
    turn       INTEGER NOT NULL REFERENCES turns (pk) ON DELETE CASCADE,
    turn_id    TEXT    NOT NULL,
    session    INTEGER NOT NULL REFERENCES sessions (pk),
    id         TEXT    NOT NULL,
    native_id  TEXT    NOT NULL DEFAULT '',
    phase      TEXT    NOT NULL,
    outcome    TEXT    NOT NULL DEFAULT '',
    error_code TEXT    NOT NULL DEFAULT '',
    error_text TEXT    NOT NULL DEFAULT '',
    deadline   INTEGER NOT NULL DEFAULT 0, -- of a reservation
    created_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT provider_turns_id UNIQUE (turn, id),
    CONSTRAINT provider_turns_phase CHECK (phase = 'reserved' OR phase = 'running' OR phase = 'ended'),
    CONSTRAINT provider_turns_outcome CHECK (outcome = '' OR outcome = 'completed' OR outcome = 'failed' OR outcome = 'canceled'
        OR outcome = 'interrupted'),
    CONSTRAINT provider_turns_ended_has_outcome CHECK ((phase = 'ended') = (outcome <> ''))
) STRICT;

CREATE INDEX provider_turns_of_session ON provider_turns (session, id, pk);

CREATE TRIGGER provider_turns_of_open_root
AFTER INSERT ON provider_turns
BEGIN
    SELECT CASE
        WHEN t.is_root = 0 THEN RAISE(ABORT, 'provider_turns_of_root_turn')
        WHEN t.phase = 'settled' THEN RAISE(ABORT, 'provider_turns_of_open_root')
        WHEN t.session <> NEW.session THEN RAISE(ABORT, 'provider_turns_of_its_session')
    END
    FROM turns t WHERE t.pk = NEW.turn;
END;

CREATE TABLE messages (
    pk         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    session    INTEGER NOT NULL REFERENCES sessions (pk),
    session_id TEXT    NOT NULL,
    turn       INTEGER NOT NULL,
    turn_id    TEXT    NOT NULL,
    seq        INTEGER NOT NULL, -- number of the event that created it
    role       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    body       TEXT    NOT NULL DEFAULT '', -- what was put; what streams after it is message_chunks
    call_id    TEXT    NOT NULL DEFAULT '',
    name       TEXT    NOT NULL DEFAULT '',
    title      TEXT    NOT NULL DEFAULT '',
    input      TEXT    NOT NULL DEFAULT '',
    output     TEXT    NOT NULL DEFAULT '',
    child_id   TEXT    NOT NULL DEFAULT '',
    client_id  TEXT    NOT NULL DEFAULT '', -- clientMessageId of a person's message
    client     TEXT    NOT NULL DEFAULT '',
    delivery   TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CONSTRAINT messages_id UNIQUE (id),
    CONSTRAINT messages_role CHECK (role = 'user' OR role = 'assistant' OR role = 'tool' OR role = 'system'),
    CONSTRAINT messages_kind CHECK (kind = 'text' OR kind = 'thinking' OR kind = 'tool_call' OR kind = 'notice'),
    CONSTRAINT messages_status CHECK (status = 'completed' OR status = 'streaming' OR status = 'pending' OR status = 'failed'
        OR status = 'interrupted' OR status = 'undelivered')
) STRICT;

CREATE UNIQUE INDEX messages_of_session ON messages (session, seq);
CREATE UNIQUE INDEX messages_of_client ON messages (session, client_id) WHERE client_id <> '';
CREATE INDEX messages_open ON messages (turn) WHERE status IN ('pending', 'streaming');

CREATE TRIGGER messages_of_live_session
AFTER INSERT ON messages WHEN (SELECT deleted_at FROM sessions WHERE pk = NEW.session) <> 0
BEGIN
    SELECT RAISE(ABORT, 'messages_of_deleted_session');
END;

-- What streamed after the body. pk is message * 2^32 + the offset in bytes of UTF-8 from the
-- message's start: a table with an integer key grows at its end without moving rows about.
CREATE TABLE message_chunks (
    pk   INTEGER PRIMARY KEY,
    text TEXT    NOT NULL
) STRICT;

CREATE TABLE interactions (
    pk               INTEGER PRIMARY KEY,
    session          INTEGER NOT NULL REFERENCES sessions (pk),
    session_id       TEXT    NOT NULL,
    root             INTEGER NOT NULL REFERENCES sessions (pk),
    turn             INTEGER NOT NULL REFERENCES turns (pk) ON DELETE CASCADE,
    turn_id          TEXT    NOT NULL,
    request_id       TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    title            TEXT    NOT NULL,
    detail           TEXT    NOT NULL, -- JSON of agent.Detail
    options          TEXT    NOT NULL, -- JSON of []agent.Option
    status           TEXT    NOT NULL,
    answered_by      TEXT    NOT NULL DEFAULT '',
    response         TEXT    NOT NULL DEFAULT '', -- JSON of agent.Response
    error_code       TEXT    NOT NULL DEFAULT '',
    error_text       TEXT    NOT NULL DEFAULT '',
    provider_turn_id TEXT    NOT NULL DEFAULT '',
    owner            TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    CONSTRAINT interactions_id UNIQUE (turn, request_id),
    CONSTRAINT interactions_kind CHECK (kind = 'approval' OR kind = 'question' OR kind = 'plan' OR kind = 'elicitation'),
    CONSTRAINT interactions_status CHECK (status = 'pending' OR status = 'answering' OR status = 'answered' OR status = 'superseded'),
    CONSTRAINT interactions_answer_is_kept CHECK (status NOT IN ('answering', 'answered') OR response <> ''),
    CONSTRAINT interactions_owner CHECK (owner IN ('exact', 'unknown'))
) STRICT;

CREATE INDEX interactions_of_tree ON interactions (root, pk);
CREATE INDEX interactions_of_session ON interactions (session, pk);
CREATE INDEX interactions_open ON interactions (turn) WHERE status IN ('pending', 'answering');

CREATE TRIGGER interactions_of_live_turn
AFTER INSERT ON interactions
BEGIN
    SELECT CASE
        WHEN s.deleted_at <> 0 THEN RAISE(ABORT, 'interactions_of_deleted_session')
        WHEN t.phase = 'settled' THEN RAISE(ABORT, 'interactions_of_settled_turn')
    END
    FROM turns t JOIN sessions s ON s.pk = t.session WHERE t.pk = NEW.turn;
END;

CREATE TRIGGER interactions_superseded_is_final
BEFORE UPDATE OF status ON interactions WHEN OLD.status IN ('answered', 'superseded') AND NEW.status <> OLD.status
BEGIN
    SELECT RAISE(ABORT, 'interactions_superseded_is_final');
END;

CREATE TABLE operations (
    pk           INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL,
    workspace    INTEGER NOT NULL REFERENCES workspaces (pk),
    root         INTEGER NOT NULL REFERENCES sessions (pk),
    session      INTEGER NOT NULL REFERENCES sessions (pk),
    session_id   TEXT    NOT NULL,
    turn         INTEGER NOT NULL,
    turn_id      TEXT    NOT NULL,
    root_turn_id TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    due          INTEGER NOT NULL, -- pending: not before; running: when the lease ends
    worker       TEXT    NOT NULL DEFAULT '',
    client       TEXT    NOT NULL DEFAULT '',
    deadline     INTEGER NOT NULL DEFAULT 0,
    message_id   TEXT    NOT NULL DEFAULT '',
    request_id   TEXT    NOT NULL DEFAULT '',
    error_code   TEXT    NOT NULL DEFAULT '',
    error_text   TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    CONSTRAINT operations_id UNIQUE (id),
    CONSTRAINT operations_kind CHECK (kind = 'cancel' OR kind = 'answer' OR kind = 'guide' OR kind = 'delete'),
    CONSTRAINT operations_status CHECK (status = 'pending' OR status = 'running' OR status = 'succeeded' OR status = 'unconfirmed' OR status = 'failed')
) STRICT;

CREATE INDEX operations_due ON operations (due, pk) WHERE status IN ('pending', 'running');
CREATE INDEX operations_of_turn ON operations (turn, pk);
CREATE UNIQUE INDEX operations_one_open_cancel ON operations (turn) WHERE kind = 'cancel' AND status IN ('pending', 'running');
CREATE INDEX operations_of_root ON operations (root, pk);

CREATE TRIGGER operations_of_live_session
AFTER INSERT ON operations WHEN (SELECT deleted_at FROM sessions WHERE pk = NEW.session) <> 0
BEGIN
    SELECT RAISE(ABORT, 'operations_of_deleted_session');
END;

CREATE TABLE operation_targets (
    operation  INTEGER NOT NULL REFERENCES operations (pk) ON DELETE CASCADE,
    turn       INTEGER NOT NULL,
    session_id TEXT    NOT NULL,
    turn_id    TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    evidence   TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (operation, turn),
    CONSTRAINT operation_targets_state CHECK (state = 'requested' OR state = 'acknowledged' OR state = 'canceled' OR state = 'interrupted' OR state = 'already_terminal')
) STRICT, WITHOUT ROWID;

-- The outbox, the replay record and the client frame. pk is workspace * 2^40 + seq, so
-- that one B-tree serves both the append and the read after a cursor.
CREATE TABLE events (
    pk         INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    turn_id    TEXT    NOT NULL,
    root_id    TEXT    NOT NULL,
    data       BLOB    NOT NULL -- JSON; written and read as bytes, never looked into
) STRICT;

-- What an Idempotency-Key was used for.
CREATE TABLE idempotency (
    workspace   INTEGER NOT NULL REFERENCES workspaces (pk),
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL, -- of the whole request: the same key with another request is a conflict
    session     INTEGER NOT NULL REFERENCES sessions (pk),
    turn        INTEGER NOT NULL DEFAULT 0,  -- the first turn, 0 where no message was given
    message_id  TEXT    NOT NULL DEFAULT '', -- that message
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
