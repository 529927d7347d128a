package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// daemon is the running daemon as this package uses it. Its answers are read into the
// domain's own types, which have the same JSON.
type daemon struct {
	opt    Options
	client *goclient.ClientWithResponses
}

func newDaemon(o Options) (*daemon, error) {
	d := &daemon{opt: o}
	var err error
	d.client, err = goclient.NewClientWithResponses(o.Server, goclient.WithHTTPClient(o.HTTPClient), goclient.WithRequestEditorFn(d.sign))
	return d, err
}

// sign adds the token, and the name under which messages and answers are recorded.
func (d *daemon) sign(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+d.opt.Token)
	req.Header.Set("Turnkeeper-Client", clientName)
	return nil
}

// reading is what every generated response has.
type reading struct {
	body []byte
	resp *http.Response
}

// as reads a successful answer, or the daemon's word for what is wrong.
func as[T any](r reading) (T, error) {
	var v T
	if r.resp.StatusCode >= http.StatusBadRequest {
		var p goclient.Problem
		if json.Unmarshal(r.body, &p) != nil || p.Code == "" {
			return v, fmt.Errorf("the daemon answered %s", r.resp.Status)
		}
		text := p.Title
		if p.Detail != nil {
			text = *p.Detail
		}
		return v, &agent.Error{Code: agent.Code(p.Code), Message: text}
	}
	if len(r.body) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(r.body, &v); err != nil {
		return v, fmt.Errorf("the daemon's answer is not understood: %w", err)
	}
	return v, nil
}

func isCode(err error, code agent.Code) bool {
	var known *agent.Error
	return errors.As(err, &known) && known.Code == code
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerBound)
}

// list is the shape of every list that has no pages.
type list[T any] struct {
	Items []T `json:"items"`
}

func (d *daemon) workspaces(ctx context.Context) ([]agent.Workspace, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.ListWorkspacesWithResponse(ctx)
	if err != nil {
		return nil, err
	}
	l, err := as[list[agent.Workspace]](reading{r.Body, r.HTTPResponse})
	return l.Items, err
}

// workspace is the one of that directory; the same directory gives the same one.
func (d *daemon) workspace(ctx context.Context, path string) (agent.Workspace, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.CreateWorkspaceWithResponse(ctx, &goclient.CreateWorkspaceParams{}, goclient.NewWorkspace{Path: path})
	if err != nil {
		return agent.Workspace{}, err
	}
	return as[agent.Workspace](reading{r.Body, r.HTTPResponse})
}

// found is a provider that can be used, or not.
type found struct {
	Name            string   `json:"name"`
	DisplayName     string   `json:"displayName"`
	Found           bool     `json:"found"`
	Models          []string `json:"models"`
	PermissionModes []string `json:"permissionModes"`
	Scenarios       []struct {
		ID string `json:"id"`
	} `json:"scenarios"`
}

func (d *daemon) providers(ctx context.Context) ([]found, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.ListProvidersWithResponse(ctx)
	if err != nil {
		return nil, err
	}
	l, err := as[list[found]](reading{r.Body, r.HTTPResponse})
	return l.Items, err
}

func (d *daemon) create(ctx context.Context, ws agent.WorkspaceID, n goclient.NewAgentSession) (agent.Session, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.CreateAgentSessionWithResponse(ctx, string(ws), nil, n)
	if err != nil {
		return agent.Session{}, err
	}
	made, err := as[struct {
		Session agent.Session `json:"session"`
	}](reading{r.Body, r.HTTPResponse})
	return made.Session, err
}

func (d *daemon) detail(ctx context.Context, ws, id string) (agent.SessionDetail, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.GetAgentSessionWithResponse(ctx, ws, id, nil)
	if err != nil {
		return agent.SessionDetail{}, err
	}
	return as[agent.SessionDetail](reading{r.Body, r.HTTPResponse})
}

