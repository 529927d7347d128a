package acpagent

import (
	"cmp"
	"context"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// modeUnset is the mode of a session that chose none: whatever the provider's own
// configuration says.
const modeUnset = "default"

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

// answerWith is the answer to whatever gives a session: version 1 is told its mode. It was
// chosen with the session, and stays.
func (c *conn) answerWith(ctx context.Context, id string, a agent.Session) acp.SessionResponse {
	out := acp.SessionResponse{SessionID: id}
	if c.version() != acp.V1 {
		return out
	}
	all, err := c.api.providers(ctx)
	if err != nil {
		c.log.Info("the modes are not known", "error", err)
		return out
	}
	i := slices.IndexFunc(all, func(p found) bool { return p.Name == a.Provider })
	if i < 0 || len(all[i].PermissionModes) == 0 {
		return out
	}
	current := cmp.Or(a.PermissionMode, modeUnset)
	modes := &acp.ModeState{CurrentModeID: current}
	names := all[i].PermissionModes
	if !slices.Contains(names, current) {
		names = append([]string{current}, names...)
	}
	for _, m := range names {
		modes.AvailableModes = append(modes.AvailableModes, acp.Mode{ID: m, Name: m})
	}
	out.Modes = modes
	return out
}

// setMode takes the mode that the session has. Another one is another session's: what an
// agent may do without asking is fixed when it begins.
func (c *conn) setMode(r *request, f wire.Frame) {
	p, err := decode[acp.SetModeRequest](f)
	c.named(r, f, func(ctx context.Context, ws, id string, _ *session) (any, error) {
		if err != nil {
			return nil, err
		}
		d, err := c.api.detail(ctx, ws, id)
		if err != nil {
			return nil, err
		}
		if p.ModeID != cmp.Or(d.Session.PermissionMode, modeUnset) {
			return nil, errParams("a session keeps the mode it began with; begin one with --permission-mode %s", p.ModeID)
		}
		return acp.Empty{}, nil
	})
}

// setOption refuses: a session offers none.
func (c *conn) setOption(r *request, f wire.Frame) {
	p, err := decode[acp.SetConfigOptionRequest](f)
	c.named(r, f, func(context.Context, string, string, *session) (any, error) {
		if err != nil {
			return nil, err
		}
		return nil, errParams("there is no option %q", p.ConfigID)
	})
}
