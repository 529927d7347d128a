package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// CreateSession creates a root session, and with a first message its first turn, in one
// step. The same Key gives the same session, turn and message; with another request it is
// CodeConflict. CodeNotFound where the workspace is missing.
func (s *Store) CreateSession(ctx context.Context, n agent.NewSession) (agent.Submitted, error) {
	var out agent.Submitted
	_, err := s.write(ctx, func(t *tx) (err error) {
		w, err := liveWorkspace(bg, t.q, n.Workspace)
		if err != nil {
			return err
		}
		known, err := s.repeated(bg, t.q, w.PK, n)
		if err != nil {
			return err
		}
		if known != nil {
			out = *known
			return nil
		}
		return t.createSession(&w, n, &out)
	})
	return out, err
}

func (t *tx) createSession(w *dbgen.Workspace, n agent.NewSession, out *agent.Submitted) error {
	row, err := t.insertRoot(w, n)
	if err != nil {
		return err
	}
	root := identOf(row)
	if err := t.remember(root); err != nil {
		return err
	}
	t.emit(pendingEvent{kind: agent.SessionCreated, session: root.home, shows: root})
	if err := t.searchTitle(root); err != nil {
		return err
	}
	if n.Message == nil {
		if out.Session, err = t.sessionEntity(root); err != nil {
			return err
		}
		return t.noteKey(w.PK, root, n, 0, "")
	}
	m := *n.Message
	m.Session = root.id
	r, message, err := t.beginTurn(root, m, out)
	if err != nil {
		return err
	}
	return t.noteKey(w.PK, root, n, r.PK, message.ID)
}

func (t *tx) insertRoot(w *dbgen.Workspace, n agent.NewSession) (*dbgen.Session, error) {
	t.s.w.sessionKey++
	row := dbgen.Session{
		PK: t.s.w.sessionKey, ID: t.s.opt.Mint.Session(), Workspace: w.PK, WorkspaceID: w.ID, Kind: agent.KindRoot,
		Root: t.s.w.sessionKey, Provider: n.Provider, Title: n.Title, Titled: flag(n.Title != ""), Cwd: n.Cwd, Model: n.Model,
		PermissionMode: n.PermissionMode, Scenario: n.Scenario, Capabilities: text(n.Capabilities), Seq: t.nextSeq(w.PK),
		CreatedAt: t.now, UpdatedAt: t.now,
	}
	if n.Message != nil && row.Title == "" {
		row.Title = titleFrom(n.Message.Text)
	}
	if err := t.insertSession(&row); err != nil {
		return nil, err
	}
	return &row, nil
}

const (
	maxTitle  = 80   // runes of a title that is taken from a message
	maxSearch = 4000 // bytes of a title, and of a first message, that are searched
)

// titleFrom is the first line of a message, cut to a title's length.
func titleFrom(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.TrimSpace(line)
	if utf8.RuneCountInString(line) <= maxTitle {
		return line
	}
	return string([]rune(line)[:maxTitle-1]) + "…"
}

// folded is a text as the list searches it.
func folded(s string) string {
	s = strings.ToLower(s)
	if len(s) > maxSearch {
		s = strings.ToValidUTF8(s[:maxSearch], "")
	}
	return s
}

// searchTitle has the list find a root by the title it shows now.
func (t *tx) searchTitle(i *ident) error {
	if i.kind != agent.KindRoot {
		return nil
	}
	if err := t.q.SearchTitle(bg, dbgen.SearchTitleParams{Session: i.pk, Title: folded(i.row.Title)}); err != nil {
		return fmt.Errorf("search title: %w", err)
	}
	return nil
}

// Submit takes a person's message: it begins a turn, joins the open one, or is refused
// with the reason of agent.PlaceMessage. The same ClientMessageID gives the same answer, with
// another text CodeConflict. CodeNotFound.
func (s *Store) Submit(ctx context.Context, m agent.NewMessage) (agent.Submitted, error) {
	var out agent.Submitted
	_, err := s.write(ctx, func(t *tx) error {
		owner, err := t.liveSession(m.Session)
		if err != nil {
			return err
		}
		known, err := t.byClient(owner.pk, m.ClientMessageID)
		if err != nil {
			return err
		}
		if known != nil {
			if known.Body != m.Text {
				return agent.Errorf(agent.CodeConflict, "this clientMessageId was used for another message")
			}
			out, err = t.repeatMessage(owner, known)
			return err
		}
		return t.place(owner, m, &out)
	})
	return out, err
}

// byClient returns the message that a client sent under its own id, or nil.
func (t *tx) byClient(session int64, id string) (*dbgen.Message, error) {
	if id == "" {
		return nil, nil
	}
	row, err := t.q.MessageByClientID(bg, dbgen.MessageByClientIDParams{Session: session, ClientID: id})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("message of client: %w", err)
	}
	return &row, nil
}

// repeatMessage answers a message that was taken before.
func (t *tx) repeatMessage(owner *ident, row *dbgen.Message) (agent.Submitted, error) {
	out := agent.Submitted{Repeated: true, Delivery: row.Delivery}
	r, err := t.turnByPK(row.Turn)
	if err != nil {
		return out, err
	}
	turn, message := turnOf(&r.Turn), messageOf(row, "")
	out.Turn, out.Message = &turn, &message
	op, err := t.latestOperation(row.Turn, row.TurnID, agent.OperationGuide, "", row.ID)
	if err != nil {
		return out, err
	}
	if op != nil {
		o := operationOf(op, nil)
		out.Operation = &o
	}
	out.Session, err = t.sessionEntity(owner)
	return out, err
}

