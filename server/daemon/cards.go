package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// cardLife is how long a provider's card is believed. Looking for a program and asking its
// version takes a process; installing one while a page is open should show soon.
const cardLife = 15 * time.Second

// cards remembers what each provider said of itself.
type cards struct{ each map[string]*card }

type card struct {
	adapter provider.Adapter

	mu   sync.Mutex // held while looking: those who ask at the same time wait for one look
	info provider.Info
	at   time.Time
}

func newCards(table map[string]provider.Adapter) *cards {
	c := &cards{each: map[string]*card{}}
	for name, a := range table {
		c.each[name] = &card{adapter: a}
	}
	return c
}

func (c *card) look(ctx context.Context) provider.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) > cardLife {
		c.info, c.at = c.adapter.Probe(ctx), time.Now()
		if ctx.Err() != nil {
			c.at = time.Time{} // cut short: it says nothing about the program
		}
	}
	return c.info
}

// all returns every card in the order of names, looking at all of them at once.
func (c *cards) all(ctx context.Context) []provider.Info {
	names := slices.Sorted(maps.Keys(c.each))
	infos := make([]provider.Info, len(names))
	var looking sync.WaitGroup
	for i, name := range names {
		looking.Go(func() { infos[i] = c.each[name].look(ctx) })
	}
	looking.Wait()
	return infos
}

// capabilities says what a provider can do, or why a session with it cannot begin.
func (c *cards) capabilities(ctx context.Context, name string) (agent.Capabilities, error) {
	known, ok := c.each[name]
	if !ok {
		return agent.Capabilities{}, agent.Errorf(agent.CodeInvalid, "there is no provider %q", name)
	}
	info := known.look(ctx)
	if !info.Found {
		return agent.Capabilities{}, agent.Errorf(agent.CodeProviderUnavailable, "%s cannot be used: %s", info.DisplayName, info.Reason)
	}
	return info.Capabilities, nil
}

// accept refuses a session that its provider could not open as it was chosen.
func (c *cards) accept(n agent.NewSession) error {
	known, ok := c.each[n.Provider]
	if !ok {
		return nil // capabilities says so
	}
	return checkChoice(known.adapter, provider.Choice{PermissionMode: n.PermissionMode, Scenario: n.Scenario})
}
