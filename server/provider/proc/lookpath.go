package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// NotFoundError tells where a tool was looked for, in order, so that a person
// can be told what to do.
type NotFoundError struct {
	Name     string
	Override string   // the variable that would name the tool directly
	Searched []string // directories
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("proc: %s not found in PATH or %d usual places; set %s to its path",
		e.Name, len(e.Searched), e.Override)
}

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *NotFoundError) Unwrap() error { return fs.ErrNotExist }

// OverrideEnv is the variable that names a tool's executable and outranks every
// search: TURNKEEPER_<NAME>_BIN, the name in capitals, "-" and "." as "_".
func OverrideEnv(name string) string {
	return "TURNKEEPER_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)) + "_BIN"
}

// LookPath finds an installed command line tool. A service manager's PATH lacks
// the user's own directories, so after PATH it tries the usual places of
// package managers and version managers below the home directory, then those of
// the system, then extra (directories; "~/" is the home directory). The
// variable [OverrideEnv] outranks all; a name with a slash is only checked.
//
// env is asked for HOME, PATH and the managers' own variables. The result is an
// absolute path. Errors: [*NotFoundError], or why the named file cannot be run.
func LookPath(name string, env func(string) string, extra ...string) (string, error) {
	return finder{root: "/", env: env}.find(name, extra)
}

// PathWith is the value of PATH that also holds the directory of binary: a
// script in a version manager's directory needs the interpreter beside it.
func PathWith(binary, path string) string {
	dir := filepath.Dir(binary)
	if path == "" {
		return dir
	}
	if slices.Contains(filepath.SplitList(path), dir) {
		return path
	}
	return dir + string(filepath.ListSeparator) + path
}

// finder has the root of the file system as a field for the sake of tests.
type finder struct {
	root string
	env  func(string) string
}

func (f finder) find(name string, extra []string) (string, error) {
	if path := f.env(OverrideEnv(name)); path != "" {
		if err := executable(path); err != nil {
			return "", fmt.Errorf("proc: %s: %w", OverrideEnv(name), err)
		}
		return filepath.Abs(path)
	}
	if strings.ContainsRune(name, filepath.Separator) {
		if err := executable(name); err != nil {
			return "", fmt.Errorf("proc: %w", err)
		}
		return filepath.Abs(name)
	}
	dirs := f.dirs(extra)
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", &NotFoundError{Name: name, Override: OverrideEnv(name), Searched: dirs}
}

// executable reports why path cannot be run.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "run", Path: path, Err: errors.New("is a directory")}
	case info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "run", Path: path, Err: fs.ErrPermission}
	}
	return nil
}

// dirs is the search order, without repetition and without relative entries: a
// "." in PATH must not let a workspace supply the tool.
func (f finder) dirs(extra []string) []string {
	dirs := filepath.SplitList(f.env("PATH"))
	home := f.env("HOME")
	if filepath.IsAbs(home) {
		dirs = append(dirs, f.userDirs(home)...)
	}
	for _, dir := range []string{
		"usr/local/bin", "opt/homebrew/bin", "home/linuxbrew/.linuxbrew/bin", "opt/local/bin",
		"snap/bin", "usr/bin", "bin",
	} {
		dirs = append(dirs, filepath.Join(f.root, dir))
	}
	for _, dir := range extra {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = ""
			if filepath.IsAbs(home) {
				dir = filepath.Join(home, rest)
			}
		}
		dirs = append(dirs, dir)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		drop := !filepath.IsAbs(dir) || seen[dir]
		seen[dir] = true
		return drop
	})
}

// userDirs are the places below home. A manager's variable, where set, replaces
// its default place. Shims come after real directories: they need more set up.
func (f finder) userDirs(home string) []string {
	at := func(variable, fallback string) string {
		return cmp.Or(f.env(variable), filepath.Join(home, fallback))
	}
	dirs := []string{
		filepath.Join(home, ".local/bin"),
		filepath.Join(home, "bin"),
		filepath.Join(home, ".npm-global/bin"),
		filepath.Join(home, ".npm-packages/bin"),
		filepath.Join(at("BUN_INSTALL", ".bun"), "bin"),
		filepath.Join(at("VOLTA_HOME", ".volta"), "bin"),
		at("PNPM_HOME", ".local/share/pnpm"),
		filepath.Join(home, "Library/pnpm"),
		filepath.Join(home, ".yarn/bin"),
		filepath.Join(home, ".config/yarn/global/node_modules/.bin"),
		filepath.Join(at("CARGO_HOME", ".cargo"), "bin"),
		filepath.Join(at("DENO_INSTALL", ".deno"), "bin"),
		filepath.Join(home, ".nix-profile/bin"),
	}
	data := at("ASDF_DATA_DIR", ".asdf")
	for _, tree := range []struct{ versions, bin string }{
		{filepath.Join(at("NVM_DIR", ".nvm"), "versions/node"), "bin"},
		{filepath.Join(at("FNM_DIR", ".local/share/fnm"), "node-versions"), "installation/bin"},
		{filepath.Join(data, "installs/nodejs"), "bin"},
		{filepath.Join(at("MISE_DATA_DIR", ".local/share/mise"), "installs/node"), "bin"},
	} {
		dirs = append(dirs, newestFirst(tree.versions, tree.bin)...)
	}
	return append(dirs,
		filepath.Join(data, "shims"),
		filepath.Join(at("MISE_DATA_DIR", ".local/share/mise"), "shims"),
		filepath.Join(home, ".nodenv/shims"),
	)
}

// newestFirst lists bin below each version directory, newest version first.
func newestFirst(parent, bin string) []string {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil // not installed
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int {
		return slices.Compare(version(b.Name()), version(a.Name()))
	})
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(parent, e.Name(), bin))
	}
	return dirs
}

// version reads the leading numbers of "v20.11.1"; names that are no version
// sort as the oldest.
func version(name string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
