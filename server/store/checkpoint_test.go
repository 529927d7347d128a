package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Somebody may read for minutes, as a check of the whole file does. The writer must not
// wait for that reader at every commit, but at most once each time the log has grown by its
// bound; and when the reader has gone, the log starts over.
func TestLongReaderDoesNotSlowEveryCommit(t *testing.T) {
	spy := newSpy(t)
	w := open(t, withDriver(spy.name)).begin()
	w.provider("p")
	_, err := w.write(background(t), func(*tx) error { // where the writer's own fields may be set
		w.check.every, w.check.bound = 1<<30, 1<<20 // the test looks at the log itself, after each commit
		w.check.nextTry.Store(w.check.bound)
		return nil
	})
	w.must(err)
	n := 0
	put := func() (waited bool) {
		n++
		spy.take()
		w.apply(agent.MessagePut{Message: agent.Message{
			ID: agent.MessageID(fmt.Sprint("m", n)), SessionID: w.root, TurnID: w.turn,
			Role: agent.RoleAssistant, Kind: agent.MessageText, Content: strings.Repeat("x", 20_000), Status: agent.MessageCompleted,
		}})
		_, err := w.write(background(t), func(*tx) error { return nil }) // what follows the commit before is over
		w.must(err)
		for _, q := range spy.take() {
			waited = waited || strings.Contains(q, "wal_checkpoint(RESTART)")
		}
		w.passive(w.db.Checkpoint)
		return waited
	}

	reader, err := w.db.Readers.BeginTx(background(t), &sql.TxOptions{ReadOnly: true})
	w.must(err)
	w.must(reader.QueryRow("SELECT count(*) FROM sessions").Scan(new(int)))
	waits := int64(0)
	for range 120 {
		if put() {
			waits++
		}
	}
	grown := w.check.logBytes.Load()
	if most := grown / w.check.bound; waits == 0 || waits > most {
		t.Errorf("the writer waited for the reader %d times while the log grew to %d bytes, want 1 to %d", waits, grown, most)
	}

	w.must(reader.Rollback())
	for range 120 {
		put()
	}
	if now := w.check.logBytes.Load(); now > 2*w.check.bound {
		t.Errorf("after the reader has gone the log has %d bytes, bound %d", now, w.check.bound)
	}
	if next := w.check.nextTry.Load(); next != w.check.bound {
		t.Errorf("the next try is due at %d bytes, want %d", next, w.check.bound)
	}
}
