// Package store is the only package that sees rows. It owns every transaction: what a
// provider reported, what a person asked for and what the gate decides from both is
// written here, with its events, in one commit.
//
// It restates no rule. What may happen is decided by the pure functions of package
// agent; the guards in SQL (CHECKs, triggers, the condition of the settling statement)
// are a second witness, whose disagreement is an error and never a decision. The package
// knows no provider, no HTTP and no runtime.
//
// # How a write happens
//
// There is one writing connection and one writer at a time. It takes what waits and commits
// it together; each write fails alone, behind a savepoint where one must (commitBatch). A
// write is a function over tx, the unit of work: it loads rows once, changes them, and
// records which root turns it touched. When the function is done, tx runs [agent.Gate] for
// each touched root turn, writes the difference and appends the events. No caller runs the
// gate, so none can forget it.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Memory as Options.Path opens a private database that Close removes.
const Memory = db.Memory

// Options say where the store is and what it is given.
type Options struct {
	Path        string           // the file, created if missing, or Memory
	Synchronous string           // "full" (default) or "normal", see db.Options
	Now         func() time.Time // the clock that times are stored from; default time.Now
	Mint        agent.Minter     // mints the ids of everything people create
	Logger      *slog.Logger     // default slog.Default

	// CancelBound is how long a cancel waits for the provider before it completes with the
	// evidence there is; default 15 s.
	CancelBound time.Duration
	// StallAfter is the silence after which a live turn is shown as stalled; default 2 min.
	StallAfter time.Duration
	// RetainEvents is how many events of a workspace are kept for clients that come back;
	// default 200,000. The newest one is always kept.
	RetainEvents int64

	// OnCommit is called after each commit, in commit order and before the callers are
	// answered, by whoever writes. It must neither block nor write.
	OnCommit func([]agent.Event)

	driver string // of database/sql; tests count statements with one of theirs
}

// Store is one open file. It is safe for concurrent use.
type Store struct {
	opt   Options
	db    *db.DB
	epoch string

	reads   stmtCache
	reading chan struct{} // full while db.Reads of them run

	// Held by whoever writes: the goroutine that commits what is queued, or a caller that
	// finds nobody else writing. It owns w.
	writing sync.Mutex
	w       writer

	queue  chan *write
	gate   sync.RWMutex // held shared while a write is queued, exclusively to close the queue
	closed bool
	wait   sync.WaitGroup

	activity activity
	check    checkpointer
}

// Open opens the file, brings its schema up to date and starts the goroutine that writes.
// It does not recover: call Recover before anything else is written. A file of a newer
// version is refused with CodeInvalid.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = withDefaults(o)
	d, err := db.Open(ctx, db.Options{Path: o.Path, Synchronous: o.Synchronous, Driver: o.driver})
	if err != nil {
		return nil, openError(o.Path, err)
	}
	if backup := d.BackedUp(); backup != "" {
		o.Logger.Info("the database moved to a newer schema", "backup", backup)
	}
	s := &Store{opt: o, db: d, queue: make(chan *write, 4*maxBatch), reading: make(chan struct{}, db.Reads)}
	s.reads.on = d.Readers
	if err := s.load(ctx); err != nil {
		_ = d.Close()
		return nil, openError(o.Path, err)
	}
	s.activity.init()
	s.check.init()
	s.wait.Go(s.runWriter)
	s.wait.Go(s.runCheckpointer)
	return s, nil
}

func withDefaults(o Options) Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CancelBound <= 0 {
		o.CancelBound = 15 * time.Second
	}
	if o.StallAfter <= 0 {
		o.StallAfter = 2 * time.Minute
	}
	if o.RetainEvents <= 0 {
		o.RetainEvents = 200_000
	}
	if o.OnCommit == nil {
		o.OnCommit = func([]agent.Event) {}
	}
	return o
}

// load reads the counters that the writer keeps in memory.
func (s *Store) load(ctx context.Context) error {
	err := s.w.init(ctx, s)
	if err != nil {
		return err
	}
	s.epoch, err = s.w.q.Epoch(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		s.epoch = newEpoch()
		err = s.w.q.SetEpoch(ctx, s.epoch)
	}
	if err != nil {
		return fmt.Errorf("epoch: %w", err)
	}
	return nil
}

// newEpoch names one life of the file. A client whose cursor is of another epoch starts
// over, so it only has to differ.
func newEpoch() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Close waits for the writes that were accepted, ends every goroutine and closes the file.
// It is idempotent.
func (s *Store) Close() error {
	s.gate.Lock()
	if s.closed {
		s.gate.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.gate.Unlock()
	s.wait.Wait()
	s.w.close()
	s.reads.close()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// Epoch names this life of the file; see agent.Log.
func (s *Store) Epoch() string { return s.epoch }
