package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Variables that are not the text form of one key.
const (
	EnvHome  = "TURNKEEPER_HOME"
	EnvToken = "TURNKEEPER_TOKEN"
	EnvURL   = "TURNKEEPER_URL"
)

// key is one thing that can be set. set reads its text form, which file, variable
// and flag share; lists are separated by commas outside the file.
type key struct {
	name string
	env  string // "" if there is no variable
	flag string // "" if there is no flag
	set  func(*Config, string) error
	show func(*Config) string
}

// keys is the only list of what can be set; its order is that of the manual.
var keys = []key{
	{"listen", "TURNKEEPER_LISTEN", "listen", setListen, func(c *Config) string { return c.Listen }},
	{"allowed_hosts", "", "", list(func(c *Config) *[]string { return &c.AllowedHosts }), showList(func(c *Config) []string { return c.AllowedHosts })},
	{"token", EnvToken, "", setToken, func(c *Config) string { return secret(c.Token) }},
	{"url", EnvURL, "url", text(func(c *Config) *string { return &c.URL }), func(c *Config) string { return c.URL }},
	{"log", "TURNKEEPER_LOG", "log", oneOf(func(c *Config) *string { return &c.Log }, "debug", "info", "warn", "error"), func(c *Config) string { return c.Log }},
	{"storage.synchronous", "", "", oneOf(func(c *Config) *string { return &c.Synchronous }, "full", "normal"), func(c *Config) string { return c.Synchronous }},
	{"storage.keep_events", "", "", setKeepEvents, func(c *Config) string { return strconv.Itoa(c.KeepEvents) }},
	{"turns.cancel_bound", "", "", duration(func(c *Config) *time.Duration { return &c.CancelBound }, time.Second, 10*time.Minute), func(c *Config) string { return c.CancelBound.String() }},
	{"turns.stall_after", "", "", duration(func(c *Config) *time.Duration { return &c.StallAfter }, time.Second, 24*time.Hour), func(c *Config) string { return c.StallAfter.String() }},
	{"providers.idle_close", "", "", duration(func(c *Config) *time.Duration { return &c.IdleClose }, 0, 30*24*time.Hour), func(c *Config) string { return c.IdleClose.String() }},
	{"providers.env", "", "", list(func(c *Config) *[]string { return &c.ProviderEnv }), showList(func(c *Config) []string { return c.ProviderEnv })},
	{"providers.codex.bin", "TURNKEEPER_CODEX_BIN", "codex-bin", program(func(c *Config) *string { return &c.Codex.Bin }), func(c *Config) string { return c.Codex.Bin }},
	{"providers.codex.env", "", "", list(func(c *Config) *[]string { return &c.Codex.Env }), showList(func(c *Config) []string { return c.Codex.Env })},
	{"providers.claude.bin", "TURNKEEPER_CLAUDE_BIN", "claude-bin", program(func(c *Config) *string { return &c.Claude.Bin }), func(c *Config) string { return c.Claude.Bin }},
	{"providers.claude.env", "", "", list(func(c *Config) *[]string { return &c.Claude.Env }), showList(func(c *Config) []string { return c.Claude.Env })},
	{"providers.claude.continuation", "", "", duration(func(c *Config) *time.Duration { return &c.Claude.Continuation }, time.Second, time.Hour), func(c *Config) string { return c.Claude.Continuation.String() }},
	{"providers.claude.permission_mode", "", "", oneOf(func(c *Config) *string { return &c.Claude.PermissionMode }, "configured", "default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"), func(c *Config) string { return c.Claude.PermissionMode }},
	{"providers.claude.settings", "", "", listOf(func(c *Config) *[]string { return &c.Claude.Settings }, "user", "project", "local"), showList(func(c *Config) []string { return c.Claude.Settings })},
}

