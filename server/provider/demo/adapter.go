package demo

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// Name is the provider's word in the API.
const Name = "demo"

// SpeedVariable is the environment variable that sets the speed where Options do not.
const SpeedVariable = "TURNKEEPER_DEMO_SPEED"

// Options tune the provider.
type Options struct {
	// Speed divides every duration: 10 plays ten times as fast. 0 takes SpeedVariable,
	// else 1.
	Speed float64
	// Scripts are added to the built-in scenarios, and win over those of the same id.
	Scripts []*Script
}

// Adapter is the demo provider.
type Adapter struct {
	speed   float64
	scripts map[string]*Script
}

// New returns the provider with the built-in scenarios.
func New(o Options) *Adapter {
	a := &Adapter{speed: o.Speed, scripts: map[string]*Script{}}
	if a.speed == 0 {
		a.speed, _ = strconv.ParseFloat(os.Getenv(SpeedVariable), 64)
	}
	if a.speed <= 0 {
		a.speed = 1
	}
	for id, s := range builtIn() {
		a.scripts[id] = s
	}
	for _, s := range o.Scripts {
		a.scripts[s.ID] = s
	}
	return a
}

// Name implements provider.Adapter.
func (a *Adapter) Name() string { return Name }

// Probe implements provider.Adapter: the demo is always there.
func (a *Adapter) Probe(context.Context) provider.Info {
	info := provider.Info{
		Name: Name, DisplayName: "Demo", Found: true, Version: "built in",
		Capabilities: capabilities(a.scripts[defaultScenario]),
		Notes: []string{
			"Plays a script: no model is asked, no command is run and no file is read or changed.",
			"Confirms every stop, except in the scenario “One that never answers a stop”.",
		},
		Models: []string{}, PermissionModes: []string{}, Scenarios: []provider.Scenario{},
	}
	for _, id := range shown {
		if s := a.scripts[id]; s != nil {
			info.Scenarios = append(info.Scenarios, provider.Scenario{ID: id, Title: s.Title, Description: s.About})
		}
	}
	return info
}

// CheckChoice implements provider.Chooser. Scenarios for tests are taken though nobody is
// offered them.
func (a *Adapter) CheckChoice(c provider.Choice) error {
	if c.PermissionMode != "" {
		return agent.Errorf(agent.CodeInvalid, "the demo has no permission modes")
	}
	if c.Scenario != "" && a.scripts[c.Scenario] == nil {
		return a.unknown(agent.CodeInvalid, c.Scenario)
	}
	return nil
}

// unknown says which scenarios there are.
func (a *Adapter) unknown(code agent.Code, id string) error {
	var offered []string
	for _, s := range shown {
		if a.scripts[s] != nil {
			offered = append(offered, s)
		}
	}
	return agent.Errorf(code, "the demo has no scenario %q; there are: %s", id, strings.Join(offered, ", "))
}

// Open implements provider.Adapter. An unknown scenario is CodeProviderRefused.
func (a *Adapter) Open(ctx context.Context, p provider.OpenParams, sink provider.Sink) (provider.Runtime, error) {
	if err := ctx.Err(); err != nil {
		return nil, agent.Errorf(agent.CodeTimeout, "the demo was not opened in time: %v", err)
	}
	script := a.scripts[defaultScenario]
	if id := p.Root.Scenario; id != "" {
		if script = a.scripts[id]; script == nil {
			return nil, a.unknown(agent.CodeProviderRefused, id)
		}
	}
	r := newRuntime(a, p, script, sink)
	native := p.Root.ProviderSessionID
	if native == "" {
		native = "demo-" + string(p.Root.ID)
	}
	caps := capabilities(script)
	if _, err := sink.Apply(agent.SessionDescribed{Session: p.Root.ID, ProviderSessionID: native, Capabilities: &caps}); err != nil {
		return nil, err
	}
	return r, nil
}

// capabilities is what a script can really do.
func capabilities(s *Script) agent.Capabilities {
	confirms := !s.IgnoresCancel
	return agent.Capabilities{
		Cancel: true, ChildCancel: true, Guide: true, GuideWhileChildrenRun: true,
		ConfirmsCancel: confirms, ConfirmsChildCancel: confirms, Resume: true,
	}
}
