package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// tell follows the daemon's log of the session and says to the editor what it says, until
// ctx ends or there is nothing to follow any more.
func (s *session) tell(ctx context.Context) {
	absent := newAbsence(s)
	defer absent.stop()
	from := s.at
	ws, id := s.place()
	for item, err := range goclient.Follow(ctx, goclient.StreamOptions{
		Server: s.c.opt.Server, Token: s.c.opt.Token, HTTPClient: s.c.opt.HTTPClient, Client: clientName,
		Workspace: ws, Sessions: []string{id}, From: &from, State: absent.state,
		Snapshot: func(ctx context.Context) (goclient.Cursor, error) { return s.catchUp(ctx) },
	}) {
		switch {
		case err == nil:
			s.item(ctx, item)
		case ctx.Err() != nil:
			return
		default:
			s.c.log.Warn("the session is not followed any more", "session", id, "error", err)
			s.failHeld(gone(err))
			return
		}
	}
}

// gone is what a held prompt is told when its session cannot be followed.
func gone(err error) error {
	if ends(err) {
		return agent.Errorf(agent.CodeNotFound, "the session is not there any more")
	}
	return err
}

// absence ends the wait of prompts for a daemon that stays away.
type absence struct {
	s     *session
	timer *time.Timer
}

func newAbsence(s *session) *absence { return &absence{s: s} }

// state is told when the stream is lost and when it is back.
func (a *absence) state(err error) {
	if err == nil {
		a.stop()
		return
	}
	a.s.c.log.Info("the stream is interrupted", "session", a.s.id, "error", err)
	if a.timer == nil {
		a.timer = time.AfterFunc(absenceBound, func() {
			a.s.failHeld(errors.New("the daemon cannot be reached; the work itself may go on"))
		})
	}
}

func (a *absence) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// item says one event or one piece of text.
func (s *session) item(ctx context.Context, i goclient.StreamItem) {
	if i.Delta != nil {
		s.view.delta(s, *i.Delta)
		return
	}
	var e agent.Event
	raw, err := i.Event.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		s.c.log.Warn("an event is not understood", "seq", i.Seq, "error", err)
		return
	}
	s.event(ctx, e)
	s.at.Seq = e.Seq
}

// event says one committed change.
func (s *session) event(ctx context.Context, e agent.Event) {
	switch e.Kind {
	case agent.SessionCreated, agent.SessionUpdated:
		if v, ok := dataOf[agent.Session](s, e); ok {
			s.view.session(s, v)
		}
	case agent.SessionDeleted:
		if v, ok := dataOf[agent.Session](s, e); ok {
			s.view.deleted(s, v)
		}
	case agent.TurnCreated, agent.TurnUpdated:
		if v, ok := dataOf[agent.Turn](s, e); ok {
			s.view.turn(s, v)
		}
	case agent.MessageCreated, agent.MessageUpdated:
		if v, ok := dataOf[agent.Message](s, e); ok {
			if v.Role == agent.RoleUser && string(v.SessionID) == s.id {
				s.awaitSending(ctx)
			}
			s.view.message(s, v)
		}
	case agent.InteractionCreated, agent.InteractionUpdated:
		if v, ok := dataOf[agent.Interaction](s, e); ok {
			s.view.interaction(s, v)
		}
	case agent.OperationUpdated, agent.ProcessUpdated: // an editor has no place for them
	}
	s.view.conclude(s)
}

func dataOf[T any](s *session, e agent.Event) (T, bool) {
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		s.c.log.Warn("an event is not understood", "seq", e.Seq, "kind", e.Kind, "error", err)
		return v, false
	}
	return v, true
}

// catchUp goes on where the log does not reach back: what was missed is read from the
// transcripts, and states from the session.
func (s *session) catchUp(ctx context.Context) (goclient.Cursor, error) {
	ws, id := s.place()
	d, err := s.c.api.detail(ctx, ws, id)
	if err != nil {
		return goclient.Cursor{}, err
	}
	s.view.know(s, d)
	for _, n := range s.view.inOrder() {
		if err := s.missed(ctx, n); err != nil {
			return goclient.Cursor{}, err
		}
	}
	s.view.settle(s, d)
	if err := s.askOpen(ctx); err != nil {
		return goclient.Cursor{}, err
	}
	s.view.conclude(s)
	s.at = goclient.Cursor{Seq: d.Seq, Epoch: d.Epoch}
	return s.at, nil
}

// missed says what a transcript has that was not told yet.
func (s *session) missed(ctx context.Context, n *node) error {
	ws, _ := s.place()
	for _, id := range s.view.open(n) {
		m, err := s.c.api.message(ctx, ws, n.id, string(id))
		if isCode(err, agent.CodeNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		s.view.message(s, m)
	}
	after := n.last
	for {
		page, err := s.c.api.messages(ctx, ws, n.id, &after)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			s.view.message(s, m)
			after = m.Seq
		}
		if !page.HasAfter || len(page.Items) == 0 {
			return nil
		}
	}
}
