package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Input is what Load reads besides the file.
type Input struct {
	// Env is asked for variables, as os.LookupEnv.
	Env func(string) (string, bool)
	// Flags are those that were given, by name without dashes. "home" is among them.
	Flags map[string]string
}

// Load decides everything. Errors name the file and line, variable or flag at fault.
func Load(in Input) (*Config, error) {
	c := defaults()
	if err := c.place(in); err != nil {
		return nil, err
	}
	if err := c.readFile(); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if v, ok := in.Env(k.env); ok && k.env != "" && v != "" {
			if err := k.set(c, v); err != nil {
				return nil, fmt.Errorf("config: %s: %w", k.env, err)
			}
			c.origins[k.name] = Origin{FromEnv, k.env}
		}
		if v, ok := in.Flags[k.flag]; ok && k.flag != "" {
			if err := k.set(c, v); err != nil {
				return nil, fmt.Errorf("config: --%s: %w", k.flag, err)
			}
			c.origins[k.name] = Origin{FromFlag, "--" + k.flag}
		}
	}
	return c, nil
}

// place finds the directories. XDG says that a relative path in its variables is to be
// ignored; an override of ours that is relative is made absolute instead.
func (c *Config) place(in Input) error {
	home, ok := in.Flags["home"]
	if !ok {
		home, _ = in.Env(EnvHome)
	}
	if home != "" {
		abs, err := filepath.Abs(home)
		if err != nil {
			return fmt.Errorf("config: home %q: %w", home, err)
		}
		c.Home, c.Dir, c.File = abs, abs, filepath.Join(abs, "config.toml")
		return nil
	}
	conf, err := xdg(in.Env, "XDG_CONFIG_HOME", ".config")
	if err != nil {
		return err
	}
	state, err := xdg(in.Env, "XDG_STATE_HOME", ".local/state")
	if err != nil {
		return err
	}
	c.File, c.Dir = filepath.Join(conf, "config.toml"), state
	return nil
}

func xdg(env func(string) (string, bool), variable, fallback string) (string, error) {
	if dir, _ := env(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "turnkeeper"), nil
	}
	user, _ := env("HOME")
	if !filepath.IsAbs(user) {
		return "", fmt.Errorf("config: neither HOME nor %s is set; set %s to a directory", variable, EnvHome)
	}
	return filepath.Join(user, fallback, "turnkeeper"), nil
}

// file is the shape of config.toml. Pointers tell "not set" from "set to nothing".
type file struct {
	Listen       *string   `toml:"listen"`
	AllowedHosts *[]string `toml:"allowed_hosts"`
	Token        *string   `toml:"token"`
	URL          *string   `toml:"url"`
	Log          *string   `toml:"log"`
	Storage      struct {
		Synchronous *string `toml:"synchronous"`
		KeepEvents  *int    `toml:"keep_events"`
	} `toml:"storage"`
	Turns struct {
		CancelBound *string `toml:"cancel_bound"`
		StallAfter  *string `toml:"stall_after"`
	} `toml:"turns"`
	Providers struct {
		IdleClose *string   `toml:"idle_close"`
		Env       *[]string `toml:"env"`
		Codex     struct {
			Bin *string   `toml:"bin"`
			Env *[]string `toml:"env"`
		} `toml:"codex"`
		Claude struct {
			Bin            *string   `toml:"bin"`
			Env            *[]string `toml:"env"`
			Continuation   *string   `toml:"continuation"`
			PermissionMode *string   `toml:"permission_mode"`
			Settings       *[]string `toml:"settings"`
		} `toml:"claude"`
		Agents map[string]agentTable `toml:"acp"`
	} `toml:"providers"`
}

// values gives the text form of what the file sets, by key.
func (f *file) values() map[string]string {
	out := map[string]string{}
	put := func(name string, v *string) {
		if v != nil {
			out[name] = *v
		}
	}
	putList := func(name string, v *[]string) {
		if v != nil {
			out[name] = strings.Join(*v, ",")
		}
	}
	put("listen", f.Listen)
	putList("allowed_hosts", f.AllowedHosts)
	put("token", f.Token)
	put("url", f.URL)
	put("log", f.Log)
	put("storage.synchronous", f.Storage.Synchronous)
	if n := f.Storage.KeepEvents; n != nil {
		out["storage.keep_events"] = fmt.Sprint(*n)
	}
	put("turns.cancel_bound", f.Turns.CancelBound)
	put("turns.stall_after", f.Turns.StallAfter)
	put("providers.idle_close", f.Providers.IdleClose)
	putList("providers.env", f.Providers.Env)
	put("providers.codex.bin", f.Providers.Codex.Bin)
	putList("providers.codex.env", f.Providers.Codex.Env)
	put("providers.claude.bin", f.Providers.Claude.Bin)
	putList("providers.claude.env", f.Providers.Claude.Env)
	put("providers.claude.continuation", f.Providers.Claude.Continuation)
	put("providers.claude.permission_mode", f.Providers.Claude.PermissionMode)
	putList("providers.claude.settings", f.Providers.Claude.Settings)
	return out
}

func (c *Config) readFile() error {
	raw, err := os.Open(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	defer raw.Close()
	var f file
	if err := toml.NewDecoder(raw).DisallowUnknownFields().Decode(&f); err != nil {
		return c.explain(err)
	}
	values := f.values()
	if values["token"] != "" {
		if err := private(raw); err != nil {
			return err
		}
	}
	for _, k := range keys {
		v, ok := values[k.name]
		if !ok {
			continue
		}
		if err := k.set(c, v); err != nil {
			return fmt.Errorf("config: %s: %s: %w", c.File, k.name, err)
		}
		c.origins[k.name] = Origin{FromFile, c.File}
	}
	c.Agents, err = agentPrograms(f.Providers.Agents)
	if err != nil {
		return fmt.Errorf("config: %s: %w", c.File, err)
	}
	return nil
}

// explain turns the parser's error into one line that names the place.
func (c *Config) explain(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		first := unknown.Errors[0]
		line, _ := first.Position()
		return fmt.Errorf("config: %s:%d: unknown key %q; known are %s", c.File, line, strings.Join(first.Key(), "."), knownKeys())
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		return fmt.Errorf("config: %s:%d:%d: %s", c.File, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return fmt.Errorf("config: %s: %w", c.File, err)
}

func knownKeys() string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// private refuses a file with a secret in it that others can read.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("config: %s holds a token and can be read by others; run: chmod 600 %s", f.Name(), f.Name())
	}
	return nil
}
