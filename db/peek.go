package db

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// Peeked is a file that is looked at and not changed: no migration, no writing connection.
// A daemon may have it open at the same time.
type Peeked struct {
	Readers *sql.DB
	Schema  int  // the file's
	Current bool // the schema is the one that this program knows
}

// Peek opens an existing file for looking at. A missing one is fs.ErrNotExist.
func Peek(ctx context.Context, path string) (_ *Peeked, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	steps, err := listMigrations()
	if err != nil {
		return nil, err
	}
	// Not mode=ro: a file whose log nobody has mapped yet could then not be read at all.
	readers, err := sql.Open("sqlite", dsn(path, "mode=rw", "query_only(1)"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	readers.SetMaxOpenConns(1)
	p := &Peeked{Readers: readers}
	if err := readers.QueryRowContext(ctx, "PRAGMA user_version").Scan(&p.Schema); err != nil {
		_ = readers.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	p.Current = p.Schema == steps[len(steps)-1].version
	return p, nil
}

// QuickCheck has SQLite look for damage, without comparing indexes with their tables. Its
// time grows with the file; ctx bounds it. The error says what was found first.
func (p *Peeked) QuickCheck(ctx context.Context) error {
	var found string
	if err := p.Readers.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return fmt.Errorf("quick check: %w", err)
	}
	if found != "ok" {
		return fmt.Errorf("quick check: %s", found)
	}
	return nil
}

// Close closes what Peek opened.
func (p *Peeked) Close() error { return p.Readers.Close() }
