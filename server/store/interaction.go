package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

func askState(r *dbgen.Interaction) agent.InteractionState {
	return agent.InteractionState{Status: r.Status, Response: responseOf(r.Response)}
}

// applyAsk is askState backwards.
func applyAsk(r *dbgen.Interaction, s agent.InteractionState) error {
	r.Status, r.Response = s.Status, ""
	if s.Response != nil {
		b, err := marshal(s.Response)
		if err != nil {
			return err
		}
		r.Response = string(b)
	}
	return nil
}

func (t *tx) emitInteraction(kind agent.EventKind, owner *ident, r *dbgen.Interaction) {
	t.emit(pendingEvent{kind: kind, session: owner.home, turnID: r.TurnID, entity: interactionOf(r)})
}

// interaction returns one question of a turn, or nil.
func (t *tx) interaction(turn int64, id agent.RequestID) (*dbgen.Interaction, error) {
	row, err := t.q.Interaction(bg, dbgen.InteractionParams{Turn: turn, RequestID: id})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("question %s: %w", id, err)
	}
	return &row, nil
}

// ask records a question of one exact turn.
func (t *tx) ask(owner *ident, r *turnRow, i agent.Interaction) (agent.Applied, error) {
	if known, err := t.interaction(r.PK, i.RequestID); err != nil || known != nil {
		return agent.Applied{Verdict: agent.VerdictUnchanged}, err
	}
	next, verdict, code := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepPrompt})
	if verdict == agent.VerdictRefused {
		return refused(code), nil
	}
	if i.Options == nil {
		i.Options = []agent.Option{}
	}
	for q := range i.Detail.Questions { // a list on the wire is never null
		if i.Detail.Questions[q].Options == nil {
			i.Detail.Questions = slices.Clone(i.Detail.Questions) // the fact is the adapter's
			i.Detail.Questions[q].Options = []agent.Option{}
		}
	}
	if i.Owner == "" {
		i.Owner = agent.OwnerExact
	}
	row, err := t.q.InsertInteraction(bg, dbgen.InsertInteractionParams{
		Session: owner.pk, SessionID: owner.id, Root: owner.root, Turn: r.PK, TurnID: r.ID, RequestID: i.RequestID, Kind: i.Kind,
		Title: i.Title, Detail: text(i.Detail), Options: text(i.Options), ProviderTurnID: i.ProviderTurnID, Owner: i.Owner,
		CreatedAt: t.now, UpdatedAt: t.now,
	})
	if err != nil {
		return agent.Applied{}, fmt.Errorf("question %s: %w", i.RequestID, err)
	}
	t.emitInteraction(agent.InteractionCreated, owner, &row)
	return agent.Applied{Verdict: agent.VerdictApplied}, t.countPrompts(owner, r, next, 1)
}

// countPrompts moves a turn's open questions and everything that follows from their
// number: the phase of a child, the gate of a root turn, and the counters.
func (t *tx) countPrompts(owner *ident, r *turnRow, next agent.TurnState, by int64) error {
	r.Prompts += by
	if r.IsRoot == 1 {
		r.dirty = true
		t.touch(r.PK)
	} else {
		moved := r.Phase != next.Phase
		applyState(r, next)
		if err := t.moveChild(r); err != nil {
			return err
		}
		if moved {
			t.emitTurn(agent.TurnUpdated, owner, r)
		}
	}
	t.count(owner, by)
	if owner.kind == agent.KindChild {
		root, err := t.root(owner)
		if err != nil {
			return err
		}
		t.count(root, by)
	}
	return nil
}

// endInteraction takes what the provider says of a question that is over.
func (t *tx) endInteraction(owner *ident, r *turnRow, f agent.InteractionEnded) (agent.Applied, error) {
	row, err := t.interaction(r.PK, f.Request)
	if err != nil {
		return agent.Applied{}, err
	}
	if row == nil {
		return refused(agent.CodeUnknownOwner), nil
	}
	verdict, code, err := t.moveInteraction(owner, r, row, agent.InteractionChange{Step: f.Step}, nil)
	return agent.Applied{Verdict: verdict, Code: code}, err
}

// moveInteraction moves one question by one step, with the error that people are shown.
func (t *tx) moveInteraction(owner *ident, r *turnRow, row *dbgen.Interaction, c agent.InteractionChange, shown *agent.Error) (agent.Verdict, agent.Code, error) {
	next, verdict, code := agent.NextInteraction(askState(row), c)
	if verdict != agent.VerdictApplied {
		return verdict, code, nil
	}
	wasOpen := row.Status.Open()
	if err := applyAsk(row, next); err != nil {
		return verdict, code, err
	}
	row.ErrorCode, row.ErrorText = codeText(shown)
	if row.Response == "" {
		row.AnsweredBy = ""
	}
	if err := t.writeInteraction(owner, row); err != nil {
		return verdict, code, err
	}
	if !wasOpen || row.Status.Open() || r.Phase == agent.PhaseSettled {
		return verdict, code, nil
	}
	state := stateOf(&r.Turn)
	if r.Prompts == 1 { // it was the last one
		state, _, _ = agent.NextTurn(state, agent.Change{Step: agent.StepResume})
	}
	return verdict, code, t.countPrompts(owner, r, state, -1)
}