// find looks for a session in every workspace, in that of the directory first.
func (d *daemon) find(ctx context.Context, id, cwd string) (agent.SessionDetail, error) {
	spaces, err := d.workspaces(ctx)
	if err != nil {
		return agent.SessionDetail{}, err
	}
	for _, near := range []bool{true, false} {
		for _, ws := range spaces {
			if (ws.Path == cwd) != near {
				continue
			}
			found, err := d.detail(ctx, string(ws.ID), id)
			if err == nil || !isCode(err, agent.CodeNotFound) {
				return found, err
			}
		}
	}
	return agent.SessionDetail{}, errNoSession(id)
}

// messages reads a part of a transcript: those after a number, or the newest.
func (d *daemon) messages(ctx context.Context, ws, id string, after *int64) (agent.MessagePage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	limit := int64(500)
	r, err := d.client.ListMessagesWithResponse(ctx, ws, id, &goclient.ListMessagesParams{After: after, Limit: &limit})
	if err != nil {
		return agent.MessagePage{}, err
	}
	return as[agent.MessagePage](reading{r.Body, r.HTTPResponse})
}

// message reads one entry of a transcript as it is now.
func (d *daemon) message(ctx context.Context, ws, id, message string) (agent.Message, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.GetMessageWithResponse(ctx, ws, id, message)
	if err != nil {
		return agent.Message{}, err
	}
	return as[agent.Message](reading{r.Body, r.HTTPResponse})
}

// interactions are the open questions of a root and of everything below it.
func (d *daemon) interactions(ctx context.Context, ws, id string) ([]agent.Interaction, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	status := goclient.ListInteractionsParamsStatus(agent.InteractionPending)
	r, err := d.client.ListInteractionsWithResponse(ctx, ws, id, &goclient.ListInteractionsParams{Status: &status})
	if err != nil {
		return nil, err
	}
	l, err := as[list[agent.Interaction]](reading{r.Body, r.HTTPResponse})
	return l.Items, err
}

// sent is what became of a message.
type sent struct {
	Turn    agent.Turn    `json:"turn"`
	Message agent.Message `json:"message"`
}

func (d *daemon) send(ctx context.Context, ws, id, key, text string) (sent, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.SendMessageWithResponse(ctx, ws, id, nil, goclient.NewMessage{
		ClientMessageID: key, Content: []goclient.ContentBlock{{Type: "text", Text: text}},
	})
	if err != nil {
		return sent{}, err
	}
	return as[sent](reading{r.Body, r.HTTPResponse})
}

func (d *daemon) stop(ctx context.Context, ws, id, turn string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.CancelTurnWithResponse(ctx, ws, id, turn, nil)
	if err != nil {
		return err
	}
	_, err = as[json.RawMessage](reading{r.Body, r.HTTPResponse})
	return err
}

func (d *daemon) answer(ctx context.Context, ws string, i agent.Interaction, a goclient.InteractionResponse) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.RespondToInteractionWithResponse(ctx, ws, string(i.SessionID), string(i.TurnID), string(i.RequestID), nil, a)
	if err != nil {
		return err
	}
	_, err = as[json.RawMessage](reading{r.Body, r.HTTPResponse})
	return err
}

func (d *daemon) sessions(ctx context.Context, ws agent.WorkspaceID, cursor string) (agent.SessionPage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	p := &goclient.ListAgentSessionsParams{}
	if cursor != "" {
		p.Cursor = &cursor
	}
	r, err := d.client.ListAgentSessionsWithResponse(ctx, string(ws), p)
	if err != nil {
		return agent.SessionPage{}, err
	}
	return as[agent.SessionPage](reading{r.Body, r.HTTPResponse})
}

func (d *daemon) patch(ctx context.Context, ws, id string, p goclient.AgentSessionPatch) (agent.Session, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.UpdateAgentSessionWithResponse(ctx, ws, id, p)
	if err != nil {
		return agent.Session{}, err
	}
	now, err := as[struct {
		Session agent.Session `json:"session"`
	}](reading{r.Body, r.HTTPResponse})
	return now.Session, err
}

func (d *daemon) delete(ctx context.Context, ws, id string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.client.DeleteAgentSessionWithResponse(ctx, ws, id)
	if err != nil {
		return err
	}
	_, err = as[json.RawMessage](reading{r.Body, r.HTTPResponse})
	return err
}
