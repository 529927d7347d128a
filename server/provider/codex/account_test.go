package codex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes something that answers --version as Codex does, and starts nothing else:
// any other call leaves a file behind.
func program(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "codex")
	script := "#!/bin/sh\n[ \"$*\" = --version ] || touch " + filepath.Join(dir, "started") + "\necho codex-cli 0.171.0\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// The card says whether there is an account, and what helps if not, from files and
// variables alone; no secret is in it.
func TestCardSaysWhetherThereIsAnAccount(t *testing.T) {
	const secret = "sk-hunter2"
	own := "model_provider = \"house\"\n[model_providers.house]\nname = \"House\"\nenv_key = \"HOUSE_KEY\"\n"
	for _, c := range []struct {
		name    string
		files   map[string]string
		env     []string
		note    string // of the first note; "": there is no account
		missing string // of the reason
	}{
		{name: "nothing", missing: "codex login"},
		{name: "signed in", files: map[string]string{"auth.json": `{"OPENAI_API_KEY":null,"tokens":{"access_token":"` + secret + `","refresh_token":"r"},"last_refresh":"2026-01-01T00:00:00Z"}`}, note: "signed in"},
		{name: "a key is kept", files: map[string]string{"auth.json": `{"OPENAI_API_KEY":"` + secret + `"}`}, note: "API key is kept"},
		{name: "signed out", files: map[string]string{"auth.json": `{"OPENAI_API_KEY":null,"tokens":null}`}, missing: "codex login"},
		{name: "damaged", files: map[string]string{"auth.json": `{"OPENAI_API_KEY":` + secret}, missing: "codex login"},
		{name: "a key in the environment", env: []string{"OPENAI_API_KEY=" + secret}, note: "OPENAI_API_KEY"},
		{name: "Codex's own variable", env: []string{"CODEX_API_KEY=" + secret}, note: "CODEX_API_KEY"},
		{name: "an empty variable", env: []string{"OPENAI_API_KEY="}, missing: "codex login"},
		{name: "keyring", files: map[string]string{"config.toml": "cli_auth_credentials_store = \"keyring\"\n"}, note: "keyring"},
		{name: "a provider of one's own", files: map[string]string{"config.toml": own}, env: []string{"HOUSE_KEY=" + secret}, note: "HOUSE_KEY"},
		{name: "its key is not let through", files: map[string]string{"config.toml": own, "auth.json": `{"OPENAI_API_KEY":"` + secret + `"}`}, missing: "HOUSE_KEY"},
		{name: "a provider without a key", files: map[string]string{"config.toml": "model_provider = \"local\"\n[model_providers.local]\nname = \"x\"\n"}, note: "names no key"},
		{name: "a configuration that cannot be read", files: map[string]string{"config.toml": "model_provider = " + secret + "\n"}, note: "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			info := New(Options{Binary: program(t, dir), Env: append(c.env, "CODEX_HOME="+dir, "HOME=/nowhere")}).Probe(t.Context())
			if !info.Found {
				t.Fatalf("not found: %s", info.Reason)
			}
			if (info.Reason == "") != (c.missing == "") || !strings.Contains(info.Reason, c.missing) {
				t.Errorf("reason %q, want %q in it", info.Reason, c.missing)
			}
			if !strings.Contains(info.Notes[0], c.note) {
				t.Errorf("first note %q, want %q in it", info.Notes[0], c.note)
			}
			if strings.Contains(info.Reason+strings.Join(info.Notes, ""), "hunter2") {
				t.Errorf("a secret is in the card: %+v", info)
			}
			if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
				t.Error("the program was started")
			}
		})
	}
}

func TestAccountIsLookedForInTheHomeThatCodexSees(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".codex", "auth.json"), []byte(`{"OPENAI_API_KEY":"k"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if note, missing := New(Options{Env: []string{"HOME=" + home}}).account(); !strings.Contains(note, "is kept") || missing != "" {
		t.Errorf("%q, %q", note, missing)
	}
	if note, missing := New(Options{Env: []string{"PATH=/bin"}}).account(); !strings.Contains(note, "not known") || missing != "" {
		t.Errorf("without a HOME: %q, %q", note, missing)
	}
}
