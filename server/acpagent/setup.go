package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// choices are what an editor may say of a new session under _meta.turnkeeper.
type choices struct {
	Turnkeeper struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
		Mode     string `json:"permissionMode"`
		Scenario string `json:"scenario"`
	} `json:"turnkeeper"`
}

// newSession begins a session in the workspace of its directory, which is made if there is
// none.
func (c *conn) newSession(r *request, f wire.Frame) {
	r.run(func(ctx context.Context) (any, error) {
		p, err := decode[acp.NewSessionRequest](f)
		if err == nil {
			err = checkCwd(p.Cwd)
		}
		if err != nil {
			return nil, err
		}
		var chosen choices
		acp.MetaOf(p.Meta, &chosen)
		n := goclient.NewAgentSession{Provider: cmp.Or(chosen.Turnkeeper.Provider, c.opt.Provider)}
		optional(&n.Model, cmp.Or(chosen.Turnkeeper.Model, c.opt.Model))
		optional(&n.PermissionMode, cmp.Or(chosen.Turnkeeper.Mode, c.opt.Mode))
		optional(&n.Scenario, chosen.Turnkeeper.Scenario)
		if n.Provider == "" {
			if n.Provider, err = c.firstProvider(ctx); err != nil {
				return nil, err
			}
		}
		ws, err := c.api.workspace(ctx, p.Cwd)
		if err != nil {
			return nil, err
		}
		made, err := c.api.create(ctx, ws.ID, n)
		if err != nil {
			return nil, err
		}
		return nil, c.begin(ctx, r, made)
	})
}

func optional(at **string, value string) {
	if value != "" {
		*at = &value
	}
}

// begin answers with a session that was just made, and follows it.
func (c *conn) begin(ctx context.Context, r *request, made agent.Session) error {
	d, err := c.api.detail(ctx, string(made.WorkspaceID), string(made.ID))
	if err != nil {
		return err
	}
	s := c.take(string(made.ID))
	s.setWorkspace(made.WorkspaceID)
	s.view = newView(c.flat(), d.Session)
	s.at = goclient.Cursor{Seq: d.Seq, Epoch: d.Epoch}
	r.reply(c.answerWith(ctx, string(made.ID), d.Session))
	s.release(0) // nothing was set up before
	s.startTelling()
	return nil
}

// setUp is session/load and session/resume: the editor takes up a session that is there,
// with its history or without. From its admission on no grant of the session counts.
func (c *conn) setUp(r *request, f wire.Frame) {
	var about acp.SessionRef
	if json.Unmarshal(f.Params, &about) != nil || about.SessionID == "" {
		r.run(func(context.Context) (any, error) { return nil, errParams("%s needs a sessionId", f.Method) })
		return
	}
	s := c.take(about.SessionID)
	epoch := s.suspend()
	wait, done := s.turnInLane()
	r.run(func(ctx context.Context) (any, error) {
		defer done()
		if err := wait(ctx); err != nil {
			return nil, err
		}
		err := s.setUp(ctx, r, f, epoch)
		if err != nil {
			s.afterFailure()
		}
		return nil, err
	})
}

// afterFailure goes on telling what an earlier setup began, without grants; a session that
// was never set up is not known.
func (s *session) afterFailure() {
	if s.view == nil {
		s.c.drop(s)
		return
	}
	s.mu.Lock()
	telling := s.told != nil
	s.mu.Unlock()
	switch {
	case telling:
	case s.unsaid != nil:
		s.present(*s.unsaid)
	default:
		s.startTelling()
	}
}

func (s *session) setUp(ctx context.Context, r *request, f wire.Frame, epoch int) error {
	p, err := decode[acp.LoadSessionRequest](f)
	if err == nil {
		err = checkCwd(p.Cwd)
	}
	if err != nil {
		return err
	}
	if f.Method == acp.MethodLoadSession && s.c.version() == acp.V2 {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "version 2 resumes with replayFrom"}
	}
	d, err := s.c.api.find(ctx, s.id, p.Cwd)
	if err != nil {
		return err
	}
	if !d.Session.IsRoot() {
		return errChild
	}
	s.stopTelling()
	s.setWorkspace(d.Session.WorkspaceID)
	v := newView(s.c.flat(), d.Session)
	v.quiet = true
	if f.Method == acp.MethodLoadSession || p.ReplayFrom != nil {
		err = s.replay(ctx, v, d)
	} else {
		err = s.skip(ctx, v, d)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	s.view, s.at = v, goclient.Cursor{Seq: d.Seq, Epoch: d.Epoch}
	answer := s.c.answerWith(ctx, s.id, d.Session)
	answer.SessionID = ""
	r.reply(answer)
	s.afterAnswer(d, epoch)
	return nil
}

