package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// ContentBlock is one part of a person's message.
type ContentBlock struct {
	Type string `json:"type" enum:"text"`
	Text string `json:"text" minLength:"1"`
}

// FirstMessage begins a session's first turn.
type FirstMessage struct {
	ClientMessageID string         `json:"clientMessageId,omitempty" maxLength:"200" pattern:"^[!-~]*$" patternDescription:"visible ASCII characters" doc:"Chosen by the client; the same id gives the same answer"`
	Content         []ContentBlock `json:"content" minItems:"1" maxItems:"64"`
}

// NewAgentSession is the body of createAgentSession.
type NewAgentSession struct {
	Provider       string        `json:"provider" minLength:"1" maxLength:"100" doc:"Name of a provider"`
	Title          string        `json:"title,omitempty" maxLength:"200" doc:"Default: the beginning of the first message"`
	Cwd            string        `json:"cwd,omitempty" maxLength:"4096" doc:"Absolute path; default: the workspace's"`
	Model          string        `json:"model,omitempty" maxLength:"200"`
	PermissionMode string        `json:"permissionMode,omitempty" maxLength:"100" doc:"One of the provider's permissionModes"`
	Scenario       string        `json:"scenario,omitempty" maxLength:"100" doc:"Built-in scenario of the demo provider"`
	Message        *FirstMessage `json:"message,omitempty" doc:"Starts the first turn at once"`
}

// CreatedSession is the answer of createAgentSession.
type CreatedSession struct {
	Session agent.Session  `json:"session"`
	Turn    *agent.Turn    `json:"turn,omitempty" doc:"The first turn, where a message was given"`
	Message *agent.Message `json:"message,omitempty"`
}

// AgentSessionPatch is the body of updateAgentSession; absent fields stay as they are.
type AgentSessionPatch struct {
	Title  *string `json:"title,omitempty" minLength:"1" maxLength:"200"`
	Pinned *bool   `json:"pinned,omitempty"`
	// Choices of the beginning.
	PermissionMode *string `json:"permissionMode,omitempty" maxLength:"200" doc:"One of the provider's permissionModes; before the first turn, later 409 conflict"`
	Model          *string `json:"model,omitempty" maxLength:"200" doc:"Before the first turn, later 409 conflict"`
}

// SessionAnswer is the answer of updateAgentSession.
type SessionAnswer struct {
	Session agent.Session `json:"session"`
}

func (a *API) registerSessions() {
	register(a, huma.Operation{
		OperationID: "listAgentSessions", Method: http.MethodGet, Path: pathSessions, Tags: []string{tagSessions},
		Summary:     "List root sessions",
		Description: "Most recently updated first. Children are read with their root.",
	}, a.listSessions)
	register(a, huma.Operation{
		OperationID: "createAgentSession", Method: http.MethodPost, Path: pathSessions, Tags: []string{tagSessions},
		DefaultStatus: http.StatusCreated, MaxBodyBytes: messageBody,
		Summary: "Create a root session, and start its first turn where a message is given",
	}, a.createSession)
	register(a, huma.Operation{
		OperationID: "getAgentSession", Method: http.MethodGet, Path: pathSession, Tags: []string{tagSessions},
		Summary:     "Read a session with every session below it",
		Description: "One snapshot, flat, true at seq: follow the stream after seq and nothing is lost or doubled. With If-None-Match an unchanged workspace answers 304.",
	}, a.getSession, answer{status: http.StatusNotModified, text: "The copy that If-None-Match names is still true"})
	register(a, huma.Operation{
		OperationID: "updateAgentSession", Method: http.MethodPatch, Path: pathSession, Tags: []string{tagSessions},
		Summary: "Change the title, pin or unpin",
	}, a.updateSession)
	register(a, huma.Operation{
		OperationID: "deleteAgentSession", Method: http.MethodDelete, Path: pathSession, Tags: []string{tagSessions},
		DefaultStatus: http.StatusNoContent,
		Summary:       "Delete a session and every session below it",
		Description:   "What still runs is stopped; what arrives later meets a closed door. A second call answers the same.",
	}, a.deleteSession)
}

func (a *API) listSessions(ctx context.Context, in *struct {
	WorkspacePath
	Cursor    string `query:"cursor" maxLength:"1000" doc:"nextCursor of the page before"`
	Limit     int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Query     string `query:"q" maxLength:"200" doc:"Part of the title or of the first message, in any case"`
	Provider  string `query:"provider" maxLength:"100"`
	Attention string `query:"attention" enum:"none,waiting,failed,stalled"`
},
) (*out[sessionPage], error) {
	page, err := a.deps.Reader.List(ctx, agent.SessionFilter{
		Workspace: in.Workspace, Query: in.Query, Provider: in.Provider, Attention: agent.Attention(in.Attention),
		Cursor: in.Cursor, Limit: in.Limit,
	})
	return &out[sessionPage]{sessionPage(page)}, err
}

func (a *API) createSession(ctx context.Context, in *struct {
	WorkspacePath
	IdempotencyKey
	Body NewAgentSession
},
) (*out[CreatedSession], error) {
	b := in.Body
	s := agent.NewSession{
		Workspace: in.Workspace, Key: in.Key, Provider: b.Provider, Title: b.Title, Cwd: b.Cwd,
		Model: b.Model, PermissionMode: b.PermissionMode, Scenario: b.Scenario,
	}
	if b.Message != nil {
		s.Message = &agent.NewMessage{
			ClientMessageID: b.Message.ClientMessageID, Text: textOf(b.Message.Content), Client: clientOf(ctx),
		}
	}
	done, err := a.deps.Commands.CreateSession(ctx, s)
	return &out[CreatedSession]{CreatedSession{done.Session, done.Turn, done.Message}}, err
}

// textOf joins the blocks of a message; each block is a paragraph of its own.
func textOf(blocks []ContentBlock) string {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n\n")
}

func (a *API) updateSession(ctx context.Context, in *struct {
	SessionPath
	Body AgentSessionPatch
},
) (*out[SessionAnswer], error) {
	s, err := a.deps.Commands.UpdateSession(ctx, in.Workspace, in.Session, agent.SessionPatch{
		Title: in.Body.Title, Pinned: in.Body.Pinned, PermissionMode: in.Body.PermissionMode, Model: in.Body.Model,
	})
	return &out[SessionAnswer]{SessionAnswer{s}}, err
}

func (a *API) deleteSession(ctx context.Context, in *SessionPath) (*struct{}, error) {
	return nil, a.deps.Commands.DeleteSession(ctx, in.Workspace, in.Session)
}
