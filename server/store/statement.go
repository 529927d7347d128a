package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
)

// stmtCache holds statements. They are prepared when they are first used and kept: a start needs few of them, and
// to prepare all would take a third of it. It is safe for concurrent use.
type stmtCache struct {
	on interface { // a pool or a connection
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu  sync.RWMutex
	all map[string]*sql.Stmt
}

func (s *stmtCache) get(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.RLock()
	st := s.all[query]
	s.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	st, err := s.on.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.all[query]; known != nil { // somebody was quicker
		_ = st.Close()
		return known, nil
	}
	if s.all == nil {
		s.all = map[string]*sql.Stmt{}
	}
	s.all[query] = st
	return st, nil
}

func (s *stmtCache) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		_ = st.Close()
	}
	s.all = nil
}

// prepared is the generated queries' way to kept statements: on a connection, or in a
// transaction of a pool.
type prepared struct {
	*stmtCache
	direct dbgen.DBTX // the connection or the transaction
	tx     *sql.Tx    // nil on a connection
}

var _ dbgen.DBTX = prepared{}

func (p prepared) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	st, err := p.get(ctx, query)
	if err == nil && p.tx != nil {
		st = p.tx.StmtContext(ctx, st)
	}
	return st, err
}

func (p prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

func (p prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (p prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	st, err := p.stmt(ctx, query)
	if err != nil { // only database/sql can make a row that tells of it
		return p.direct.QueryRowContext(ctx, query, args...)
	}
	return st.QueryRowContext(ctx, args...)
}

// PrepareContext completes dbgen.DBTX; nothing generated calls it.
func (p prepared) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.direct.PrepareContext(ctx, query)
}
