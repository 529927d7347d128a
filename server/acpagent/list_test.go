package acpagent

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A list goes over all workspaces, a page at a time, and finds what has a directory.
func TestListGoesOverAllWorkspaces(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		made := map[string]string{} // directory by session
		dirs := []string{w.dir, t.TempDir(), t.TempDir()}
		for i, n := range []int{60, 1, 2} { // one workspace has more than a page
			for range n {
				var r acp.SessionResponse
				e.must(acp.MethodNewSession, map[string]any{"cwd": dirs[i], "mcpServers": []any{}}, &r)
				made[r.SessionID] = dirs[i]
			}
		}
		for cwd, want := range map[string]int{"": 63, dirs[0]: 60, dirs[2]: 2} {
			seen := map[string]bool{}
			for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
				p := map[string]any{}
				if cwd != "" {
					p["cwd"] = cwd
				}
				if cursor != "" {
					p["cursor"] = cursor
				}
				var l acp.ListSessionsResponse
				e.must(acp.MethodListSessions, p, &l)
				for _, s := range l.Sessions {
					if seen[s.SessionID] || made[s.SessionID] != s.Cwd || cwd != "" && s.Cwd != cwd {
						t.Errorf("listed %+v", s)
					}
					seen[s.SessionID] = true
				}
				if cursor = l.NextCursor; pages > 10 {
					t.Fatal("the list does not end")
				}
			}
			if len(seen) != want {
				t.Errorf("%d sessions of %q, want %d", len(seen), cwd, want)
			}
		}
	})
}

// What is deleted in the web view ends at the editor, and a child that is deleted there
// loses its grant.
func TestDeletedInTheWebView(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		alpha, beta := root.spawn("alpha"), root.spawn("beta")
		e.grant(alpha)
		e.grant(beta)
		alpha.r.apply(agent.SessionDescribed{Session: alpha.session, Title: "Alpha, renamed"})
		e.from(0, "the new title", func(l line) bool {
			u := l.child(string(alpha.session))
			return u != nil && u.Title.Or("") == "Alpha, renamed"
		})
		path := w.path(session)
		w.web("DELETE", w.path(string(alpha.session)), nil, nil)
		e.from(0, "the end of the grant", isRevoked(alpha.session))
		e.cancel(string(alpha.session))
		e.fence()
		none(t, "a stop", w.fake.cancels)
		w.web("DELETE", path, nil, nil)
		e.from(0, "the other grant's end", isRevoked(beta.session))
		if version == acp.V1 {
			if l := e.response(prompt); l.Error == nil || l.Error.Code != acp.CodeResourceNotFound {
				t.Errorf("the prompt ended with %s", l.raw)
			}
		}
		e.refused(acp.CodeResourceNotFound, acp.MethodPrompt, map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": "x"}}})
	})
}

// A choice of the beginning can be taken back as long as it is one.
func TestFirstFoundProviderAndNoChoice(t *testing.T) {
	w := newWorld(t, newFake())
	e := w.newEditor(acp.V1, editorOptions{})
	var r acp.SessionResponse
	e.must(acp.MethodNewSession, map[string]any{"cwd": w.dir, "mcpServers": []any{}}, &r)
	e.must(acp.MethodSetMode, acp.SetModeRequest{SessionID: r.SessionID, ModeID: unset}, nil)
	if d := w.detail(r.SessionID); d.Session.Provider != "fake" || d.Session.PermissionMode != "" {
		t.Errorf("began as %+v", d.Session)
	}
}
