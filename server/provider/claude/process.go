package claude

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

const (
	// versionBound is how long `claude --version` may take.
	versionBound = 10 * time.Second
	// stdinGrace is how long an idle binary has to end by itself once its input is closed;
	// it takes a fifth of that. One that still has something running would wait for it, a
	// detached shell for ever, so the signal comes soon.
	stdinGrace = time.Second
	// termGrace is how long it has after SIGTERM to write its transcript and end its shells.
	termGrace = 5 * time.Second
)

// Find is the Claude Code executable: the one that TURNKEEPER_CLAUDE_BIN names, else the
// first in PATH and the usual places.
func Find(env Getenv) (string, error) {
	return proc.LookPath("claude", env, "~/.claude/local", "~/.claude/bin")
}

// path is the executable to run.
func (a *Adapter) path() (string, *agent.Error) {
	if a.o.Binary != "" {
		return a.o.Binary, nil
	}
	path, err := Find(a.o.Getenv)
	if err != nil {
		return "", missing(err)
	}
	return path, nil
}

// missing says what helps where no executable was found, or why the one named cannot be run.
func missing(err error) *agent.Error {
	if nowhere := (*proc.NotFoundError)(nil); !errors.As(err, &nowhere) {
		return agent.Errorf(agent.CodeProviderUnavailable, "Claude Code cannot be run: %s", strings.TrimPrefix(err.Error(), "proc: "))
	}
	return agent.Errorf(agent.CodeProviderUnavailable,
		"Claude Code was not found: install it with npm install -g @anthropic-ai/claude-code, or set %s to its path", proc.OverrideEnv("claude"))
}

// tooOld is nil for a version that speaks what this adapter relies on.
func tooOld(version string) *agent.Error {
	if !proc.OlderThan(version, minVersion) {
		return nil
	}
	return agent.Errorf(agent.CodeProviderUnavailable,
		"Claude Code %s is too old, %s or newer is needed: npm install -g @anthropic-ai/claude-code, or claude update", version, minVersion)
}

// needed are the capabilities without which a stop or a message cannot be followed.
var needed = []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"}

// lacking says which needed capabilities the binary does not have, by its own list in the
// first line of a turn; nil if none.
func lacking(capabilities []string) *agent.Error {
	has := map[string]bool{}
	for _, c := range capabilities {
		has[c] = true
	}
	var out []string
	for _, c := range needed {
		if !has[c] {
			out = append(out, c)
		}
	}
	if out == nil {
		return nil
	}
	return agent.Errorf(agent.CodeProviderUnavailable, "this Claude Code lacks %s: a stop or a message may not be confirmed", strings.Join(out, ", "))
}

// locate finds the executable and its version.
func (a *Adapter) locate(ctx context.Context) (path, version string, fault *agent.Error) {
	path, fault = a.path()
	if fault != nil {
		return "", "", fault
	}
	ctx, stop := context.WithTimeout(ctx, versionBound)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = a.environ(nil)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return path, "", agent.Errorf(agent.CodeProviderUnavailable, "%s cannot be run: %v", path, err)
	}
	if words := strings.Fields(string(out)); len(words) > 0 { // 2.1.332 (Claude Code)
		version = words[0]
	}
	return path, version, tooOld(version)
}

// Probe implements provider.Adapter.
func (a *Adapter) Probe(ctx context.Context) provider.Info {
	info := provider.Info{
		Name: a.Name(), DisplayName: "Claude Code", Capabilities: capabilities(),
		Models:          []string{"default", "opus", "fable", "sonnet", "haiku"},
		PermissionModes: permissionModes(),
		Scenarios:       []provider.Scenario{},
		Notes: []string{
			"A stop of the main agent stops every agent below it; each is confirmed by its own notice.",
			"When only a child is stopped, the main agent is told and answers it; agents that the child has started go on unless they are stopped, too.",
			"Commands that an agent leaves running are listed as processes; they hold nothing open, but the main agent begins a turn by itself when one ends.",
			"A message that is sent while a tool or a child runs is taken at the next step of the agent; one that a stop overtakes is marked as not delivered.",
			"Approvals come from every agent. Questions with choices come from the main agent only, and a form of an MCP server does not say which agent asks.",
			"The text of a child comes in whole blocks, that of the main agent as it is written.",
		},
	}
	path, version, fault := a.locate(ctx)
	info.Path, info.Version = path, version
	if fault != nil {
		info.Reason = fault.Message
		return info
	}
	info.Found = true
	return info
}

// connect starts the binary. When it ends, however it does, its shells are ended with it:
// each is a process group and a session of its own, found by the mark that it inherits.
func (a *Adapter) connect(_ context.Context, p provider.OpenParams) (Transport, error) {
	args, err := launchArgs(p, a.o)
	if err != nil {
		return nil, err
	}
	path, fault := a.path()
	if fault != nil {
		return nil, fault
	}
	process, err := proc.Start(proc.Config{
		Path: path, Args: args, Dir: p.Root.Cwd, Env: a.environ(p.Env), Owner: a.o.Owner,
		StdinGrace: cmp.Or(a.o.Grace, stdinGrace), TermGrace: termGrace,
	})
	if err != nil {
		return nil, agent.Errorf(agent.CodeProviderUnavailable, "Claude Code could not be started: %v", err)
	}
	return proc.Link{Process: process}, nil
}
