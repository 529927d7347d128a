package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// builtInModels is the model provider that Codex uses unless its configuration names another.
const builtInModels = "openai"

// account says what can be seen of the account that Codex would use, without starting it,
// asking anybody, or keeping a secret: whether one is there, not whether it is still good.
// note is for the card; missing, where there is none, is what helps.
func (a *Adapter) account() (note, missing string) {
	env := lookupIn(a.environ(a.o.Env))
	dir := env("CODEX_HOME")
	if dir == "" {
		if env("HOME") == "" {
			return "Whether an account is configured is not known: Codex would see no HOME.", ""
		}
		dir = filepath.Join(env("HOME"), ".codex")
	}
	conf, err := readCodexConfig(filepath.Join(dir, "config.toml"))
	if err != nil {
		return "Whether an account is configured is not known: " + filepath.Join(dir, "config.toml") + " cannot be read.", ""
	}
	if name := conf.ModelProvider; name != "" && name != builtInModels {
		return conf.accountOf(name, env)
	}
	file := filepath.Join(dir, "auth.json")
	kept, err := readAuth(file)
	switch {
	case err == nil && kept.Tokens.some():
		return "An account is signed in (" + file + "); whether it is still good shows with the first turn.", ""
	case err == nil && kept.Key != "":
		return "An API key is kept (" + file + "); whether it is still good shows with the first turn.", ""
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", file + " cannot be used: run codex login again."
	}
	for _, name := range []string{"CODEX_API_KEY", "OPENAI_API_KEY"} {
		if env(name) != "" {
			return "An API key is given in " + name + "; whether it is good shows with the first turn.", ""
		}
	}
	if s := conf.CredentialsStore; s == "keyring" || s == "auto" {
		return "Whether an account is signed in is not known: Codex keeps it in the system's keyring.", ""
	}
	return "", "No account is configured: run codex login, or set OPENAI_API_KEY and start the daemon again."
}

// codexConfig is what matters here of the user's own configuration.
type codexConfig struct {
	ModelProvider    string `toml:"model_provider"`
	CredentialsStore string `toml:"cli_auth_credentials_store"`
	ModelProviders   map[string]struct {
		EnvKey string `toml:"env_key"`
	} `toml:"model_providers"`
}

func readCodexConfig(path string) (c codexConfig, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = toml.Unmarshal(raw, &c)
	}
	return c, err
}

// accountOf says whether a model provider of the user's own has its key.
func (c *codexConfig) accountOf(name string, env Getenv) (note, missing string) {
	switch key := c.ModelProviders[name].EnvKey; {
	case key == "":
		return fmt.Sprintf("Codex is configured for the model provider %q, which names no key.", name), ""
	case env(key) != "":
		return fmt.Sprintf("Codex is configured for the model provider %q; its key is given in %s.", name, key), ""
	default:
		return "", fmt.Sprintf("The model provider %q takes its key from %s, which Codex would not see: set it where the daemon starts, and let it through with [providers.codex] env.", name, key)
	}
}

// kept is whether Codex's file of credentials holds any. What they are is not looked at.
type kept struct {
	Key    string     `json:"OPENAI_API_KEY"`
	Tokens authTokens `json:"tokens"`
}

type authTokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (t authTokens) some() bool { return t.Access != "" || t.Refresh != "" }

// readAuth: a file that holds nothing is as good as none.
func readAuth(path string) (k kept, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, errors.New("codex: auth.json is not what it was") // the parser's words may quote a secret
	}
	if k.Key == "" && !k.Tokens.some() {
		return k, fs.ErrNotExist
	}
	return k, nil
}

// lookupIn reads variables of an environment that is not ours.
func lookupIn(environ []string) Getenv {
	return func(name string) string {
		for _, v := range environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}
