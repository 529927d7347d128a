package codextest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// Options of a home. The zero value is version 1 of the multi-agent tools,
// nothing to approve, no sandbox.
type Options struct {
	BaseURL    string // of the model, see [modeltest.Model.BaseURL]; required
	V2         bool   // offer version 2 of the multi-agent tools
	Approval   string // approval_policy; default "never"
	Sandbox    string // sandbox_mode; default "danger-full-access"
	Model      string // default "mock-model", a name Codex does not know
	MaxDepth   int    // how deep agents may nest (version 1); 0: Codex's default
	MaxThreads int    // how many agents at once: sub-agents (version 1), with the root (version 2); 0: Codex's default
	// Features are further lines of the features table, such as
	// "wake_on_agent_messages = true".
	Features []string
	// Config is further TOML for the top level, before any table.
	Config string
}

const keyVariable = "TURNKEEPER_TEST_MODEL_KEY"

// Home makes a fresh home directory for one app-server, removed at the end of
// the test. Stop the server before: register its stop after this call.
func Home(t testing.TB, o Options) modeltest.Place {
	t.Helper()
	if o.BaseURL == "" {
		t.Fatal("codextest: Options.BaseURL is missing")
	}
	place := modeltest.NewPlace(t, "codextest")
	dir := filepath.Join(place.Home, ".codex")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatalf("codextest: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(o.toml()), 0o600); err != nil {
		t.Fatalf("codextest: %v", err)
	}
	place.Env = append(place.Env, keyVariable+"=opens-nothing", "RUST_LOG=warn")
	return place
}

// toml is the configuration. Plugins and apps would reach for the network.
func (o Options) toml() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("model = %q", cmp.Or(o.Model, "mock-model"))
	line("model_provider = \"scripted\"")
	line("approval_policy = %q", cmp.Or(o.Approval, "never"))
	line("sandbox_mode = %q", cmp.Or(o.Sandbox, "danger-full-access"))
	line("check_for_update_on_startup = false")
	if o.MaxDepth > 0 {
		line("agents.max_depth = %d", o.MaxDepth)
	}
	if o.MaxThreads > 0 && !o.V2 {
		line("agents.max_threads = %d", o.MaxThreads)
	}
	line("%s", o.Config)
	line("[analytics]\nenabled = false\n")
	line("[features]\nplugins = false\nremote_plugin = false\napps = false")
	switch {
	case o.V2 && o.MaxThreads > 0:
		line("multi_agent_v2 = {enabled = true, max_concurrent_threads_per_session = %d}", o.MaxThreads)
	case o.V2:
		line("multi_agent_v2 = true")
	}
	for _, f := range o.Features {
		line("%s", f)
	}
	line("\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q", o.BaseURL)
	line("wire_api = \"responses\"\nenv_key = %q\nsupports_websockets = false", keyVariable)
	// One request is one reply of the script: nothing may be tried again.
	line("request_max_retries = 0\nstream_max_retries = 0\nstream_idle_timeout_ms = 60000")
	return b.String()
}

// BinaryEnv names the executable that [Binary] returns.
const BinaryEnv = "TURNKEEPER_CODEX_BIN"

// Binary is the path of the native Codex executable: what [BinaryEnv] names, or the one
// that `make providers` installs.
//
// The npm package's own entry is a script that starts the native executable as
// its child; a test that kills what it started must start the native one.
func Binary(t testing.TB) string {
	t.Helper()
	return modeltest.FindBinary(t, BinaryEnv, "@openai/codex*/vendor/*/bin/codex", "@openai/codex*/vendor/*/codex/codex")
}