// afterAnswer waits until the answer has really left; what is current follows it, with the
// grants if no later setup was admitted.
func (s *session) afterAnswer(d agent.SessionDetail, epoch int) {
	left := make(chan error, 1)
	s.c.out.Written(func(err error) { left <- err })
	if err := <-left; err != nil {
		return // the connection is over
	}
	if !s.release(epoch) {
		s.unsaid = &d // a later setup is on its way; only if it fails this one is what counts
		return
	}
	s.present(d)
}

// present tells what is current, children, states, grants and open questions, and goes on
// with the news.
func (s *session) present(d agent.SessionDetail) {
	s.unsaid = nil
	v := s.view
	v.quiet = false
	for _, n := range v.order[1:] {
		v.announce(s, n)
	}
	v.settle(s, d)
	if err := s.askOpen(s.c.ctx); err != nil && s.c.ctx.Err() == nil {
		s.c.log.Warn("open questions were not read", "error", err)
	}
	v.conclude(s)
	s.startTelling()
}

// replay tells all transcripts of the tree in the order in which they grew. Children are
// announced before anything of theirs; no state, grant or question is told.
func (s *session) replay(ctx context.Context, v *view, d agent.SessionDetail) error {
	all, err := s.transcripts(ctx, d)
	if err != nil {
		return err
	}
	if v.flat { // a card needs its turn
		for _, a := range d.ChildSessions {
			v.remember(a)
		}
	}
	for _, m := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.expose(v, d, string(m.SessionID))
		if m.ChildSessionID != "" {
			s.expose(v, d, string(m.ChildSessionID))
		}
		v.message(s, m)
	}
	for _, a := range d.ChildSessions {
		s.expose(v, d, string(a.ID))
	}
	return nil
}

// remember adds a child whose turn is known from the snapshot.
func (v *view) remember(a agent.Session) {
	if v.nodes[string(a.ID)] != nil {
		return
	}
	n := v.add(a)
	if n.turn = a.ActiveTurn; n.turn == nil {
		n.turn = a.LatestTurn
	}
}

// expose announces a child and what is above it.
func (s *session) expose(v *view, d agent.SessionDetail, id string) {
	i := slices.IndexFunc(d.ChildSessions, func(a agent.Session) bool { return string(a.ID) == id })
	if i < 0 {
		return
	}
	a := d.ChildSessions[i]
	s.expose(v, d, string(a.ParentSessionID))
	if n := v.nodes[id]; n != nil {
		if !n.announced {
			v.announce(s, n)
			v.sync(s, n)
		}
		return
	}
	v.session(s, a)
}

// transcripts reads everything that the tree has said, in order.
func (s *session) transcripts(ctx context.Context, d agent.SessionDetail) ([]agent.Message, error) {
	var all []agent.Message
	for _, a := range append([]agent.Session{d.Session}, d.ChildSessions...) {
		for after := int64(0); ; {
			page, err := s.c.api.messages(ctx, string(a.WorkspaceID), string(a.ID), &after)
			if err != nil {
				return nil, err
			}
			for _, m := range page.Items {
				if m.Seq <= d.Seq { // what is newer is told as news
					all = append(all, m)
				}
				after = m.Seq
			}
			if !page.HasAfter || len(page.Items) == 0 {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b agent.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

// skip notes what is there without telling it. Of what is still growing only the rest will
// be told.
func (s *session) skip(ctx context.Context, v *view, d agent.SessionDetail) error {
	for _, a := range d.ChildSessions {
		v.remember(a)
		s.c.adopt(string(a.ID), a.Handles.ThreadID, a.Handles.TaskID, a.Handles.AgentID)
	}
	for _, n := range v.order {
		n.base, n.last = d.Seq, d.Seq
		page, err := s.c.api.messages(ctx, string(n.about.WorkspaceID), n.id, nil)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			if m.Seq <= d.Seq && !m.Status.Ended() {
				n.messages[m.ID] = &toldMessage{kind: v.kindOf(s, m), sent: len(m.Content)}
			}
		}
	}
	return nil
}

// forgetSession ends what is told of a session here.
func (c *conn) forgetSession(s *session) {
	s.stopTelling()
	s.mu.Lock()
	clear(s.granted)
	s.mu.Unlock()
	for _, a := range s.closeBelow(s.id) {
		s.withdraw(a)
	}
	c.drop(s)
}
