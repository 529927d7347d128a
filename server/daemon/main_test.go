package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/config"
)

// roleEnv makes the test binary play a part instead of running tests: a whole daemon
// that can be killed, or the yardstick it is measured against.
const roleEnv = "TURNKEEPER_TEST_ROLE"

const (
	roleDaemon  = "daemon"
	roleMinimal = "minimal"
	roleStray   = "stray" // does nothing until it is killed
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case roleDaemon:
		os.Exit(playDaemon())
	case roleMinimal:
		os.Exit(playMinimal())
	case roleAgent:
		os.Exit(playAgent())
	case roleStray:
		fmt.Println(`{"url":"nowhere"}`)
		select {}
	}
	goleak.VerifyTestMain(m)
}

// playDaemon runs the daemon of the environment, prints its listener file's content once
// it is ready, and its error if it does not start.
func playDaemon() int {
	ctx, stop := signal.NotifyContext(context.Background(), EndSignals()...)
	defer stop()
	c, err := config.Load(config.Input{Env: os.LookupEnv})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	d, err := New(Options{Config: c, Version: api.Version{Name: "turnkeeper", Version: "test"}})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	go func() {
		<-d.Ready()
		_ = json.NewEncoder(os.Stdout).Encode(d.Listener()) // the test sees that nothing came
	}()
	if err := d.Run(ctx); err != nil {
		fmt.Println(err)
		var start *StartError
		if errors.As(err, &start) {
			return 3
		}
		return 1
	}
	return 0
}
