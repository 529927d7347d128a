package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
)

// spy is the real driver with a list of what was executed.
type spy struct {
	real driver.Driver
	name string

	mu   sync.Mutex
	ran  []string
	fail func(query string) error // makes a statement fail, if set
	rows atomic.Int64             // read by anyone
}

var spies atomic.Int64

func newSpy(testing.TB) *spy {
	s := &spy{real: &sqlite.Driver{}, name: fmt.Sprintf("sqlite-spy-%d", spies.Add(1))}
	sql.Register(s.name, s)
	return s
}

// take returns what was executed since the last call.
func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.ran
	s.ran = nil
	return out
}

func (s *spy) note(query string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, query)
	if s.fail != nil {
		return s.fail(query)
	}
	return nil
}

// failing sets or clears what makes statements fail.
func (s *spy) failing(f func(string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *spy) Open(name string) (driver.Conn, error) {
	c, err := s.real.Open(name)
	if err != nil {
		return nil, err
	}
	return &spyConn{Conn: c, spy: s}, nil
}

type spyConn struct {
	driver.Conn
	spy *spy
}

func (c *spyConn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	st, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	return &spyStmt{Stmt: st, spy: c.spy, query: q}, nil
}

func (c *spyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c *spyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.spy.note(q); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c *spyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.spy.note(q); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

type spyStmt struct {
	driver.Stmt
	spy   *spy
	query string
}

func (s *spyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.spy.note(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *spyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.spy.note(s.query); err != nil {
		return nil, err
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	return &spyRows{Rows: rows, spy: s.spy}, nil
}

type spyRows struct {
	driver.Rows
	spy *spy
}

func (r *spyRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil {
		r.spy.rows.Add(1)
	}
	return err
}

// control tells the statements that only bound a transaction.
func control(q string) bool {
	for _, p := range []string{"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA"} {
		if strings.HasPrefix(q, p) {
			return true
		}
	}
	return false
}

// work drops the statements that only bound a transaction.
func work(ran []string) []string {
	var out []string
	for _, q := range ran {
		if !control(q) {
			out = append(out, q)
		}
	}
	return out
}
