-- The provider turn that a root turn shows also says when it ended. That takes the place of
-- its phase, which follows: with an outcome it has ended, then until is its end; without one
-- until is the deadline of a reservation, and 0 while it runs. A column more would make every
-- turn of a child larger, which has none of this.
ALTER TABLE turns ADD COLUMN provider_until INTEGER NOT NULL DEFAULT 0;

UPDATE turns SET provider_until = coalesce(
    (SELECT max(p.ended_at, p.deadline) FROM provider_turns p WHERE p.turn = turns.pk AND p.id = turns.provider_id), 0)
WHERE provider_id <> '';

ALTER TABLE turns DROP COLUMN provider_phase;

-- Settled root turns whose provider has not said the end of its own turn: a cancel does not
-- wait for that. They are few, and only the end of a process asks for them.
CREATE INDEX turns_provider_left ON turns (session) WHERE settled_at <> 0 AND provider_live > 0;
