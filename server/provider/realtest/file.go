package realtest

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// UntilFile waits until a file matches the pattern. Another program makes it, so that there
// is nothing to wait for but its name.
func UntilFile(ctx context.Context, pattern string) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("realtest: %s never came: %w", pattern, ctx.Err())
		}
	}
}
