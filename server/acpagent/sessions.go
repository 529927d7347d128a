package acpagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// page is a place in the list of sessions over all workspaces.
type page struct {
	Workspace agent.WorkspaceID `json:"w"`
	Cursor    string            `json:"c,omitempty"`
}

func (p page) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings always encode
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func pageOf(cursor string) (page, error) {
	var p page
	if cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, errParams("the cursor is not one of ours")
	}
	return p, nil
}

// listSessions lists roots, workspace after workspace. Children are never in it.
func (c *conn) listSessions(r *request, f wire.Frame) {
	r.run(func(ctx context.Context) (any, error) {
		var p acp.ListSessionsRequest
		if len(f.Params) > 0 && json.Unmarshal(f.Params, &p) != nil {
			return nil, errParams("%s: not understood", f.Method)
		}
		at, err := pageOf(p.Cursor)
		if err != nil {
			return nil, err
		}
		spaces, err := c.api.workspaces(ctx)
		if err != nil {
			return nil, err
		}
		return c.listFrom(ctx, spaces, at, p.Cwd)
	})
}

// listFrom gives one page: of the first workspace from the place on that has any.
func (c *conn) listFrom(ctx context.Context, spaces []agent.Workspace, at page, cwd string) (any, error) {
	out := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for i, ws := range spaces {
		if at.Workspace != "" && ws.ID != at.Workspace {
			continue
		}
		cursor := at.Cursor
		at = page{}
		if !mayHold(ws.Path, cwd) {
			continue
		}
		got, err := c.api.sessions(ctx, ws.ID, cursor)
		if err != nil {
			return nil, err
		}
		for _, s := range got.Items {
			if cwd == "" || s.Cwd == cwd {
				out.Sessions = append(out.Sessions, info(s))
			}
		}
		switch {
		case got.NextCursor != "":
			out.NextCursor = page{ws.ID, got.NextCursor}.String()
		case i+1 < len(spaces):
			out.NextCursor = page{Workspace: spaces[i+1].ID}.String()
		}
		if len(out.Sessions) > 0 || got.NextCursor != "" {
			return out, nil
		}
	}
	out.NextCursor = ""
	return out, nil
}

// mayHold reports whether a workspace can have sessions of a directory.
func mayHold(workspace, cwd string) bool {
	return cwd == "" || cwd == workspace || strings.HasPrefix(cwd, strings.TrimSuffix(workspace, "/")+"/")
}

func info(s agent.Session) acp.SessionInfo {
	return acp.SessionInfo{SessionID: string(s.ID), Cwd: s.Cwd, Title: s.Title, UpdatedAt: s.UpdatedAt.UTC().Format(time.RFC3339)}
}

// named runs what concerns one root, in its lane. One that was not taken up here is looked
// for.
func (c *conn) named(r *request, f wire.Frame, do func(ctx context.Context, ws, id string, s *session) (any, error)) {
	about, err := decode[acp.SessionRef](f)
	s := c.session(about.SessionID)
	if err != nil || s == nil {
		r.run(func(ctx context.Context) (any, error) {
			if err != nil {
				return nil, err
			}
			d, err := c.api.find(ctx, about.SessionID, "")
			if err != nil {
				return nil, err
			}
			if !d.Session.IsRoot() {
				return nil, errChild
			}
			return do(ctx, string(d.Session.WorkspaceID), about.SessionID, nil)
		})
		return
	}
	wait, done := s.turnInLane()
	r.run(func(ctx context.Context) (any, error) {
		defer done()
		if err := wait(ctx); err != nil {
			return nil, err
		}
		ws, id := s.place()
		if ws == "" {
			return nil, errNoSession(id)
		}
		return do(ctx, ws, id, s)
	})
}

// closeSession stops everything that runs in the session, tells its end, and lets go of it.
// The session itself stays, and can be taken up again.
func (c *conn) closeSession(r *request, f wire.Frame) {
	c.named(r, f, func(ctx context.Context, _, id string, s *session) (any, error) {
		if s == nil {
			return nil, errNoSession(id)
		}
		ctx, cancel := context.WithTimeout(ctx, closeBound)
		defer cancel()
		s.stopRoot()
		if err := s.untilTold(ctx); err != nil {
			return nil, err
		}
		c.forgetSession(s)
		s.failHeld(agent.Errorf(agent.CodeNotFound, "the session was closed"))
		return acp.Empty{}, nil
	})
}

// deleteSession deletes a session for everybody, with everything below it.
func (c *conn) deleteSession(r *request, f wire.Frame) {
	c.named(r, f, func(ctx context.Context, ws, id string, s *session) (any, error) {
		if err := c.api.delete(ctx, ws, id); err != nil {
			return nil, err
		}
		if s != nil {
			c.forgetSession(s)
			s.failHeld(agent.Errorf(agent.CodeNotFound, "the session was deleted"))
		}
		return acp.Empty{}, nil
	})
}

type titled struct {
	Title string `json:"title"`
}

// setTitle names a session for everybody.
func (c *conn) setTitle(r *request, f wire.Frame) {
	p, err := decode[titled](f)
	c.named(r, f, func(ctx context.Context, ws, id string, _ *session) (any, error) {
		if err != nil {
			return nil, err
		}
		if _, err := c.api.patch(ctx, ws, id, goclient.AgentSessionPatch{Title: &p.Title}); err != nil {
			return nil, err
		}
		return titled{p.Title}, nil
	})
}
