package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// DefaultListen is the address of a daemon that nobody configured.
const DefaultListen = "127.0.0.1:4880"

// Config is everything that was decided before the daemon starts.
type Config struct {
	Home string // TURNKEEPER_HOME or --home, absolute; "" for the XDG directories
	File string // where config.toml is looked for; it need not exist
	Dir  string // everything the daemon writes: database, token, lock, logs

	Listen       string   // host:port; port 0 takes a free one
	AllowedHosts []string // Host header values accepted besides loopback and Listen
	Token        string   // "" means the token file
	URL          string   // clients only: a daemon elsewhere
	Log          string   // debug, info, warn, error

	Synchronous string // full or normal: what a power cut may cost
	KeepEvents  int    // events kept per workspace for clients that catch up

	CancelBound time.Duration // when a stop completes with the evidence there is
	StallAfter  time.Duration // silence that is shown as stalled
	IdleClose   time.Duration // when an idle provider process is closed; 0 never

	ProviderEnv []string // names of variables every provider process may inherit
	Codex       Provider
	Claude      Claude

	// Agents are programs that speak the Agent Client Protocol, by name.
	Agents []AgentProgram

	origins map[string]Origin
}

// AgentProgram is one such program, [providers.acp.NAME]. What is not set is that of the
// ready-made entry of the same name, where there is one.
type AgentProgram struct {
	Name    string
	Title   string   // its name for people
	Command []string // the program and its arguments
	Env     []string // names of variables it may inherit besides ProviderEnv
	Set     []string // KEY=VALUE, for it alone
	Mode    string   // the mode of sessions that name none, by its own name
	Version int      // of the protocol; 0 is its own choice
}

// Provider is what can be set of one provider program.
type Provider struct {
	Bin string   // path of the program; "" to search for it
	Env []string // names of variables it may inherit besides ProviderEnv
}

// Claude is what can be set of Claude Code besides.
type Claude struct {
	Provider
	// Continuation is how long its main agent may take to go on after its last agent has
	// ended.
	Continuation time.Duration
	// PermissionMode is that of sessions which name none; configured leaves it to the user's
	// settings.
	PermissionMode string
	// Settings are the files of settings that a session reads: user, project, local.
	Settings []string
}

// Source is one of the four places a value can come from.
type Source string

const (
	FromDefault Source = "default"
	FromFile    Source = "file"
	FromEnv     Source = "env"
	FromFlag    Source = "flag"
)

// Origin says where a value came from: the place, and the file, variable or flag.
type Origin struct {
	Source Source `json:"source"`
	Name   string `json:"name,omitempty"`
}

func (o Origin) String() string {
	if o.Name == "" {
		return string(o.Source)
	}
	return fmt.Sprintf("%s %s", o.Source, o.Name)
}

// Origin tells where the value of a key came from. Keys are the names of the file,
// with a dot between table and key: "listen", "turns.cancel_bound".
func (c *Config) Origin(key string) Origin {
	if o, ok := c.origins[key]; ok {
		return o
	}
	return Origin{Source: FromDefault}
}

// Setting is one value for people to read. A secret's value is never in it.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
}

// Settings lists every key with its value and origin, in the order of the file.
func (c *Config) Settings() []Setting {
	out := make([]Setting, 0, len(keys))
	for _, k := range keys {
		out = append(out, Setting{Key: k.name, Value: k.show(c), Origin: c.Origin(k.name)})
	}
	for _, a := range c.Agents {
		out = append(out, Setting{Key: "providers.acp." + a.Name, Value: strings.Join(a.Command, " "), Origin: Origin{FromFile, c.File}})
	}
	return out
}

// Database is the path of the SQLite file.
func (c *Config) Database() string { return filepath.Join(c.Dir, "turnkeeper.db") }

// TokenFile is the path of the bearer token, mode 0600.
func (c *Config) TokenFile() string { return filepath.Join(c.Dir, "token") }

// LockFile is the path of the lock that keeps a second daemon off this directory.
func (c *Config) LockFile() string { return filepath.Join(c.Dir, "lock") }

// ListenerFile is the path of the file that says where a running daemon listens.
func (c *Config) ListenerFile() string { return filepath.Join(c.Dir, "listener.json") }

// LogFile is the path of the daemon's log, one JSON object a line.
func (c *Config) LogFile() string { return filepath.Join(c.Dir, "log", "daemon.log") }
