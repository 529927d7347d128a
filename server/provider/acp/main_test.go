package acp

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("ACP_TEST_AGENT") != "" {
		os.Exit(playAgent(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}
