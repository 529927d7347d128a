package modeltest

import (
	"os"
	"path/filepath"
	"testing"
)

// Place is where a real program lives.
type Place struct {
	Home string
	Work string // an empty working directory
	// Env is the whole environment of the program. Nothing else of the user's gets through.
	Env []string
}

// NewPlace makes a fresh home directory for one program, removed at the end of the
// test, and a working directory outside of the repository, so that no guide of the
// repository is read. Stop the program before: register its stop after this call.
//
// Some programs refuse a home below the system's temporary directory, so it lies in the
// repository's ignored .cache directory, or in the user's cache directory when the
// repository itself is temporary.
func NewPlace(t testing.TB, kind string) Place {
	t.Helper()
	base := homesDir(t, kind)
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatalf("modeltest: %v", err)
	}
	home, err := os.MkdirTemp(base, "home-") //nolint:usetesting // not in the temporary directory
	if err != nil {
		t.Fatalf("modeltest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Errorf("modeltest: %v", err)
		}
	})
	return Place{Home: home, Work: t.TempDir(), Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
}

func homesDir(t testing.TB, kind string) string {
	t.Helper()
	if root, ok := repoRoot(); ok && !temporary(root) {
		return filepath.Join(root, ".cache", kind)
	}
	cache, err := os.UserCacheDir()
	if err != nil || temporary(cache) {
		t.Fatalf("modeltest: no place for a home: the repository and the cache directory (%s) are temporary (%v)", cache, err)
	}
	return filepath.Join(cache, "turnkeeper", kind)
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

// FindBinary is the path of a real program: what the variable names, or the first that
// matches one of the patterns below the directory into which `make providers` installs.
// Without one the test fails; it is never skipped, or a build that lost the provider
// would look healthy.
func FindBinary(t testing.TB, variable string, patterns ...string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.Fatalf("modeltest: %s=%s is no executable (%v)", variable, path, err)
		}
		return path
	}
	root, _ := repoRoot()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, ".cache", "providers", "node_modules", filepath.FromSlash(pattern)))
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("modeltest: no %s: run `make providers`, or set %s", patterns[0], variable)
	return ""
}
