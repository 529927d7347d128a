package daemon

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/claude"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// adapters is the one table from provider names to constructors. owner marks every process
// that is started, so that the next run finds what this one left behind.
func adapters(c *config.Config, owner string, log *slog.Logger) map[string]provider.Adapter {
	codexEnv := inherited(c.ProviderEnv, c.Codex.Env)
	all := []provider.Adapter{
		demo.New(demo.Options{}),
		withEnv{
			codex.New(codex.Options{Binary: c.Codex.Bin, Owner: owner, Logger: log, Env: codexEnv}),
			codexEnv,
		},
		withEnv{
			claude.New(claude.Options{
				Binary: c.Claude.Bin, Owner: owner, Logger: log, Continuation: c.Claude.Continuation,
				PermissionMode: c.Claude.PermissionMode, SettingSources: c.Claude.Settings,
			}),
			inherited(c.ProviderEnv, c.Claude.Env),
		},
	}
	table := map[string]provider.Adapter{}
	for _, a := range append(all, agentAdapters(c, owner, log)...) {
		table[a.Name()] = a
	}
	return table
}

// readyMade are the agents that need no setting.
func readyMade(getenv func(string) string) []acp.Agent { return acp.Found(getenv) }

// agentOf is what a person has set of an agent: all of it, or a part of a ready-made one.
func agentOf(p config.AgentProgram) acp.Agent {
	a := acp.Agent{Name: p.Name, Title: p.Title, Env: p.Set, Inherits: p.Env, Mode: p.Mode, Version: p.Version}
	if len(p.Command) > 0 {
		a.Command, a.Args = p.Command[0], p.Command[1:]
	}
	if known, ok := acp.Known(p.Name); ok {
		return known.With(a)
	}
	return a
}

// agentAdapters are the adapters of the agents that programs has found.
func agentAdapters(c *config.Config, owner string, log *slog.Logger) []provider.Adapter {
	var out []provider.Adapter
	for _, p := range programs(readyMade(os.Getenv), c.Agents) {
		out = append(out, withEnv{acp.New(acp.Options{Agent: p, Owner: owner, Logger: log}), inherited(c.ProviderEnv, p.Inherits)})
	}
	return out
}

// programs are the agents to offer: those that need no setting and are found here, and
// those that a person has set, by the name that both share.
func programs(ready []acp.Agent, set []config.AgentProgram) []acp.Agent {
	out := slices.Clone(ready)
	for _, s := range set {
		own := agentOf(s)
		if at := slices.IndexFunc(out, func(a acp.Agent) bool { return a.Name == s.Name }); at < 0 {
			out = append(out, own)
		} else {
			out[at] = own
		}
	}
	// Nothing can be run of a name alone.
	return slices.DeleteFunc(out, func(a acp.Agent) bool { return a.Command == "" })
}

// withEnv opens every runtime of an adapter with that provider's own variables.
type withEnv struct {
	provider.Adapter
	env []string
}

// Open implements provider.Adapter.
func (a withEnv) Open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
	p.Env = a.env
	return a.Adapter.Open(ctx, p, sink)
}

// CheckChoice implements provider.Chooser for an adapter that does.
func (a withEnv) CheckChoice(c provider.Choice) error { return checkChoice(a.Adapter, c) }

// checkChoice asks an adapter that can say.
func checkChoice(a provider.Adapter, c provider.Choice) error {
	if chooser, ok := a.(provider.Chooser); ok {
		return chooser.CheckChoice(c)
	}
	return nil
}

// inherited is what of our own environment the lists allow.
func inherited(common, own []string) []string {
	return proc.Environ(slices.Concat(common, own), os.Environ(), nil)
}

// Providers looks for every provider from here, without a daemon.
func Providers(ctx context.Context, c *config.Config) []provider.Info {
	return newCards(adapters(c, "", slog.New(slog.DiscardHandler))).all(ctx)
}
