package acp

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

const (
	// stdinGrace is how long an agent has to end by itself once its input is closed: some
	// take two seconds.
	stdinGrace = 4 * time.Second
	// termGrace is how long it has after SIGTERM.
	termGrace = 3 * time.Second
)

// path is the executable to run.
func (a *Adapter) path() (string, *agent.Error) {
	path, err := proc.LookPath(a.o.Command, a.o.Getenv)
	if err == nil {
		return path, nil
	}
	if nowhere := (*proc.NotFoundError)(nil); !errors.As(err, &nowhere) {
		return "", agent.Errorf(agent.CodeProviderUnavailable, "%s cannot be run: %s", a.o.Title, strings.TrimPrefix(err.Error(), "proc: "))
	}
	why := a.o.Title + " was not found"
	if a.o.Install != "" {
		why += ": install it with " + a.o.Install + ", or set " + proc.OverrideEnv(a.o.Command) + " to its path"
	} else {
		why += ": " + a.o.Command + " is not in PATH"
	}
	return "", agent.Errorf(agent.CodeProviderUnavailable, "%s", why)
}

// commonNotes hold for every agent.
var commonNotes = []string{
	"Agents below the main one are shown where the program announces them, as the protocol's subagents; otherwise their work is shown as tool calls.",
	"One of them can be stopped alone while the program grants that; each says so by itself.",
	"A stop is confirmed by the end that the program reports. One that is never reported shows as interrupted.",
}

// Probe implements provider.Adapter.
func (a *Adapter) Probe(context.Context) provider.Info {
	info := provider.Info{
		Name: a.o.Name, DisplayName: a.o.Title,
		Capabilities: agent.Capabilities{Cancel: true, ConfirmsCancel: true, GuideWhileChildrenRun: true, Resume: true},
		Notes:        slices.Concat(commonNotes, a.o.Notes), Models: []string{}, PermissionModes: []string{}, Scenarios: []provider.Scenario{},
	}
	a.mu.Lock()
	seen := a.seen
	a.mu.Unlock()
	info.Version = seen.version
	info.Models = append(info.Models, seen.models...)
	if info.PermissionModes = append(info.PermissionModes, seen.modes...); seen.modes == nil {
		info.PermissionModes = append(info.PermissionModes, a.o.Modes...)
	}
	path, fault := a.path()
	if fault != nil {
		info.Reason = fault.Message
		return info
	}
	info.Found, info.Path = true, path
	return info
}

// connect starts the agent. When it ends, however it does, what it has started is ended
// with it.
func (a *Adapter) connect(_ context.Context, p provider.OpenParams) (Transport, error) {
	path, fault := a.path()
	if fault != nil {
		return nil, fault
	}
	process, err := proc.Start(proc.Config{
		Path: path, Args: a.o.Args, Dir: p.Root.Cwd, Env: a.environ(path, p.Env), Owner: a.o.Owner,
		StdinGrace: cmp.Or(a.o.Grace, stdinGrace), TermGrace: termGrace,
	})
	if err != nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "%s could not be started: %v", a.o.Title, err)
	}
	return proc.Link{Process: process}, nil
}

// environ is the environment of the agent: what it may inherit and its own variables. A
// script needs the interpreter that lies beside it.
func (a *Adapter) environ(binary string, allowed []string) []string {
	path := ""
	env := slices.DeleteFunc(slices.Clone(allowed), func(kv string) bool {
		value, is := strings.CutPrefix(kv, "PATH=")
		if is {
			path = value
		}
		return is
	})
	env = append(env, "PATH="+proc.PathWith(filepath.Clean(binary), cmp.Or(path, a.o.Getenv("PATH"))))
	return append(env, a.o.Env...)
}