func defaults() *Config {
	return &Config{
		Listen:      DefaultListen,
		Log:         "info",
		Synchronous: "full",
		KeepEvents:  200_000,
		CancelBound: 15 * time.Second,
		StallAfter:  2 * time.Minute,
		IdleClose:   30 * time.Minute,
		ProviderEnv: []string{
			"HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*",
			"SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
			"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		},
		Codex: Provider{Env: []string{"CODEX_*", "OPENAI_*", "AZURE_OPENAI_*", "RUST_LOG"}},
		Claude: Claude{
			// Each by its name: any variable of Claude Code changes what it does, those of a
			// session that the daemon was started from above all.
			Provider: Provider{Env: []string{
				"ANTHROPIC_*", "AWS_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
				"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
				"CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
				"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
				"DISABLE_TELEMETRY", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "IS_SANDBOX",
			}},
			Continuation:   30 * time.Second,
			PermissionMode: "configured",
			Settings:       []string{"user", "project", "local"},
		},
		origins: map[string]Origin{},
	}
}

// setListen accepts host:port. A host is required: ":4880" reads as "everywhere", and
// whoever means that must write 0.0.0.0 or [::].
func setListen(c *Config, s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not host:port, for example %s", s, DefaultListen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", s)
	}
	c.Listen = s
	return nil
}

// MinToken is the shortest token that is taken, in characters: 32 of the kind that
// `openssl rand -hex 16` gives are 128 random bits. A generated one is longer.
const MinToken = 32

// CheckToken refuses a token that could be guessed, or that no header can carry.
func CheckToken(s string) error {
	if len(s) < MinToken || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("a token needs at least %d visible ASCII characters; openssl rand -hex 32 gives one", MinToken)
	}
	return nil
}

func setToken(c *Config, s string) error {
	if err := CheckToken(s); err != nil {
		return err
	}
	c.Token = s
	return nil
}

func setKeepEvents(c *Config, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1000 {
		return fmt.Errorf("%q is not a number of at least 1000", s)
	}
	c.KeepEvents = n
	return nil
}

func program(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if !filepath.IsAbs(s) {
			return fmt.Errorf("%q is not an absolute path", s)
		}
		*field(c) = s
		return nil
	}
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		*field(c) = s
		return nil
	}
}

func oneOf(field func(*Config) *string, words ...string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(words, ", "))
		}
		*field(c) = s
		return nil
	}
}

func duration(field func(*Config) *time.Duration, least, most time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 90s or 5m", s)
		}
		if d < least || d > most {
			return fmt.Errorf("%s is not between %s and %s", d, least, most)
		}
		*field(c) = d
		return nil
	}
}

func list(field func(*Config) *[]string) func(*Config, string) error {
	return func(c *Config, s string) error {
		out := []string{}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		*field(c) = out
		return nil
	}
}

func listOf(field func(*Config) *[]string, words ...string) func(*Config, string) error {
	read := list(field)
	return func(c *Config, s string) error {
		if err := read(c, s); err != nil {
			return err
		}
		for _, item := range *field(c) {
			if !slices.Contains(words, item) {
				return fmt.Errorf("%q is not one of %s", item, strings.Join(words, ", "))
			}
		}
		return nil
	}
}

func showList(field func(*Config) []string) func(*Config) string {
	return func(c *Config) string { return strings.Join(field(c), ", ") }
}

func secret(s string) string {
	if s == "" {
		return ""
	}
	return "(set)"
}

// Loopback reports whether an address can be reached from this machine alone.
// "localhost" counts; any other name does not, as what it resolves to may change.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// ErrExposed says that other machines could reach the daemon and nobody chose a
// token for them to show.
var ErrExposed = errors.New("config: listening beyond loopback needs a token of your own")

// CheckExposure refuses a listen address that other machines can reach unless a token
// was configured: the generated one is for this machine's users alone.
func (c *Config) CheckExposure() error {
	if Loopback(c.Listen) || c.Token != "" {
		return nil
	}
	return fmt.Errorf("%w: %s can be reached from other machines; set %s, or listen on 127.0.0.1", ErrExposed, c.Listen, EnvToken)
}
