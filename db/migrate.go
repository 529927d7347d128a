package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// applicationID marks the file as ours ("TRKP"), for `file` and for the check below.
const applicationID = 0x54524B50

// NewerError says that a newer program wrote the file. Nothing was changed.
type NewerError struct{ Have, Know int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("it was written by a newer version (schema %d, this one knows %d)", e.Have, e.Know)
}

// ErrForeign says that the file is a database, but not one of ours.
var ErrForeign = errors.New("the file holds tables of another program")

type migration struct {
	version int
	name    string
	sql     string
}

// Migrate moves the file to the newest schema: one transaction a step, and before the first
// step a copy of the file beside it, whose path is returned. A new file takes all steps at
// once, and one that is up to date costs two pragmas. A newer file is refused with *NewerError, a foreign one with ErrForeign.
func Migrate(ctx context.Context, c *sql.Conn, file string) (backup string, err error) {
	steps, err := listMigrations()
	if err != nil {
		return "", err
	}
	var have int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return "", err
	}
	if know := steps[len(steps)-1].version; have > know {
		return "", &NewerError{Have: have, Know: know}
	}
	if have == 0 {
		var tables int
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return "", err
		}
		if tables > 0 {
			return "", ErrForeign
		}
	}
	if have == 0 { // nothing can be lost: one transaction for all of them
		all := steps[len(steps)-1]
		for i := len(steps) - 2; i >= 0; i-- {
			all.sql = steps[i].sql + "\n" + all.sql
		}
		steps = []migration{all}
	}
	for _, m := range steps {
		if m.version <= have {
			continue
		}
		if have > 0 && backup == "" {
			if backup, err = backUp(ctx, c, file, have); err != nil {
				return "", fmt.Errorf("back up before the schema changes: %w", err)
			}
		}
		if err := step(ctx, c, m); err != nil {
			return backup, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return backup, nil
}

func step(ctx context.Context, c *sql.Conn, m migration) (err error) {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return err
	}
	for _, p := range []string{
		"PRAGMA user_version = " + strconv.Itoa(m.version),
		"PRAGMA application_id = " + strconv.Itoa(applicationID),
	} {
		if _, err := tx.ExecContext(ctx, p); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// backUp writes a whole and consistent copy beside the file. An older copy of the same
// version is replaced: it is of a run that did not finish.
func backUp(ctx context.Context, c *sql.Conn, file string, version int) (string, error) {
	to := fmt.Sprintf("%s.schema-%d.bak", file, version)
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := c.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return "", err
	}
	return to, nil
}

// listMigrations returns the embedded steps in order. Their numbers are 1, 2, 3 …: a gap
// is a mistake of ours and fails every start, so that no test can miss it.
func listMigrations() ([]migration, error) {
	entries, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	var out []migration
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(out)+1 {
			return nil, fmt.Errorf("migration %s is not number %d", e.Name(), len(out)+1)
		}
		text, err := fs.ReadFile(migrations, path.Join("migrations", e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, migration{version, e.Name(), string(text)})
	}
	return out, nil
}
