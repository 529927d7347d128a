package store

import (
	"context"
	"errors"
	"os"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/db/dbgen"
)

// Inspection is what can be said of a file without owning it.
type Inspection struct {
	Bytes  int64
	Schema int
	// OpenBelowSettled counts turns that live below a settled root turn, which must be 0; -1
	// where the file has the schema of another version and cannot be counted.
	OpenBelowSettled int64
}

// Inspect looks for damage and counts, and changes nothing. A running daemon may have the
// file open. A missing file is fs.ErrNotExist.
func Inspect(ctx context.Context, path string) (_ Inspection, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return Inspection{}, err
	}
	p, err := db.Peek(ctx, path)
	if err != nil {
		return Inspection{}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	i := Inspection{Bytes: info.Size(), Schema: p.Schema, OpenBelowSettled: -1}
	if err := p.QuickCheck(ctx); err != nil {
		return i, err
	}
	if p.Current {
		i.OpenBelowSettled, err = dbgen.New(p.Readers).CountOpenBelowSettled(ctx)
	}
	return i, err
}