func (t *tx) place(owner *ident, m agent.NewMessage, out *agent.Submitted) error {
	view := agent.PlaceView{Kind: owner.kind}
	var open *turnRow
	if owner.kind == agent.KindRoot {
		var err error
		if open, err = t.openRootTurn(owner); err != nil {
			return err
		}
		view.Capabilities = capabilitiesOf(owner.row.Capabilities)
		if open != nil {
			view.RootOpen, view.CancelOpen = true, open.Closed == 1
			view.LiveProvider = open.ProviderLive > open.ProviderReserved
		}
	}
	switch delivery, code := agent.PlaceMessage(view); {
	case code != "":
		return agent.Errorf(code, "%s", placeRefusals[code])
	case delivery == agent.DeliveryStarted:
		if owner.row.Title == "" {
			if err := t.nameFromMessage(owner, m.Text); err != nil {
				return err
			}
		}
		_, _, err := t.beginTurn(owner, m, out)
		return err
	default:
		return t.guide(owner, open, m, delivery, out)
	}
}

var placeRefusals = map[agent.Code]string{
	agent.CodeChildInput:          "a message goes to the main agent, not to one it delegated to",
	agent.CodeTurnCanceling:       "the turn is being stopped; send the message when it has ended",
	agent.CodeGuidanceUnsupported: "this agent cannot take a message while it works; wait for the turn to end or stop it",
}

func (t *tx) nameFromMessage(owner *ident, s string) error {
	owner.row.Title = titleFrom(s)
	return t.rename(owner)
}

// rename writes what people may edit of a session.
func (t *tx) rename(i *ident) error {
	i.row.UpdatedAt = t.now
	if err := t.q.RenameSession(bg, dbgen.RenameSessionParams{
		Title: i.row.Title, Titled: i.row.Titled, Pinned: i.row.Pinned,
		PermissionMode: i.row.PermissionMode, Model: i.row.Model, UpdatedAt: t.now, PK: i.pk,
	}); err != nil {
		return fmt.Errorf("session %s: %w", i.id, err)
	}
	t.changed(i)
	return t.searchTitle(i)
}

// beginTurn starts a root turn with a person's message. The first one is searched.
func (t *tx) beginTurn(owner *ident, m agent.NewMessage, out *agent.Submitted) (*turnRow, *dbgen.Message, error) {
	r, err := t.newRootTurn(owner, agent.TriggerUser)
	if err != nil {
		return nil, nil, err
	}
	row, err := t.userMessage(owner, r, m, agent.DeliveryStarted)
	if err == nil {
		err = t.q.SearchMessage(bg, dbgen.SearchMessageParams{Session: owner.pk, Message: folded(m.Text)})
	}
	t.answer = func() error { return t.submitted(owner, r, row, nil, out) }
	return r, row, err
}

// guide adds a person's message to the open root turn, with the operation that delivers it.
func (t *tx) guide(owner *ident, r *turnRow, m agent.NewMessage, d agent.Delivery, out *agent.Submitted) error {
	row, err := t.userMessage(owner, r, m, d)
	if err != nil {
		return err
	}
	op, err := t.insertOperation(owner, r, dbgen.InsertOperationParams{
		Kind: agent.OperationGuide, Client: m.Client, MessageID: row.ID,
	})
	t.raise(owner)
	t.answer = func() error { return t.submitted(owner, r, row, op, out) }
	return err
}

// submitted is the answer, from the rows as they are committed.
func (t *tx) submitted(owner *ident, r *turnRow, row *dbgen.Message, op *dbgen.Operation, out *agent.Submitted) (err error) {
	turn, message := turnOf(&r.Turn), messageOf(row, "")
	*out = agent.Submitted{Turn: &turn, Message: &message, Delivery: row.Delivery}
	if op != nil {
		o := operationOf(op, nil)
		out.Operation = &o
	}
	out.Session, err = t.sessionEntity(owner)
	return err
}

func (t *tx) userMessage(owner *ident, r *turnRow, m agent.NewMessage, d agent.Delivery) (*dbgen.Message, error) {
	return t.insertMessage(owner, r, agent.Message{
		ID: t.s.opt.Mint.Message(), Role: agent.RoleUser, Kind: agent.MessageText, Content: m.Text, Status: agent.MessagePending,
	}, dbgen.InsertMessageParams{ClientID: m.ClientMessageID, Client: m.Client, Delivery: d})
}

// UpdateSession changes what people may edit of a session; nil leaves a field as it is.
// A title that a person chose is not changed by a provider any more. CodeNotFound.
func (s *Store) UpdateSession(ctx context.Context, ws agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error) {
	var out agent.Session
	_, err := s.write(ctx, func(t *tx) error {
		i, err := t.liveSession(id)
		if err == nil && i.workspaceID != ws {
			err = notFound("session", id)
		}
		if err != nil {
			return err
		}
		before := *i.row
		if p.Title != nil {
			i.row.Title, i.row.Titled = *p.Title, 1
		}
		if p.Pinned != nil {
			i.row.Pinned = flag(*p.Pinned)
		}
		if err := choose(i.row, p); err != nil {
			return err
		}
		if before != *i.row {
			if err := t.rename(i); err != nil {
				return err
			}
		}
		out, err = t.sessionEntity(i)
		return err
	})
	return out, err
}

// choose takes over choices of the beginning, which what runs already has made.
func choose(row *dbgen.Session, p agent.SessionPatch) error {
	mode, model := row.PermissionMode, row.Model
	if p.PermissionMode != nil {
		mode = *p.PermissionMode
	}
	if p.Model != nil {
		model = *p.Model
	}
	switch {
	case mode == row.PermissionMode && model == row.Model:
		return nil
	case row.Kind == agent.KindChild || row.LatestTurn != 0:
		return agent.Errorf(agent.CodeConflict, "the permission mode and the model of a session are chosen before its first turn")
	}
	row.PermissionMode, row.Model = mode, model
	return nil
}
