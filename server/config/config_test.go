package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// home returns a directory with this config.toml in it.
func home(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDefaultsNeedNothingButHome(t *testing.T) {
	c, err := Load(Input{Env: env("HOME", "/home/ada")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != DefaultListen || c.Synchronous != "full" || c.CancelBound != 15*time.Second {
		t.Errorf("defaults are %+v", c)
	}
	if c.Dir != "/home/ada/.local/state/turnkeeper" || c.File != "/home/ada/.config/turnkeeper/config.toml" {
		t.Errorf("places are %s and %s", c.Dir, c.File)
	}
	if got := c.Origin("listen"); got.Source != FromDefault {
		t.Errorf("origin of listen is %v", got)
	}
}

func TestPlaces(t *testing.T) {
	tests := []struct {
		name      string
		in        Input
		dir, file string
	}{
		{"xdg", Input{Env: env("HOME", "/h", "XDG_CONFIG_HOME", "/c", "XDG_STATE_HOME", "/s")}, "/s/turnkeeper", "/c/turnkeeper/config.toml"},
		{"relative xdg is ignored", Input{Env: env("HOME", "/h", "XDG_CONFIG_HOME", "c", "XDG_STATE_HOME", "s")}, "/h/.local/state/turnkeeper", "/h/.config/turnkeeper/config.toml"},
		{"home moves all", Input{Env: env("TURNKEEPER_HOME", "/k", "XDG_STATE_HOME", "/s")}, "/k", "/k/config.toml"},
		{"flag outranks variable", Input{Env: env("TURNKEEPER_HOME", "/k"), Flags: map[string]string{"home": "/f"}}, "/f", "/f/config.toml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Load(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if c.Dir != tt.dir || c.File != tt.file {
				t.Errorf("got %s and %s, want %s and %s", c.Dir, c.File, tt.dir, tt.file)
			}
		})
	}
	if _, err := Load(Input{Env: env()}); err == nil || !strings.Contains(err.Error(), EnvHome) {
		t.Errorf("no HOME at all: %v", err)
	}
}

func TestEachPlaceOutranksTheOneBefore(t *testing.T) {
	dir := home(t, `
listen = "127.0.0.1:1"
log = "warn"
allowed_hosts = ["one.example", "two.example"]
[turns]
stall_after = "5m"
[providers.codex]
bin = "/opt/codex"
`)
	c, err := Load(Input{
		Env:   env("TURNKEEPER_HOME", dir, "TURNKEEPER_LISTEN", "127.0.0.1:2", "TURNKEEPER_LOG", "debug"),
		Flags: map[string]string{"listen": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range c.Settings() {
		got[s.Key] = s.Value + " < " + string(s.Origin.Source)
	}
	want := map[string]string{
		"listen": "127.0.0.1:3 < flag", "log": "debug < env", "allowed_hosts": "one.example, two.example < file",
		"turns.stall_after": "5m0s < file", "turns.cancel_bound": "15s < default", "providers.codex.bin": "/opt/codex < file",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	if o := c.Origin("listen"); o.String() != "flag --listen" {
		t.Errorf("origin of listen reads %q", o)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	tests := []struct {
		name, file string
		env        []string
		want       []string
	}{
		{"unknown key", "log = \"info\"\nlisen = \"127.0.0.1:1\"\n", nil, []string{"config.toml:2", `"lisen"`}},
		{"unknown key in a table", "[turns]\n\ncancel = \"1s\"\n", nil, []string{"config.toml:3", `"turns.cancel"`}},
		{"unknown provider", "[providers.nobody]\nbin = \"/x\"\n", nil, []string{"config.toml:1", "providers.nobody"}},
		{"not TOML", "listen = \n", nil, []string{"config.toml:1"}},
		{"wrong type", "log = 3\n", nil, []string{"config.toml:1"}},
		{"bad duration", "[turns]\ncancel_bound = \"soon\"\n", nil, []string{"config.toml", "turns.cancel_bound", "soon"}},
		{"out of range", "[turns]\ncancel_bound = \"1ms\"\n", nil, []string{"turns.cancel_bound", "between"}},
		{"bad word", "[storage]\nsynchronous = \"off\"\n", nil, []string{"storage.synchronous", "full, normal"}},
		{"listen without host", "listen = \":4880\"\n", nil, []string{"listen", "host:port"}},
		{"variable", "", []string{"TURNKEEPER_LISTEN", "nowhere"}, []string{"TURNKEEPER_LISTEN", "nowhere"}},
		{"short token", "", []string{"TURNKEEPER_TOKEN", "abc"}, []string{"TURNKEEPER_TOKEN", "32", "openssl"}},
		{"relative program", "", []string{"TURNKEEPER_CODEX_BIN", "codex"}, []string{"TURNKEEPER_CODEX_BIN", "absolute"}},
		{"unknown settings", "[providers.claude]\nsettings = [\"user\", \"all\"]\n", nil, []string{"providers.claude.settings", "all", "local"}},
		{"no wait at all", "[providers.claude]\ncontinuation = \"0s\"\n", nil, []string{"providers.claude.continuation"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(Input{Env: env(append(tt.env, "TURNKEEPER_HOME", home(t, tt.file))...)})
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestTokenIsNeverShownAndItsFileMustBePrivate(t *testing.T) {
	const token = "correct-horse-battery-staple-again"
	dir := home(t, "token = \""+token+"\"\n")
	c, err := Load(Input{Env: env("TURNKEEPER_HOME", dir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Settings() {
		if strings.Contains(s.Value, token) {
			t.Errorf("setting %s shows the token", s.Key)
		}
	}
	if err := os.Chmod(c.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Input{Env: env("TURNKEEPER_HOME", dir)}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a readable token was accepted: %v", err)
	}
}

func TestExposureNeedsATokenOfOnesOwn(t *testing.T) {
	for listen, open := range map[string]bool{
		"127.0.0.1:4880": false, "[::1]:4880": false, "localhost:0": false, "127.8.8.8:1": false,
		"0.0.0.0:4880": true, "[::]:4880": true, "192.168.1.4:4880": true, "myhost:4880": true,
	} {
		c := defaults()
		c.Listen = listen
		if err := c.CheckExposure(); errors.Is(err, ErrExposed) != open {
			t.Errorf("%s without a token: %v", listen, err)
		}
		c.Token = "a-token-of-my-own-that-nobody-guesses"
		if err := c.CheckExposure(); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
}

// Every key of the file must reach its key of the table, and none may be left out.
func TestFileAndTableNameTheSameKeys(t *testing.T) {
	s, n, l := "x", 1, []string{"a"}
	var f file
	f.Listen, f.Token, f.URL, f.Log, f.AllowedHosts = &s, &s, &s, &s, &l
	f.Storage.Synchronous, f.Storage.KeepEvents = &s, &n
	f.Turns.CancelBound, f.Turns.StallAfter, f.Providers.IdleClose = &s, &s, &s
	f.Providers.Env, f.Providers.Codex.Bin, f.Providers.Codex.Env = &l, &s, &l
	claude := &f.Providers.Claude
	claude.Bin, claude.Env, claude.Continuation, claude.PermissionMode, claude.Settings = &s, &l, &s, &s, &l
	got, want := map[string]bool{}, map[string]bool{}
	for k := range f.values() {
		got[k] = true
	}
	for _, k := range keys {
		want[k.name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
