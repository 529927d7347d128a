package acpagent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Variables by which this test binary serves an editor on its standard streams.
const (
	serveURL   = "ACPAGENT_TEST_URL"
	serveToken = "ACPAGENT_TEST_TOKEN"
)

// served reports whether this process was an agent for a client of a test.
func served() bool {
	url := os.Getenv(serveURL)
	if url == "" {
		return false
	}
	err := Serve(context.Background(), Options{In: os.Stdin, Out: os.Stdout, Server: url, Token: os.Getenv(serveToken), Version: "test"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// told is what the client says of itself.
type told struct {
	What     string   `json:"what"`
	Reason   string   `json:"reason"`
	Parent   bool     `json:"parent"`
	Session  string   `json:"session"`
	Code     int      `json:"code"`
	Texts    []string `json:"texts"`
	Grants   int      `json:"grants"`
	States   []string `json:"states"`
	Sessions int      `json:"sessions"`
}

// The published client side drives our agent through a child that it stops, a child that
// asks, and a replay in another process.
func TestPublishedClient(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		cmd, err := nodeRun("client.mjs", fmt.Sprint(version), w.dir, os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), serveURL+"="+w.url, serveToken+"="+w.token)
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make(chan told, 64)
		go func() {
			defer close(said)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var one told
				if json.Unmarshal(lines.Bytes(), &one) == nil {
					said <- one
				}
			}
		}()
		next := func(what string) told {
			t.Helper()
			one := receive(t, what, said)
			if one.What != what {
				t.Fatalf("the client said %+v, not %q", one, what)
			}
			return one
		}

		r := receive(t, "the provider to be opened", w.fake.opened)
		root := r.main(receive(t, "the turn", w.fake.starts))
		root.say("I send two")
		alpha, beta := root.spawn("alpha"), root.spawn("beta")
		receive(t, "the stop", w.fake.cancels).confirm(alpha)
		if one := next("alpha ended"); one.Reason != string(acp.StopCancelled) || !one.Parent {
			t.Errorf("%+v", one)
		}
		beta.ask("Run it?")
		if one := next("asked"); one.Session != string(beta.session) {
			t.Errorf("%+v", one)
		}
		if a := receive(t, "the answer", w.fake.answers); a.Response.OptionID != "yes" {
			t.Errorf("answered %+v", a)
		}
		beta.say("beta works")
		beta.end(agent.OutcomeCompleted)
		root.say("all done")
		root.end(agent.OutcomeCompleted)
		if one := next("prompt ended"); one.Reason != string(acp.StopEndTurn) {
			t.Errorf("%+v", one)
		}
		if one := next("refused"); one.Code != -32600 {
			t.Errorf("%+v", one)
		}
		next("left")
		one := next("replayed")
		if !slices.Equal(one.Texts, []string{"go", "I send two", "beta works", "all done"}) || one.Grants != 0 || one.Sessions != 1 ||
			!slices.Equal(one.States, []string{"cancelled", "end_turn"}) {
			t.Errorf("%+v", one)
		}
		next("left")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}
