package acpagent

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain judges at the end every line that any test's agent has written, by the schemas
// of the published package.
func TestMain(m *testing.M) {
	if served() {
		return
	}
	code := m.Run()
	if code == 0 {
		if err := judgeAll(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
