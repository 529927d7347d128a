package store

import (
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// below is where the events of a turn's session belong, without reading the session: of a
// large tree that would be a statement for each child.
func below(root *ident, session agent.SessionID) home {
	h := root.home
	h.id = session
	return h
}

// ending is how one child turn of many ends.
type ending struct {
	row  *turnRow
	next agent.TurnState
}

// settleChildren ends child turns of one tree, set by set: a statement for each different
// ending, however many there are. Their messages and questions close with them.
func (t *tx) settleChildren(root *ident, all []ending) error {
	if len(all) == 0 {
		return nil
	}
	type same struct {
		outcome agent.Outcome
		code    agent.Code
		text    string
	}
	groups := map[same][]int64{}
	rows := make([]*turnRow, len(all))
	keys := make([]int64, len(all))
	var prompts int64
	for i, e := range all {
		applyState(e.row, e.next)
		prompts += e.row.Prompts
		e.row.SettledAt, e.row.Prompts = t.now, 0
		g := same{e.row.Outcome, e.row.ErrorCode, e.row.ErrorText}
		groups[g] = append(groups[g], e.row.PK)
		rows[i], keys[i] = e.row, e.row.PK
	}
	rootTurn := all[0].row.RootTurn
	for g, keys := range groups {
		var n int64
		var err error
		if int64(len(keys)) == root.active { // all that live: rows are changed as they are found
			n, err = t.q.SettleLiveBelow(bg, dbgen.SettleLiveBelowParams{
				Outcome: g.outcome, ErrorCode: g.code, ErrorText: g.text, SettledAt: t.now, RootTurn: rootTurn,
			})
		} else {
			n, err = t.q.SettleChildTurns(bg, dbgen.SettleChildTurnsParams{
				Outcome: g.outcome, ErrorCode: g.code, ErrorText: g.text, SettledAt: t.now, Keys: keysJSON(keys),
			})
		}
		if err != nil {
			return fmt.Errorf("settle %d turns: %w", len(keys), err)
		}
		if n != int64(len(keys)) {
			return fmt.Errorf("settle %d turns: %d were live", len(keys), n)
		}
	}
	t.ended = append(t.ended, rows...)
	t.s.activity.drop(keys...)
	t.pending = slices.Grow(t.pending, len(rows)+4)
	for _, r := range rows {
		t.emit(pendingEvent{kind: agent.TurnUpdated, session: below(root, r.SessionID), turnID: r.ID, turn: r})
	}
	t.countLive(root, -int64(len(all)))
	t.touch(rootTurn)
	return t.closeTurns(rows, prompts, root)
}

// closeTurns ends what turns that have just settled leave open: streaming messages are cut
// off, a person's text that nobody took is undelivered, questions are superseded. owner is
// their session, or the root of their tree. prompts is how many questions they had open.
func (t *tx) closeTurns(rows []*turnRow, prompts int64, owner *ident) error {
	var mayHave []int64
	all := make([]int64, len(rows))
	for i, r := range rows {
		all[i] = r.PK
		if r.mayHaveOpen {
			mayHave = append(mayHave, r.PK)
		}
	}
	if len(mayHave) > 0 {
		if err := t.closeMessages(mayHave, owner); err != nil {
			return err
		}
	}
	if prompts > 0 {
		return t.closeInteractions(all, owner)
	}
	return nil
}

// manyTurns is from how many turns on their open messages are looked for among all that are
// open.
const manyTurns = 256

// openMessages are those of turns below one root turn, or of one turn.
func (t *tx) openMessages(turns []int64) ([]dbgen.Message, error) {
	if len(turns) < manyTurns {
		return t.q.OpenMessagesOf(bg, keysJSON(turns))
	}
	open, err := t.q.OpenMessagesBelow(bg, t.s.w.turns[turns[0]].RootTurn)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	theirs := make(map[int64]bool, len(turns))
	for _, pk := range turns {
		theirs[pk] = true
	}
	return slices.DeleteFunc(open, func(m dbgen.Message) bool { return !theirs[m.Turn] }), nil
}

// closeMessages ends the open messages of turns that have settled.
func (t *tx) closeMessages(turns []int64, owner *ident) error {
	open, err := t.openMessages(turns)
	if err != nil || len(open) == 0 {
		return err
	}
	keys := make([]int64, len(open))
	for i := range open {
		keys[i] = open[i].PK
		delete(t.s.w.streams, open[i].ID)
	}
	if err := t.endMessages(keys); err != nil {
		return err
	}
	ended, err := t.q.MessagesByPK(bg, keysJSON(keys))
	if err != nil {
		return fmt.Errorf("ended messages: %w", err)
	}
	for i := range ended {
		t.emitMessage(agent.MessageUpdated, below(owner, ended[i].SessionID), &ended[i])
	}
	return nil
}

func (t *tx) endMessages(keys []int64) error {
	list := keysJSON(keys)
	if err := t.q.EndOpenMessages(bg, dbgen.EndOpenMessagesParams{UpdatedAt: t.now, Keys: list}); err != nil {
		return fmt.Errorf("end messages: %w", err)
	}
	if err := t.q.DeleteChunksOf(bg, list); err != nil {
		return fmt.Errorf("compact messages: %w", err)
	}
	return nil
}

// closeInteractions supersedes the open questions of turns that have settled.
func (t *tx) closeInteractions(turns []int64, owner *ident) error {
	open, err := t.q.OpenInteractionsOf(bg, keysJSON(turns))
	if err != nil || len(open) == 0 {
		return err
	}
	keys := make([]int64, len(open))
	for i := range open {
		keys[i] = open[i].PK
	}
	if err := t.q.SupersedeInteractions(bg, dbgen.SupersedeInteractionsParams{UpdatedAt: t.now, Keys: keysJSON(keys)}); err != nil {
		return fmt.Errorf("supersede questions: %w", err)
	}
	root, err := t.root(owner)
	if err != nil {
		return err
	}
	for i := range open {
		q := &open[i]
		next, _, _ := agent.NextInteraction(askState(q), agent.InteractionChange{Step: agent.AskWithdraw})
		if err := applyAsk(q, next); err != nil {
			return err
		}
		q.AnsweredBy, q.ErrorCode, q.ErrorText, q.UpdatedAt = "", "", "", t.now
		asker, err := t.session(q.SessionID)
		if err != nil {
			return err
		}
		t.emitInteraction(agent.InteractionUpdated, asker, q)
		t.count(root, -1)
		if asker.pk != root.pk {
			t.count(asker, -1)
		}
	}
	return nil
}
