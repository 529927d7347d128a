package codex

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// versionBound is how long `codex --version` may take.
const versionBound = 10 * time.Second

// Find is the native Codex executable: the one that TURNKEEPER_CODEX_BIN names, else
// the first in PATH and the usual places. The npm package puts a script there that
// starts the native program as its child; killing the script would leave the program
// running, so the program itself is taken.
func Find(env Getenv) (string, error) {
	path, err := proc.LookPath("codex", env)
	if err != nil {
		return "", err
	}
	return resolve(path), nil
}

// resolve is the program itself where path is the package's script.
func resolve(path string) string {
	if native := nativeOf(path); native != "" {
		return native
	}
	return path
}

// nativeOf is the program behind the npm package's script, "" if path is no such script
// or its package is not whole.
func nativeOf(path string) string {
	if path == "" {
		return ""
	}
	script, err := filepath.EvalSymlinks(path)
	if err != nil || filepath.Ext(script) != ".js" {
		return ""
	}
	home := filepath.Dir(filepath.Dir(script)) // …/@openai/codex
	for _, pattern := range []string{
		filepath.Join(filepath.Dir(home), "codex-*", "vendor", "*", "bin", "codex"),
		filepath.Join(home, "node_modules", "@openai", "codex-*", "vendor", "*", "bin", "codex"),
		filepath.Join(home, "vendor", "*", "bin", "codex"),
		filepath.Join(filepath.Dir(home), "codex-*", "vendor", "*", "codex", "codex"),
		filepath.Join(home, "vendor", "*", "codex", "codex"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return f
			}
		}
	}
	return ""
}

// missing says what helps where no executable was found, or why the one named cannot be run.
func missing(err error) *agent.Error {
	if nowhere := (*proc.NotFoundError)(nil); !errors.As(err, &nowhere) {
		return agent.Errorf(agent.CodeProviderUnavailable, "Codex cannot be run: %s", strings.TrimPrefix(err.Error(), "proc: "))
	}
	return agent.Errorf(agent.CodeProviderUnavailable,
		"Codex was not found: install it with npm install -g @openai/codex, or set %s to its path", proc.OverrideEnv("codex"))
}

// locate finds the executable and its version.
func (a *Adapter) locate(ctx context.Context) (path, version string, fault *agent.Error) {
	path = resolve(a.o.Binary)
	if path == "" {
		found, err := Find(a.o.Getenv)
		if err != nil {
			return "", "", missing(err)
		}
		path = found
	}
	ctx, stop := context.WithTimeout(ctx, versionBound)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = a.environ(nil)
	out, err := cmd.Output()
	if err != nil {
		return path, "", agent.Errorf(agent.CodeProviderUnavailable, "%s cannot be run: %v", path, err)
	}
	words := strings.Fields(string(out)) // codex-cli 0.171.0
	if len(words) > 0 {
		version = words[len(words)-1]
	}
	if proc.OlderThan(version, minVersion) {
		return path, version, agent.Errorf(agent.CodeProviderUnavailable,
			"Codex %s is too old, %s or newer is needed: npm install -g @openai/codex", version, minVersion)
	}
	return path, version, nil
}

// environ is what the process may see: what the daemon allows. Where nobody says, it is
// what any tool may see, and Codex's own places.
func (a *Adapter) environ(allowed []string) []string {
	if allowed != nil {
		return allowed
	}
	return proc.Environ(append(proc.BaseAllow(), "CODEX_*", "OPENAI_*"), os.Environ(), nil)
}

// connect starts the app-server.
func (a *Adapter) connect(_ context.Context, p provider.OpenParams) (Transport, error) {
	path := resolve(a.o.Binary)
	if path == "" {
		found, err := Find(a.o.Getenv)
		if err != nil {
			return nil, missing(err)
		}
		path = found
	}
	process, err := proc.Start(proc.Config{
		Path: path, Args: append([]string{"app-server"}, a.o.Args...), Dir: p.Root.Cwd,
		Env: a.environ(p.Env), Owner: a.o.Owner, StdinGrace: a.o.Grace,
	})
	if err != nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "Codex could not be started: %v", err)
	}
	return proc.Link{Process: process}, nil
}
