package codextest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Options of a home. The zero value is version 1 of the multi-agent tools,
// nothing to approve, no sandbox.
type Options struct {
	BaseURL    string // of the model, see [Model.BaseURL]; required
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

// Place is where an app-server lives.
type Place struct {
	Home string // holds .codex/config.toml
	Work string // an empty working directory
	// Env is the whole environment: HOME, PATH, a key that opens nothing, and
	// the log level. Nothing else of the user's gets through.
	Env []string
}

const keyVariable = "TURNKEEPER_TEST_MODEL_KEY"

// Home makes a fresh home directory for one app-server, removed at the end of
// the test. Stop the server before: register its stop after this call.
//
// Codex refuses a home below the system's temporary directory, so it lies in
// the repository's ignored .cache directory, or in the user's cache directory
// when the repository itself is temporary.
func Home(t testing.TB, o Options) Place {
	t.Helper()
	if o.BaseURL == "" {
		t.Fatal("codextest: Options.BaseURL is missing")
	}
	base := homesDir(t)
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatalf("codextest: %v", err)
	}
	home, err := os.MkdirTemp(base, "home-")
	if err != nil {
		t.Fatalf("codextest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Errorf("codextest: %v", err)
		}
	})
	dir := filepath.Join(home, ".codex")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatalf("codextest: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(o.toml()), 0o600); err != nil {
		t.Fatalf("codextest: %v", err)
	}
	return Place{
		Home: home,
		Work: t.TempDir(), // outside of the repository, or Codex would read its guides
		Env: []string{
			"HOME=" + home, "PATH=" + os.Getenv("PATH"), keyVariable + "=opens-nothing", "RUST_LOG=warn",
		},
	}
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

func homesDir(t testing.TB) string {
	t.Helper()
	if root, ok := repoRoot(); ok && !temporary(root) {
		return filepath.Join(root, ".cache", "codextest")
	}
	cache, err := os.UserCacheDir()
	if err != nil || temporary(cache) {
		t.Fatalf("codextest: no place for a home: the repository and the cache directory (%s) are temporary (%v)", cache, err)
	}
	return filepath.Join(cache, "turnkeeper", "codextest")
}

// temporary tells whether path lies below a directory for temporary files.
func temporary(path string) bool {
	for _, tmp := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if rel, err := filepath.Rel(tmp, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// repoRoot is the nearest directory upwards that holds go.mod. Tests run in
// their package's directory.
func repoRoot() (string, bool) {
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "", false
}

// BinaryEnv names the executable that [Binary] returns.
const BinaryEnv = "TURNKEEPER_CODEX_BIN"

// Binary is the path of the native Codex executable: what [BinaryEnv] names, or
// the one that `make providers` installs. Without one the test fails; it is
// never skipped, or a build that lost the provider would look healthy.
//
// The npm package's own entry is a script that starts the native executable as
// its child; a test that kills what it started must start the native one.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(BinaryEnv); path != "" {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.Fatalf("codextest: %s=%s is no executable (%v)", BinaryEnv, path, err)
		}
		return path
	}
	root, _ := repoRoot()
	path, ok := nativeBinary(root)
	if !ok {
		t.Fatalf("codextest: Codex is not installed for %s/%s: run `make providers`, or set %s", runtime.GOOS, runtime.GOARCH, BinaryEnv)
	}
	return path
}

// nativeBinary looks into the packages npm chose for this platform.
func nativeBinary(root string) (string, bool) {
	modules := filepath.Join(root, ".cache", "providers", "node_modules", "@openai")
	for _, layout := range []string{"codex*/vendor/*/bin/codex", "codex*/vendor/*/codex/codex"} {
		found, err := filepath.Glob(filepath.Join(modules, filepath.FromSlash(layout)))
		if err == nil && len(found) > 0 {
			return found[0], true
		}
	}
	return "", false
}
