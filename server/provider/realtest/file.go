package realtest

import (
	"context"
	"fmt"
	"os"
	"time"
)

// UntilFile waits until the file is there. Somebody else's shell makes it, so that there
// is nothing to wait for but its name.
func UntilFile(ctx context.Context, path string) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("realtest: %s never came: %w", path, ctx.Err())
		}
	}
}
