package db

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Memory is the path of a private database that lives as long as it is open.
const Memory = ":memory:"

const (
	// Reads is how many transactions may be open on DB.Readers at a time. The pool has one
	// connection more: a statement is prepared on it while all of them are busy.
	Reads = 4
	// busyMillis is how long SQLite itself waits for a lock. Only another process, or a
	// checkpoint that waits for readers, can hold one: there is a single writer.
	busyMillis = 5000
	readerMmap = 256 << 20
)

// Options say which file to open and how.
type Options struct {
	// Path is the file, created if missing. Memory stands for a file in a temporary
	// directory that Close removes: one code path for everything, WAL included.
	Path string
	// Synchronous is "full" (a commit survives a power cut) or "normal" (it survives the
	// process; the last moments may be lost with the power). "" is "full".
	Synchronous string
	// Driver is the database/sql driver; "" is the real one. Tests count statements here.
	Driver string
}

// DB is one open file: a connection that writes, one that checkpoints, and a pool
// that can only read.
type DB struct {
	Writer     *sql.Conn
	Checkpoint *sql.Conn
	Readers    *sql.DB
	Path       string

	writers   *sql.DB
	scratch   string // directory to remove, of a Memory database
	backedUp  string
	hasClosed bool
}

// Open opens the file, brings its schema up to date (see Migrate) and starts nothing.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	d := &DB{Path: o.Path}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	sync := strings.ToUpper(o.Synchronous)
	switch sync {
	case "":
		sync = "FULL"
	case "FULL", "NORMAL":
	default:
		return nil, fmt.Errorf("synchronous is full or normal, not %q", o.Synchronous)
	}
	if o.Path == Memory {
		if d.scratch, err = os.MkdirTemp("", "turnkeeper-*"); err != nil {
			return nil, fmt.Errorf("temporary database: %w", err)
		}
		d.Path, sync = filepath.Join(d.scratch, "memory.db"), "OFF"
	}
	driver := o.Driver
	if driver == "" {
		driver = "sqlite"
	}
	write := dsn(d.Path, "_txlock=immediate", "journal_mode(WAL)", "synchronous("+sync+")", "foreign_keys(1)",
		"wal_autocheckpoint(0)", "temp_store(MEMORY)", "cache_size(-16384)", "recursive_triggers(0)")
	if d.writers, err = sql.Open(driver, write); err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Path, err)
	}
	d.writers.SetMaxOpenConns(2) // the writer and the checkpointer
	if d.Writer, err = d.writers.Conn(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Path, err)
	}
	if d.backedUp, err = Migrate(ctx, d.Writer, d.Path); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", d.Path, err)
	}
	if d.Checkpoint, err = d.writers.Conn(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Path, err)
	}
	read := dsn(d.Path, "", "query_only(1)", "temp_store(MEMORY)", "cache_size(-8192)", fmt.Sprintf("mmap_size(%d)", readerMmap))
	if d.Readers, err = sql.Open(driver, read); err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Path, err)
	}
	d.Readers.SetMaxOpenConns(Reads + 1)
	d.Readers.SetMaxIdleConns(Reads + 1)
	return d, nil
}

// BackedUp is the copy that was made before the schema changed, "" if it did not.
func (d *DB) BackedUp() string { return d.backedUp }

// Close closes every connection. A Memory database is gone afterwards.
func (d *DB) Close() error {
	if d.hasClosed {
		return nil
	}
	d.hasClosed = true
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	if d.Readers != nil {
		keep(d.Readers.Close())
	}
	for _, c := range []*sql.Conn{d.Checkpoint, d.Writer} {
		if c != nil {
			keep(c.Close())
		}
	}
	if d.writers != nil {
		keep(d.writers.Close())
	}
	if d.scratch != "" {
		keep(os.RemoveAll(d.scratch))
	}
	return first
}

// dsn builds the driver's address of a file. Every pragma is set on each connection.
func dsn(path, extra string, pragmas ...string) string {
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyMillis)) // first: the others may meet a lock
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	s := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	if extra != "" {
		s += "&" + extra
	}
	return s
}
