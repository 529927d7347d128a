package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// unset is the choice of a session that chose nothing: whatever the provider's own
// configuration says.
const unset = "default"

// Ids of what can be chosen of a session, until its first turn.
const (
	optionMode  = "mode"
	optionModel = "model"
)

// firstProvider is the first provider that was found, and only then the built-in one that
// plays scenarios.
func (c *conn) firstProvider(ctx context.Context) (string, error) {
	all, err := c.api.providers(ctx)
	if err != nil {
		return "", err
	}
	built := ""
	for _, p := range all {
		switch {
		case !p.Found:
		case len(p.Scenarios) > 0:
			built = p.Name
		default:
			return p.Name, nil
		}
	}
	if built == "" {
		return "", agent.Errorf(agent.CodeProviderUnavailable, "no agent program was found; see: turnkeeper doctor")
	}
	return built, nil
}

// offer is what a session's provider lets people choose.
type offer struct{ modes, models []string }

func (c *conn) offer(ctx context.Context, a agent.Session) offer {
	all, err := c.api.providers(ctx)
	if err != nil {
		c.log.Info("the choices are not known", "error", err)
	}
	for _, p := range all {
		if p.Name == a.Provider {
			return offer{withChosen(p.PermissionModes, a.PermissionMode), withChosen(p.Models, a.Model)}
		}
	}
	return offer{}
}

// withChosen is a list that has what is chosen in it, and nothing where there is no choice.
func withChosen(all []string, chosen string) []string {
	chosen = cmp.Or(chosen, unset)
	if len(all) == 0 || slices.Contains(all, chosen) {
		return all
	}
	return append([]string{chosen}, all...)
}

// answerWith is the answer to whatever gives a session, with what can be chosen of it.
func (c *conn) answerWith(ctx context.Context, id string, a agent.Session) acp.SessionResponse {
	o := c.offer(ctx, a)
	out := acp.SessionResponse{SessionID: id, ConfigOptions: c.options(o, a)}
	if c.version() == acp.V1 && len(o.modes) > 0 {
		out.Modes = &acp.ModeState{CurrentModeID: cmp.Or(a.PermissionMode, unset)}
		for _, m := range o.modes {
			out.Modes.AvailableModes = append(out.Modes.AvailableModes, acp.Mode{ID: m, Name: m})
		}
	}
	return out
}

// options are the same choices as options of the session.
func (c *conn) options(o offer, a agent.Session) []acp.ConfigOption {
	out := []acp.ConfigOption{}
	for _, one := range []struct {
		id, name, current string
		all               []string
	}{{optionMode, "Mode", a.PermissionMode, o.modes}, {optionModel, "Model", a.Model, o.models}} {
		if len(one.all) == 0 {
			continue
		}
		current, err := json.Marshal(cmp.Or(one.current, unset))
		if err != nil {
			continue
		}
		option := acp.ConfigOption{
			ID: one.id, Name: one.name, Category: one.id, Type: "select", CurrentValue: current,
			Description: "Chosen before the first prompt; a session keeps it",
		}
		if c.version() == acp.V2 {
			option.ID, option.ConfigID = "", one.id
		}
		for _, v := range one.all {
			option.Options = append(option.Options, acp.ConfigChoice{Value: v, Name: v})
		}
		out = append(out, option)
	}
	return out
}

// setMode chooses what a session of version 1 may do without asking.
func (c *conn) setMode(r *request, f wire.Frame) {
	p, err := decode[acp.SetModeRequest](f)
	c.named(r, f, func(ctx context.Context, ws, id string, _ *session) (any, error) {
		if err != nil {
			return nil, err
		}
		if _, err := c.choose(ctx, ws, id, optionMode, p.ModeID); err != nil {
			return nil, err
		}
		return acp.Empty{}, nil
	})
}

func (c *conn) setOption(r *request, f wire.Frame) {
	p, err := decode[acp.SetConfigOptionRequest](f)
	c.named(r, f, func(ctx context.Context, ws, id string, _ *session) (any, error) {
		if err != nil {
			return nil, err
		}
		value, ok := p.Value.(string)
		if !ok {
			return nil, errParams("option %q takes the id of a choice", p.ConfigID)
		}
		a, err := c.choose(ctx, ws, id, p.ConfigID, value)
		if err != nil {
			return nil, err
		}
		return acp.SetConfigOptionResponse{ConfigOptions: c.options(c.offer(ctx, a), a)}, nil
	})
}

// choose changes one choice, among those offered. The daemon takes it until the first turn.
func (c *conn) choose(ctx context.Context, ws, id, option, value string) (agent.Session, error) {
	d, err := c.api.detail(ctx, ws, id)
	if err != nil {
		return agent.Session{}, err
	}
	o := c.offer(ctx, d.Session)
	var patch goclient.AgentSessionPatch
	among := o.modes
	chosen := value
	if value == unset && !slices.Contains(among, unset) {
		chosen = ""
	}
	switch option {
	case optionMode:
		patch.PermissionMode = &chosen
	case optionModel:
		among, patch.Model = o.models, &chosen
	default:
		return agent.Session{}, errParams("there is no option %q", option)
	}
	if !slices.Contains(among, value) {
		return agent.Session{}, errParams("%q is not one of the choices of %s", value, option)
	}
	if value == unset && current(d.Session, option) == "" {
		return d.Session, nil // it has chosen nothing yet
	}
	return c.api.patch(ctx, ws, id, patch)
}

func current(a agent.Session, option string) string {
	if option == optionModel {
		return a.Model
	}
	return a.PermissionMode
}

// rechosen tells that somebody has chosen elsewhere.
func (v *view) rechosen(s *session, a agent.Session) {
	if s.c.version() == acp.V1 {
		s.c.say(s.id, acp.UpdateMode, &acp.ModeUpdate{CurrentModeID: cmp.Or(a.PermissionMode, unset)})
	}
	if options := s.c.options(s.c.offer(s.c.ctx, a), a); len(options) > 0 {
		s.c.say(s.id, acp.UpdateConfig, &acp.ConfigUpdate{ConfigOptions: options})
	}
}
