package acp

import (
	"context"
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// maxPages bounds how much of an agent's list is read.
const maxPages = 50

// Sessions lists the conversations that the agent has kept of this workspace. Children are
// not among them. Errors: CodeProviderRefused where it keeps no list, CodeTimeout,
// CodeProviderGone.
func (r *runtime) Sessions(ctx context.Context) ([]acp.SessionInfo, error) {
	var all []acp.SessionInfo
	cursor := ""
	for range maxPages {
		var page acp.ListSessionsResponse
		q := acp.ListSessionsRequest{Cwd: r.params.Root.Cwd, Cursor: cursor}
		if err := r.demand(ctx, func(a abilities) bool { return a.list }, acp.MethodListSessions, func() any { return q }, "list its sessions", &page); err != nil {
			return nil, err
		}
		all = append(all, page.Sessions...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	return all, nil
}

// Fork makes a copy of the conversation as it stands and returns the agent's name for it. A
// runtime that is opened with that name goes on with the copy: its children are copies, too,
// with other names, and nothing of this one can be stopped from there. Errors: as Sessions.
func (r *runtime) Fork(ctx context.Context) (string, error) {
	var got acp.SessionResponse
	params := func() any {
		return acp.LoadSessionRequest{SessionID: r.root.id, Cwd: r.params.Root.Cwd, MCPServers: []json.RawMessage{}}
	}
	err := r.demand(ctx, func(a abilities) bool { return a.fork }, acp.MethodForkSession, params, "copy the session", &got)
	if err == nil && got.SessionID == "" {
		err = agent.Errorf(agent.CodeProviderRefused, "%s made a copy without a name", r.o.Title)
	}
	return got.SessionID, err
}

// demand sends a request that the agent may not serve, and waits for its answer.
func (r *runtime) demand(ctx context.Context, able func(abilities) bool, method string, params func() any, what string, result any) error {
	w := serial.NewWaiter()
	r.Do(func() {
		switch gone := r.gone(); {
		case gone != nil:
			r.Finish(w, gone)
		case !able(r.able):
			r.Finish(w, agent.Errorf(agent.CodeProviderRefused, "%s cannot %s", r.o.Title, what))
		default:
			r.send(method, params(), sessionBound, func(a wire.Answer) {
				if err := a.Decode(result); err != nil {
					r.Finish(w, r.callError(what, err))
					return
				}
				r.Finish(w, nil)
			})
		}
	})
	return r.Await(ctx, w)
}
