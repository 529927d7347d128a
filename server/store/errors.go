package store

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Primary result codes of SQLite that mean something to a caller.
const (
	sqliteBusy    = 5
	sqliteLocked  = 6
	sqliteIOError = 10
	sqliteCorrupt = 11
	sqliteFull    = 13
	sqliteRefuses = 19 // a constraint
	sqliteNotADB  = 26

	sqliteTriggerRefuses = sqliteRefuses | 7<<8
)

var errClosed = agent.Errorf(agent.CodeDaemonStopping, "the daemon is shutting down")

// errGateDisagrees is the second witness: the pure rule settled a root turn and the
// condition in SQL did not.
var errGateDisagrees = errors.New("gate and storage disagree about a root turn")

// resultCode is SQLite's primary result code of err, 0 if it is none.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// unstorable reports that a row cannot be as it was given: a value that a CHECK does not
// know, an id that is another's. The guards that repeat a rule are triggers: what they refuse
// is a disagreement about a rule, which is ours.
func unstorable(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqliteRefuses && e.Code() != sqliteTriggerRefuses
}

func isBusy(err error) bool {
	c := resultCode(err)
	return c == sqliteBusy || c == sqliteLocked
}

// coded gives an error of SQLite the code that a caller can act on. Errors that have a
// code already, and those that have none, pass.
func coded(err error) error {
	if err == nil {
		return nil
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	switch resultCode(err) {
	case sqliteBusy, sqliteLocked:
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeUnavailable, "the database is busy; try again"), err)
	case sqliteFull:
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeUnavailable, "the disk is full; free some space and try again"), err)
	case sqliteIOError:
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeUnavailable, "the disk does not answer; try again"), err)
	case sqliteCorrupt, sqliteNotADB:
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeInternal, "the database file is damaged; stop the daemon and restore a backup"), err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("store: %w", err)
}

// openError says what is wrong with a file that cannot be opened, and what helps.
func openError(path string, err error) error {
	var newer *db.NewerError
	switch {
	case errors.As(err, &newer):
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeInvalid,
			"%s was written by a newer turnkeeper (schema %d, this one knows %d): install the newer one, or restore a backup",
			path, newer.Have, newer.Know), err)
	case errors.Is(err, db.ErrForeign):
		return fmt.Errorf("%w (%w)", agent.Errorf(agent.CodeInvalid, "%s is the database of another program", path), err)
	}
	return coded(err)
}

func notFound(what string, id any) error {
	return agent.Errorf(agent.CodeNotFound, "no such %s: %v", what, id)
}
