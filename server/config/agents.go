package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// agentTable is [providers.acp.NAME] in the file.
type agentTable struct {
	Title   string            `toml:"title"`
	Command []string          `toml:"command"`
	Env     []string          `toml:"env"`
	Set     map[string]string `toml:"set"`
	Mode    string            `toml:"mode"`
	Version int               `toml:"version"`
}

// agentName is what a person can call an agent: it is a word in the API and in addresses.
var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// reserved are names that something else has.
var reserved = []string{"acp", "claude", "codex", "demo"}

// agentPrograms reads the tables, in the order of their names.
func agentPrograms(tables map[string]agentTable) ([]AgentProgram, error) {
	var out []AgentProgram
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t := tables[name]
		key := "providers.acp." + name
		switch {
		case !agentName.MatchString(name):
			return nil, fmt.Errorf("%s: a name is small letters, digits, dots and dashes", key)
		case slices.Contains(reserved, name):
			return nil, fmt.Errorf("%s: that name is taken", key)
		case t.Version < 0 || t.Version > 2:
			return nil, fmt.Errorf("%s.version: %d is not 1 or 2", key, t.Version)
		case len(t.Command) > 0 && t.Command[0] == "":
			return nil, fmt.Errorf("%s.command: the first word is the program", key)
		}
		p := AgentProgram{Name: name, Title: t.Title, Command: t.Command, Env: t.Env, Mode: t.Mode, Version: t.Version}
		for _, k := range slices.Sorted(maps.Keys(t.Set)) {
			p.Set = append(p.Set, k+"="+t.Set[k])
		}
		out = append(out, p)
	}
	return out, nil
}
