package codex

import (
	"encoding/json"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// permissionParams asks for more than the sandbox allows, for a turn or a session.
type permissionParams struct {
	Cwd         string          `json:"cwd"`
	Reason      string          `json:"reason"`
	ItemID      string          `json:"itemId"`
	Permissions json.RawMessage `json:"permissions"` // granted as it was asked for, or not at all
}

type permissionProfile struct {
	FileSystem struct {
		Entries []struct {
			Access string          `json:"access"` // read, write, deny
			Path   json.RawMessage `json:"path"`
		} `json:"entries"`
		Read  []string `json:"read"`
		Write []string `json:"write"`
	} `json:"fileSystem"`
	Network struct {
		Enabled bool `json:"enabled"`
	} `json:"network"`
}

type permissionAnswer struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope"`
}

const (
	grantTurn    = "turn"
	grantSession = "session"
	grantNothing = "decline"
)

// askPermission describes a request for permissions and how its answer is written.
func (q *question) askPermission(i *agent.Interaction, params json.RawMessage) error {
	var p permissionParams
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	var profile permissionProfile
	if err := json.Unmarshal(p.Permissions, &profile); err != nil {
		return err
	}
	i.Title = "Allow more than the sandbox does"
	i.Detail.Cwd, i.Detail.Text = p.Cwd, profile.text()
	i.Options = []agent.Option{
		{ID: grantTurn, Label: "Allow for this turn", Role: agent.RoleAllow},
		{ID: grantSession, Label: "Allow for this session", Role: agent.RoleAllowAlways},
		{ID: grantNothing, Label: "Decline", Role: agent.RoleDeny, Description: "The agent goes on without it"},
	}
	q.answer = func(a agent.Response) (any, error) {
		id := a.OptionID
		if id == "" {
			id = map[string]string{"accept": grantTurn, "decline": grantNothing, "cancel": grantNothing}[a.Action]
		}
		switch id {
		case grantTurn, grantSession:
			return permissionAnswer{p.Permissions, id}, nil
		case grantNothing:
			return permissionAnswer{json.RawMessage(`{}`), grantTurn}, nil
		}
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", id)
	}
	return nil
}

// text lists what is asked for, a line each.
func (p permissionProfile) text() string {
	var lines []string
	if p.Network.Enabled {
		lines = append(lines, "- use the network")
	}
	for _, path := range p.FileSystem.Read {
		lines = append(lines, "- read "+path)
	}
	for _, path := range p.FileSystem.Write {
		lines = append(lines, "- write "+path)
	}
	for _, e := range p.FileSystem.Entries {
		lines = append(lines, "- "+e.Access+" "+permissionPath(e.Path))
	}
	if len(lines) == 0 {
		return "It does not say what for."
	}
	return strings.Join(lines, "\n")
}

// permissionPath names a path, a pattern or a special place.
func permissionPath(raw json.RawMessage) string {
	var p struct {
		Path    string `json:"path"`
		Pattern string `json:"pattern"`
		Value   struct {
			Kind string `json:"kind"`
			Path string `json:"path"`
		} `json:"value"`
	}
	_ = json.Unmarshal(raw, &p) // what has another shape is shown as it is
	for _, s := range []string{p.Path, p.Pattern, p.Value.Path} {
		if s != "" {
			return s
		}
	}
	if p.Value.Kind != "" {
		return "anything in: " + strings.ReplaceAll(p.Value.Kind, "_", " ")
	}
	return show.Bounded(show.JSON(raw), show.TitleLength)
}
