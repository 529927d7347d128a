package claudetest

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// Options of a home.
type Options struct {
	BaseURL string // of the model, see [modeltest.Model.BaseURL]; required
	// Retries is how often a failed call to the model is made again. By default never:
	// one request is one reply of the script.
	Retries int
	// Env are further variables, such as "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1".
	Env []string
}

// Home makes a fresh home directory and environment for one Claude Code, removed at the
// end of the test. Stop the program before: register its stop after this call.
//
// The key opens nothing, and all that could reach for the network is off. State events
// are the adapter's to ask for.
func Home(t testing.TB, o Options) modeltest.Place {
	t.Helper()
	if o.BaseURL == "" {
		t.Fatal("claudetest: Options.BaseURL is missing")
	}
	place := modeltest.NewPlace(t, "claudetest")
	place.Env = append(place.Env,
		"ANTHROPIC_BASE_URL="+o.BaseURL,
		"ANTHROPIC_API_KEY=opens-nothing",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES="+strconv.Itoa(o.Retries),
		// A reply that breaks off would be asked for again without streaming.
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1",
		// A request that was refused would be made again with fewer experimental features.
		"CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_TMPDIR="+filepath.Join(place.Home, "tmp"), // output of its tasks, else in /tmp for good
		"IS_SANDBOX=1",                                         // or it refuses to skip permissions for root
		"LANG=C.UTF-8",
	)
	place.Env = append(place.Env, o.Env...)
	return place
}

// BinaryEnv names the executable that [Binary] returns.
const BinaryEnv = "TURNKEEPER_CLAUDE_BIN"

// Binary is the path of the Claude Code executable: what [BinaryEnv] names, or the one
// that `make providers` installs.
func Binary(t testing.TB) string {
	t.Helper()
	return modeltest.FindBinary(t, BinaryEnv, "@anthropic-ai/claude-agent-sdk-*/claude")
}
