package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// layout puts files below a fake root; a trailing "-" makes one that cannot be
// run.
func layout(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		mode := os.FileMode(0o755)
		if f[len(f)-1] == '-' {
			f, mode = f[:len(f)-1], 0o644
		}
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLookPathLayouts(t *testing.T) {
	const nvm = "h/.nvm/versions/node/"
	for _, c := range []struct {
		name  string
		files []string
		env   map[string]string // values starting with / are below the root
		extra []string
		want  string
	}{
		{name: "PATH first", files: []string{"p/tool", "h/.local/bin/tool"}, want: "p/tool"},
		{name: "user bin", files: []string{"h/.local/bin/tool", "usr/local/bin/tool"}, want: "h/.local/bin/tool"},
		{name: "npm prefix", files: []string{"h/.npm-global/bin/tool"}, want: "h/.npm-global/bin/tool"},
		{name: "local", files: []string{"usr/local/bin/tool"}, want: "usr/local/bin/tool"},
		{name: "homebrew", files: []string{"opt/homebrew/bin/tool"}, want: "opt/homebrew/bin/tool"},
		{
			name: "newest nvm by number", files: []string{nvm + "v9.9.0/bin/tool", nvm + "v20.2.0/bin/tool", nvm + "v20.11.1/bin/tool"},
			want: nvm + "v20.11.1/bin/tool",
		},
		{
			name: "newest nvm that has it", files: []string{nvm + "v22.0.0/bin/node", nvm + "v18.0.0/bin/tool", nvm + "system/bin/tool"},
			want: nvm + "v18.0.0/bin/tool",
		},
		{name: "nvm elsewhere", files: []string{"n/versions/node/v1.0.0/bin/tool"}, env: map[string]string{"NVM_DIR": "/n"}, want: "n/versions/node/v1.0.0/bin/tool"},
		{name: "asdf install before shim", files: []string{"h/.asdf/shims/tool", "h/.asdf/installs/nodejs/20.1.0/bin/tool"}, want: "h/.asdf/installs/nodejs/20.1.0/bin/tool"},
		{name: "asdf shim", files: []string{"a/shims/tool"}, env: map[string]string{"ASDF_DATA_DIR": "/a"}, want: "a/shims/tool"},
		{name: "volta", files: []string{"h/.volta/bin/tool"}, want: "h/.volta/bin/tool"},
		{name: "volta elsewhere", files: []string{"v/bin/tool"}, env: map[string]string{"VOLTA_HOME": "/v"}, want: "v/bin/tool"},
		{name: "bun", files: []string{"h/.bun/bin/tool"}, want: "h/.bun/bin/tool"},
		{name: "fnm", files: []string{"h/.local/share/fnm/node-versions/v20.0.0/installation/bin/tool"}, want: "h/.local/share/fnm/node-versions/v20.0.0/installation/bin/tool"},
		{name: "mise", files: []string{"h/.local/share/mise/shims/tool"}, want: "h/.local/share/mise/shims/tool"},
		{name: "extra below home", files: []string{"h/.tool/local/tool"}, extra: []string{"~/.tool/local"}, want: "h/.tool/local/tool"},
		{name: "not executable is passed over", files: []string{"p/tool-", "h/bin/tool"}, want: "h/bin/tool"},
		{name: "a directory is passed over", files: []string{"p/tool/x", "h/bin/tool"}, want: "h/bin/tool"},
		{name: "override wins", files: []string{"p/tool", "o/other"}, env: map[string]string{"TURNKEEPER_TOOL_BIN": "/o/other"}, want: "o/other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := layout(t, c.files...)
			env := map[string]string{"PATH": filepath.Join(root, "p") + ":.:", "HOME": filepath.Join(root, "h")}
			for k, v := range c.env {
				env[k] = filepath.Join(root, v)
			}
			got, err := finder{root: root, env: func(k string) string { return env[k] }}.find("tool", c.extra)
			if err != nil || got != filepath.Join(root, c.want) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestLookPathFailures(t *testing.T) {
	root := layout(t, "work/tool", "work/plain-")
	t.Chdir(filepath.Join(root, "work"))
	env := map[string]string{"PATH": ".:work", "HOME": "relative"}
	f := finder{root: root, env: func(k string) string { return env[k] }}

	_, err := f.find("tool", []string{"~/x"})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("error %v", err)
	}
	if missing.Override != "TURNKEEPER_TOOL_BIN" || !slices.Contains(missing.Searched, filepath.Join(root, "usr/local/bin")) {
		t.Errorf("explanation %+v", missing)
	}
	if got, err := f.find("./tool", nil); err != nil || !filepath.IsAbs(got) {
		t.Errorf("with a slash: %s, %v", got, err)
	}
	if _, err := f.find("./plain", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("not executable: %v", err)
	}
	env["TURNKEEPER_TOOL_BIN"] = filepath.Join(root, "gone")
	if _, err := f.find("tool", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("override to nothing: %v", err)
	}
	if _, err := LookPath("sh", os.Getenv); err != nil {
		t.Errorf("real system: %v", err)
	}
	if n := OverrideEnv("my-tool.x"); n != "TURNKEEPER_MY_TOOL_X_BIN" {
		t.Errorf("override variable %s", n)
	}
}

func TestPathWith(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "/n/bin"},
		{"/usr/bin", "/n/bin:/usr/bin"},
		{"/usr/bin:/n/bin", "/usr/bin:/n/bin"},
	} {
		if got := PathWith("/n/bin/tool", c.path); got != c.want {
			t.Errorf("PathWith(%q) = %q", c.path, got)
		}
	}
}
