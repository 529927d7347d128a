package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/config"
	"github.com/turnkeeper/turnkeeper/server/daemon"
)

// answerBound is how long a daemon on this machine may take to answer one request.
const answerBound = 15 * time.Second

// remote is a running daemon as the command line sees it.
type remote struct {
	url    string
	pid    int // 0 if it is not of this directory
	token  string
	http   *http.Client
	client *goclient.ClientWithResponses
}

// remote connects to the daemon of this run's configuration.
func (a *app) remote(ctx context.Context) (*remote, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	return a.connect(ctx, c)
}

// connect finds the daemon and makes sure that somebody answers. A daemon that cannot be
// reached is exit code 20, whatever the reason.
func (a *app) connect(ctx context.Context, c *config.Config) (*remote, error) {
	r := &remote{url: strings.TrimRight(c.URL, "/"), http: &http.Client{Timeout: answerBound}}
	if r.url == "" {
		l, err := daemon.ReadListener(c.ListenerFile())
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &exitError{exitUnreachable, fmt.Errorf("no daemon runs on %s; start one with: turnkeeper serve", c.Dir)}
		}
		if err != nil {
			return nil, &exitError{exitUnreachable, fmt.Errorf("%s: %w", c.ListenerFile(), err)}
		}
		if err := a.checkHolder(c, l); err != nil {
			return nil, err
		}
		r.url, r.pid = l.URL, l.PID
	}
	var err error
	if r.token, err = tokenOf(c); err != nil {
		return nil, err
	}
	r.client, err = goclient.NewClientWithResponses(r.url, goclient.WithHTTPClient(r.http), goclient.WithRequestEditorFn(r.sign))
	if err != nil {
		return nil, err
	}
	if _, err := r.client.HealthWithResponse(ctx); err != nil {
		return nil, &exitError{exitUnreachable, fmt.Errorf("no daemon answers at %s; start one with: turnkeeper serve (%w)", r.url, err)}
	}
	return r, nil
}

// checkHolder makes sure that the listener file is of the daemon that holds the directory. One
// that a killed daemon left behind names a port that may be anybody's by now, and whoever
// listens there must not be shown the token.
func (a *app) checkHolder(c *config.Config, l daemon.Listener) error {
	held, pid, err := daemon.Locked(c.LockFile())
	switch {
	case err != nil:
		return err
	case !held:
		return &exitError{exitUnreachable, fmt.Errorf("no daemon runs on %s; start one with: turnkeeper serve", c.Dir)}
	case pid > 0 && pid != l.PID:
		return &exitError{exitUnreachable, fmt.Errorf("the daemon on %s (pid %d) is not ready yet; try again", c.Dir, pid)}
	}
	return nil
}

// sign adds the token, and the name under which answers are recorded.
func (r *remote) sign(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Turnkeeper-Client", "cli")
	return nil
}

// answer is what a call gave, or why it did not: the daemon's own words where it has any.
func answer[T any](got *T, p *goclient.Problem, resp *http.Response) (T, error) {
	var none T
	switch {
	case got != nil:
		return *got, nil
	case p != nil && p.Code == "unauthorized":
		return none, errOtherToken // its own words advise what was just tried
	case p != nil:
		return none, fmt.Errorf("%s: %s", p.Code, value(p.Detail))
	}
	return none, fmt.Errorf("the daemon answered %s", resp.Status)
}

// errOtherToken: a daemon follows its token file, so one that refuses that file's token was
// configured with another.
var errOtherToken = errors.New("the daemon does not take this token: it was started with one of its own, by " + config.EnvToken +
	" or its configuration; set " + config.EnvToken + " to that one here, or end the daemon and start it without")

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

func (r *remote) version(ctx context.Context) (string, error) {
	resp, err := r.client.VersionWithResponse(ctx)
	if err != nil {
		return "", &exitError{exitUnreachable, err}
	}
	v, err := answer(resp.JSON200, resp.ApplicationProblemJSONDefault, resp.HTTPResponse)
	return v.Version, err
}

// authorised finds out whether the daemon takes our token.
func (r *remote) authorised(ctx context.Context) error {
	_, err := r.workspaces(ctx)
	return err
}

func (r *remote) workspaces(ctx context.Context) ([]goclient.Workspace, error) {
	resp, err := r.client.ListWorkspacesWithResponse(ctx)
	if err != nil {
		return nil, &exitError{exitUnreachable, err}
	}
	list, err := answer(resp.JSON200, resp.ApplicationProblemJSONDefault, resp.HTTPResponse)
	return list.Items, err
}

// loginURL is an address that signs a browser in, once.
func (r *remote) loginURL(ctx context.Context) (string, error) {
	resp, err := r.client.CreateLoginCodeWithResponse(ctx)
	if err != nil {
		return "", &exitError{exitUnreachable, err}
	}
	code, err := answer(resp.JSON201, resp.ApplicationProblemJSONDefault, resp.HTTPResponse)
	return r.url + code.Path, err
}

func (r *remote) providers(ctx context.Context) ([]card, error) {
	resp, err := r.client.ListProvidersWithResponse(ctx)
	if err != nil {
		return nil, &exitError{exitUnreachable, err}
	}
	list, err := answer(resp.JSON200, resp.ApplicationProblemJSONDefault, resp.HTTPResponse)
	var cards []card
	for _, p := range list.Items {
		cards = append(cards, card{Name: p.Name, Reason: value(p.Reason), Version: value(p.Version), Path: value(p.Path), Note: first(p.Notes), Found: p.Found})
	}
	return cards, err
}

// stalled names what is live and silent, a page of each workspace.
func (r *remote) stalled(ctx context.Context) ([]string, error) {
	spaces, err := r.workspaces(ctx)
	if err != nil {
		return nil, err
	}
	attention := goclient.ListAgentSessionsParamsAttentionStalled
	var out []string
	for _, ws := range spaces {
		resp, err := r.client.ListAgentSessionsWithResponse(ctx, ws.ID, &goclient.ListAgentSessionsParams{Attention: &attention})
		if err != nil {
			return nil, &exitError{exitUnreachable, err}
		}
		page, err := answer(resp.JSON200, resp.ApplicationProblemJSONDefault, resp.HTTPResponse)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Items {
			out = append(out, s.ID)
		}
	}
	return out, nil
}

// state gathers what status prints. The figures are the daemon's metrics.
func (r *remote) state(ctx context.Context) (state, error) {
	s := state{Running: true, URL: r.url, PID: r.pid}
	var err error
	if s.Version, err = r.version(ctx); err != nil {
		return s, err
	}
	figures, err := r.metrics(ctx)
	if err != nil {
		return s, err
	}
	s.Sessions, s.LiveTurns = figures["turnkeeper_root_sessions"], figures["turnkeeper_live_turns"]
	s.Agents = figures["turnkeeper_sessions"] - s.Sessions
	s.PendingQuestions, s.OpenOperations = figures["turnkeeper_pending_interactions"], figures["turnkeeper_open_operations"]
	return s, nil
}

// metrics reads the figures without labels.
func (r *remote) metrics(ctx context.Context) (map[string]int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if err := r.sign(ctx, req); err != nil {
		return nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, &exitError{exitUnreachable, err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the daemon answered %s", resp.Status)
	}
	out := map[string]int64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(text, 64); ok && err == nil {
			out[name] = int64(n)
		}
	}
	return out, nil
}