func (t *tx) writeInteraction(owner *ident, r *dbgen.Interaction) error {
	row, err := t.q.WriteInteraction(bg, dbgen.WriteInteractionParams{
		Status: r.Status, AnsweredBy: r.AnsweredBy, Response: r.Response, ErrorCode: r.ErrorCode, ErrorText: r.ErrorText,
		UpdatedAt: t.now, PK: r.PK,
	})
	if err != nil {
		return fmt.Errorf("question %s: %w", r.RequestID, err)
	}
	*r = row
	t.emitInteraction(agent.InteractionUpdated, owner, r)
	return nil
}

// PrepareAnswer records a person's answer to one exact question and the operation that
// delivers it. The question is answering until the provider has taken the answer. The same
// answer again returns what was recorded. CodeNotFound, CodeInvalidAnswer,
// CodeInteractionAnswered, CodeInteractionGone.
func (s *Store) PrepareAnswer(ctx context.Context, a agent.NewAnswer) (agent.Interaction, agent.Operation, error) {
	var i agent.Interaction
	var o agent.Operation
	_, err := s.write(ctx, func(t *tx) (err error) {
		i, o, err = t.prepareAnswer(a)
		return err
	})
	return i, o, err
}

func (t *tx) prepareAnswer(a agent.NewAnswer) (i agent.Interaction, o agent.Operation, err error) {
	owner, r, row, err := t.question(a.Session, a.Turn, a.Request)
	if err != nil {
		return i, o, err
	}
	change := agent.InteractionChange{Step: agent.AskAnswer, Response: a.Response}
	_, verdict, code := agent.NextInteraction(askState(row), change)
	switch verdict {
	case agent.VerdictUnchanged:
		op, err := t.latestOperation(r.PK, r.ID, agent.OperationAnswer, row.RequestID, "")
		if err != nil {
			return i, o, err
		}
		if op != nil {
			o = operationOf(op, nil)
		}
		return interactionOf(row), o, nil
	case agent.VerdictRefused:
		return i, o, agent.Errorf(code, "question %s: %s", row.RequestID, answerRefusals[code])
	}
	if err := agent.CheckAnswer(interactionOf(row), a.Response); err != nil {
		return i, o, err
	}
	row.AnsweredBy = a.Client
	if _, _, err := t.moveInteraction(owner, r, row, change, nil); err != nil {
		return i, o, err
	}
	op, err := t.insertOperation(owner, r, dbgen.InsertOperationParams{
		Kind: agent.OperationAnswer, Client: a.Client, RequestID: row.RequestID,
	})
	if err != nil {
		return i, o, err
	}
	return interactionOf(row), operationOf(op, nil), nil
}

var answerRefusals = map[agent.Code]string{
	agent.CodeInteractionAnswered: "another answer came first",
	agent.CodeInteractionGone:     "it is no longer open",
}

// question resolves the tuple that names a question, for commands.
func (t *tx) question(session agent.SessionID, turn agent.TurnID, id agent.RequestID) (*ident, *turnRow, *dbgen.Interaction, error) {
	owner, err := t.liveSession(session)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := t.turn(owner, turn)
	if err == nil && r == nil {
		err = notFound("turn", turn)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	row, err := t.interaction(r.PK, id)
	if err == nil && row == nil {
		err = notFound("question", id)
	}
	return owner, r, row, err
}

// CompleteAnswer records how the delivery of an answer ended. Only without failure is the
// question answered; else it is open again, with the error shown, and can be answered again.
func (s *Store) CompleteAnswer(ctx context.Context, id agent.OperationID, failure *agent.Error) (agent.Operation, error) {
	return s.complete(ctx, id, agent.OperationAnswer, func(t *tx, op *dbgen.Operation, _ []dbgen.OperationTarget) (agent.OperationStatus, *agent.Error, error) {
		owner, r, row, err := t.question(op.SessionID, op.TurnID, op.RequestID)
		if err != nil {
			return agent.OperationFailed, nil, err
		}
		if row.Status == agent.InteractionAnswered { // the provider said so first, whatever became of the call
			return agent.OperationSucceeded, nil, nil
		}
		step := agent.AskDelivered
		if failure != nil {
			step = agent.AskFailed
		}
		if _, _, err := t.moveInteraction(owner, r, row, agent.InteractionChange{Step: step}, failure); err != nil {
			return agent.OperationFailed, nil, err
		}
		if failure == nil && row.Status != agent.InteractionAnswered {
			failure = agent.Errorf(agent.CodeInteractionGone, "the question was withdrawn before the answer arrived")
		}
		if failure != nil {
			return agent.OperationFailed, failure, nil
		}
		return agent.OperationSucceeded, nil, nil
	})
}
