package daemon

import (
	"context"
	"io/fs"

	"github.com/turnkeeper/turnkeeper/server/store"
	"github.com/turnkeeper/turnkeeper/web"
)

// Inspection is what can be said of a database file without owning it.
type Inspection = store.Inspection

// Inspect looks at a database without changing it, while a daemon has it open or not. A
// missing file is fs.ErrNotExist; anything else that is wrong with it is an error.
func Inspect(ctx context.Context, path string) (Inspection, error) { return store.Inspect(ctx, path) }

// HasView reports whether the web view was built into this binary.
func HasView() bool {
	_, err := fs.Stat(web.Dist(), "index.html")
	return err == nil
}
