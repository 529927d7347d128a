// Command modelserver plays the models of the real programs for tests that are not
// written in Go: the browser tests start it, start a daemon with the environment that it
// prints, and open its gates over HTTP. It is for tests only.
//
// It owns the scripts of those tests, scripts.go. It must not know the daemon, nor what a
// test expects of it.
//
// On stdout it says one line of JSON, [start]. It ends, and removes the home that it made,
// when its stdin does: with the test, however that ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/provider/claude/claudetest"
	"github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// start is what a test must know to begin.
type start struct {
	URL string `json:"url"` // of the gates
	// Env is the whole environment for a daemon whose providers are to be played here.
	Env map[string]string `json:"env"`
	// Allow are the names of Env that a provider is to be given beyond HOME, PATH and LANG.
	Allow  []string `json:"allow"`
	Codex  string   `json:"codex"` // the programs
	Claude string   `json:"claude"`
	Work   string   `json:"work"` // an empty directory for the workspace
}

func main() {
	b := &bench{}
	err := run(b)
	b.clean()
	if err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

func run(b *bench) error {
	models := map[string]*modeltest.Model{
		"codex":  codextest.NewModel(b, scripts(codex{})),
		"claude": claudetest.NewModel(b, scripts(claude{})),
	}
	// The daemon has one home, which is below no directory for temporary files: Codex
	// refuses such a one.
	place := codextest.Home(b, codextest.Options{BaseURL: models["codex"].BaseURL(), Approval: "on-request", Sandbox: "read-only"})
	other := claudetest.Home(b, claudetest.Options{
		BaseURL: models["claude"].BaseURL(),
		Env:     []string{"ANTHROPIC_MODEL=claude-sonnet-4-5"}, // what tools there are depends on it
	})
	say := start{
		Env: map[string]string{}, Work: place.Work,
		Codex: codextest.Binary(b), Claude: claudetest.Binary(b),
	}
	for _, pair := range slices.Concat(other.Env, place.Env) { // the home of the latter
		name, value, _ := strings.Cut(pair, "=")
		say.Env[name] = value
	}
	for name := range say.Env {
		if name != "HOME" && name != "PATH" && name != "LANG" {
			say.Allow = append(say.Allow, name)
		}
	}
	slices.Sort(say.Allow)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say.URL = "http://" + listener.Addr().String()
	server := &http.Server{
		Handler: gates(b, models, place.Home), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := json.NewEncoder(os.Stdout).Encode(say); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// gates is what a test can ask for. An answer comes when what it asks for is so.
func gates(b *bench, models map[string]*modeltest.Model, home string) http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, f func(*modeltest.Model, *http.Request) error) {
		mux.HandleFunc("POST /{provider}/"+pattern+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			m := models[r.PathValue("provider")]
			if m == nil {
				http.NotFound(w, r)
				return
			}
			if err := f(m, r); err != nil {
				http.Error(w, err.Error(), http.StatusGatewayTimeout)
			}
		})
	}
	on("open", func(m *modeltest.Model, r *http.Request) error { m.Open(r.PathValue("name")); return nil })
	on("held", func(m *modeltest.Model, r *http.Request) error { return m.WaitHeld(r.Context(), r.PathValue("name")) })
	on("left", func(m *modeltest.Model, r *http.Request) error { return m.WaitLeft(r.Context(), r.PathValue("name")) })
	// What a finished test must not have brought about. Ask when the daemon has ended.
	mux.HandleFunc("GET /problems", func(w http.ResponseWriter, _ *http.Request) {
		found := b.said()
		for name, m := range models {
			for _, agent := range m.Overruns() {
				found = append(found, fmt.Sprintf("%s: %s asked for more than its script", name, agent))
			}
			for _, stray := range m.Strays() {
				found = append(found, fmt.Sprintf("%s: asked of the model's server: %s", name, stray))
			}
		}
		for _, p := range modeltest.ProcessesOf(b, home) {
			found = append(found, fmt.Sprintf("left running: %d %s", p.PID, p.Command))
		}
		if err := json.NewEncoder(w).Encode(found); err != nil {
			b.Errorf("%v", err)
		}
	})
	return mux
}
